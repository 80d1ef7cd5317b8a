# systemtap-cpython
#
#   make                the shim, stap-python and the driver, the tapset with the paths of this tree,
#                       man pages
#   make man            the man pages of the tapset only, in build/man
#   make demo           a first trace of a Python program, set-up included
#   make check          all test suites, set-up included
#   make check-every    the same with every CPython that is here and every item of some lists, of which
#                       make check takes one of each kind
#   make check-guest    the virtual machine in which make check runs stap: that stap is the same there
#   make check-distros  many of them with the Pythons, SystemTaps and kernels of Debian 12, 13 and sid
#   make check-dtrace   the markers and the scripts for DTrace with Debian sid's dtrace
#   make check-cpython  CPython's own tests, with the shim and without (long)
#   make check-memory   the shim under ASan, UBSan and valgrind (long)
#   make check-projects the own tests of Debian's Python projects, with the shim and without (long)
#   make check-stress   a day's bad luck for traced programs, in twenty minutes (fetches 1 GB, once)
#   make check-mutants  a hundred faults made on purpose, one at a time: a test must fail of each (long)
#   make bench          what the shim costs: a table (ARGS="--csv FILE --svg FILE": in files too)
#   make check-busy     each script for a minute on a web server under load (long)
#   make check-service  each script on a Django service, whose own counts it must tell (long)
#   make overhead       how much slower each script makes a web server, and a call (long)
#   make check-packages the Debian and the RPM packages: built, checked, installed and removed in roots
#                       of their own (long)
#   make install        also uninstall and installcheck: by the GNU standards (DESTDIR, prefix, ...)
#   make dist           the tarball, in build; distcheck: tried out as well
#   make deb, make rpm  the packages, in build/deb and build/rpm
#   make clean
#
# SPDX-License-Identifier: MIT

CFLAGS ?= -O2 -g
# Empty for a distribution, whose next compiler may warn of more.
WERROR = -Werror
# What is made goes here.
BUILD ?= build
# The machine's own additions to the tapset; it needn't be there.
LOCAL_TAPSET ?= /etc/systemtap/python_local.stp
# SystemTap's own tapset, beside which ours is tried out in build/tapset; in STAP_VM_ROOT.stap for
# that root's stap (test/vm/lib.sh).
STOCK_TAPSET ?= $(STAP_VM_ROOT)/usr/share/systemtap/tapset
tapset_build := $(if $(STAP_VM_ROOT),$(abspath $(STAP_VM_ROOT)).stap,$(BUILD))

# Where things are installed.
prefix = /usr/local
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
libdir = $(exec_prefix)/lib
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
docdir = $(datarootdir)/doc/systemtap-cpython
exampledir = $(datadir)/systemtap/examples/cpython
completiondir = $(datadir)/bash-completion/completions
# Where the installed stap reads tapsets: in its own folder only.
tapsetdir = /usr/share/systemtap/tapset
# In the place of SystemTap's own, if it has one; packages that see to that themselves have ours elsewhere.
python_stp = $(tapsetdir)/python.stp
# The shim's folder, and how the tapset finds it: by a pattern, where one tapset serves all machines.
shimdir = $(libdir)
shim_path = $(shimdir)/$(notdir $(shim))
# The same as LD_PRELOAD takes it, perhaps with ld.so's $LIB: shim_preload='/usr/$$LIB/libpython-stap.so.0'.
shim_preload = $(shimdir)/$(notdir $(shim))
INSTALL = install
INSTALL_PROGRAM = $(INSTALL)
INSTALL_SCRIPT = $(INSTALL)
INSTALL_DATA = $(INSTALL) -m 644

shim := $(BUILD)/libpython-stap.so.0
driver := $(BUILD)/driver
launcher := $(BUILD)/stap-python
launcher_sources := $(wildcard probes/stap_python*.c)
objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(filter-out $(launcher_sources),$(wildcard probes/*.c))) $(BUILD)/probes/markers.o

# What the sources rely on, whatever CFLAGS says.  initial-exec: the hooks' thread-local words cost
# no call.
shim_cflags := -std=c11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec -pthread -Iprobes -I$(BUILD)/probes -MMD -MP
shim_ldflags := -shared -pthread -Wl,-soname,$(notdir $(shim)) -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete

.PHONY: all man demo bench check check-busy check-cpython check-distros check-dtrace check-memory check-mutants
.PHONY: check-every check-guest check-packages check-projects check-service check-stress clean deb dist distcheck
.PHONY: install install-strip installcheck overhead rpm uninstall FORCE
.DELETE_ON_ERROR:

tapset_files := $(wildcard tapset/*.stp tapset/*.stpm)
tapsets := $(tapset_build)/tapset/python_paths.stpm $(tapset_build)/test/tapset/python_paths.stpm

# The names of the pages have colons, which a target can't have.
man_pages := $(BUILD)/man/.made

all: $(shim) $(driver) $(launcher) $(launcher).8 $(man_pages) $(if $(wildcard $(STOCK_TAPSET)),$(tapsets))

$(shim): $(objects)
	$(CC) $(CFLAGS) $(LDFLAGS) $(shim_ldflags) -o $@ $^ -ldl

$(BUILD)/probes/%.o: probes/%.c | $(BUILD)/probes/markers.h $(BUILD)/probes/native_list.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

$(BUILD)/probes/markers.o: shim_cflags += $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-mno-red-zone)
$(BUILD)/probes/markers.o: $(BUILD)/probes/markers.c $(BUILD)/probes/markers.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

$(BUILD)/probes/markers.h $(BUILD)/probes/markers.c: probes/markers.awk probes/python.d | $(BUILD)/probes
	awk -v part=$(subst .,,$(suffix $@)) -f $^ >$@

$(BUILD)/probes/native_list.h: probes/native.awk probes/native.list | $(BUILD)/probes
	awk -f $^ >$@

# stap-python.  What it has of the place where it is installed is in installed.h.  In $(BUILD) of a checkout
# it takes what is there, whatever that says.
launcher_objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(launcher_sources))
launcher_headers := $(addprefix $(BUILD)/probes/,native_table.h marker_names.h installed.h)

$(launcher): $(launcher_objects)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lelf -ldl

$(launcher_objects): | $(launcher_headers)

$(BUILD)/probes/native_table.h: probes/native.awk probes/native.list | $(BUILD)/probes
	awk -v part=table -f $^ >$@

$(BUILD)/probes/marker_names.h: probes/markers.awk probes/python.d | $(BUILD)/probes
	awk -v part=names -f $^ >$@

# Where ld.so's $LIB leads: Debian's lib/x86_64-linux-gnu; lib64, and lib for 32 bits.
library_folder = $(or $(addprefix lib/,$(shell $(CC) -print-multiarch 2>/dev/null)),$(shell $(CC) $(CFLAGS) \
	-dM -E -x c /dev/null | grep -q __LP64__ && echo lib64 || echo lib))

# Made anew where another make has other values.
$(BUILD)/probes/installed.h: VERSION FORCE | $(BUILD)/probes
	@new=$$(printf '#define %s "%s"\n' PACKAGE_VERSION "$$(cat VERSION)" SHIM_PATH '$(shim_preload)' \
		SCRIPTS_DIR '$(exampledir)' MULTIARCH '$(library_folder)'); \
	[ "$$new" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$new" >$@

$(launcher).8: probes/stap-python.8 VERSION | $(BUILD)/probes
	sed -e "s/@VERSION@/$$(cat VERSION)/" \
		-e "s/@DATE@/$${SOURCE_DATE_EPOCH:+$$(date -u -d "@$$SOURCE_DATE_EPOCH" +%F)}/" $< >$@

# The driver is linked with the shim's own sites and semaphores.
$(driver): $(BUILD)/test/driver.o $(addprefix $(BUILD)/probes/,markers.o code.o cpython.o)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -ldl

$(BUILD)/test/driver.o: test/driver.c | $(BUILD)/test/table.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -I$(BUILD)/test -c -o $@ $<

$(BUILD)/test/table.h: probes/markers.awk probes/python.d | $(BUILD)/test $(BUILD)/probes/markers.h
	awk -v part=table -f $^ >$@

$(BUILD)/probes $(BUILD)/test:
	mkdir -p $@

# What it includes is compiled elsewhere.
$(BUILD)/python_objects.stp: tapset/include.awk tapset/python_objects.stp.in probes/layout_page.h | $(BUILD)/probes
	awk -v folder=probes -f $(wordlist 1,2,$^) >$@

# All of the stock tapset but its python.stp, and all of ours: a SYSTEMTAP_TAPSET.  In the second
# the driver is the shim.
$(tapset_build)/tapset/python_paths.stpm: traced := $(shim)
$(tapset_build)/test/tapset/python_paths.stpm: traced := $(driver)
$(tapsets): tapset/paths.awk probes/native.list $(tapset_files) $(BUILD)/python_objects.stp
	rm -rf $(@D)
	mkdir -p $(dir $(@D))
	cp -as $(abspath $(STOCK_TAPSET)) $(@D)
	rm -f $(@D)/python.stp
	ln -s $(abspath $(tapset_files) $(BUILD)/python_objects.stp) $(@D)
	ln -s $(LOCAL_TAPSET) $(@D)/python_local.stp
	awk -v shim=$(abspath $(traced)) -f tapset/paths.awk probes/native.list >$@

man: $(man_pages)

# The pages have a date if SOURCE_DATE_EPOCH gives one.
$(man_pages): tapset/man.awk tapset/overview.3stap VERSION $(sort $(wildcard tapset/*.stp)) $(BUILD)/python_objects.stp
	rm -rf $(@D)
	mkdir -p $(@D)
	LC_ALL=C awk -v dir=$(@D) -v version="$$(cat VERSION)" \
		-v date="$${SOURCE_DATE_EPOCH:+$$(date -u -d "@$$SOURCE_DATE_EPOCH" +%F)}" \
		-v overview=tapset/overview.3stap -f tapset/man.awk $(filter %.stp,$^)
	touch $@

# The sub-makes see what test/setup has installed.
demo:
	@test/setup demo
	@$(MAKE) --no-print-directory all
	@test/demo

check:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/run

check-every:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@EVERY=1 test/run

check-guest:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/run test/vm/guest.bats

check-distros: all
	@test/distros

check-dtrace: all
	@test/dtrace fetch
	@test/run test/120-dtrace.bats

check-packages:
	@test/setup $@
	@$(MAKE) --no-print-directory all
	@test/packages/run

check-cpython check-memory check-projects check-stress:
	@test/setup $@
	@$(MAKE) --no-print-directory all
	@test/$(patsubst check-%,%,$@)/run

# ARGS are those of test/mutants/run.
check-mutants:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/mutants/run $(ARGS)

check-service:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/service

check-busy overhead:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/busy $(if $(filter overhead,$@),--overhead)

# ARGS are those of test/bench/run.
bench:
	@test/setup bench
	@$(MAKE) --no-print-directory all
	@test/bench/run $(ARGS)

docs = README.md LICENSE
# $(call files_of,FOLDER), $(call scripts_of,FOLDER)
files_of = $(filter-out %.stp %.d $(patsubst %/,%,$(wildcard $(1)/*/)),$(wildcard $(1)/*))
scripts_of = $(wildcard $(1)/*.stp $(1)/*.d)

# All that is installed by its own name: $(call do,KIND,FOLDER,FILES) for each.
define each_installed
$(call $(1),PROGRAM,$(shimdir),$(shim))
$(call $(1),PROGRAM,$(bindir),$(launcher))
$(call $(1),DATA,$(mandir)/man8,$(launcher).8)
$(call $(1),DATA,$(mandir)/man3,$(addprefix $(BUILD)/man/,$(shell LC_ALL=C ls $(BUILD)/man)))
$(call $(1),DATA,$(tapsetdir),$(filter-out tapset/python.stp,$(tapset_files)) $(BUILD)/python_objects.stp)
$(call $(1),DATA,$(exampledir),$(call files_of,scripts))
$(call $(1),SCRIPT,$(exampledir),$(call scripts_of,scripts))
$(call $(1),DATA,$(exampledir)/exporter,$(call files_of,scripts/exporter))
$(call $(1),SCRIPT,$(exampledir)/exporter,$(call scripts_of,scripts/exporter))
$(call $(1),DATA,$(docdir),$(docs))
endef
put = $(if $(strip $(3)),$(INSTALL) -d "$(DESTDIR)$(2)" && $(INSTALL_$(1)) $(3) "$(DESTDIR)$(2)")
drop = $(if $(strip $(3)),cd "$(DESTDIR)$(2)" 2>/dev/null || exit 0; rm -f $(notdir $(3)))
# The tapset of a package would be in the same place, and dpkg or rpm no longer know what is there.
unpackaged = @[ -n "$(DESTDIR)" ] || ! { \
	dpkg-query -W -f '$${Status}\n' systemtap-cpython-tapset | grep -v -e ' not-installed$$' -e ' config-files$$' || \
	rpm -q systemtap-cpython-tapset; } >/dev/null 2>&1 || \
	{ echo "make $@: the package systemtap-cpython-tapset is installed, whose files these are: remove it first, or give a DESTDIR" >&2; exit 1; }

install: $(shim) $(launcher) $(launcher).8 $(BUILD)/python_objects.stp $(man_pages)
	$(unpackaged)
	$(call each_installed,put)
	$(INSTALL) -d "$(DESTDIR)$(completiondir)"
	$(INSTALL_DATA) probes/stap-python.bash "$(DESTDIR)$(completiondir)/stap-python"
	awk -v shim='$(shim_path)' -f tapset/paths.awk probes/native.list >"$(DESTDIR)$(tapsetdir)/python_paths.stpm"
	chmod 644 "$(DESTDIR)$(tapsetdir)/python_paths.stpm"
	ln -sf $(LOCAL_TAPSET) "$(DESTDIR)$(tapsetdir)/python_local.stp"
	$(INSTALL) -d "$(DESTDIR)$(dir $(python_stp))"
	packaging/python-stp put tapset/python.stp "$(DESTDIR)$(python_stp)"

install-strip:
	$(MAKE) INSTALL_PROGRAM='$(INSTALL_PROGRAM) -s' install

uninstall: $(BUILD)/python_objects.stp $(man_pages)
	$(unpackaged)
	$(call each_installed,drop)
	rm -f "$(DESTDIR)$(completiondir)/stap-python"
	cd "$(DESTDIR)$(tapsetdir)" 2>/dev/null || exit 0; rm -f python_paths.stpm python_local.stp
	packaging/python-stp restore "$(DESTDIR)$(python_stp)"
	for folder in $(exampledir)/exporter $(exampledir) $(docdir); do rmdir "$(DESTDIR)$$folder" 2>/dev/null || true; done

# What it needs to know of where things are.
installcheck:
	@DESTDIR="$(DESTDIR)" tapsetdir="$(tapsetdir)" python_stp="$(python_stp)" shimdir="$(shimdir)" \
		shim_path="$(shim_path)" bindir="$(bindir)" exampledir="$(exampledir)" mandir="$(mandir)" test/installcheck

version := $(shell cat VERSION)
tarball := $(BUILD)/systemtap-cpython-$(version).tar.gz

# Bit for bit the same from a checkout and from its own tree.  It has the files that git knows, as they
# are here, with the date of the last commit.
dist:
	packaging/dist $(tarball)

distcheck: dist
	packaging/distcheck $(tarball)

deb: dist
	packaging/deb $(tarball) $(BUILD)/deb

rpm: dist
	packaging/rpm/build $(tarball) $(BUILD)/rpm

clean:
	! [ -e $(BUILD)/vm ] || test/vm/guest stop
	rm -rf $(BUILD)

-include $(objects:.o=.d) $(launcher_objects:.o=.d) $(BUILD)/test/driver.d

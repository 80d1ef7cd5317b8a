# systemtap-cpython
#
# "make help" prints what there is to make.
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
# $(call absolute,PATH), in quotes for the shell: $(abspath) takes a folder with a space in its name for two.
absolute = "$(if $(filter /%,$(1)),$(1),$(CURDIR)/$(1))"

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
# Where systemd reads units, also below /usr/local.
unitdir = $(prefix)/lib/systemd/system
# Where the installed stap reads tapsets: in its own folder only.
tapsetdir = /usr/share/systemtap/tapset
# In the place of SystemTap's own, if it has one; packages that see to that themselves have ours elsewhere.
python_stp = $(tapsetdir)/python.stp
# A site-packages: make install puts there what stap-python enable creates.  Empty: it does not.
python3_sitedir =
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
start_files := $(addprefix $(BUILD)/python_stap_start/,__init__.py python_stap.start __pycache__)
launcher_sources := $(wildcard probes/stap-python/*.c probes/stap-python/*/*.c)
objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(wildcard probes/shim/*/*.c))

# On 32 bits files have sizes and inodes of 64 bits, too, with which plain stat() fails.
large_files := $(if $(shell $(CC) $(CFLAGS) -dM -E -x c /dev/null | grep __LP64__),,-D_FILE_OFFSET_BITS=64)
# What the sources rely on, whatever CFLAGS says.  initial-exec: the hooks' thread-local words cost
# no call.
shim_cflags := -std=c11 -D_GNU_SOURCE $(large_files) -Wall -Wextra $(WERROR) -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec -pthread -Iprobes -I$(BUILD) -MMD -MP
shim_ldflags := -shared -Wl,-soname,$(notdir $(shim)) -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete

# One for each test/long/NAME/run.
long_checks := $(patsubst test/long/%/run,check-%,$(wildcard test/long/*/run))

.PHONY: all help man demo bench overhead check check-fast check-every check-nightly check-busy $(long_checks)
.PHONY: install install-strip uninstall installcheck dist distcheck deb rpm clean FORCE
.DELETE_ON_ERROR:

tapset_files := $(wildcard tapset/*.stp tapset/*.stpm)
made_tapset := $(patsubst tapset/%.in,$(BUILD)/%,$(wildcard tapset/*.stp.in))
tapsets := $(tapset_build)/tapset/python_paths.stpm $(tapset_build)/test/tapset/python_paths.stpm

# The names of the pages have colons, which a target can't have.
man_pages := $(BUILD)/man/.made

bpftrace_scripts := $(wildcard scripts/bpftrace/*.bt)
# Those of this tree, with the path of its shim.
bpftrace_made := $(bpftrace_scripts:scripts/%=$(BUILD)/%)

all: $(shim) $(driver) $(launcher) $(start_files) $(launcher).8 $(man_pages) $(bpftrace_made) $(if $(wildcard $(STOCK_TAPSET)),$(tapsets))

# The long checks say themselves what they are, in the comment at the head of their run.
define help
make                the shim, stap-python and the driver, the tapset with the paths of this tree, man pages
make man            the man pages of the tapset only, in build/man
make demo           a first trace of a Python program, set-up included

make check          all test suites, set-up included (20 minutes)
make check-fast     those that need neither root nor a tracer, without what takes long (2 minutes)
make check-every    all test suites with every CPython that is here, and every item of some lists of
                    which make check takes one of each kind
make check-nightly  make check-every and some long checks, one after the other
endef
export help

define help_of_the_rest

make bench          what the shim costs: a table (ARGS="--csv FILE --svg FILE": in files too)
make overhead       how much slower each script makes a web server, and a call (long)

make install        also uninstall and installcheck: by the GNU standards (DESTDIR, prefix, ...)
make dist           the tarball, in build; distcheck: tried out as well
make deb, make rpm  the packages, in build/deb and build/rpm
make clean          deletes build
endef
export help_of_the_rest

help:
	@echo "$$help"
	@for check in $(patsubst check-%,%,$(long_checks)); do \
		sed -n "s/^# make check-$$check: /$$(printf 'make check-%-8s' "$$check") /p" "test/long/$$check/run"; \
	done
	@echo "$$help_of_the_rest"

$(shim): $(objects)
	$(CC) $(CFLAGS) $(LDFLAGS) $(shim_ldflags) -o $@ $^

$(BUILD)/probes/%.o: probes/%.c | $(BUILD)/generated/markers_list.h $(BUILD)/generated/native_list.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

# The shim asks for no date, and clocks of 64 bits on 32 came with glibc 2.34.
$(objects): shim_cflags += -Iprobes/shim -U_TIME_BITS

# uprobes on 32-bit ARM know no Thumb instructions.
$(BUILD)/probes/shim/markers/markers.o: shim_cflags += $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-mno-red-zone)$(if $(filter arm%,$(shell $(CC) -dumpmachine)),-marm)

# A symbol's version, and the table of sites, are in asm statements, which link-time optimisation separates from their users.
$(BUILD)/probes/shim/os/glibc.o $(BUILD)/probes/shim/markers/markers.o: shim_cflags += -fno-lto

$(BUILD)/generated/markers_list.h: probes/generate/markers.awk probes/python.d | $(BUILD)/generated
	awk -f $^ >$@

$(BUILD)/generated/native_list.h: probes/generate/native.awk probes/native.list | $(BUILD)/generated
	awk -f $^ >$@

# stap-python.  installed.h has the paths of an installed one; in $(BUILD) of a checkout it uses the
# checkout's files instead.  And what stap-python enable writes, which a package may install itself.
launcher_objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(launcher_sources))

$(launcher): $(launcher_objects)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lelf -lz -ldl

$(launcher_objects): shim_cflags += -Iprobes/stap-python
$(launcher_objects): | $(BUILD)/generated/installed.h $(BUILD)/generated/flamegraph_js.h $(BUILD)/generated/functions_js.h

# A script for browsers, as a text in C.
$(BUILD)/generated/%_js.h: probes/stap-python/profile/%.js | $(BUILD)/generated
	{ echo 'static const char $*_js[] ='; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $<; echo ';'; } >$@

# What ld.so's $LIB stands for: lib/x86_64-linux-gnu on Debian, else lib64, or lib for 32 bits.
library_folder = $(or $(addprefix lib/,$(shell $(CC) -print-multiarch 2>/dev/null)),$(shell $(CC) $(CFLAGS) \
	-dM -E -x c /dev/null | grep -q __LP64__ && echo lib64 || echo lib))

# Written only if the values have changed, so that what includes it is not recompiled.
$(BUILD)/generated/installed.h: VERSION probes/stap-python/python_stap.pth FORCE | $(BUILD)/generated
	@new=$$(printf '#define %s "%s"\n' PACKAGE_VERSION "$$(cat VERSION)" SHIM_PATH '$(shim_preload)' \
		SCRIPTS_DIR '$(exampledir)' MULTIARCH '$(library_folder)' \
		PTH_LINE "$$(sed 's/[\\"]/\\&/g' probes/stap-python/python_stap.pth)"); \
	[ "$$new" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$new" >$@

# The module of python_stap.start (enable).  A file in place of the folder of its bytecode: else root's Pythons would
# write there, and no package would remove that.
$(BUILD)/python_stap_start/%: probes/stap-python/start/%
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/python_stap_start/__pycache__:
	@mkdir -p $(@D)
	echo 'This file keeps Python from writing bytecode here.' >$@

$(launcher).8: probes/stap-python/stap-python.8 VERSION | $(BUILD)/generated
	sed -e "s/@VERSION@/$$(cat VERSION)/" \
		-e "s/@DATE@/$$(date -u -d "@$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)}" +%F)/" $< >$@

# The driver is linked with the shim's own sites and semaphores.
driver_objects := $(addprefix $(BUILD)/test/,driver.o driver_description.o)

$(driver): $(driver_objects) $(addprefix $(BUILD)/probes/shim/,markers/markers.o os/process.o cpython/code.o cpython/symbols.o)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -ldl

$(driver_objects): shim_cflags += -Iprobes/shim
$(driver_objects): $(BUILD)/test/%.o: test/%.c | $(BUILD)/test $(BUILD)/generated/markers_list.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

$(BUILD)/generated $(BUILD)/bpftrace $(BUILD)/test:
	mkdir -p $@

# What they include is compiled elsewhere.
$(made_tapset): $(BUILD)/%.stp: tapset/generate/include.awk tapset/%.stp.in $(wildcard probes/shared/*.h) $(wildcard tapset/embedded/*) | $(BUILD)/generated
	awk -v folders="probes tapset" -f $(wordlist 1,2,$^) >$@

# The path of this tree, which some files hold; written only if the tree was moved.
place := $(BUILD)/generated/place.txt

$(place): FORCE | $(BUILD)/generated
	@[ "$(CURDIR)" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$(CURDIR)" >$@

# $(call with_shim,PATH,SCRIPT,FILE): writes the bpftrace script for the shim at that path, in quotes if it has a space.
with_shim = sed 's|@SHIM@|$(if $(word 2,$(1)),"$(1)",$(1))|' $(2) >$(3) && chmod 755 $(3)

$(bpftrace_made): $(BUILD)/%: scripts/% $(place) | $(BUILD)/bpftrace
	$(call with_shim,$(subst ",,$(call absolute,$(shim))),$<,$@)

# All of the stock tapset but its python.stp, and all of ours: a SYSTEMTAP_TAPSET.  In the second
# the driver is the shim.
$(tapset_build)/tapset/python_paths.stpm: traced := $(shim)
$(tapset_build)/test/tapset/python_paths.stpm: traced := $(driver)
$(tapsets): tapset/generate/paths.awk probes/shared/versions.h probes/native.list $(tapset_files) $(made_tapset) $(place)
	rm -rf $(@D)
	mkdir -p $(dir $(@D))
	cp -as $(call absolute,$(STOCK_TAPSET)) $(@D)
	rm -f $(@D)/python.stp
	ln -s $(foreach file,$(tapset_files) $(made_tapset),$(call absolute,$(file))) $(@D)
	ln -s $(LOCAL_TAPSET) $(@D)/python_local.stp
	awk -v shim=$(call absolute,$(traced)) -f tapset/generate/paths.awk probes/shared/versions.h probes/native.list >$@

man: $(man_pages)

# The pages have a date if SOURCE_DATE_EPOCH gives one.
$(man_pages): tapset/generate/man.awk tapset/generate/pages.awk tapset/overview.3stap VERSION $(sort $(wildcard tapset/*.stp)) $(made_tapset)
	rm -rf $(@D)
	mkdir -p $(@D)
	LC_ALL=C awk -v dir=$(@D) -v version="$$(cat VERSION)" \
		-v date="$${SOURCE_DATE_EPOCH:+$$(date -u -d "@$$SOURCE_DATE_EPOCH" +%F)}" \
		-v overview=tapset/overview.3stap $(addprefix -f ,$(wordlist 1,2,$^)) $(filter %.stp,$^)
	touch $@

# The sub-make sees what test/lib/setup has installed.
define ready
@test/lib/setup $@
@$(MAKE) --no-print-directory all
endef

demo:
	$(ready)
	@test/demo

check:
	$(ready)
	@test/lib/run

# Without test/lib/setup: what is not here is skipped.
check-fast: all
	@test/lib/run --fast

check-every:
	$(ready)
	@EVERY=1 test/lib/run

check-nightly:
	@test/lib/nightly

# ARGS are those of test/bench/run, and of the run of each long check, test/long/NAME/run.
bench:
	$(ready)
	@test/bench/run $(ARGS)

$(long_checks): check-%:
	$(ready)
	@test/long/$*/run $(ARGS)

# Its older name.
check-busy: check-load

overhead:
	@$(MAKE) --no-print-directory check-load ARGS="--overhead $(ARGS)"

profile_unit := probes/stap-python/profile/stap-python-profile.service
# Empty for a package that has it elsewhere.
license = LICENSE
# $(call files_of,FOLDER), $(call scripts_of,FOLDER)
files_of = $(filter-out %.stp %.d $(patsubst %/,%,$(wildcard $(1)/*/)),$(wildcard $(1)/*))
scripts_of = $(wildcard $(1)/*.stp $(1)/*.d)

# All that is installed by its own name: $(call do,KIND,FOLDER,FILES) for each.
define each_installed
$(call $(1),PROGRAM,$(shimdir),$(shim))
$(call $(1),DATA,$(shimdir)/python_stap_start,$(start_files))
$(call $(1),PROGRAM,$(bindir),$(launcher))
$(call $(1),DATA,$(mandir)/man8,$(launcher).8)
$(call $(1),DATA,$(mandir)/man3,$(addprefix $(BUILD)/man/,$(shell LC_ALL=C ls $(BUILD)/man)))
$(call $(1),DATA,$(tapsetdir),$(filter-out tapset/python.stp,$(tapset_files)) $(made_tapset))
$(call $(1),DATA,$(exampledir),$(call files_of,scripts))
$(call $(1),SCRIPT,$(exampledir),$(call scripts_of,scripts))
$(call $(1),DATA,$(exampledir)/exporter,$(call files_of,scripts/exporter))
$(call $(1),SCRIPT,$(exampledir)/exporter,$(call scripts_of,scripts/exporter))
$(call $(1),DATA,$(docdir),$(wildcard *.md) $(license))
$(call $(1),DATA,$(docdir)/tapset,$(wildcard tapset/*.md))
$(call $(1),DATA,$(docdir)/probes,$(wildcard probes/*.md))
$(call $(1),DATA,$(docdir)/test,$(wildcard test/*.md))
$(call $(1),DATA,$(docdir)/test/bench,$(wildcard test/bench/*.md))
$(foreach folder,$(long_documents),$(call $(1),DATA,$(docdir)/$(folder),$(wildcard $(folder)/*.md))$(newline))
$(call $(1),DATA,$(docdir)/packaging,$(wildcard packaging/*.md))
endef
# The folders of the long checks that have a document.
long_documents := $(patsubst %/README.md,%,$(wildcard test/long/*/README.md))
document_folders = $(addprefix $(docdir)/,packaging probes tapset test/bench $(long_documents) test/long test) $(docdir)
define newline


endef
put = $(if $(strip $(3)),$(INSTALL) -d "$(DESTDIR)$(2)" && $(INSTALL_$(1)) $(3) "$(DESTDIR)$(2)")
drop = $(if $(strip $(3)),cd "$(DESTDIR)$(2)" 2>/dev/null || exit 0; rm -f $(notdir $(3)))
# The tapset of a package would be in the same place, and dpkg or rpm no longer know what is there.
unpackaged = @[ -n "$(DESTDIR)" ] || ! { \
	dpkg-query -W -f '$${Status}\n' systemtap-cpython-tapset | grep -v -e ' not-installed$$' -e ' config-files$$' || \
	rpm -q systemtap-cpython-tapset; } >/dev/null 2>&1 || \
	{ echo "make $@: the package systemtap-cpython-tapset is installed, whose files these are: remove it first, or give a DESTDIR" >&2; exit 1; }

install: $(shim) $(start_files) $(launcher) $(launcher).8 $(made_tapset) $(man_pages)
	$(unpackaged)
	$(call each_installed,put)
	ln -srfn "$(DESTDIR)$(exampledir)" "$(DESTDIR)$(docdir)/scripts"
	$(INSTALL) -d "$(DESTDIR)$(completiondir)"
	$(INSTALL_DATA) probes/stap-python/stap-python.bash "$(DESTDIR)$(completiondir)/stap-python"
	$(INSTALL) -d "$(DESTDIR)$(unitdir)"
	sed 's|@BINDIR@|$(bindir)|' $(profile_unit) >"$(DESTDIR)$(unitdir)/$(notdir $(profile_unit))"
	chmod 644 "$(DESTDIR)$(unitdir)/$(notdir $(profile_unit))"
	awk -v shim='$(shim_path)' -f tapset/generate/paths.awk probes/shared/versions.h probes/native.list >"$(DESTDIR)$(tapsetdir)/python_paths.stpm"
	chmod 644 "$(DESTDIR)$(tapsetdir)/python_paths.stpm"
	$(INSTALL) -d "$(DESTDIR)$(exampledir)/bpftrace"
	$(foreach script,$(bpftrace_scripts),$(call with_shim,$(shim_path),$(script),"$(DESTDIR)$(exampledir)/bpftrace/$(notdir $(script))") &&) :
	ln -sf $(LOCAL_TAPSET) "$(DESTDIR)$(tapsetdir)/python_local.stp"
	$(INSTALL) -d "$(DESTDIR)$(dir $(python_stp))"
	packaging/python-stp put tapset/python.stp "$(DESTDIR)$(python_stp)"
ifneq (,$(python3_sitedir))
	$(INSTALL) -d "$(DESTDIR)$(python3_sitedir)"
	ln -srfn "$(DESTDIR)$(shimdir)/$(notdir $(shim))" "$(DESTDIR)$(python3_sitedir)/python_stap.so"
	ln -srfn "$(DESTDIR)$(shimdir)/python_stap_start" "$(DESTDIR)$(python3_sitedir)/python_stap_start"
	ln -srfn "$(DESTDIR)$(shimdir)/python_stap_start/python_stap.start" "$(DESTDIR)$(python3_sitedir)/python_stap.start"
	$(INSTALL_DATA) probes/stap-python/python_stap.pth "$(DESTDIR)$(python3_sitedir)"
endif

install-strip:
	$(MAKE) INSTALL_PROGRAM='$(INSTALL_PROGRAM) -s' install

uninstall: $(made_tapset) $(man_pages)
	$(unpackaged)
	$(call each_installed,drop)
	rm -f "$(DESTDIR)$(completiondir)/stap-python" "$(DESTDIR)$(unitdir)/$(notdir $(profile_unit))" "$(DESTDIR)$(docdir)/scripts"
	$(call drop,SCRIPT,$(exampledir)/bpftrace,$(bpftrace_scripts))
	cd "$(DESTDIR)$(tapsetdir)" 2>/dev/null || exit 0; rm -f python_paths.stpm python_local.stp
	packaging/python-stp restore "$(DESTDIR)$(python_stp)"
	$(if $(python3_sitedir),rm -f $(addprefix "$(DESTDIR)$(python3_sitedir)"/,python_stap.start python_stap.pth python_stap.so python_stap_start))
	for folder in $(shimdir)/python_stap_start $(exampledir)/exporter $(exampledir)/bpftrace $(exampledir) $(document_folders); do rmdir "$(DESTDIR)$$folder" 2>/dev/null || true; done

# What it needs to know of where things are.
installcheck:
	@DESTDIR="$(DESTDIR)" tapsetdir="$(tapsetdir)" python_stp="$(python_stp)" shimdir="$(shimdir)" \
		shim_path="$(shim_path)" bindir="$(bindir)" exampledir="$(exampledir)" mandir="$(mandir)" \
		python3_sitedir="$(python3_sitedir)" test/installcheck

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

-include $(objects:.o=.d) $(launcher_objects:.o=.d) $(driver_objects:.o=.d)

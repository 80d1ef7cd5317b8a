# systemtap-cpython
#
#   make                the shim, stap-python and the driver, the tapset with the paths of this tree,
#                       man pages
#   make man            the man pages of the tapset only, in build/man
#   make demo           a first trace of a Python program, set-up included
#   make check          all test suites, set-up included
#   make check-distros  many of them with the Pythons, SystemTaps and kernels of Debian 12, 13 and sid
#   make check-dtrace   the markers and the scripts for DTrace with Debian sid's dtrace
#   make check-cpython  CPython's own tests, with the shim and without (long)
#   make check-memory   the shim under ASan, UBSan and valgrind (long)
#   make check-busy     each script for a minute on a web server under load (long)
#   make overhead       how much slower each script makes a web server, and a call (long)
#   make clean
#
# SPDX-License-Identifier: MIT

CFLAGS ?= -O2 -g
# What is made goes here.
BUILD ?= build
# The machine's own additions to the tapset; it needn't be there.
LOCAL_TAPSET ?= /etc/systemtap/python_local.stp
# SystemTap's own tapset, beside which ours is tried out in build/tapset; in STAP_VM_ROOT.stap for
# that root's stap (test/vm/lib.sh).
STOCK_TAPSET ?= $(STAP_VM_ROOT)/usr/share/systemtap/tapset
tapset_build := $(if $(STAP_VM_ROOT),$(abspath $(STAP_VM_ROOT)).stap,$(BUILD))

shim := $(BUILD)/libpython-stap.so.0
driver := $(BUILD)/driver
launcher := $(BUILD)/stap-python
launcher_sources := $(wildcard probes/stap_python*.c)
objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(filter-out $(launcher_sources),$(wildcard probes/*.c))) $(BUILD)/probes/markers.o

# What the sources rely on, whatever CFLAGS says.  initial-exec: the hooks' thread-local words cost
# no call.
shim_cflags := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec -pthread -Iprobes -I$(BUILD)/probes -MMD -MP
shim_ldflags := -shared -pthread -Wl,-soname,$(notdir $(shim)) -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete

.PHONY: all man demo check check-busy check-cpython check-distros check-dtrace check-memory clean overhead
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

# ---- stap-python.  What it has of the place where it is installed is in installed.h: the shim as
# LD_PRELOAD takes it, perhaps with ld.so's $LIB (shim_preload='/usr/$$LIB/libpython-stap.so.0'), and the
# scripts.  In $(BUILD) of a checkout it takes what is there, whatever these say.  To be installed:
# $(launcher) in bindir, $(launcher).8 in mandir/man8, probes/stap-python.bash as stap-python in
# datadir/bash-completion/completions.
prefix = /usr/local
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
sbindir = $(exec_prefix)/sbin
libdir = $(exec_prefix)/lib
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
shim_path = $(libdir)/$(notdir $(shim))
shim_preload = $(shim_path)
exampledir = $(datadir)/systemtap/examples/cpython
launcher_objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(launcher_sources))
launcher_headers := $(addprefix $(BUILD)/probes/,native_table.h marker_names.h installed.h)

$(launcher): $(launcher_objects)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lelf -ldl

$(launcher_objects): | $(launcher_headers)

$(BUILD)/probes/native_table.h: probes/native.awk probes/native.list | $(BUILD)/probes
	awk -v part=table -f $^ >$@

$(BUILD)/probes/marker_names.h: probes/markers.awk probes/python.d | $(BUILD)/probes
	awk -v part=names -f $^ >$@

# Made anew where another make has other values.
$(BUILD)/probes/installed.h: VERSION FORCE | $(BUILD)/probes
	@printf '#define %s "%s"\n' PACKAGE_VERSION "$$(cat VERSION)" SHIM_PATH '$(shim_preload)' \
		SCRIPTS_DIR '$(exampledir)' MULTIARCH 'lib/$(shell $(CC) -print-multiarch)' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(launcher).8: probes/stap-python.8 VERSION | $(BUILD)/probes
	sed -e "s/@VERSION@/$$(cat VERSION)/" \
		-e "s/@DATE@/$${SOURCE_DATE_EPOCH:+$$(date -u -d "@$$SOURCE_DATE_EPOCH" +%F)}/" $< >$@

.PHONY: FORCE
# ---- end of stap-python

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

check-distros: all
	@test/distros

check-dtrace: all
	@test/dtrace fetch
	@test/run test/120-dtrace.bats

check-cpython check-memory:
	@test/setup $@
	@$(MAKE) --no-print-directory all
	@test/$(patsubst check-%,%,$@)/run

check-busy overhead:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/busy $(if $(filter overhead,$@),--overhead)

clean:
	! [ -e $(BUILD)/vm ] || test/vm/guest stop
	rm -rf $(BUILD)

-include $(objects:.o=.d) $(launcher_objects:.o=.d) $(BUILD)/test/driver.d

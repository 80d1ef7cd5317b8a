# systemtap-cpython
#
#   make          the shim, and the tapset with the paths of this tree
#   make demo     a first trace of a Python program, set-up included
#   make check    all test suites, set-up included
#   make check-cpython   CPython's own tests, with the shim and without (long)
#   make check-memory    the shim under ASan, UBSan and valgrind (long)
#   make clean
#
# SPDX-License-Identifier: MIT

CFLAGS ?= -O2 -g
# What is made goes here.
BUILD ?= build
# SystemTap's own tapset, beside which ours is tried out in build/tapset.
STOCK_TAPSET ?= /usr/share/systemtap/tapset

shim := $(BUILD)/libpython-stap.so.0
objects := $(patsubst probes/%.c,$(BUILD)/probes/%.o,$(wildcard probes/*.c)) $(BUILD)/probes/markers.o

# What the sources rely on, whatever CFLAGS says.  initial-exec: the hooks' thread-local words cost
# no call.
shim_cflags := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec -pthread -Iprobes -I$(BUILD)/probes -MMD -MP
shim_ldflags := -shared -pthread -Wl,-soname,$(notdir $(shim)) -Wl,-z,defs -Wl,-z,now

.PHONY: all demo check check-cpython check-memory clean
.DELETE_ON_ERROR:

all: $(shim) $(if $(wildcard $(STOCK_TAPSET)),$(BUILD)/tapset/python_paths.stpm)

$(shim): $(objects)
	$(CC) $(CFLAGS) $(LDFLAGS) $(shim_ldflags) -o $@ $^ -ldl

$(BUILD)/probes/%.o: probes/%.c | $(BUILD)/probes/markers.h $(BUILD)/probes/native_list.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

$(BUILD)/probes/markers.o: $(BUILD)/probes/markers.c $(BUILD)/probes/markers.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

$(BUILD)/probes/markers.h $(BUILD)/probes/markers.c: probes/markers.awk probes/python.d | $(BUILD)/probes
	awk -v part=$(subst .,,$(suffix $@)) -f $^ >$@

$(BUILD)/probes/native_list.h: probes/native.awk probes/native.list | $(BUILD)/probes
	awk -f $^ >$@

$(BUILD)/probes:
	mkdir -p $@

# All of the stock tapset but its python.stp, and all of ours: a SYSTEMTAP_TAPSET.
$(BUILD)/tapset/python_paths.stpm: tapset/paths.awk probes/native.list $(wildcard tapset/*.stp)
	rm -rf $(BUILD)/tapset
	mkdir -p $(BUILD)
	cp -as $(abspath $(STOCK_TAPSET)) $(BUILD)/tapset
	rm -f $(BUILD)/tapset/python.stp
	ln -s $(abspath $(wildcard tapset/*.stp)) $(BUILD)/tapset
	awk -v shim=$(abspath $(shim)) -f tapset/paths.awk probes/native.list >$@

# The sub-makes see what test/setup has installed.
demo:
	@test/setup demo
	@$(MAKE) --no-print-directory all
	@test/demo

check:
	@test/setup check
	@$(MAKE) --no-print-directory all
	@test/run

check-cpython check-memory:
	@test/setup $@
	@$(MAKE) --no-print-directory all
	@test/$(patsubst check-%,%,$@)

clean:
	! [ -e $(BUILD)/vm ] || test/vm/guest stop
	rm -rf $(BUILD)

-include $(objects:.o=.d)

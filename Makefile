# systemtap-cpython
#
#   make          the shim and the driver, and the tapset with the paths of this tree
#   make demo     a first trace of a Python program, set-up included
#   make check    all test suites, set-up included
#   make check-distros  those that need no stap, on the Pythons of Debian 12, 13 and sid
#   make clean
#
# SPDX-License-Identifier: MIT

CFLAGS ?= -O2 -g
# SystemTap's own tapset, beside which ours is tried out in build/tapset.
STOCK_TAPSET ?= /usr/share/systemtap/tapset

shim := build/libpython-stap.so.0
driver := build/driver
objects := $(patsubst probes/%.c,build/probes/%.o,$(wildcard probes/*.c)) build/probes/markers.o

# What the sources rely on, whatever CFLAGS says.  initial-exec: the hooks' thread-local words cost
# no call.
shim_cflags := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden \
	-ftls-model=initial-exec -pthread -Iprobes -Ibuild/probes -MMD -MP
shim_ldflags := -shared -pthread -Wl,-soname,$(notdir $(shim)) -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete

.PHONY: all demo check check-distros clean
.DELETE_ON_ERROR:

tapsets := build/tapset/python_paths.stpm build/test/tapset/python_paths.stpm

all: $(shim) $(driver) $(if $(wildcard $(STOCK_TAPSET)),$(tapsets))

$(shim): $(objects)
	$(CC) $(CFLAGS) $(LDFLAGS) $(shim_ldflags) -o $@ $^ -ldl

build/probes/%.o: probes/%.c | build/probes/markers.h build/probes/native_list.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

build/probes/markers.o: build/probes/markers.c build/probes/markers.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -c -o $@ $<

build/probes/markers.h build/probes/markers.c: probes/markers.awk probes/python.d | build/probes
	awk -v part=$(subst .,,$(suffix $@)) -f $^ >$@

build/probes/native_list.h: probes/native.awk probes/native.list | build/probes
	awk -f $^ >$@

# The driver is linked with the shim's own sites and semaphores.
$(driver): build/test/driver.o $(addprefix build/probes/,markers.o code.o cpython.o)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -ldl

build/test/driver.o: test/driver.c | build/test/table.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(shim_cflags) -Ibuild/test -c -o $@ $<

build/test/table.h: probes/markers.awk probes/python.d | build/test build/probes/markers.h
	awk -v part=table -f $^ >$@

build/probes build/test:
	mkdir -p $@

# All of the stock tapset but its python.stp, and all of ours: a SYSTEMTAP_TAPSET.  In the second
# the driver is the shim.
build/tapset/python_paths.stpm: traced := $(shim)
build/test/tapset/python_paths.stpm: traced := $(driver)
$(tapsets): tapset/paths.awk probes/native.list $(wildcard tapset/*.stp) | build/test
	rm -rf $(@D)
	cp -as $(abspath $(STOCK_TAPSET)) $(@D)
	rm -f $(@D)/python.stp
	ln -s $(abspath $(wildcard tapset/*.stp)) $(@D)
	awk -v shim=$(abspath $(traced)) -f tapset/paths.awk probes/native.list >$@

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

clean:
	! [ -e build/vm ] || test/vm/guest stop
	rm -rf build

-include $(objects:.o=.d) build/test/driver.d

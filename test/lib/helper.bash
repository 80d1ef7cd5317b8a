# shellcheck shell=bash
# What all suites, and the long checks of test/long/*/run, share: where things are, and the helpers of
# test/lib/helpers, a file for each subject.
#
# SPDX-License-Identifier: MIT

# $TREE is a copy of this tree: test/lib/setup_suite.bash.
top=${TREE:-$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")}
# $SHIM is a copy of the shim: test/lib/run.
export top shim=${SHIM:-$top/build/libpython-stap.so.0} driver=$top/build/driver
# The tapsets that the Makefile has made for the stap in use.
export tapsets=${STAP_VM_ROOT:-$top/build}${STAP_VM_ROOT:+.stap}
export LC_ALL=C
# How often longer than usual what is waited for may take: on an emulated processor.
export SLOW=${SLOW:-1}
# make check has stap's modules compiled with -O1, which takes three quarters of the time: pycalls 5.0 s,
# with -O2 6.5 s (stap -v -p4).  The kernel's build takes it from the environment.
[ -n "${EVERY:-}" ] || export KCFLAGS=-O1

# shellcheck source=test/lib/helpers/files.bash
source "$top/test/lib/helpers/files.bash"
# shellcheck source=test/lib/helpers/place.bash
source "$top/test/lib/helpers/place.bash"
# shellcheck source=test/lib/helpers/checks.bash
source "$top/test/lib/helpers/checks.bash"
# shellcheck source=test/lib/helpers/glibc.bash
source "$top/test/lib/helpers/glibc.bash"
# shellcheck source=test/lib/helpers/interpreters.bash
source "$top/test/lib/helpers/interpreters.bash"
# shellcheck source=test/lib/helpers/markers.bash
source "$top/test/lib/helpers/markers.bash"
# shellcheck source=test/lib/helpers/semaphores.bash
source "$top/test/lib/helpers/semaphores.bash"
# shellcheck source=test/lib/helpers/bpftrace.bash
source "$top/test/lib/helpers/bpftrace.bash"
# shellcheck source=test/lib/helpers/stap.bash
source "$top/test/lib/helpers/stap.bash"
# shellcheck source=test/lib/helpers/scripts.bash
source "$top/test/lib/helpers/scripts.bash"

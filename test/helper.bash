# shellcheck shell=bash
# What all suites, and the long checks of test/*/run, share: where things are, and the helpers of
# test/helpers, a file for each subject.
#
# SPDX-License-Identifier: MIT

# $TREE is a copy of this tree: test/host/setup_suite.bash.
top=${TREE:-$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")}
# $SHIM is a copy of the shim: test/run.
export top shim=${SHIM:-$top/build/libpython-stap.so.0} driver=$top/build/driver
# The tapsets that the Makefile has made for the stap in use.
export tapsets=${STAP_VM_ROOT:-$top/build}${STAP_VM_ROOT:+.stap}
export LC_ALL=C
# How often longer than usual what is waited for may take: on an emulated processor.
export SLOW=${SLOW:-1}
# make check has stap's modules compiled with -O1, which takes three quarters of the time: pycalls 5.0 s,
# with -O2 6.5 s (stap -v -p4).  The kernel's build takes it from the environment.
[ -n "${EVERY:-}" ] || export KCFLAGS=-O1

# shellcheck source=test/helpers/files.bash
source "$top/test/helpers/files.bash"
# shellcheck source=test/helpers/place.bash
source "$top/test/helpers/place.bash"
# shellcheck source=test/helpers/checks.bash
source "$top/test/helpers/checks.bash"
# shellcheck source=test/helpers/glibc.bash
source "$top/test/helpers/glibc.bash"
# shellcheck source=test/helpers/interpreters.bash
source "$top/test/helpers/interpreters.bash"
# shellcheck source=test/helpers/markers.bash
source "$top/test/helpers/markers.bash"
# shellcheck source=test/helpers/semaphores.bash
source "$top/test/helpers/semaphores.bash"
# shellcheck source=test/helpers/bpftrace.bash
source "$top/test/helpers/bpftrace.bash"
# shellcheck source=test/helpers/stap.bash
source "$top/test/helpers/stap.bash"
# shellcheck source=test/helpers/scripts.bash
source "$top/test/helpers/scripts.bash"

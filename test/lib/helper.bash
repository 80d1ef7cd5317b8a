# shellcheck shell=bash
# For all suites, and the long checks of test/long/*/run: the paths of the tree, and the helper functions in
# test/lib/helpers, a file for each subject.
#
# SPDX-License-Identifier: MIT

# $TREE: a copy of this tree, made by test/lib/setup_suite.bash.
top=${TREE:-$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")}
# $SHIM: a copy of the shim, made by test/lib/run.
export top shim=${SHIM:-$top/build/libpython-stap.so.0} driver=$top/build/driver
# The tapsets that the Makefile has made for the stap in use.
export tapsets=${STAP_VM_ROOT:-$top/build}${STAP_VM_ROOT:+.stap}
export LC_ALL=C
# The factor of time limits: how many programs each processor has to run, in fours. For an emulated processor it is given.
if [ -z "${SLOW:-}" ]; then
  read -r SLOW _ _ running _ </proc/loadavg
  SLOW=${SLOW%.*} running=${running%/*}
  SLOW=$((1 + (running > SLOW ? running : SLOW) / (4 * $(getconf _NPROCESSORS_ONLN))))
  unset running
fi
export SLOW
# make check compiles stap's modules with -O1, in three quarters of the time: pycalls in 5.0 s, with -O2 in
# 6.5 s (stap -v -p4).  The kernel's build reads KCFLAGS from the environment.
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
# shellcheck source=test/lib/helpers/web.bash
source "$top/test/lib/helpers/web.bash"

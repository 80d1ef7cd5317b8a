# Two parts of "make check-stress" in which tracers attach and detach; it runs longer, in all interpreters.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

stress() {
  ONLY_PYTHONS=$(system_python) STRESS=2 timeout -k 5 $((200 * SLOW)) "$top/test/long/stress/run" "$@"
}

@test "a program that leaves itself few system calls by seccomp goes on as without the shim, traced before, meanwhile and never" {
  run stress filters
  echo "$output"
  [ "$status" = 0 ]
}

@test "a program ends as without the shim while tracers come and go, its main thread alone included" {
  need_time "make check-stress"
  run stress exits
  echo "$output"
  [ "$status" = 0 ]
}

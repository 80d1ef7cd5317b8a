# Bad luck: a short part of "make check-stress", which does more of it, in all interpreters.
#
# SPDX-License-Identifier: MIT

load helper

stress() {
  ONLY_PYTHONS=$(system_python) STRESS=2 timeout -k 5 200 "$top/test/stress/run" "$@"
}

@test "a program that leaves itself few system calls by seccomp goes on as without the shim, traced before, meanwhile and never" {
  can_bpftrace
  run stress filters
  echo "$output"
  [ "$status" = 0 ]
}

@test "a program ends as without the shim while tracers come and go, its main thread alone included" {
  can_bpftrace
  run stress exits
  echo "$output"
  [ "$status" = 0 ]
}

@test "whatever fails of what the shim calls, the program goes on" {
  need gcc
  run stress failures
  echo "$output"
  [ "$status" = 0 ]
}

@test "the stress names its parts, and what is none of them" {
  run "$top/test/stress/run" --list
  [ "$status" = 0 ]
  [[ $output == *filters* ]]
  run "$top/test/stress/run" filter
  echo "$output"
  [ "$status" = 2 ]
  [[ $output == 'test/stress/run: there is no part "filter": take some of tracers '* ]]
}

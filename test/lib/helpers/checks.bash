# shellcheck shell=bash
# Checks of tests, and functions that skip a test with the reason.
#
# SPDX-License-Identifier: MIT

# The output and the exit status of a command.
outcome() {
  local status=0
  "$@" 2>&1 || status=$?
  echo "status $status"
}

# Fails if the command succeeds.  "! COMMAND" would fail a test only in its last line.
refute() {
  if "$@"; then return 1; fi
}

# Waits until the command succeeds, at most 20 seconds times SLOW, or says on stderr what was waited for.
wait_for() {
  local end=$((SECONDS + 20 * SLOW))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || {
      echo "waited in vain for: $*" >&2
      return 1
    }
    sleep 0.05
  done
}

# Whether a thread of the process $1 has the line $3, a regular expression, in its file $2 of /proc.
thread_has() {
  grep -qsx "$3" /proc/"$1"/task/*/"$2"
}

need() {
  local tool
  for tool; do
    type -P "$tool" >/dev/null || skip "needs $tool"
  done
}

# Skips a test unless programs can set filters of system calls; $1: the machine by whose numbers the test makes calls.
need_seccomp() {
  [ $# -eq 0 ] || [ "$(uname -m)" = "$1" ] || skip "needs $1: it makes system calls by their numbers"
  grep -q '^Seccomp:' /proc/self/status || skip "needs a kernel with seccomp"
}

# Skips a test unless EVERY=1 (make check-every); $1: the long check that has it, too.
need_time() {
  [ -n "${EVERY:-}" ] || skip "needs time: ${1:+$1, or }make check-every"
}

# Every $1th line of a list; with EVERY all lines.
some() {
  if [ -n "${EVERY:-}" ]; then cat; else awk -v every="$1" 'NR % every == 1'; fi
}

# Checks that a long check refuses each of these arguments in one line, which names the last word and --help.
# usage: refuses_arguments test/long/NAME/run ARGUMENTS...
refuses_arguments() {
  local arguments
  for arguments in "${@:2}"; do
    # shellcheck disable=SC2086
    run "$top/$1" $arguments
    echo "$output"
    # shellcheck disable=SC2154 # lines: by bats
    [ "$status" = 2 ] && [ "${#lines[@]}" = 1 ] || return 1
    [[ $output == "$1: "*"${arguments##* }"*"(see $1 --help)" ]] || return 1
  done
}

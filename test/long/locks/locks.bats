# Each script in a kernel that checks its locks: test/long/locks/run makes it, and starts the guest.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper

setup() {
  scripts_setup
  guest=$top/test/vm/guest
  "$guest" exec test -e /proc/lockdep || skip "needs a kernel that checks its locks: make check-locks"
}

# What the kernel says of locks. After the first such report it checks no more, so the guest is started anew.
teardown() {
  [ ! "${BATS_TEST_SKIPPED:-}" ] || return 0
  # of a guest that has died: the next command starts another one
  "$guest" console | tail -n 60
  "$guest" exec dmesg >"$BATS_TEST_TMPDIR/dmesg"
  grep -E -A 40 'BUG|WARNING|INFO: |Oops|lockup|[^n]stall' "$BATS_TEST_TMPDIR/dmesg" || return 0
  "$guest" stop
  false
}

# After a report the kernel checks locks no more.
still_checks() {
  [ "$("$guest" exec cat /proc/lockdep_stats | awk '/debug_locks:/ { print $2 }')" = 1 ]
}

@test "the kernel has nothing to say of the locks of any script" {
  # the arguments of the scripts that can't do without
  local -A arguments=([pydist]='deep f_7' [pyline]='*/eightfold.py:*' [pyslow]=20 [pyrequest]='main' [pywatch]='deep')
  local script command="env LD_PRELOAD=$shim $system $top/test/workloads/eightfold.py 2"
  for script in "$top"/scripts/*.stp; do
    script=$(basename "$script" .stp)
    # for one process
    [ "$script" != pydump ] || continue
    echo "# $script" >&3
    script_says "$script" -c "$command" ${arguments[$script]+"${arguments[$script]}"}
    still_checks
  done
  echo "# pyfaults -G types=1, which looks for names in files" >&3
  script pyfaults -G types=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/faults.py preforks" >/dev/null
  still_checks
}

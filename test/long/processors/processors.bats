# Probes that run on eight processors at the same time: nothing is lost or counted twice, and the kernel has nothing to say.
# test/long/processors/run starts the guest.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper

setup() {
  scripts_setup
  command="env LD_PRELOAD=$shim $system $top/test/workloads/eightfold.py"
  [ "$("$top/test/vm/guest" exec nproc)" = 8 ] || skip "needs a guest of eight processors: make check-processors"
}

# What the kernel has said that should not be: of locks, of sleeping where that must not be, of processors that don't answer.
teardown() {
  "$top/test/vm/guest" exec dmesg >"$BATS_TEST_TMPDIR/dmesg"
  refute grep -E 'BUG|WARNING|INFO: |Oops|Call Trace|lockup|stall' "$BATS_TEST_TMPDIR/dmesg"
}

@test "calls that processors measure at the same time are counted and timed exactly" {
  script pydist -G top=200 -c "$command"
  for number in {0..21}; do
    grep -q "^f_$number in <string>: $((8 * 131)) calls," "$printed"
  done
  grep -q "^deep in .*/eightfold.py: $((8 * 131 * 40)) calls," "$printed"
  # each histogram has each call
  awk 'match($0, /: [0-9]+ calls,/) { wanted += substr($0, RSTART + 2) } / \|[@ ]* +[0-9]+$/ { n += $NF } END { print wanted, n; exit wanted != n }' "$printed"
}

@test "stacks of calls that processors extend at the same time have all calls" {
  script pystacks -G calls=1 -c "$command"
  # 40 deep, each in the one before
  [ "$(grep -oE '(;deep){40} [0-9]+$' "$printed" | awk '{ n += $2 } END { print n }')" = $((8 * 131)) ]
  [ "$(awk '/;f_7 [0-9]+$/ { n += $NF } END { print n }' "$printed")" = $((8 * 131)) ]
}

@test "stacks that processors sample at the same time are possible, and none is unknown" {
  script pyprof 997 -G lines=1 -G kernel=1 -G native=1 -c "$command"
  awk '/;computes / || /;computes \(/ { n += $NF } END { print n " samples"; exit n < 200 }' "$printed"
  refute grep -E '\(other\)|\(no room\)' "$printed"
  # who calls whom
  refute grep -E ';(f_[0-9]+|deep) \([^;]*\);(calls|sleeps|computes|main) ' "$printed"
  refute grep -E ';(sleeps|calls) \([^;]*\);computes ' "$printed"
}

@test "sleeps on processors at the same time are counted exactly" {
  script pyblocked -G json=1 -c "$command" >"$BATS_TEST_TMPDIR/said"
  cat "$BATS_TEST_TMPDIR/said"
  [ "$(grep -cE '^[0-9]+ sleeps$' "$BATS_TEST_TMPDIR/said")" = 8 ]
  python3 - "$printed" "$(awk '/^[0-9]+ sleeps$/ { n += $1 } END { print n }' "$BATS_TEST_TMPDIR/said")" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
sleeps = sum(row["sleeps"] for row in rows if row.get("kind") == "timer" and any("sleeps" in str(frame) for frame in row.get("stack", [])))
print(sleeps, "sleeps of", sys.argv[2])
sys.exit(sleeps != int(sys.argv[2]))
PY
}

@test "waits for the GIL of eight processes are told apart, and each has its holder" {
  script pygil -G folded=1 -G by_process=1 -c "$command"
  [ "$(grep -oE '^[^;]+\([0-9]+\)' "$printed" | sort -u | wc -l)" = 8 ]
  # its two threads wait for each other
  [ "$(grep -E ';computes [^;]*;\[GIL\];.*;computes [^;]*$' "$printed" | grep -oE '^[^;]+\([0-9]+\)' | sort -u | wc -l)" = 8 ]
  refute grep -F '[unknown]' "$printed"
}

@test "a table that is too small for what processors add at the same time keeps its sums" {
  stap -DPYTHON_STACKS=64 -o "$printed" "$top/scripts/pystacks.stp" -G calls=1 -c "$command" 2>"$printed.said"
  cat "$printed.said"
  # all calls of all functions, whatever name their row has
  awk '{ n += $NF } END { print n; exit n < 8 * 131 * (22 + 40) }' "$printed"
  grep -q 'are merged' "$printed.said"
}

# A program that is traced computes what it computes untraced, whatever it does.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  can_bpftrace
}

@test "hostile programs print and end with all markers probed as without the shim" {
  local cases
  cases=$(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$top/test/workloads/hostile.py")
  [ "$(wc -w <<<"$cases")" -ge 8 ]
  cat >"$BATS_TEST_TMPDIR/all" <<'SH'
for python in $pythons; do
  for case in $cases; do
    plain=$("$python" "$top/test/workloads/hostile.py" "$case" 2>&1)
    plain="$? $plain"
    traced=$(LD_PRELOAD=$shim timeout -k 1 20 "$python" "$top/test/workloads/hostile.py" "$case" 2>&1)
    traced="$? $traced"
    [ "$plain" = "$traced" ] || printf '%s %s: expected %s, got %s\n' "$python" "$case" "$plain" "$traced"
  done
done
SH
  TRACE_TIMEOUT=200 cases=$cases pythons=$(pythons) bpftrace_while "$(all_markers)" bash "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/differences"
  head -c 2000 "$BATS_TEST_TMPDIR/differences"
  [ ! -s "$BATS_TEST_TMPDIR/differences" ]
  # they were traced
  [ "$(sed -n 's/^@: //p' "$trace")" -gt 10000 ]
}

@test "a program that is traced has no objects made for its frames, from 3.11 on" {
  local python
  cat >"$BATS_TEST_TMPDIR/frames.py" <<'PY'
import sys


def blocks(depth):
    return blocks(depth - 1) if depth else sys.getallocatedblocks()


blocks(300)
print(sys.version_info < (3, 11) or blocks(300) - blocks(0) < 100)
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/frames.py" >"$BATS_TEST_TMPDIR/traced"
    grep -qx True "$BATS_TEST_TMPDIR/traced"
    # and yet each frame has an address, the same at both ends
    awk '/^[<>] .*frames.py blocks / { n[$1]++; addresses[$5]; key = $1 == ">" ? ++depth : depth--
          if ($1 == ">") at[key] = $5; else if (at[key] != $5) bad = 1 }
      END { for (a in addresses) different++; exit bad || n[">"] != n["<"] || n[">"] < 301 || different < 301 }' "$trace"
  done
}

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

# CPython's own tests of what the shim hooks have the same results with all markers probed as without the shim: a few
# tests, in the newest CPython, or with EVERY in one for each way of hooking.  "make check-cpython" runs many more, in
# all CPythons.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

@test "CPython's tests of tracing, gc, audit and fork come out as without the shim" {
  can_bpftrace
  local python with_tests=() options=() status=0
  for python in $(pythons); do
    if "$python" -c 'import test.test_sys_settrace' 2>/dev/null; then
      with_tests+=("$python")
    else
      echo "# $python does not ship CPython's tests" >&3
    fi
  done
  [ ${#with_tests[@]} -gt 0 ] || skip "needs an interpreter that ships CPython's tests, as pyenv's do"
  # shellcheck disable=SC2046
  set -- $(pythons_by_hook "${with_tests[@]}")
  # the newest; the free-threaded ones only if there is no other
  [ -n "${EVERY:-}" ] || set -- "$(printf '%s\n' "$@" | with_minor | awk '{ last[$1 ~ /t$/] = $2 } END { print 0 in last ? last[0] : last[1] }')"
  for python; do
    options+=(-p "$python")
  done
  timeout -k 5 $((300 * SLOW)) "$top/test/long/cpython/run" --limit 120 "${options[@]}" test_audit test_gc \
    test_sys_settrace test_fork1 ${EVERY:+test_coroutines test_generators test_sys_setprofile test_monitoring} >"$BATS_TEST_TMPDIR/said" || status=$?
  cat "$BATS_TEST_TMPDIR/said"
  refute grep 'left out' "$BATS_TEST_TMPDIR/said"
  [ "$status" = 0 ]
}

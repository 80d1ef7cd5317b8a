# CPython's own tests of what the shim hooks into come out with all markers probed as without the
# shim: a few of them, in one interpreter for each way of hooking.  "make check-cpython" runs many
# more, in all.
#
# SPDX-License-Identifier: MIT

load helper

@test "CPython's tests of tracing, generators, gc, audit and fork come out as without the shim" {
  can_bpftrace
  local python with_tests=() options=()
  for python in $(pythons); do
    if "$python" -c 'import test.test_sys_settrace' 2>/dev/null; then
      with_tests+=("$python")
    else
      echo "# $python does not ship CPython's tests" >&3
    fi
  done
  [ ${#with_tests[@]} -gt 0 ] || skip "needs an interpreter that ships CPython's tests, as pyenv's do"
  for python in $(pythons_by_hook "${with_tests[@]}"); do
    options+=(-p "$python")
  done
  timeout -k 5 300 "$top/test/cpython/run" "${options[@]}" \
    test_sys_settrace test_sys_setprofile test_monitoring test_generators test_coroutines test_gc test_audit test_fork1
}

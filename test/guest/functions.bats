# The tapset's functions: stacks, the arguments of audit events, versions.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  system=$(system_python)
}

# What a Python prints of its own stacks is what SystemTap does; $1 is preloaded.
# usage: prints_its_stacks PRELOADED PYTHON PROGRAM...
prints_its_stacks() {
  local output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  from_shim_for "$2" >"$BATS_TEST_TMPDIR/stacks.stp" <<'STP'
probe python.function.entry, python.function.return {
  if (funcname == "here") print_python_backtrace(frameptr)
}
STP
  stap -o "$output" "$BATS_TEST_TMPDIR/stacks.stp" \
    -c "env PYTHONIOENCODING=utf-8 'LD_PRELOAD=$1' ${*:2}" >"$expected"
  [ "$(wc -l <"$expected")" -gt 200 ]
  diff "$expected" "$output"
}

@test "python_backtrace() prints the stack that Python itself walks" {
  local python program
  cat >"$BATS_TEST_TMPDIR/thread.py" <<'PY'
import runpy, sys, threading
thread = threading.Thread(target=runpy.run_path, args=(sys.argv[1],))
thread.start()
thread.join()
PY
  for python in $(guest_pythons); do
    echo "$python"
    # in a free-threaded build another thread than the first runs a copy of the instructions
    for program in "" "$BATS_TEST_TMPDIR/thread.py"; do
      prints_its_stacks "$shim" "$python" ${program:+"$program"} "$top/test/workloads/stacks.py"
    done
  done
}

@test "python_backtrace() finds the page at its second address" {
  make_taker "$BATS_TEST_TMPDIR" 0x550070790000
  prints_its_stacks "$shim $BATS_TEST_TMPDIR/taker.so" "$system" "$top/test/workloads/stacks.py"
}

@test "a stack is cut where it is too deep or too long, and unknown where there is none" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/deep.py" <<'PY'
def deeper(depth):
    if depth:
        deeper(depth - 1)


deeper(100)
PY
  stap -o "$output" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/deep.py" -e '
    global depth
    probe python.function.entry {
      if (funcname != "deeper" || ++depth != 101) next
      print_python_backtrace(frameptr, 2)
      println("--")
      print_python_backtrace(frameptr)
      println("--")
      print_python_backtrace(frameptr, 1000)
      println("--")
      print(python_backtrace(frameptr))
      println("--")
      println(python_backtrace(0) =~ "^File [^ ]*/deep.py., line [13], in deeper\n")
      print(python_backtrace(frameptr, 0), python_backtrace(frameptr + 1), python_backtrace(0xffffffff81000000))
      println(python_argstr(0), python_argstr(0xdead), python_argstr(__python_local_object(frameptr, "deeper")))
    }'
  csplit -s -f "$output." "$output" '/^--$/' '{*}'
  local here="File \"$BATS_TEST_TMPDIR/deep.py\", line"
  diff "$output.00" - <<EXPECTED
$here 1, in deeper
$here 3, in deeper
...
EXPECTED
  [ "$(grep -c "^$here" "$output.01")" = 64 ]
  [ "$(tail -n 1 "$output.01")" = ... ]
  [ "$(grep -c "^$here" "$output.02")" = 102 ]
  [ "$(tail -n 1 "$output.02")" = "$here 6, in <module>" ]
  [ "$(grep -cv "^$here [13], in deeper$" "$output.03")" = 2 ]
  [ "$(tail -n 1 "$output.03")" = ... ]
  diff <(tail -n +2 "$output.04") - <<'EXPECTED'
1
...
<unknown>
<unknown>
<unknown><function>
EXPECTED
}

@test "python_argstr() is repr() for what audit events pass, from the shim and from CPython's own marker" {
  local python preload output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  local audited=$top/test/workloads/audited.py
  for python in $(guest_pythons); do
    case $(version_of "$python") in 3.[67]) continue ;; esac
    for preload in "$shim" ''; do
      # Only an interpreter with markers of its own has them without the shim.
      [ -n "$preload" ] || grep -qx audit <(own_markers "$python" "$(own_file "$python")") || continue
      echo "$python $preload"
      stap -DMAXSTRINGLEN=1024 -o "$output" -e 'probe python.audit { if (event == "stap") println(probestr) }' \
        -c "env PYTHONIOENCODING=utf-8 LD_PRELOAD=$preload $python -X utf8 $audited" >"$expected"
      [ "$(wc -l <"$expected")" -gt 20 ]
      diff "$expected" "$output"
    done
  done
}

@test "text that has no room ends in dots, in whole lines of a stack and whole characters" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/short.py" <<'PY'
exec(compile("""import sys
def f():
    sys.audit("own", "\u4e2d" * 40, 1)
def caller(depth):
    caller(depth - 1) if depth else f()
caller(3)""", "x.py", "exec"))
PY
  stap -DMAXSTRINGLEN=64 -o "$output" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/short.py" -e '
    probe python.audit { if (event == "own") println(argstr) }
    probe python.function.entry {
      if (funcname == "f") print(python_backtrace(frameptr), "--\n", python_backtrace(frameptr, 1), "--\n")
    }'
  cat "$output"
  # 64 bytes with the NUL: 3 for the dots, 2 before, and as many of three as fit
  grep -qx "('$(printf '\xe4\xb8\xad%.0s' {1..19})\.\.\." "$output"
  diff <(grep -v "^(" "$output") - <<'EXPECTED'
File "x.py", line 2, in f
...
--
File "x.py", line 2, in f
...
--
EXPECTED
}

@test "python_version() tells each process's version, in any probe" {
  need_time
  local output=$BATS_TEST_TMPDIR/output python all number=84
  all=$(pythons_by_hook | tr '\n' ' ')
  cat >"$BATS_TEST_TMPDIR/ask.py" <<'PY'
import os
os.rmdir("/nonexistent")
PY
  # rmdir(2), which the C library makes of unlinkat(2) on aarch64
  [ "$(uname -m)" != aarch64 ] || number=35
  stap -o "$output" -e "probe process.syscall { if (\$syscall == $number) println(\"[\", python_version(), \"]\") }" \
    -c "sh -c 'for python in $all; do LD_PRELOAD=$shim \$python $BATS_TEST_TMPDIR/ask.py; done 2>/dev/null; rmdir /nonexistent
      $system $BATS_TEST_TMPDIR/ask.py 2>/dev/null; true'"
  for python in $all; do
    echo "[$("$python" -c 'import sys; print(sys.version.split()[0])')]"
  done >"$BATS_TEST_TMPDIR/expected"
  printf '[]\n[%s]\n' "$(version_of "$system")" >>"$BATS_TEST_TMPDIR/expected"
  diff "$BATS_TEST_TMPDIR/expected" "$output"
}

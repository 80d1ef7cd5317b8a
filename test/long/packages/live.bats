# The Debian packages at work: in a fresh Debian 12 with its SystemTap, Python and kernel, to which only they
# were added, stap probes a Python, in a guest with that root.
#
# Debian 12's SystemTap has two faults on its own kernel, which test/vm/runtime corrects in a copy of its
# runtime.  Everything else is what apt installed.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper
load lib

setup_file() {
  # uprobes need real files, no overlay
  export STAP_VM_ROOT=$top/build/packages/live
  rm -rf --one-file-system "$STAP_VM_ROOT" "$STAP_VM_ROOT.stap"
  cp -a "$top/build/packages/roots/bookworm" "$STAP_VM_ROOT"
  root=$STAP_VM_ROOT in_root apt-get -q -y --no-install-recommends install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
}

teardown_file() {
  "$top/test/vm/guest" stop
  rm -rf --one-file-system "$STAP_VM_ROOT" "$STAP_VM_ROOT.stap"
}

setup() {
  need qemu-system-x86_64 ssh
  export root=$STAP_VM_ROOT
  program=$top/test/workloads/call_stack.py
  python="stap-python run /usr/bin/python3"
}

@test "live, the packages installed: stap sees each call and return once, as the interpreter does" {
  in_root env EXPECT="$BATS_TEST_TMPDIR/expected" /usr/bin/python3 "$top/test/lib/expect.py" "$program"
  STAP_TIMEOUT=300 stap -o "$BATS_TEST_TMPDIR/output" -c "$python $program" -e '
    probe python.function.entry { if (filename == @1) printf("> %s %d\n", funcname, lineno) }
    probe python.function.return { if (filename == @1) printf("< %s %d\n", funcname, lineno) }' "$program"
  [ "$(grep -cE '^[<>]' "$BATS_TEST_TMPDIR/expected")" -gt 20 ]
  diff <(grep -E '^[<>]' "$BATS_TEST_TMPDIR/expected") <(grep -E '^[<>]' "$BATS_TEST_TMPDIR/output")
}

@test "live, the packages installed: a script of the package shows what the program does" {
  STAP_TIMEOUT=300 stap -o "$BATS_TEST_TMPDIR/output" /usr/share/systemtap/examples/cpython/pyflow.stp -c "$python $program" '*/call_stack.py:*'
  cat "$BATS_TEST_TMPDIR/output"
  grep -E '=> main in .*/call_stack.py:[0-9]+$' "$BATS_TEST_TMPDIR/output"
  grep -E '<= <module> in .*/call_stack.py:[0-9]+$' "$BATS_TEST_TMPDIR/output"
}

# shellcheck shell=bash
# Runs stap, here or in the guest, and makes tapsets for it.
#
# SPDX-License-Identifier: MIT

# test/long/distros/run runs the suites that call this function with the stap of each of its roots.
need_stap() {
  [ -n "${STAP_VM_ROOT:-}" ] || need stap
}

# need_stap for suites that compile modules.  Skips if the root's stap reports that it is too old for the root's
# kernel, and fails.  One that only takes too long is not too old.
need_live_stap() {
  local said range status=0
  need_stap
  [ -n "${STAP_VM_ROOT:-}" ] || return 0
  need qemu-system-x86_64 ssh
  said=$(stap -p4 -e "probe process(\"$driver\").mark(\"function__entry\") { println(1) __python_output() }" 2>&1) || status=$?
  if [ "$status" = 1 ] && range=$(grep -m 1 'outside tested range' <<<"$said"); then
    skip "needs a stap that compiles for its kernel: ${range,}"
  fi
}

# Runs stap, here or in the guest, for at most ten minutes, for a machine that is busy with other work: what stops the guest in a
# probe counts as the probe's time, of which stap allows half a second in each, and another one then waits for its lock.
stap_patience=(-DSTP_NO_OVERLOAD -DMAXTRYLOCK=100000)
stap() {
  timeout -k 5 "$((${STAP_TIMEOUT:-600} * SLOW))" "$top/test/vm/stap" "${stap_patience[@]}" "$@"
}

# Runs a command in the guest, for at most ten minutes.
in_guest() {
  timeout -k 5 "$((600 * SLOW))" "$top/test/vm/guest" exec -- "$@" </dev/null
}

# Runs stap with the tapset folder $tapset.  With -p2 or -p4 nothing runs, and no guest is started.
stap_with_tapset() {
  SYSTEMTAP_TAPSET=$tapset stap "$@"
}

# Turns python.X into python.shim.X for an interpreter with native function markers, which pass neither frame nor
# module, and report fewer lines.
# usage: from_shim_for PYTHON <SCRIPT
from_shim_for() {
  if grep -qx function__entry <(own_markers "$1" "$(own_file "$1")"); then
    sed 's/python\.\([a-z]*[. "]\)/python.shim.\1/g'
  else
    cat
  fi
}

# The files with the doc comments of which the man pages are made.
tapset_sources=("$top"/tapset/*.stp "$top"/build/python_*.stp)

# Writes the examples of the man pages to files in the folder $1.  Prints for each its probe or function, the file
# and, if there is one, its command line, in which SCRIPT stands for the file; with tabs between them.
examples() {
  mkdir -p "$1"
  awk -v part=examples -v dir="$1" -f "$top/tapset/generate/man.awk" "${tapset_sources[@]}"
}

# Makes a tapset that searches for native markers in a folder of this test, with a python3.10 and a python3.11 that
# have all of them, with CPython's arguments.
tapset_with_native_python() {
  local folder=$BATS_TEST_TMPDIR/native
  mkdir -p "$folder/bin"
  cat >"$folder/python.c" <<'C'
#include <sys/sdt.h>
int main(int argc, char **argv)
{
    STAP_PROBE3(python, function__entry, "native.py", argv[0], argc);
    STAP_PROBE3(python, function__return, "native.py", argv[0], argc);
    STAP_PROBE3(python, line, "native.py", argv[0], argc);
    STAP_PROBE1(python, gc__start, 2);
    STAP_PROBE1(python, gc__done, 7L);
    STAP_PROBE1(python, import__find__load__start, "native");
    STAP_PROBE2(python, import__find__load__done, "native", 1);
    STAP_PROBE2(python, audit, "native", argv);
    return 0;
}
C
  gcc -o "$folder/bin/python3.10" "$folder/python.c"
  cp "$folder/bin/python3.10" "$folder/bin/python3.11"
  cp -a "$tapsets/tapset" "$folder/tapset"
  sed "s,^path /usr/bin/,path $folder/bin/," "$top/probes/native.list" |
    awk -v shim="$shim" -f "$top/tapset/generate/paths.awk" "$top/probes/shared/versions.h" - >"$folder/tapset/python_paths.stpm"
  echo "$folder/tapset"
}

# Makes a tapset that finds neither shim nor native markers.
tapset_with_nothing() {
  cp -a "$tapsets/tapset" "$BATS_TEST_TMPDIR/nothing"
  sed 's,^path /,path /nonexistent/,' "$top/probes/native.list" |
    awk -v shim=/nonexistent/libpython-stap.so.0 -f "$top/tapset/generate/paths.awk" "$top/probes/shared/versions.h" - >"$BATS_TEST_TMPDIR/nothing/python_paths.stpm"
  echo "$BATS_TEST_TMPDIR/nothing"
}

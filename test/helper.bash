# shellcheck shell=bash
# What the suites share: where things are, the interpreters of this machine, and
# the two tracers.
#
# SPDX-License-Identifier: MIT

top=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
export top shim=$top/build/libpython-stap.so.0
export LC_ALL=C

# Every CPython from 3.6 on that is here, the system's first, a path a line.
# PYTHONS: more of them.
pythons() {
  local python
  for python in /usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3 ${PYTHONS:-}; do
    [ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 6))' && echo "$python"
  done
}

# One of them, or of those that are named, for each way in which the shim hooks: up to 3.10, 3.11,
# from 3.12 on.
pythons_by_hook() {
  local python kind kinds=' '
  # shellcheck disable=SC2046
  [ $# -gt 0 ] || set -- $(pythons)
  for python; do
    kind=$("$python" -c 'import sys; m = sys.version_info[1]; print((m > 10) + (m > 11))')
    [[ $kinds == *" $kind "* ]] || echo "$python"
    kinds+="$kind "
  done
}

# 3.11, for a path of pythons().
version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# The shim's markers, one a line.
markers() {
  sed -n 's/.* probe \([a-z_]*\)(.*/\1/p' "$top/probes/python.d"
}

# Fails where the command succeeds; a bare "!" in the middle of a test can't fail it.
refute() {
  if "$@"; then return 1; fi
}

need() {
  local tool
  for tool; do
    type -P "$tool" >/dev/null || skip "needs $tool"
  done
}

# stap, wherever it can run; never longer than a minute.
stap() {
  timeout -k 5 "${STAP_TIMEOUT:-60}" "$top/test/vm/stap" "$@"
}

# stap with another tapset folder, $tapset.  With -p2 or -p4 nothing runs, and no guest is started.
stap_with_tapset() {
  SYSTEMTAP_TAPSET=$tapset stap "$@"
}

can_bpftrace() {
  need bpftrace
  [ "$(id -u)" = 0 ] || skip "needs root, for bpftrace"
  bpftrace -q -e "usdt:$shim:python:gc__start { } interval:ms:1 { exit(); }" >/dev/null 2>&1 ||
    skip "needs a kernel in which bpftrace attaches to markers"
}

# bpftrace on PROGRAM while COMMAND runs; what it printed goes to $trace.  An event that bpftrace
# lost is a failure.
# usage: bpftrace_while PROGRAM COMMAND...
bpftrace_while() {
  local program=$1 tracer probes status=0
  shift
  trace=$BATS_TEST_TMPDIR/trace
  BPFTRACE_STRLEN=96 BPFTRACE_PERF_RB_PAGES=4096 bpftrace -q -e "$program" >"$trace" 2>"$trace.log" &
  tracer=$!
  # Attached when it holds a perf event for each CPU and each probe.
  probes=$(grep -o 'usdt:' <<<"$program" | wc -l)
  until [ "$(find "/proc/$tracer/fd" -lname '*perf_event*' 2>/dev/null | wc -l)" -ge $((probes + $(nproc))) ]; do
    kill -0 "$tracer" || { cat "$trace.log" && return 1; }
    sleep 0.05
  done
  # It has switched the last of them on when it waits for events.
  for _ in {1..40}; do
    [[ $(cat "/proc/$tracer/wchan" 2>/dev/null) != *poll* ]] || break
    sleep 0.05
  done
  timeout -k 5 "${TRACE_TIMEOUT:-60}" "$@" || status=$?
  # bpftrace 0.17 may miss one.
  while kill -INT "$tracer" 2>/dev/null; do
    for _ in {1..60}; do
      kill -0 "$tracer" 2>/dev/null || break 2
      sleep 0.05
    done
  done
  wait "$tracer" || true
  refute grep -h 'Lost .* events' "$trace" "$trace.log"
  return "$status"
}

# bpftrace programs that print the markers as expect.py does, but with the file before the rest and
# what else the marker passes behind it.
function_markers() {
  cat <<EOF
usdt:$shim:python:function__entry
{ printf("> %s %s %d %lx %s\n", str(arg0), str(arg1), arg2, arg3, str(arg4)); }
usdt:$shim:python:function__return
{ printf("< %s %s %d %lx %s\n", str(arg0), str(arg1), arg2, arg3, str(arg4)); }
EOF
}
cfunction_markers() {
  cat <<EOF
usdt:$shim:python:cfunction__entry
{ printf("( %s %s %d %s\n", str(arg0), str(arg1), arg2, str(arg3)); }
usdt:$shim:python:cfunction__return
{ printf(") %s %s %d %s\n", str(arg0), str(arg1), arg2, str(arg3)); }
EOF
}
line_markers() {
  cat <<EOF
usdt:$shim:python:line
{ printf(". %s %s %d\n", str(arg0), str(arg1), arg2); }
EOF
}

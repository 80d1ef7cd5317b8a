# shellcheck shell=bash
# What the suites share: where things are, the interpreters of this machine, and
# the two tracers.
#
# SPDX-License-Identifier: MIT

top=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
export top shim=$top/build/libpython-stap.so.0 driver=$top/build/driver
# Where the tapsets are that the Makefile has made for the stap in use.
export tapsets=${STAP_VM_ROOT:-$top/build}${STAP_VM_ROOT:+.stap}
export LC_ALL=C
# stap's modules are compiled in three quarters of the time, for the gate: pycalls takes 5.0 s, with -O2 6.5
# (stap -v -p4; the kernel's build takes it from the environment).
[ -n "${EVERY:-}" ] || export KCFLAGS=-O1

# The CPythons from 3.6 on that are here and are for the shim, the system's first, a path a line: one for
# each way in which CPython is hooked and read (up to 3.8, to 3.10, 3.11, and each version from 3.12 on),
# or with EVERY=1 (make check-every) each.
# PYTHONS: more of them; ONLY_PYTHONS: these instead.  They may be scripts that start one.
pythons() {
  which_pythons 'sys.version_info >= (3, 6) and "t" not in sys.abiflags' |
    with_minor | gated
}

# Each path on stdin, with its minor version before it.
with_minor() {
  local python
  while read -r python; do
    echo "$("$python" -c 'import sys; print(sys.version_info[1])') $python"
  done
}

# Of such lines the paths: the first of each kind, of which all up to 3.$1 are one.
first_of_each() {
  awk -v oldest="$1" '{ kind = $1 > 10 ? $1 : $1 > oldest ? 10 : oldest; if (!seen[kind]++) print $2 }'
}

# The same for the gate.
gated() {
  if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then sed 's/[^ ]* //'; else first_of_each 8; fi
}

# The system's own, here and in the guest.
system_python() {
  pythons | head -n 1
}

# Of those by hook (below) the system's alone, as what stap does with a marker is the same in all; with
# EVERY each.
guest_pythons() {
  if [ -n "${EVERY:-}" ]; then pythons_by_hook; else system_python; fi
}

# Of the lines of a list one in $1, with EVERY all.
some() {
  if [ -n "${EVERY:-}" ]; then cat; else awk -v every="$1" 'NR % every == 1'; fi
}

# Leaves a test out of the gate.
need_time() {
  [ -n "${EVERY:-}" ] || skip "needs time: ${1:+$1, or }make check-every"
}

# The free-threaded ones, which the shim refuses.
free_threaded_pythons() {
  which_pythons '"t" in sys.abiflags'
}

which_pythons() {
  local python
  # shellcheck disable=SC2086
  set -- "$1" ${ONLY_PYTHONS:-/usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3 ${PYTHONS:-}}
  for python in "${@:2}"; do
    [ -x "$python" ] && "$python" -c "import sys; sys.exit(not ($1))" && echo "$python"
  done
}

# One of them, or of those that are named, for each way in which the shim hooks: up to 3.10, 3.11, and
# each version from 3.12 on, as sys.monitoring changes with every one.
pythons_by_hook() {
  # shellcheck disable=SC2046
  [ $# -gt 0 ] || set -- $(pythons)
  printf '%s\n' "$@" | with_minor | first_of_each 10
}

# Those of pythons() for what takes long: in the gate one of each kind by hook.
few_pythons() {
  if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then pythons; else pythons_by_hook; fi
}

# 3.11, for a path of pythons().
version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# The file with the code of a path of pythons(), libpython or the program, as this process finds it: the
# interpreter may be in another root.
own_file() {
  local pid file
  exec 9< <(exec "$1" -c 'import os, time; print(os.getpid(), flush=True); time.sleep(60)')
  read -r pid <&9
  file=$(awk '$6 ~ /\/libpython3[^\/]*$/ { print $6; exit }' "/proc/$pid/maps")
  echo "${file:-$(readlink "/proc/$pid/exe")}"
  kill "$pid"
  exec 9<&-
}

# The markers in that file, $2, that fire in the version of a path of pythons(), $1, by
# probes/native.list.
own_markers() {
  local version
  version=$(version_of "$1")
  readelf --wide --notes "$2" |
    awk -v minor="${version#3.}" '
      FILENAME == "-" { if (/Provider: python$/) ours = 1; else if (ours && /Name: /) { there[$2]; ours = 0 } next }
      /^(live|partly|fires) / && $3 <= minor && minor <= $4 && ($2 in there) { print $2 }' - "$top/probes/native.list"
}

# The shim's markers, one a line.
markers() {
  sed -n 's/.* probe \([a-z_]*\)(.*/\1/p' "$top/probes/python.d"
}

# The shared libraries of CPython that are here, as pythons() has the programs.
libpythons() {
  local library minor
  for library in "$HOME"/.pyenv/versions/3.*/lib/libpython3.*.so.1.0 /usr/lib/*/libpython3.*.so.1.0; do
    minor=${library##*/libpython3.}
    [ ! -e "$library" ] || echo "${minor%%[!0-9]*} $library"
  done | gated
}

# embed LIBRARY PROGRAM: compiles workloads/embed.c, which wants its PYTHONHOME.
embed() {
  gcc -o "$2" "$top/test/workloads/embed.c" "$1" -Wl,-rpath,"$(dirname "$1")"
}

# The output and the exit status of a command.
outcome() {
  local status=0
  "$@" 2>&1 || status=$?
  echo "status $status"
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

# A suite that calls this runs with the stap of each root of test/distros too.
need_stap() {
  [ -n "${STAP_VM_ROOT:-}" ] || need stap
}

# Skips where the stap of a root is older than the root's kernel, by its own account, and does not
# compile for it.
need_live_stap() {
  local range
  need_stap
  [ -n "${STAP_VM_ROOT:-}" ] || return 0
  need qemu-system-x86_64 ssh
  range=$(stap -p4 -e "probe process(\"$driver\").mark(\"function__entry\") { println(1) }" 2>&1 |
    grep 'outside tested range') || return 0
  skip "needs a stap that compiles for its kernel: ${range,}"
}

# stap, wherever it can run; never longer than two minutes, most of them for what is compiled the
# first time.
stap() {
  timeout -k 5 "${STAP_TIMEOUT:-120}" "$top/test/vm/stap" "$@"
}

# stap with another tapset folder, $tapset.  With -p2 or -p4 nothing runs, and no guest is started.
stap_with_tapset() {
  SYSTEMTAP_TAPSET=$tapset stap "$@"
}

# What has the comments of which the man pages are made.
tapset_sources=("$top"/tapset/*.stp "$top/build/python_objects.stp")

# The examples of the man pages, each in a file of its own in the folder $1: a line for each, with tabs
# between its probe or function, the file, and the command line that it names (or nothing), in which
# SCRIPT stands for the file.
examples() {
  mkdir -p "$1"
  awk -v part=examples -v dir="$1" -f "$top/tapset/man.awk" "${tapset_sources[@]}"
}

# What the suites of the scripts share: the two workloads, and where a script's own output goes.
scripts_setup() {
  need_live_stap
  system=$(system_python)
  export STAP_TIMEOUT=300 counted=$top/test/workloads/counted.py timed=$top/test/workloads/timed.py
  printed=$BATS_TEST_TMPDIR/printed
}

# A script of ours, its output in $printed, what stap said in $printed.said, and what the command did on
# stdout.  It must lose nothing: stap says no more than that the kernel's symbols are not there.
# A busy machine may stop the guest in the middle of a handler, for which others then wait, or make its
# probes look slow.
# usage: script NAME STAP'S ARGUMENTS...
script() {
  script_says "$@" || return
  refute grep -v 'Kernel function symbol table' "$printed.said"
}

# The same, where it has something to say.
script_says() {
  local status=0
  stap -DSTP_NO_OVERLOAD -DMAXTRYLOCK=100000 -o "$printed" "$top/scripts/$1.stp" "${@:2}" 2>"$printed.said" || status=$?
  cat "$printed.said"
  head -n 300 "$printed"
  return "$status"
}

# A script refuses what it is given, in one line on stderr that has $1.
# usage: refuses TEXT NAME STAP'S ARGUMENTS...
refuses() {
  refute stap -o "$printed" "$top/scripts/$2.stp" "${@:3}" -c true 2>"$printed.said"
  cat "$printed.said"
  [ "$(grep -cF "$1" "$printed.said")" = 1 ]
}

# Python programs, in the background of the guest, with the shim; their processes, a line each.
# usage: start_in_guest PROGRAM...
start_in_guest() {
  # shellcheck disable=SC2016
  "$top/test/vm/guest" exec -- sh -c 'shim=$1 python=$2; shift 2
    for program; do
      LD_PRELOAD=$shim setsid timeout --foreground 300 "$python" "$program" >/dev/null 2>&1 &
    done
    for program; do
      for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        sleep 1
        pid=$(pgrep -f "^[^ ]*python[^ ]* $program") && grep -q stap "/proc/${pid%%[!0-9]*}/task/"*/comm && break
      done
      echo "$pid"
    done' sh "$shim" "$system" "$@"
}

end_in_guest() {
  "$top/test/vm/guest" exec -- kill "$@"
}

# A tapset that looks for native markers in a folder of this test, in which a python3.10 and
# a python3.11 have them all, with the arguments of CPython's own.
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
    awk -v shim="$shim" -f "$top/tapset/paths.awk" >"$folder/tapset/python_paths.stpm"
  echo "$folder/tapset"
}

# A tapset that finds neither shim nor native marker.
tapset_with_nothing() {
  cp -a "$tapsets/tapset" "$BATS_TEST_TMPDIR/nothing"
  sed 's,^path /,path /nonexistent/,' "$top/probes/native.list" |
    awk -v shim=/nonexistent/libpython-stap.so.0 -f "$top/tapset/paths.awk" >"$BATS_TEST_TMPDIR/nothing/python_paths.stpm"
  echo "$BATS_TEST_TMPDIR/nothing"
}

can_bpftrace() {
  need bpftrace
  [ "$(id -u)" = 0 ] || skip "needs root, for bpftrace"
  bpftrace -q -e "usdt:$shim:python:gc__start { } interval:ms:1 { exit(); }" >/dev/null 2>&1 ||
    skip "needs a kernel in which bpftrace attaches to markers"
}

# Until the bpftrace $1 sleeps and waits for events, or two seconds.
waits_for_events() {
  for _ in {1..40}; do
    [[ $(cat "/proc/$1/wchan" 2>/dev/null) != *poll* ]] || break
    sleep 0.05
  done
}

# Ends the bpftrace $1, which then prints its maps.  It heeds an interrupt only while it waits for
# events, and drops those that it has not printed yet.
end_bpftrace() {
  while kill -0 "$1" 2>/dev/null; do
    waits_for_events "$1"
    kill -INT "$1" 2>/dev/null || true
    for _ in {1..40}; do
      kill -0 "$1" 2>/dev/null || break
      sleep 0.05
    done
  done
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
  # Attached when it holds a perf event for each CPU and each site of each probe; of the shim's there are
  # two.
  probes=$(($(grep -o 'usdt:' <<<"$program" | wc -l) + $(grep -o "usdt:\($shim\|$driver\):" <<<"$program" | wc -l)))
  until [ "$(find "/proc/$tracer/fd" -lname '*perf_event*' 2>/dev/null | wc -l)" -ge $((probes + $(nproc))) ]; do
    kill -0 "$tracer" || { cat "$trace.log" && return 1; }
    sleep 0.05
  done
  # It has switched the last of them on when it waits for events.
  waits_for_events "$tracer"
  timeout -k 5 "${TRACE_TIMEOUT:-60}" "$@" || status=$?
  end_bpftrace "$tracer"
  wait "$tracer" || true
  refute grep -h 'Lost .* events' "$trace" "$trace.log"
  return "$status"
}

# Makes semaphores.so in the folder $1: the shim behind it wants all its markers, or those of the
# regular expression $2, as if they were probed; with SEMAPHORES_TOGGLE=MS by turns.
make_semaphores() {
  "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -pthread \
    -o "$1/semaphores.so" "$top/test/memory/semaphores.c"
  SEMAPHORES=$(readelf --wide --notes "$shim" | grep -A1 -E "Name: (${2:-.*})\$" |
    sed -n 's/.*Semaphore: //p' | sort -u | paste -sd,)
  export SEMAPHORES
}

# From here on what is preloaded as $shim has that before it.
raise_semaphores() {
  make_semaphores "$@"
  shim="$1/semaphores.so $shim"
}

# A command: "${each_python[@]}" "PYTHON..." ARGUMENT... runs each of the interpreters with the arguments.
# shellcheck disable=SC2016,SC2034
each_python=(bash -c 'for python in $0; do "$python" "$@"; done')

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
# Counts every marker there is.
all_markers() {
  markers | sed "s|.*|usdt:$shim:python:& { @ = count(); }|"
}
# The same, with a count for each.
each_marker() {
  markers | sed "s|.*|usdt:$shim:python:& { @[\"&\"] = count(); }|"
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

# Runs each case of a workload (its functions without arguments that begin a line, but for marked() and
# what the rest of them needs) plain, with the shim, and with bpftrace on PROGRAM as well; the three
# must print the same and end alike.  A case is a file of its own, $folder/CASE.py, so that its events in
# $trace can be told from the others'.
# usage: run_cases PYTHON WORKLOAD PROGRAM
run_cases() {
  local name
  export cases python=$1 folder=$BATS_TEST_TMPDIR
  cases=$(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$top/test/workloads/$2" | grep -vx -e marked -e executed)
  [ "$(wc -w <<<"$cases")" -ge 12 ]
  for name in $cases; do
    cp "$top/test/workloads/$2" "$folder/$name.py"
  done
  cat >"$folder/all" <<'SH'
for name in $cases; do
  timeout -k 1 30 "$python" -W ignore "$folder/$name.py" "$name" >"$folder/$name$1" 2>&1 || echo "status $?" >>"$folder/$name$1"
done
SH
  bash "$folder/all" .plain
  LD_PRELOAD=$shim bash "$folder/all" .loaded
  LD_PRELOAD=$shim TRACE_TIMEOUT=120 bpftrace_while "$3" bash "$folder/all" .traced
  for name in $cases; do
    echo "$python $name: $(cat "$folder/$name.plain")"
    diff "$folder/$name".{plain,loaded}
    diff "$folder/$name".{plain,traced}
  done
}

# How often a case of run_cases called marked(): what it printed last, but for the status of those that
# os._exit() or os.execv() ends.
marked_by() {
  grep -v status "$folder/$1.plain" | tail -n 1
}

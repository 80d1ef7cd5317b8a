# stap-python: detach, which undoes attach, and what it leaves of the shim.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Starts test/workloads/watched.py, as $program, with the words of $watched.
# usage: start_watched COMMAND...
start_watched() {
  local fifo=$BATS_TEST_TMPDIR/fifo
  program_output=$BATS_TEST_TMPDIR/output
  rm -f "$fifo" "$program_output"
  mkfifo "$fifo"
  # shellcheck disable=SC2086
  "$@" "$top/test/workloads/watched.py" ${watched:-} <"$fifo" >"$program_output" 2>&1 3>&- &
  program=$!
  programs+=("$program")
  exec 7>"$fifo"
  wait_for grep -qs started "$program_output"
}

# $said: the program's current report on itself: threads, hooks, and functions of the shim by their names.
ask() {
  local lines distance
  lines=$(wc -l <"$program_output")
  echo >&7
  wait_for has_lines "$((lines + 1))"
  said=$(tail -n 1 "$program_output")
  for distance in $(tr , '\n' <<<"${said##* }"); do
    [ "$distance" = - ] || said=${said/$distance/$(name_at "$distance")}
  done
}

has_lines() {
  [ "$(wc -l <"$program_output")" -ge "$1" ]
}

# The function of the shim at this hexadecimal distance from the shim's start.
name_at() {
  nm "$shim" | awk -v at="$(printf %016x "0x$1")" '$1 == at { print $3; exit }'
}

# Whether the program's report matches the pattern.
says() {
  ask
  # shellcheck disable=SC2053 # a pattern
  [[ $said == $1 ]]
}

# Checks that the program has two threads and no hook.  May stay: the function that CPython calls when it frees a code
# object with a code record, an audit hook, which CPython can't remove, and an old entry in the ring of pending calls.
nothing_is_left() {
  ask
  echo "after: $said"
  [[ $said =~ ^2\ \.\ (-|((rearm_pending_call|code_free|on_audit),?)+)$ ]]
}

# Checks that the program ends as without the shim.
watched_ends() {
  exec 7>&-
  wait "$program"
  [ "$(tail -n 1 "$program_output")" = ended ]
  refute grep -vE '^(started|ended|[0-9]+ [^ ].* [0-9a-f,-]+)$' "$program_output"
}

# How many threads, descriptors and mappings the process $1 has.
size_of() {
  echo "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l) $(find "/proc/$1/fd" -mindepth 1 -maxdepth 1 | wc -l) $(wc -l <"/proc/$1/maps")"
}

# Checks that the workload, with the shim preloaded in the Python $1 and traced, has no thread and no hook of the shim
# after detach.
preloaded_is_detached() {
  echo "$1"
  start_watched env LD_PRELOAD="$shim" "$1"
  wait_for says '3 .*'
  bpftrace_beside "$(all_markers)"
  programs+=("$stays")
  wait_for says '3 *gc*import. *'
  echo "traced: $said"
  [ "$(launcher detach "$program" | head -n 1)" = "$(detached_line "$program")" ]
  nothing_is_left
  end_bpftrace "$stays"
  watched_ends
}

detached_line() {
  echo "$1: detached: $shim; the library stays mapped, stap-python attach $1 makes it active again"
}

@test "detach leaves no thread and no hook in a program that is traced, and attach makes it active again" {
  need nm
  can_bpftrace
  need_remote_calls
  local python before round
  for python in $(pythons | some 2); do
    start_watched "$python"
    ask
    before=$said
    echo "$python: before: $said"
    [[ $before == '2 . -' ]]
    bpftrace_beside "$(all_markers)"
    programs+=("$stays")
    for round in 1 2; do
      run launcher attach "$program"
      echo "$output"
      [ "$status" = 0 ]
      [[ $output == "$program: active"*": $shim" ]]
      # the hooks are in place: from 3.9 on Python code can observe each of them
      wait_for says '3 *import. *'
      wait_for says '3 *gc*'
      echo "traced: $said"
      run launcher detach "$program"
      echo "$output"
      [ "$status" = 0 ]
      [ "${lines[0]}" = "$(detached_line "$program")" ]
      [ "${lines[1]}" = "$program: a tracer still probes its markers, and gets no events of it" ]
      ask
      echo "after: $said"
      nothing_is_left
      grep -q "$shim" "/proc/$program/maps"
    done
    end_bpftrace "$stays"
    watched_ends
  done
}

@test "detach works the same for a shim that was preloaded" {
  need nm
  can_bpftrace
  local python
  for python in $(pythons_by_hook | some 2); do
    preloaded_is_detached "$python"
  done
}

@test "no hook is left in a subinterpreter" {
  need nm
  can_bpftrace
  local python watched=sub
  for python in $(pythons | some 2); do
    "$python" -c 'try: import _interpreters
except ImportError: import _xxsubinterpreters' 2>/dev/null || continue
    preloaded_is_detached "$python"
  done
}

@test "no event comes of a detached program, and all come again when it is attached" {
  can_bpftrace
  need_remote_calls
  local python counted=$BATS_TEST_TMPDIR/counted detached again
  for python in $(pythons_by_hook); do
    echo "$python"
    start_watched "$python"
    launcher attach "$program"
    # what comes in each fifth of a second, of a hook and of sums
    bpftrace -q -e "usdt:$shim:python:function__entry /pid == $program/ { @ = count(); }
      usdt:$shim:python:function__count /pid == $program/ { @sums = count(); }
      interval:ms:200 { print(@); print(@sums); clear(@); clear(@sums); printf(\".\n\"); }" >"$counted" 2>&1 3>&- &
    programs+=($!)
    wait_for counts '@: [1-9]'
    wait_for counts '@sums: [1-9]'
    launcher detach "$program"
    detached=$(wc -l <"$counted")
    # the first two intervals may have begun before
    wait_for has_intervals "$((detached + 30))"
    tail -n +"$((detached + 9))" "$counted" | sed -n 1,15p
    refute grep -E '[1-9]' <(tail -n +"$((detached + 9))" "$counted" | head -n 15)
    launcher attach "$program"
    again=$(wc -l <"$counted")
    wait_for counts '@: [1-9]' "$again"
    wait_for counts '@sums: [1-9]' "$again"
    kill -KILL "${programs[-1]}"
    wait "${programs[-1]}" || true
    watched_ends
  done
}

# Whether a line of $counted behind the first $2 lines matches $1.
counts() {
  grep -qE "$1" <(tail -n +"$((${2:-0} + 1))" "$counted")
}

has_intervals() {
  [ "$(wc -l <"$counted")" -ge "$1" ]
}

@test "list, ps, attach, filter and -x tell a detached shim from one that is active" {
  need_remote_calls
  start_watched /usr/bin/python3
  launcher attach "$program"
  launcher list "$program" | grep -qx "  the shim: active, $shim"
  launcher detach "$program"
  launcher list "$program" >"$BATS_TEST_TMPDIR/list"
  grep -qx "  the shim: detached, $shim; stap-python attach $program makes it active again" "$BATS_TEST_TMPDIR/list"
  refute grep -E ' the shim$| yes ' "$BATS_TEST_TMPDIR/list"
  [ "$(launcher ps 2>/dev/null | awk -v pid="$program" '$1 == pid { print $4 }')" = detached ]
  [ "$(launcher ps --json 2>/dev/null | grep "\"pid\": $program," | grep -o '"shim": "[a-z]*"')" = '"shim": "detached"' ]
  [ "$(launcher detach "$program")" = "$program: already detached: $shim" ]
  refuses 1 "$program: the shim is detached: stap-python attach $program" filter "$program" 'app.*'
  [ "$(launcher attach "$program")" = "$program: active again: $shim" ]
  [ "$(launcher attach "$program")" = "$program: already active: $shim" ]
  launcher detach "$program"
  STAP=/bin/true launcher pycalls -x "$program" >"$BATS_TEST_TMPDIR/said" 2>&1
  cat "$BATS_TEST_TMPDIR/said"
  [ "$(cat "$BATS_TEST_TMPDIR/said")" = "stap-python: attached again to $program: active" ]
  launcher list "$program" | grep -qx "  the shim: active, $shim"
  watched_ends
}

@test "attached and detached fifty times, a program has no more threads, descriptors, mappings or memory" {
  need_remote_calls
  local python round first data
  for python in $(pythons_by_hook | some 3); do
    echo "$python"
    start_watched "$python"
    for round in {1..50}; do
      [[ $(launcher attach "$program") == "$program: active"*": $shim" ]]
      [ "$(launcher detach "$program")" = "$(detached_line "$program")" ]
      [ "$round" != 5 ] || first=$(size_of "$program") data=$(awk '/VmData/ { print $2 }' "/proc/$program/status")
    done
    echo "$first, $data kB; then $(size_of "$program"), $(awk '/VmData/ { print $2 }' "/proc/$program/status") kB"
    [ "$(size_of "$program")" = "$first" ]
    # a thread's stack that is left has 512 kB
    [ "$(awk '/VmData/ { print $2 }' "/proc/$program/status")" -lt $((data + 400)) ]
    watched_ends
  done
}

@test "a child of a detached program is detached, one of an attached program is not, and each can be changed alone" {
  need_remote_calls
  local python child
  cat >"$BATS_TEST_TMPDIR/parent.py" <<'PY'
import os, select, sys, time, warnings

warnings.simplefilter("always")  # os.fork() drops an error up to 3.14
print("started", flush=True)
while True:
    if not select.select([0], [], [], 0.01)[0]:
        continue
    if not os.read(0, 1):
        break
    child = os.fork()
    if not child:
        while True:
            time.sleep(0.01)
    print(child, flush=True)
PY
  for python in $(pythons_by_hook | some 2); do
    echo "$python"
    start_parent "$python"
    launcher attach "$program"
    fork_one
    wait_for has_state "$child" active
    launcher detach "$program"
    has_state "$child" active
    launcher detach "$child"
    fork_one
    wait_for has_state "$child" detached
    [ "$(find "/proc/$child/task" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]
    [ "$(launcher attach "$child")" = "$child: active again: $shim" ]
    has_state "$program" detached
    launcher attach "$program"
    fork_one
    wait_for has_state "$child" active
    exec 7>&-
    wait "$program"
    refute grep -vE '^(started|[0-9]+)$' "$program_output"
  done
}

# Starts parent.py as $program; fork_one has it fork $child.
start_parent() {
  rm -f "$BATS_TEST_TMPDIR/fifo"
  mkfifo "$BATS_TEST_TMPDIR/fifo"
  program_output=$BATS_TEST_TMPDIR/output
  "$@" "$BATS_TEST_TMPDIR/parent.py" <"$BATS_TEST_TMPDIR/fifo" >"$program_output" 2>&1 3>&- &
  program=$!
  programs+=("$program")
  exec 7>"$BATS_TEST_TMPDIR/fifo"
  wait_for grep -qs started "$program_output"
}
fork_one() {
  local lines
  lines=$(wc -l <"$program_output")
  echo >&7
  wait_for has_lines "$((lines + 1))"
  child=$(tail -n 1 "$program_output")
  programs+=("$child")
}

# Whether ps reports the state $2 of the shim in the process $1.
has_state() {
  [ "$(launcher ps --json 2>/dev/null | grep "\"pid\": $1," | grep -o '"shim": "[a-z]*"')" = "\"shim\": \"$2\"" ]
}

@test "a program that forks all the time is detached and attached without a warning, a hang or a lost child" {
  need_remote_calls
  local python round
  cat >"$BATS_TEST_TMPDIR/forks.py" <<'PY'
import os, sys, warnings

warnings.simplefilter("always")  # os.fork() drops an error up to 3.14
print("started", flush=True)
forks = 0
while not os.path.exists(sys.argv[1]):
    child = os.fork()
    if not child:
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
    forks += 1
print("ended", forks > 100, flush=True)
PY
  for python in $(pythons_by_hook | some 2); do
    echo "$python"
    end=$BATS_TEST_TMPDIR/end program_output=$BATS_TEST_TMPDIR/output
    # else the last one's "started" may be read
    rm -f "$end" "$program_output"
    "$python" "$BATS_TEST_TMPDIR/forks.py" "$end" >"$program_output" 2>>"$program_output.warnings" 3>&- &
    program=$!
    programs+=("$program")
    wait_for grep -qs started "$program_output"
    for round in {1..15}; do
      launcher attach "$program" | grep -E ': (active|loaded|already active)'
      wait_for launcher detach "$program"
      # the first time one is possible (probes/LIMITS.md)
      [ "$round" -gt 1 ] || : >"$program_output.warnings"
    done
    : >"$end"
    wait "$program"
    [ "$(cat "$program_output")" = $'started\nended True' ]
    diff /dev/null "$program_output.warnings"
  done
}

@test "a program that forks while it is attached again is not warned of a thread, and is active then" {
  local python
  cat >"$BATS_TEST_TMPDIR/parent.py" <<'PY'
import _frozen_importlib, _imp, functools, operator, os, sys, time, warnings

warnings.simplefilter("always")  # os.fork() drops an error up to 3.14
spec = _frozen_importlib.ModuleSpec("python_stap_attach", None, origin=os.environ["LD_PRELOAD"])
print("started", flush=True)
sys.stdin.readline()
# in C alone: between these no pending call is made
attach, sleep = functools.partial(_imp.create_dynamic, spec), functools.partial(time.sleep, 0.2)
child = list(map(operator.call, (attach, sleep, os.fork)))[-1]
if not child:
    os._exit(7)
print(os.waitpid(child, 0)[1] >> 8, flush=True)
sys.stdin.readline()
PY
  for python in $(pythons_by_hook | with_minor | awk '$1 + 0 >= 12 { print $2 }'); do
    echo "$python"
    start_parent env LD_PRELOAD="$shim" "$python"
    wait_for has_state "$program" active
    launcher detach "$program"
    echo >&7
    wait_for has_lines 2
    [ "$(cat "$program_output")" = $'started\n7' ]
    wait_for has_state "$program" active
    exec 7>&-
    wait "$program"
  done
}

@test "a program that executes another one starts anew" {
  need_remote_calls
  local exec='import os, sys, time
print("started", flush=True)
sys.stdin.readline()
os.execv(sys.executable, [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"])'
  echo "$exec" >"$BATS_TEST_TMPDIR/parent.py"
  start_parent env LD_PRELOAD="$shim" /usr/bin/python3
  wait_for has_state "$program" active
  launcher detach "$program"
  echo >&7
  wait_for has_lines 2
  wait_for has_state "$program" active
  exec 7>&-
}

@test "while all threads wait in C, detach says that hooks go later, and attach takes it back" {
  can_bpftrace
  need_remote_calls
  local python
  for python in $(pythons_by_hook | some 2); do
    [ "$("$python" -c 'import sys; print(sys.version_info >= (3, 12))')" = True ] || continue
    echo "$python"
    cat >"$BATS_TEST_TMPDIR/parent.py" <<'PY'
import sys, time

print("started", flush=True)
# until the shim has its hooks, of which its tool is the first
while not any(map(sys.monitoring.get_tool, range(6))):
    time.sleep(0.01)
time.sleep(0.1)
while sys.stdin.readline():
    print(1, flush=True)
PY
    start_parent "$python"
    bpftrace_beside "$(all_markers)"
    programs+=("$stays")
    launcher attach "$program"
    wait_for waits_in_read
    refuses 1 "detach: $program: detaching: it has no events any more; hooks and thread end when Python code next runs there" detach "$program"
    has_state "$program" detaching
    launcher list "$program" | grep -x "  the shim: detaching: it has no events any more, and its hooks go when Python code next runs there: $shim"
    [ "$(launcher attach "$program")" = "$program: active again: $shim" ]
    has_state "$program" active
    refuses 1 detaching detach "$program"
    echo >&7
    wait_for has_lines 2
    wait_for has_state "$program" detached
    [ "$(find "/proc/$program/task" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]
    end_bpftrace "$stays"
    exec 7>&-
    wait "$program"
  done
}

waits_in_read() {
  grep -qE 'pipe_' "/proc/$program/wchan"
}

@test "a shim that was loaded and has not become active is detached, and attached again" {
  need_remote_calls
  local python
  for python in $(pythons_by_hook | some 2); do
    echo "$python"
    printf 'import sys\nprint("started", flush=True)\nsys.stdin.readline()\nprint(1, flush=True)\nsys.stdin.readline()\n' >"$BATS_TEST_TMPDIR/parent.py"
    start_parent "$python"
    wait_for waits_in_read
    [[ $(launcher attach "$program") == "$program: loaded: "* ]]
    launcher detach "$program" || { has_state "$program" detaching && echo >&7 && wait_for has_lines 2; }
    wait_for has_state "$program" detached
    [ "$(find "/proc/$program/task" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]
    launcher attach "$program" | grep -E "^$program: (loaded|active) again: $shim"
    exec 7>&-
    wait "$program"
    grep -qx started "$program_output"
  done
}

@test "detach takes several, by name, with children and all, and leaves alone what has no shim" {
  alone '
    python; one=$!
    python; two=$!
    python; none=$!
    COMM=worker python; worker=$!
    bash -c "/usr/bin/python3 \"\$dir/ticks.py\" & wait" & shell=$!
    while ! pgrep -P $shell >/dev/null; do sleep 0.05; done
    child=$(pgrep -P $shell)
    started $child
    echo "$one $two $none $worker $shell $child"
    "$launcher" attach $one $two $worker $child >/dev/null
    try() {
      echo "try $*"
      "$launcher" detach "$@" 2>&1 | sed "s/; the library.*//"
      echo "status ${PIPESTATUS[0]}"
    }
    try $one $none 999999
    try --name "work*"
    try --name "nothing*"
    try --children $shell
    try --all
    try --all
    try --children --all'
  read -r one two none worker shell child <<<"${lines[0]}"
  diff - <(printf '%s\n' "${lines[@]:1}") <<SAID
try $one $none 999999
$one: detached: $shim
stap-python: detach: $none: it has no shim: nothing to detach
stap-python: detach: 999999: no such process
status 1
try --name work*
$worker: detached: $shim
status 0
try --name nothing*
stap-python: detach: no such Python has an active shim
status 1
try --children $shell
$child: detached: $shim
status 0
try --all
$two: detached: $shim
status 0
try --all
stap-python: detach: no such Python has an active shim
status 0
try --children --all
stap-python: detach: takes PIDs, --name PATTERN or --all (see stap-python detach --help)
status 2
SAID
}

@test "detach refuses what it may not or can't detach, in one line, and the program runs on" {
  need_remote_calls
  refuses 2 'takes PIDs, --name PATTERN or --all' detach
  refuses 2 'takes PIDs, --name PATTERN or --all' detach 1x
  sleep 600 &
  programs+=($!)
  refuses 1 'detach: [0-9]+: it does not run CPython' detach "$!"
  start_program /usr/bin/python3
  refuses 1 "detach: $program: it has no shim: nothing to detach" detach "$program"
  launcher attach "$program"
  kill -STOP "$program"
  wait_for grep -q 'State:.T' "/proc/$program/status"
  refuses 1 "detach: $program: it is stopped: resume it with kill -CONT $program" detach "$program"
  kill -CONT "$program"
  if [ "$(id -u)" = 0 ] && type -P setpriv >/dev/null; then
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
    run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" detach "$program"
    [ "$status $output" = "1 stap-python: detach: $program: it belongs to another user (uid 0): run this as that user or root" ]
  fi
  launcher list "$program" | grep -qx "  the shim: active, $shim"
  program_ends
  start_program env PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  [ "$(launcher detach "$program")" = "$program: the shim does nothing in it: it was started with PYTHON_STAP=off" ]
  program_ends
}

@test "a program of which a thread has a seccomp filter keeps its hooks, and detach says so" {
  need gcc
  need_remote_calls
  printf '#include <sys/prctl.h>\n#include <linux/filter.h>\n#include <linux/seccomp.h>\nint filter(void)\n{\n    struct sock_filter code = {BPF_RET, 0, 0, SECCOMP_RET_ALLOW};\n    struct sock_fprog program = {1, &code};\n    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);\n}\n' |
    gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/filter.so" -x c -
  printf 'import ctypes, sys\nprint("started", flush=True)\nsys.stdin.readline()\nprint(ctypes.CDLL("%s").filter(), flush=True)\nsys.stdin.readline()\n' "$BATS_TEST_TMPDIR/filter.so" >"$BATS_TEST_TMPDIR/parent.py"
  start_parent env LD_PRELOAD="$shim" /usr/bin/python3
  wait_for has_state "$program" active
  echo >&7
  wait_for has_lines 2
  refuses 1 "detach: $program: a thread of it has a seccomp filter that others have not, and the shim would do nothing: its hooks and the shim's thread stay" detach "$program"
  has_state "$program" silent
  exec 7>&-
  wait "$program"
}

@test "a detached program may forbid itself what the shim would call, and end Python" {
  local python tried=
  need_seccomp x86_64
  need_remote_calls
  printf 'import sys\nsys.path.insert(0, "%s")\nimport filter\nprint("started", flush=True)\nsys.stdin.readline()\nfilter.killed_here(0.2)\n' \
    "$top/test/long/stress" >"$BATS_TEST_TMPDIR/parent.py"
  for python in $(few_pythons); do
    # its own calls at its end are others, without the shim too
    ! is_free_threaded "$python" || continue
    echo "$python"
    tried=1
    start_parent env LD_PRELOAD="$shim" "$python"
    wait_for has_state "$program" active
    launcher detach "$program"
    echo >&7
    exec 7>&-
    wait "$program"
    [ "$(tail -n 1 "$program_output")" = 'wrong: 0' ]
  done
  [ "$tried" ] || skip "needs a CPython with a GIL"
}

@test "detach and attach again work in another mount namespace" {
  [ "$(id -u)" = 0 ] || skip "needs root, for mounts"
  need unshare
  need_remote_calls
  start_program unshare -m /usr/bin/python3
  launcher attach "$program"
  [ "$(launcher detach "$program")" = "$(detached_line "$program")" ]
  [ "$(launcher attach "$program")" = "$program: active again: $shim" ]
  program_ends
}

# lld lets the shim's code begin on a page of the file where another segment ends.
@test "a shim that lld linked is detached, and attached again" {
  need_remote_calls
  need ld.lld
  local tree=$BATS_TEST_TMPDIR/tree
  make_tree
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/lld" LDFLAGS=-fuse-ld=lld "$BATS_TEST_TMPDIR/lld/${shim##*/}"
  cp "$BATS_TEST_TMPDIR/lld/${shim##*/}" "$tree/build"
  start_program /usr/bin/python3
  "$tree/build/stap-python" attach "$program"
  "$tree/build/stap-python" detach "$program"
  [ "$("$tree/build/stap-python" attach "$program")" = "$program: active again: $tree/build/${shim##*/}" ]
  program_ends
}

@test "a detached shim is known beside what the program has at the addresses of its page" {
  need_remote_calls
  local rights
  # a mapping like a large heap, like a sanitizer's shadow, and like that page
  for rights in 3 0 1; do
    start_program env LD_PRELOAD="$shim" /usr/bin/python3 -c "import ctypes, sys
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for address in 0x20707a0000, 0x307a0000:
    assert mmap(address - 0x10000 * ($rights != 1), 0x20000, $rights, 0x100022, -1, 0) == address - 0x10000 * ($rights != 1)
del sys.argv[0]
exec(open(sys.argv[0]).read())"
    wait_for has_state "$program" active
    [ "$(launcher detach "$program")" = "$(detached_line "$program")" ]
    has_state "$program" detached
    [ "$(launcher attach "$program")" = "$program: active again: $shim" ]
    has_state "$program" active
    program_ends
  done
}

@test "a child that another thread than the main one forked when the shim was detached is attached again, and ends" {
  need_remote_calls
  local python child
  cat >"$BATS_TEST_TMPDIR/forks.py" <<'PY'
import os, sys, threading, time


def fork():
    child = os.fork()
    if child:
        print(child, flush=True)
    while not child and not os.path.exists(sys.argv[1]):
        time.sleep(0.01)


print("started", flush=True)
sys.stdin.readline()
thread = threading.Thread(target=fork)
thread.start()
thread.join()
sys.stdin.readline()
print("status", os.wait()[1], flush=True)
PY
  for python in $(pythons); do
    rm -f "$BATS_TEST_TMPDIR/end"
    start_parent env LD_PRELOAD="$shim" "$python" -W ignore "$BATS_TEST_TMPDIR/forks.py" "$BATS_TEST_TMPDIR/end"
    wait_for has_state "$program" active
    launcher detach "$program"
    echo >&7
    wait_for has_lines 2
    child=$(tail -n 1 "$program_output")
    programs+=("$child")
    [ "$(launcher attach "$child")" = "$child: active again: $shim" ]
    has_state "$child" active
    : >"$BATS_TEST_TMPDIR/end"
    echo >&7
    wait_for grep -qx 'status 0' "$program_output"
    exec 7>&-
    wait "$program"
  done
}

# free() does nothing, so that the second interpreter is not where the first one was.
@test "a program that has ended CPython while it was traced, and started it anew, is detached" {
  need gcc readelf
  local library
  raise_semaphores "$BATS_TEST_TMPDIR" 'function__entry|gc__start'
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/keeps.so" -x c - <<<'void free(void *address) { (void)address; }'
  for library in $(libpythons); do
    echo "$library"
    rm -f "$BATS_TEST_TMPDIR"/{traced,ready,end}
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    PYTHONHOME=${library%/lib/*} LD_PRELOAD="$BATS_TEST_TMPDIR/keeps.so $shim" "$BATS_TEST_TMPDIR/embed" 2 "
import ctypes, os, time

def go_on(until):
    while not until():
        time.sleep(0.01)

os.chdir('$BATS_TEST_TMPDIR')
end = time.monotonic() + 0.5
go_on(lambda: time.monotonic() > end)
if os.path.exists('traced'):
    ctypes.CDLL(None).semaphores_set(0)
    open('ready', 'w').close()
    go_on(lambda: os.path.exists('end'))
open('traced', 'w').close()
" >"$BATS_TEST_TMPDIR/output" 3>&- &
    program=$!
    programs+=("$program")
    wait_for test -e "$BATS_TEST_TMPDIR/ready"
    [ "$(launcher detach "$program" | head -n 1)" = "$(shim=${shim##* } detached_line "$program")" ]
    : >"$BATS_TEST_TMPDIR/end"
    wait "$program"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = $'0 0\n0 0' ]
  done
}

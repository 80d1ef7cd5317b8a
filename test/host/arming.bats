# The shim installs its hooks when a tracer attaches, and removes them when the tracer detaches: at any time, and in
# whichever way the shim was loaded.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

teardown() {
  kill_jobs
}

setup() {
  can_bpftrace
}

# A bpftrace program that prints calls and returns with their threads: "tid mark filename funcname lineno".
thread_markers() {
  cat <<EOF
usdt:$shim:python:function__entry { printf("%d > %s %s %d\n", tid, str(arg0), str(arg1), arg2); }
usdt:$shim:python:function__return { printf("%d < %s %s %d\n", tid, str(arg0), str(arg1), arg2); }
EOF
}

# The events of FILE in the trace, of the main thread of PID or, with "not", of other threads, each with the text of
# its line: "mark funcname: text".
# usage: events_of FILE PID [not]
events_of() {
  awk -v file="$1" -v pid="$2" -v other="${3:+1}" '
    FILENAME == file { sub(/^ */, ""); text[FNR] = $0; next }
    $3 == file && ($1 == pid) == !other { print $2, $4 ": " text[$5] }' "$1" "$trace"
}

# Runs $program in PYTHON, as $target, and bpftrace with PROGRAM from when its THREADS wait for bytes from the
# FIFO (2 in running.py) to its end.
# usage: trace_running PYTHON PROGRAM [THREADS]
trace_running() {
  local fifo=$BATS_TEST_TMPDIR/fifo
  rm -f "$fifo"
  mkfifo "$fifo"
  # On one CPU, because bpftrace prints the events of each CPU separately.
  PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim taskset -c 0 "$1" "$program" "$fifo" 2>"$fifo.log" 3>&- &
  target=$!
  # usage: threads_wait COUNT
  threads_wait() { [ "$(grep -l pipe /proc/"$target"/task/*/wchan 2>/dev/null | wc -l)" = "$1" ]; }
  wait_for threads_wait "${3:-2}"
  # Up to 3.11 the hooks come by themselves, later when Python next runs code.
  # shellcheck disable=SC2016
  bpftrace_while "$2" bash -c '"$3" -c "import sys; sys.exit(sys.version_info < (3, 12))" || until grep -q "hook: installed" "$1.log"; do sleep 0.05; done
    sleep '$((SLOW > 1 ? SLOW : 0)).5'; printf xx >"$1"; tail -s 0.1 --pid="$2" -f /dev/null' bash "$fifo" "$target" "$1"
  cat "$fifo.log"
  wait "$target"
}

@test "frames that run when the tracer comes are entered, and their returns seen" {
  local python target unlike program=$BATS_TEST_TMPDIR/running.py
  cp "$top/test/workloads/running.py" "$program"
  for python in $(pythons); do
    echo "$python"
    trace_running "$python" "$(thread_markers)"
    diff - <(events_of "$program" "$target") <<'EVENTS'
> <module>: raises()
> raises: list(numbers)
> generator: wait()
> wait: os.read(fifo, 1)
< wait: os.read(fifo, 1)
< generator: yield 2
> generator: yield 2
< generator: yield 2
> untraces: def untraces():
< untraces: sys.settrace(None)
< raises: raise ValueError("on purpose")
> leaf: def leaf(): pass  # fmt: skip
< leaf: def leaf(): pass  # fmt: skip
< <module>: leaf()
EVENTS
    # 3.6 reaches another thread when that thread next calls a Python function
    unlike=
    [ "$(version_of "$python")" != 3.6 ] || unlike='/wait: /d; s/> down: wait()/> down: leaf()/'
    sed "$unlike" <<'EVENTS' | diff - <(events_of "$program" "$target" not)
> down: return down(n - 1)
> down: return down(n - 1)
> down: wait()
> wait: os.read(fifo, 1)
< wait: os.read(fifo, 1)
> leaf: def leaf(): pass  # fmt: skip
< leaf: def leaf(): pass  # fmt: skip
< down: leaf()
< down: return down(n - 1)
< down: return down(n - 1)
EVENTS
  done
}

@test "a tracer of returns alone sees those of frames that run when it comes" {
  local python target program=$BATS_TEST_TMPDIR/running.py
  cp "$top/test/workloads/running.py" "$program"
  for python in $(pythons_by_hook); do
    echo "$python"
    trace_running "$python" "$(thread_markers | grep return)"
    diff - <(events_of "$program" "$target") <<'EVENTS'
< wait: os.read(fifo, 1)
< generator: yield 2
< generator: yield 2
< untraces: sys.settrace(None)
< raises: raise ValueError("on purpose")
< leaf: def leaf(): pass  # fmt: skip
< <module>: leaf()
EVENTS
  done
}

@test "frames that are on no stack when the tracer comes report no return, or have an entry before it" {
  local python filtered target program=$BATS_TEST_TMPDIR/suspended.py
  export BESIDE=$BATS_TEST_TMPDIR/beside.so
  "${CC:-cc}" -shared -fPIC -o "$BESIDE" "$top/test/workloads/beside.c"
  cp "$top/test/workloads/suspended.py" "$program"
  for python in $(pythons); do
    for filtered in '' filtered__; do
      echo "$python $filtered"
      trace_running "$python" "$(function_markers | sed "s/function__/$filtered&/")" 1
      # > or <, file, function, line, frame
      awk -v file="$program" '
        $2 != file { next }
        $3 == "later" && $1 == ">" { later++ }
        $1 == ">" { open[$5]++ }
        $1 == "<" && open[$5]-- < 1 { print "no entry of", $0; untold++ }
        END {
          print later + 0, "calls seen"
          for (frame in open) if (open[frame] > 0) { print "no return of", frame; untold++ }
          exit untold || later != 4
        }' "$trace"
    done
  done
}

# All interpreters run hooks.py; the markers that match PATTERN are probed until each has printed a second line.
# It must be the text for its version, and before and after that no hooks are installed.  An empty text leaves
# a version out: Python can't see the hooks there.
# usage: hooks_for PATTERN 3.6-TEXT 3.9-TEXT 3.12-TEXT [fork]
hooks_for() {
  local program python text said=$BATS_TEST_TMPDIR/said pids=() texts=() files=()
  program=$(markers | grep -xE "$1" | sed "s|.*|usdt:$shim:python:& { @=count(); }|")
  for python in $(pythons); do
    case $(version_of "$python") in
      3.[678]) text=$2 ;;
      3.9 | 3.1[01]) text=$3 ;;
      *) text=$4 ;;
    esac
    [ "$text" ] || continue
    LD_PRELOAD=$shim "$python" "$top/test/workloads/hooks.py" 120 ${5:+"$5"} >"$said.${#pids[@]}" 3>&- &
    files+=("$said.${#pids[@]}")
    pids+=($!)
    texts+=("$text")
  done
  # Whether each FILE has at least COUNT lines.
  # usage: has_lines COUNT FILE...
  has_lines() {
    local count=$1
    shift
    [ "$(for file; do sed -n "${count}p" "$file" 2>/dev/null; done | wc -l)" = $# ]
  }
  wait_for has_lines 1 "${files[@]}"
  export -f has_lines
  # shellcheck disable=SC2016 # bash expands it
  bpftrace_while "$program" bash -c 'until has_lines 2 "$@"; do sleep 0.05; done' - "${files[@]}"
  wait "${pids[@]}"
  [ "${#pids[@]}" -gt 0 ]
  for python in "${!pids[@]}"; do
    diff - "$said.$python" <<<$'.\n'"${texts[python]}"$'\n.'
  done
}

@test "hooks are in place while somebody probes, and those alone that the markers need" {
  hooks_for 'gc__.*' gc. gc. gc.
  hooks_for 'import__.*' import. import. import.
  hooks_for function__entry '' evaluator. PY_RESUME+PY_START+PY_THROW.
  hooks_for function__return '' evaluator. PY_RETURN+PY_UNWIND+PY_YIELD.
  hooks_for line '' evaluator. JUMP+LINE+PY_START.
  # CALL implies C_RETURN and C_RAISE, which are not listed
  hooks_for 'cfunction__(entry|return|count)' '' evaluator. CALL.
  # of sums: the starts alone
  hooks_for 'function__count' '' evaluator. PY_RESUME+PY_START+PY_THROW.
}

@test "hooks go when the tracer does in a program that forks all the time" {
  hooks_for 'gc__.*' gc. gc. gc. fork
}

@test "a program that wraps importlib's function has one event for an import, also for the next tracer, and keeps its wrapper" {
  local python target tracer program="
import importlib, time
bootstrap = importlib._bootstrap
end = time.time() + 600
while hasattr(bootstrap._find_and_load, '__code__') and time.time() < end:
    time.sleep(0.01)
hooked = bootstrap._find_and_load
own = bootstrap._find_and_load = lambda *rest, **keywords: hooked(*rest, **keywords)
end = time.time() + 600
while time.time() < end:
    if bootstrap._find_and_load is not own:
        print('another is in its place', flush=True)
        break
    try:
        import no_such_module
    except ImportError:
        time.sleep(0.01)
"
  for python in $(pythons_by_hook); do
    # bpftrace has the events of each processor in order, and of several in none
    PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim taskset -c 0 "$python" -c "$program" >"$BATS_TEST_TMPDIR/said" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    target=$!
    for tracer in first second; do
      # shellcheck disable=SC2016 # sh expands it
      bpftrace_while "usdt:$shim:python:import__find__load__start { printf(\"start %s\n\", str(arg0)); }
        usdt:$shim:python:import__find__load__done { printf(\"done %s\n\", str(arg0)); }" \
        sh -c 'until [ "$(grep -c no_such_module "$1")" -gt 60 ]; do sleep 0.05; done' - "$BATS_TEST_TMPDIR/trace"
      # bpftrace enables, and disables, one of the two before the other
      grep no_such_module "$trace" | uniq -c | sed '1,2d;$d' >"$BATS_TEST_TMPDIR/events"
      echo "$python $tracer: $(wc -l <"$BATS_TEST_TMPDIR/events") events"
      [ "$(wc -l <"$BATS_TEST_TMPDIR/events")" -gt 20 ]
      # each start has its done before the next
      refute grep -v '^ *1 ' "$BATS_TEST_TMPDIR/events"
    done
    removed_twice() { [ "$(grep -c 'import hook: removed$' "$BATS_TEST_TMPDIR/log")" = 2 ]; }
    wait_for removed_twice
    diff /dev/null "$BATS_TEST_TMPDIR/said"
    kill "$target"
    wait "$target" || true
  done
}

@test "a collection has one start, in a program with subinterpreters too" {
  local python program='
import gc
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
gc.disable()
alive = [interpreters.create() for _ in range(3)]
for _ in range(50):
    gc.collect(1)
print(len(gc.callbacks))
for interpreter in alive:
    interpreters.destroy(interpreter)
print(len(gc.callbacks))'
  for python in $(pythons); do
    "$python" -W ignore -c "$program" >/dev/null 2>&1 || continue # 3.6 and 3.7 have no module for it
    bpftrace_while "usdt:$shim:python:gc__start /arg0 == 1/ { @ = count(); }" \
      env LD_PRELOAD="$shim" "$python" -W ignore -c "$program" >"$BATS_TEST_TMPDIR/output"
    echo "$python: $(cat "$trace")"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = $'1\n1' ]
    # the other interpreters may have a few of their own
    [ "$(sed -n 's/^@: //p' "$trace")" -ge 50 ]
    [ "$(sed -n 's/^@: //p' "$trace")" -le 60 ]
  done
}

@test "a child that is forked while hooks are being set has those that it needs later" {
  local python tried='' addresses
  need readelf
  mapfile -t addresses < <(semaphore_notes "$shim" | awk '$1 == "python" && !seen[$2]++ { print $2 "\n" $3 }')
  for python in $(pythons_by_hook); do
    "$python" -c 'import ctypes, sys; sys.addaudithook' 2>/dev/null || continue
    tried=yes
    PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim timeout -k 1 $((30 * SLOW)) "$python" -W ignore "$top/test/workloads/forking.py" "$shim" \
      "${addresses[@]}" >"$BATS_TEST_TMPDIR/output" 2>"$BATS_TEST_TMPDIR/log"
    echo "$python: $(cat "$BATS_TEST_TMPDIR/output" "$BATS_TEST_TMPDIR/log")"
    [ "$(<"$BATS_TEST_TMPDIR/output")" = "True 1" ]
    # nor does it look for trace functions, which are a hook up to 3.11
    refute grep 'thread states in this CPython' "$BATS_TEST_TMPDIR/log"
  done
  [ "$tried" ] || skip "needs a CPython from 3.8 on, with ctypes"
}

# Makes the user's site-packages of every CPython in a folder of the test, with a .pth file that loads the shim.
user_base() {
  local python site
  export PYTHONUSERBASE=$BATS_TEST_TMPDIR/base
  for python in $(pythons); do
    site=$("$python" -m site --user-site)
    mkdir -p "$site"
    echo 'import python_stap' >"$site/python-stap.pth"
    ln -sf "$shim" "$site/python_stap.so"
  done
}

@test "a .pth file loads it, before the program's first line" {
  local python
  local program='
def f(): return 1
f()
import os, python_stap
if os.fork() == 0:
    f()
    os._exit(0)
os.wait()
print("ended", flush=True)'
  user_base
  for python in $(pythons); do
    echo "$python"
    [ "$("$python" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])')" = 2 ]
    [ "$(PYTHON_STAP=off "$python" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])')" = 1 ]
    bpftrace_while "$(function_markers)" "$python" -W error -c "$program" >"$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = ended ]
    [ "$(grep -cE '^> <string> f 2 [0-9a-f]{5,} __main__$' "$trace")" = 2 ]
    [ "$(grep -cE '^< <string> f 2 [0-9a-f]{5,} __main__$' "$trace")" = 2 ]
    # preloaded and imported: it is the same
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" -c "$program" >"$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = ended ]
    tail -n 20 "$trace"
    [ "$(grep -c '^> <string> f 2 ' "$trace")" = 2 ]
  done
}

@test "a running program that loads it with dlopen() is traced" {
  local python program="
import ctypes, os, sys, time, threading
def before():
    ctypes.CDLL('$shim')
    while not os.path.exists('$BATS_TEST_TMPDIR/seen'):
        tick()
        time.sleep(0.01)
def tick(): pass
if len(sys.argv) > 1:
    thread = threading.Thread(target=before)
    thread.start()
    thread.join()
else:
    before()
"
  # usage: traces_ticks PYTHON [thread]
  traces_ticks() {
    rm -f "$BATS_TEST_TMPDIR/seen"
    # shellcheck disable=SC2016
    bpftrace_while "$(function_markers)" sh -c '"$3" -c "$4" $5 & until grep -q "^< <string> tick " "$2"; do sleep 0.05; done; touch "$1"; wait $!' \
      sh "$BATS_TEST_TMPDIR/seen" "$BATS_TEST_TMPDIR/trace" "$1" "$program" "${2:-}"
  }
  for python in $(pythons); do
    echo "$python"
    traces_ticks "$python"
    grep -qE '^> <string> tick 8 [0-9a-f]{5,} __main__$' "$trace"
    [ "$(grep -c '^> <string> before ' "$trace")" = 1 ]
    [ "$(grep -c '^< <string> before ' "$trace")" = 1 ]
    traces_ticks "$python" thread
    grep -qE '^> <string> tick 8 [0-9a-f]{5,} __main__$' "$trace"
    [ "$(grep -c '^< <string> before ' "$trace")" = 1 ]
  done
}

@test "of two files of the shim in one process the second does nothing" {
  local python
  user_base
  for python in $(pythons_by_hook); do
    cp --remove-destination "$shim" "$("$python" -m site --user-site)/python_stap.so"
    run env LD_PRELOAD="$shim" PYTHON_STAP_DEBUG=1 "$python" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])'
    echo "$output"
    [[ $output == *"another libpython-stap is in this process: this one does nothing"*$'\n2' ]]
  done
}

@test "PYTHON_STAP_DEBUG says which markers a hook is installed for, by their names, and when it is removed" {
  local python
  make_semaphores "$BATS_TEST_TMPDIR" 'gc__(start|done)'
  for python in $(few_pythons); do
    SEMAPHORES_TOGGLE=300 PYTHON_STAP_DEBUG=1 LD_PRELOAD="$BATS_TEST_TMPDIR/semaphores.so $shim" timeout -k 1 $((20 * SLOW)) "$python" -c '
import time
end = time.time() + 2
while time.time() < end:
    (lambda: time.sleep(0.01))()' 2>"$BATS_TEST_TMPDIR/log"
    cat "$BATS_TEST_TMPDIR/log"
    grep -qE '^libpython-stap\[[0-9]+\]: gc hook: installed for: gc__start, gc__done$' "$BATS_TEST_TMPDIR/log"
    grep -qE '^libpython-stap\[[0-9]+\]: gc hook: removed$' "$BATS_TEST_TMPDIR/log"
  done
}

@test "frames that C makes up, as Cython's do, have neither entries nor returns nor lines, and what they call has all" {
  local python target headers tried=0 program=$BATS_TEST_TMPDIR/made_up.py
  cp "$top/test/workloads/made_up.py" "$program"
  for python in $(pythons); do
    [[ $(version_of "$python") == 3.[6-9] || $(version_of "$python") == 3.1[01] ]] || continue
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -e "$headers/Python.h" ] || continue
    tried=1
    gcc -shared -fPIC -I "$headers" -o "$BATS_TEST_TMPDIR/made_up.so" "$top/test/workloads/made_up.c"
    echo "$python"
    trace_running "$python" "$(function_markers && line_markers)
      usdt:$shim:python:exception__raise { printf(\"! %s %s %d\n\", str(arg0), str(arg1), arg2); }" 1
    refute grep compiled "$trace"
    diff - <(awk '/made_up/ && $3 ~ /^(leaf|nested|fails)$/ { print $1, $3 }' "$trace" | sort | uniq -c | sed 's/^ *//') <<'EVENTS'
3 ! fails
3 . fails
6 . leaf
3 . nested
3 < fails
6 < leaf
3 < nested
3 > fails
6 > leaf
3 > nested
EVENTS
  done
  [ "$tried" = 1 ] || skip "needs Python.h of a CPython up to 3.11"
}

@test "a return is reported to the tracers that had its entry, however many calls others saw begin, from 3.12 on" {
  local python
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" filtered__function__entry
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/beside.so" "$top/test/workloads/beside.c"
  for python in $(few_pythons); do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || continue
    bpftrace_while "
      usdt:$shim:python:function__entry /str(arg1) == \"suspended\"/ { @entries = count(); }
      usdt:$shim:python:function__return /str(arg1) == \"suspended\"/ { @returns = count(); }
      usdt:$shim:python:filtered__function__return /str(arg1) == \"deep\" || str(arg1) == \"suspended\"/ { @filtered[str(arg1)] = count(); }" \
      env LD_PRELOAD="$shim" BESIDE="$BATS_TEST_TMPDIR/beside.so" "$python" "$top/test/workloads/seldom.py" is_on_no_stack_for_the_next_tracer >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output" "$trace"
    grep -qx fine "$BATS_TEST_TMPDIR/output"
    diff - <(grep @ "$trace" | sort) <<'EOF'
@entries: 31
@filtered[deep]: 42002
@returns: 31
EOF
  done
}

@test "a program whose memory runs out while the watcher needs some goes on" {
  need gcc
  local python program='
import time
def called(): pass
end = time.time() + 4
while time.time() < end:
    called()
    time.sleep(0.01)
print("ended")'
  # calloc() fails on the watcher alone, which up to 3.11 makes a thread state once a second
  cat >"$BATS_TEST_TMPDIR/none.c" <<'C'
#include <string.h>
#include <sys/prctl.h>
extern void *__libc_calloc(unsigned long, unsigned long);
void *calloc(unsigned long count, unsigned long size)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strncmp(name, "python-stap", 11) == 0 ? 0 : __libc_calloc(count, size);
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/none.so" "$BATS_TEST_TMPDIR/none.c"
  for python in $(pythons_by_hook); do
    echo "$python"
    [ "$(bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim:$BATS_TEST_TMPDIR/none.so" "$python" -c "$program")" = ended ]
  done
}

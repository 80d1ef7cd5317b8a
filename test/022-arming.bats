# Hooks come when a tracer does, at any time and any way in which the shim was loaded, and go when
# it goes.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  can_bpftrace
  export PYTHON_STAP=all # also where a CPython has markers of its own
}

# The events of one file and one function or more, a thread's apart: "tid mark funcname lineno".
thread_markers() {
  cat <<EOF
usdt:$shim:python:function__entry { printf("%d > %s %s %d\n", tid, str(arg0), str(arg1), arg2); }
usdt:$shim:python:function__return { printf("%d < %s %s %d\n", tid, str(arg0), str(arg1), arg2); }
EOF
}

# The events of FILE in the trace on the main thread of PID (or, with "not", on the others), each
# with the line's text: "mark funcname: text".
# usage: events_of FILE PID [not]
events_of() {
  awk -v file="$1" -v pid="$2" -v other="${3:+1}" '
    FILENAME == file { sub(/^ */, ""); text[FNR] = $0; next }
    $3 == file && ($1 == pid) == !other { print $2, $4 ": " text[$5] }' "$1" "$trace"
}

@test "frames that run when the tracer comes are entered, and their returns seen" {
  local python target program=$BATS_TEST_TMPDIR/running.py
  cp "$top/test/workloads/running.py" "$program"
  for python in $(pythons); do
    echo "$python"
    LD_PRELOAD=$shim "$python" "$program" 2 &
    target=$!
    sleep 0.6
    bpftrace_while "$(thread_markers)" tail -s 0.1 --pid="$target" -f /dev/null
    wait "$target"
    diff - <(events_of "$program" "$target") <<'EVENTS'
> <module>: raises()
> raises: list(numbers)
> generator: wait()
> wait: time.sleep(end - time.time())
< wait: time.sleep(end - time.time())
< generator: yield 2
> generator: yield 2
< generator: yield 2
< raises: raise ValueError("on purpose")
> leaf: def leaf(): pass  # fmt: skip
< leaf: def leaf(): pass  # fmt: skip
< <module>: leaf()
EVENTS
    # A thread that calls no Python function isn't seen before it does, up to 3.8.
    case $(version_of "$python") in
      3.[678]) printf '> %s\n' 'down: return down(n - 1)' 'down: return down(n - 1)' 'down: leaf()' ;;
      *)
        printf '> %s\n' 'down: return down(n - 1)' 'down: return down(n - 1)' 'down: wait()'
        printf '%s wait: time.sleep(end - time.time())\n' '>' '<'
        ;;
    esac >"$BATS_TEST_TMPDIR/worker"
    cat - >>"$BATS_TEST_TMPDIR/worker" <<'EVENTS'
> leaf: def leaf(): pass  # fmt: skip
< leaf: def leaf(): pass  # fmt: skip
< down: leaf()
< down: return down(n - 1)
< down: return down(n - 1)
EVENTS
    diff "$BATS_TEST_TMPDIR/worker" <(events_of "$program" "$target" not)
  done
}

@test "a tracer of returns alone sees those of frames that run when it comes" {
  local python target program=$BATS_TEST_TMPDIR/running.py
  cp "$top/test/workloads/running.py" "$program"
  for python in $(pythons_by_hook); do
    echo "$python"
    LD_PRELOAD=$shim "$python" "$program" 2 &
    target=$!
    sleep 0.6
    bpftrace_while "$(thread_markers | grep return)" tail -s 0.1 --pid="$target" -f /dev/null
    wait "$target"
    diff - <(events_of "$program" "$target") <<'EVENTS'
< wait: time.sleep(end - time.time())
< generator: yield 2
< generator: yield 2
< raises: raise ValueError("on purpose")
< leaf: def leaf(): pass  # fmt: skip
< <module>: leaf()
EVENTS
  done
}

# All interpreters run hooks.py while the markers of a pattern are probed for a while.  What each says
# meanwhile is the text for its version (none: Python can't see it); before and after it says that it
# has no hooks.
# usage: hooks_for PATTERN 3.6-TEXT 3.9-TEXT 3.12-TEXT
hooks_for() {
  local program python text said=$BATS_TEST_TMPDIR/said pids=() texts=()
  program=$(markers | grep -xE "$1" | sed "s|.*|usdt:$shim:python:& { @=count(); }|")
  for python in $(pythons); do
    case $(version_of "$python") in
      3.[678]) text=$2 ;;
      3.9 | 3.1[01]) text=$3 ;;
      *) text=$4 ;;
    esac
    [ "$text" ] || continue
    PYTHON_STAP=all LD_PRELOAD=$shim "$python" "$top/test/workloads/hooks.py" 30 >"$said.${#pids[@]}" &
    pids+=($!)
    texts+=("$text")
  done
  sleep 1
  bpftrace_while "$program" sleep 1
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
  # C_RETURN and C_RAISE come with CALL, and aren't told of
  hooks_for 'cfunction__.*' '' evaluator. CALL.
}

# A folder that every CPython takes for the user's site-packages, in which a .pth file loads the shim.
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
    [ "$(grep -c '^> <string> f 2 ' "$trace")" = 2 ]
  done
}

@test "a running program that loads it with dlopen() is traced" {
  local python program="
import ctypes, sys, time, threading
def before():
    ctypes.CDLL('$shim')
    end = time.time() + 1
    while time.time() < end:
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
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "$(function_markers)" "$python" -c "$program"
    grep -qE '^> <string> tick 9 [0-9a-f]{5,} __main__$' "$trace"
    [ "$(grep -c '^> <string> before ' "$trace")" = 1 ]
    [ "$(grep -c '^< <string> before ' "$trace")" = 1 ]
    bpftrace_while "$(function_markers)" "$python" -c "$program" thread
    grep -qE '^> <string> tick 9 [0-9a-f]{5,} __main__$' "$trace"
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

# function__count and function__summary: the sums that the shim keeps in the process equal the events of its markers.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

teardown() {
  kill_jobs
}

# A bpftrace program that counts calls by file and function: from function__entry, function__count and function__summary.
sums_of_calls() {
  cat <<EOF
usdt:$shim:python:function__entry { @entries[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:function__count { @counted[str(arg0), str(arg1)] = sum(arg4); }
usdt:$shim:python:function__summary { @summed[str(arg0), str(arg1)] = sum(arg4); }
EOF
}

# Checks that the three counts agree for functions with $1 in the name of the file, of which there are at least $2.
same_sums() {
  local map
  for map in entries counted summed; do
    sed -n "s/^@$map//p" "$trace" | grep -F "$1" | sort >"$BATS_TEST_TMPDIR/$map"
  done
  [ "$(wc -l <"$BATS_TEST_TMPDIR/entries")" -ge "$2" ]
  diff "$BATS_TEST_TMPDIR/entries" "$BATS_TEST_TMPDIR/counted"
  diff "$BATS_TEST_TMPDIR/entries" "$BATS_TEST_TMPDIR/summed"
}

@test "the sums are those of the entries" {
  local python name
  for name in call_stack.py semantics.py; do
    cp "$top/test/workloads/$name" "$BATS_TEST_TMPDIR"
    for python in $(pythons); do
      echo "$python $name"
      bpftrace_while "$(sums_of_calls)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/$name" >/dev/null
      same_sums "$name" 5
    done
  done
}

@test "so are those of threads that come and go, of forks and of code that is freed" {
  local python program=$BATS_TEST_TMPDIR/threads.py
  cat >"$program" <<'EOF'
import os
import sys
import threading
import time


def works(depth):
    return depth and works(depth - 1)


def runs():
    for _ in range(100):
        works(5)
        exec(compile("def freed():\n  pass\nfreed()", __file__, "exec"), {})


def generates():
    yield works(1)
    yield works(2)


for turn in range(20):
    threads = [threading.Thread(target=runs) for _ in range(4)]
    for thread in threads:
        thread.start()
    list(generates())
    if turn % 10 == 5:
        child = os.fork()
        if not child:
            runs()
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
    for thread in threads:
        thread.join()
    time.sleep(0.03)
EOF
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "$(sums_of_calls)" env LD_PRELOAD="$shim" "$python" -W ignore "$program"
    same_sums "$program" 5
    grep -F "$program, freed]: 8200" "$trace"
  done
}

@test "a function's time is that of its outermost calls, and its own without what it calls" {
  local python program=$BATS_TEST_TMPDIR/timed.py
  cat >"$program" <<'EOF'
import time


def sleeps():
    time.sleep(0.02)


def outer(depth):
    sleeps()
    return depth and outer(depth - 1)


def fails():
    try:
        sleeps()
        raise KeyError
    finally:
        sleeps()


def generates():
    for _ in range(3):
        sleeps()
        yield


took = {outer: 0, fails: 0, generates: 0}


def timed(function, call, *arguments):
    began = time.perf_counter()
    try:
        return call(*arguments)
    except KeyError:
        pass
    finally:
        took[function] += time.perf_counter() - began


for _ in range(5):
    timed(outer, outer, 4)
    timed(fails, fails)
    generator = generates()
    while timed(generates, next, generator, generator) is not generator:
        time.sleep(0.01)
print(*(took[function] * 1e9 for function in (outer, fails, generates)))
EOF
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "usdt:$shim:python:function__summary { @ms[str(arg0), str(arg1)] = sum(arg5); }" \
      env LD_PRELOAD="$shim" "$python" "$program" >"$BATS_TEST_TMPDIR/took"
    awk -v file="$program" -v took="$(cat "$BATS_TEST_TMPDIR/took")" '
      BEGIN { split(took, own, " ") }
      # at least as long as it sleeps, and no longer than its own clock says
      function is(name, least, most) {
        if (index($0, name "]") && $NF >= least * 1000000 && $NF <= most) right++
      }
      # as its own clock has it, but for 1 %
      index($0, "@ms[" file ", outer]") && ($NF < 0.99 * own[1] || $NF > own[1]) { print "not " own[1]; bad = 1 }
      index($0, "@ms[" file) {
        print
        is("sleeps", 800, own[1] + own[2] + own[3])
        is("outer", 500, own[1])
        is("fails", 200, own[2])
        is("generates", 300, own[3])
      }
      END { exit bad || right != 4 }' "$trace"
  done
}

@test "the times of the next tracer are right while another one goes on counting calls" {
  local python program folder=$BATS_TEST_TMPDIR
  cat >"$folder/requests.py" <<'EOF'
import os, time

def request():
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        pass

def phase(ends):
    while not ends():
        request()

os.chdir(os.path.dirname(__file__))
phase(lambda: os.path.exists("first"))
while not os.path.exists("second"):
    time.sleep(0.05)
begin = time.perf_counter()
for _ in range(10):
    request()
took = time.perf_counter() - begin
with open("took", "w") as file:
    print(int(took * 1000) + 1, file=file)
os.rename("took", "done")
time.sleep(0.3)
EOF
  for python in $(few_pythons); do
    echo "$python"
    rm -f "$folder"/{first,second,done}
    PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim "$python" "$folder/requests.py" 2>"$folder/log" 3>&- &
    program=$!
    bpftrace_beside "usdt:$shim:python:function__count { @ = count(); }"
    # it leaves while calls are open
    bpftrace_while "usdt:$shim:python:function__summary { @ = count(); }" sleep 0.7
    touch "$folder/first"
    sleep 0.5
    # shellcheck disable=SC2016 # bash -c expands it
    bpftrace_while "usdt:$shim:python:function__summary /str(arg1) == \"request\"/ { @calls = sum(arg4); @ms = sum(arg5 / 1000000); }" \
      bash -c 'until grep "installed for:" "$0/log" | tail -n 1 | grep -q function__summary; do sleep 0.05; done
        touch "$0/second"; until [ -e "$0/done" ]; do sleep 0.05; done; tail -s 0.1 --pid="$1" -f /dev/null' "$folder" "$program"
    kill -INT "$stays"
    wait "$program"
    end_bpftrace "$stays"
    cat "$trace"
    grep -qx '@calls: 10' "$trace"
    [ "$(sed -n 's/^@ms: //p' "$trace")" -ge 495 ]
    [ "$(sed -n 's/^@ms: //p' "$trace")" -le "$(<"$folder/done")" ]
  done
}

@test "what is called when a tracer has left, and a filter keeps the hooks, is no part of the next one's sums" {
  local python program
  need_seccomp
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" function__count
  for python in $(few_pythons); do
    echo "$python"
    rm -f "$BATS_TEST_TMPDIR"/{ready,ends}
    LD_PRELOAD=$shim "$python" "$top/test/workloads/seldom.py" is_traced_again_after_a_filter "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/printed" 3>&- &
    program=$!
    wait_for test -e "$BATS_TEST_TMPDIR/ready"
    # shellcheck disable=SC2016 # bash expands it
    bpftrace_while "usdt:$shim:python:function__count { @[str(arg0), str(arg1)] = sum(arg4); }" \
      bash -c 'sleep 1; touch "$1/ends"; tail -s 0.1 --pid="$2" -f /dev/null' - "$BATS_TEST_TMPDIR" "$program"
    wait "$program"
    cat "$trace"
    [ "$(cat "$BATS_TEST_TMPDIR/printed")" = fine ]
    grep -q ', exists\]: ' "$trace"
    refute grep 'seldom\.py, ' "$trace"
  done
}

@test "the time of a recursion is counted once also where another thread has the function open as it begins" {
  local python
  cat >"$BATS_TEST_TMPDIR/recursion.py" <<'EOF'
import threading, time

def recursive(depth, seconds):
    time.sleep(seconds)
    if depth:
        recursive(depth - 1, 0.2)

took = []

def timed(*arguments):
    began = time.perf_counter()
    recursive(*arguments)
    took.append(time.perf_counter() - began)

other = threading.Thread(target=timed, args=(0, 0.3))
other.start()
time.sleep(0.1)
timed(3, 0.4)
other.join()
print(int(sum(took) * 1000))
EOF
  for python in $(few_pythons); do
    echo "$python"
    bpftrace_while "usdt:$shim:python:function__summary /str(arg1) == \"recursive\"/ { @ms = sum(arg5 / 1000000); }" \
      env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/recursion.py" >"$BATS_TEST_TMPDIR/took"
    cat "$trace" "$BATS_TEST_TMPDIR/took"
    # 0.3 and 0.4 + 3 * 0.2 seconds; twice would be 1.9
    [ "$(sed -n 's/^@ms: //p' "$trace")" -ge 1290 ]
    [ "$(sed -n 's/^@ms: //p' "$trace")" -le "$(cat "$BATS_TEST_TMPDIR/took")" ]
  done
}

@test "what is freed is told and freed also in a child that a thread has forked" {
  local python most
  cat >"$BATS_TEST_TMPDIR/child.py" <<'EOF'
import gc, os, threading

def kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

def child():
    before = kilobytes()
    for i in range(40000):
        exec(compile("def freed(): pass\nfreed()", __file__, "exec"), {})
        if i % 1000 == 0:
            gc.collect()  # without the GIL, code is freed by the collector
    print(kilobytes() - before, flush=True)
    os._exit(0)

def forks():
    pid = os.fork()
    if not pid:
        child()
    os.waitpid(pid, 0)

thread = threading.Thread(target=forks)
thread.start()
thread.join()
EOF
  for python in $(few_pythons | some 2); do
    echo "$python"
    bpftrace_while "usdt:$shim:python:function__count /str(arg1) == \"freed\"/ { @ = sum(arg4); }" \
      env LD_PRELOAD="$shim" "$python" -W ignore "$BATS_TEST_TMPDIR/child.py" >"$BATS_TEST_TMPDIR/more"
    cat "$BATS_TEST_TMPDIR/more" "$trace"
    [ "$(sed -n 's/^@: //p' "$trace")" = 40000 ]
    # they were 13 MB, and without the GIL 37
    most=6000
    ! is_free_threaded "$python" || most=9000
    [ "$(cat "$BATS_TEST_TMPDIR/more")" -lt "$most" ]
  done
}

@test "a process that ends at once, or executes another program, tells first" {
  local python program=$BATS_TEST_TMPDIR/parts.py
  cat >"$program" <<'EOF'
import os
import sys


def called():
    pass


def parts(way):
    for _ in range(7):
        called()
    if way == "_exit":
        os._exit(0)
    if way == "execv":
        os.execv("/bin/true", ["true"])
    os.execve("/bin/true", ["true"], {})


for way in "_exit", "execv", "execve":
    child = os.fork()
    if not child:
        parts(way)
    assert os.waitpid(child, 0)[1] == 0
parts(sys.argv[1])
EOF
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "$(sums_of_calls)" env LD_PRELOAD="$shim" "$python" -W ignore "$program" _exit
    grep "^@counted.*$program, called]: 28$" "$trace"
    grep "^@summed.*$program, called]: 28$" "$trace"
    grep "^@counted.*$program, parts]: 4$" "$trace"
    refute grep "^@summed.*$program, parts]" "$trace"
  done
}

@test "calls of functions in C are counted and measured as they are seen" {
  local python program=$BATS_TEST_TMPDIR/calls_c.py
  cat >"$program" <<'EOF'
import time


def key(n):
    time.sleep(0.01)
    return n


for _ in range(5):
    sorted([3, 1, 2, 4], key=key)
    abs(-1)
    "x".upper()
    [].append(1)
    try:
        len()
    except TypeError:
        pass
EOF
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "usdt:$shim:python:cfunction__entry { @entries[str(arg3), str(arg1)] = count(); }
      usdt:$shim:python:cfunction__count { @counted[str(arg1), str(arg0)] = sum(arg2); }
      usdt:$shim:python:cfunction__summary { @summed[str(arg1), str(arg0)] = sum(arg2); @ms[str(arg0)] = sum(arg3); @own[str(arg0)] = sum(arg4); }" \
      env LD_PRELOAD="$shim" "$python" -I -S "$program"
    same_sums , 5
    awk '/^@ms\[sorted\]/ { time = $2 } /^@own\[sorted\]/ { own = $2 } /^@ms\[sleep\]/ { sleep = $2 }
      END { print time, own, sleep; exit !(sleep >= 2e8 && time >= sleep && own < 2e7) }' "$trace"
  done
}

@test "the child of a fork says that its thread calls, also if its parent has just said so" {
  local python
  for python in $(pythons_by_hook); do
    bpftrace_while "usdt:$shim:python:function__count { @calls = sum(arg4); }
      usdt:$shim:python:thread__runs { @runs[pid] = count(); }" \
      env LD_PRELOAD="$shim" "$python" -W ignore -c '
import os

def called():
    pass

for _ in range(20):
    called()
    child = os.fork()
    if not child:
        called()
        os._exit(0)
    os.waitpid(child, 0)'
    echo "$python"
    # the parent and its children
    [ "$(grep -c '^@runs' "$trace")" = 21 ]
  done
}

# pyblocked's kinds of sleep, held against a program that knows what it waits for.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  waits=$top/test/workloads/waits.py
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
}

# Runs pyblocked on the parts of the workload: its rows are in $printed, what the program says is in $said.
# usage: blocked OPTIONS... -- PYTHON PART...
blocked() {
  script_beside pyblocked "$waits" -G top=3000 "$@"
}

# Each sleep's kind and file, or "exact" ones, and its time.  What else kept the thread from its CPU is in rows of its own: other
# threads, pages that were not there yet, the stop of is_stopped_while_it_polls.  $1: which
check_kinds() {
  /usr/bin/python3 - "$printed" "$said" "$1" <<'PY'
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
kinds = {row["kind"]: row for row in rows if "stack" not in row}
rows = [row for row in rows if "stack" in row]
assert said and rows
assert {" ".join(row) for row in rows} == {"total_us sleeps longest_us kind which stack"}
assert {" ".join(row) for row in kinds.values()} == {"total_us sleeps longest_us kind"}
got = collections.defaultdict(int)
for row in rows:
    for function in {frame.split()[-1] for frame in row["stack"]}:
        got[function, row["kind"], row["which"]] += row["total_us"]
wanted = {(one["function"], one["kind"], one[sys.argv[3]] if sys.argv[3] else "") for one in said}
times = collections.defaultdict(lambda: [0, 0])
for one in said:
    key = one["function"], one["kind"], one[sys.argv[3]] if sys.argv[3] else ""
    times[key][0] += one["least_us"]
    times[key][1] += one["most_us"]
for (function, kind, which), (least, most) in times.items():
    own = got[function, kind, which]
    beside = sum(us for key, us in got.items() if key[0] == function and key not in wanted)
    print(function, kind, which, "slept", least, "to", most, "printed", own, "beside", beside)
    assert own <= most * 1.05 + 20000
    assert own + beside >= least * 0.9 - 20000
    # where a busy machine gave the guest no CPU, what it waits for may be there when it gets one
    assert own >= 50000 or most < 70000 or (own > 0 and beside >= 200000)
for (function, kind, which), time in got.items():
    if function in {one["function"] for one in said} and kind not in ("GIL", "run queue"):
        is_its_stop = (function, kind) == ("is_stopped_while_it_polls", "stopped")
        assert time < 50000 or is_its_stop or (function, kind, which) in wanted, (function, kind, which, time)
# the sums of each kind
for kind, row in kinds.items():
    of_kind = [one for one in rows if one["kind"] == kind]
    assert sum(one["sleeps"] for one in of_kind) == row["sleeps"], row
    assert 0 <= row["total_us"] - sum(one["total_us"] for one in of_kind) <= len(of_kind), row
    assert max(one["longest_us"] for one in of_kind) == row["longest_us"], row
assert {row["kind"] for row in rows} == set(kinds)
PY
}

@test "pyblocked says what a thread waits for, and which file or socket, and how long" {
  blocked -- "$system"
  [ "$(wc -l <"$said")" -ge 37 ]
  [ "$(jq -r .kind "$said" | sort -u | wc -l)" -ge 13 ]
  check_kinds which
}

@test "pyblocked tells the GIL, locks and timers from others in each CPython" {
  need_time
  local python
  while read -r python <&9; do
    echo "$python"
    blocked -- "$python" of_timers of_locks of_polls of_the_gil
    [ "$(wc -l <"$said")" = 10 ]
    check_kinds which
    is_free_threaded "$python" || continue
    PYTHON_GIL=0 blocked -- "$python" of_timers of_locks of_polls
    [ "$(wc -l <"$said")" = 9 ]
    check_kinds which
  done 9< <(guest_pythons)
}

@test "pyblocked has kinds alone with which=0, and all ports with which=2" {
  need_time
  blocked -G which=0 -- "$system" of_sockets of_file_locks
  check_kinds ''
  refute grep -E '"which":"[^"]' "$printed"
  blocked -G which=2 -- "$system" of_sockets
  check_kinds exact
  refute grep -F ':*' "$printed"
}

@test "pyblocked waker says who ended a sleep: a thread of this process or another Python, another program, an interrupt" {
  local rows=$BATS_TEST_TMPDIR/rows
  need_time
  cat >"$BATS_TEST_TMPDIR/woken.py" <<'PY'
import os
import queue
import subprocess
import threading
import time


def puts(items):
    time.sleep(0.3)
    items.put(1)


def gets(items):
    items.get()


def writes(end):
    time.sleep(0.3)
    os.write(end, b"x")


def reads(end):
    os.read(end, 1)


def reads_of_sleep(child):
    child.stdout.read()


def naps():
    time.sleep(0.3)


items, (ours, theirs) = queue.Queue(), os.pipe()
thread = threading.Thread(target=puts, args=[items])
thread.start()
gets(items)
thread.join()
if not os.fork():
    writes(theirs)
    os._exit(0)
reads(ours)
os.wait()
reads_of_sleep(subprocess.Popen(["sleep", "0.3"], stdout=subprocess.PIPE))
naps()
PY
  script pyblocked waker -G folded=1 -G which=0 -G min=100000 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/woken.py"
  sed -E 's/ \([^;()]*\)//g; s/ [0-9]+$//' "$printed" >"$rows"
  cat "$rows"
  grep -qE ';gets;.*\[lock\];\[woken by\];_bootstrap;.*;puts;.*notify$' "$rows"
  sed -E 's/\([0-9]+\)/(PID)/; s/ \([^;()]*\.py:[0-9]+\)//g; s/ [0-9]+$//' "$printed" >"$rows"
  grep -qE ';reads;\[pipe\];\[woken by\];\[python3[.0-9t]* \(PID\)\];<module>;writes$' "$rows"
  grep -qE ';reads_of_sleep;\[pipe\];\[woken by\];\[sleep \(PID\)\]$' "$rows"
  grep -qE ';naps;\[timer\];\[woken by\];\[interrupt\]$' "$rows"
}

@test "a server's connections are one row" {
  cat >"$BATS_TEST_TMPDIR/server.py" <<'PY'
import socket
import threading
import time

listener = socket.socket()
listener.bind(("127.0.0.1", 20099))
listener.listen(50)


def talks():
    time.sleep(0.1)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", 20099)) as one:
            time.sleep(0.02)
            one.send(b"x")


def serves(one):
    one.recv(1)


thread = threading.Thread(target=talks)
thread.start()
for _ in range(20):
    serves(listener.accept()[0])
thread.join()
PY
  script pyblocked -G json=1 -G top=3000 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/server.py"
  jq -r 'select(.stack) | select(.stack[0] | endswith(" in serves")) | [.which, .sleeps] | @tsv' "$printed" | sort >"$BATS_TEST_TMPDIR/rows"
  cat "$BATS_TEST_TMPDIR/rows"
  grep -qE "^127.0.0.1:20099 -> 127.0.0.1:\*	(1[5-9]|20)$" "$BATS_TEST_TMPDIR/rows"
  [ "$(grep -c ' -> ' "$BATS_TEST_TMPDIR/rows")" = 1 ]
}

@test "with threads=1 and qualified=1 a stack ends with the thread's name, and has the class of a method" {
  script pyblocked -G threads=1 -G qualified=1 -G json=1 -G top=3000 -c "env LD_PRELOAD=$shim $system $top/test/workloads/named.py 0.2"
  /usr/bin/python3 - "$printed" <<'PY'
import json
import re
import sys

rows = [row for row in map(json.loads, open(sys.argv[1], encoding="utf-8")) if "stack" in row]
[sleeper] = [row for row in rows if row["kind"] == "timer" and row["stack"][0].endswith("sleeps")]
assert sleeper["stack"][0].endswith("in Worker.Sleeper.sleeps"), sleeper
assert re.search(r" \([0-9]+ sleeper\)$", sleeper["stack"][-1]), sleeper
assert any(re.search(r" \([0-9]+ MainThread\)$", row["stack"][-1]) for row in rows), rows
PY
}

@test "a table that is too small for the stacks of pyblocked's sleeps and waits for a CPU loses none" {
  need_time
  cat >"$BATS_TEST_TMPDIR/many.py" <<'PY'
import threading
import time

functions = {"time": time}
for number in range(300):
    exec("def f_%d():\n    time.sleep(0.0005)" % number, functions)


def computes(end):
    while time.time() < end:
        pass


end = time.time() + 3
threads = [threading.Thread(target=computes, args=(end,)) for _ in range(2)]
for thread in threads:
    thread.start()
while time.time() < end:
    for number in range(300):
        functions["f_%d" % number]()
PY
  script_says pyblocked -DPYTHON_STACKS=200 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/many.py" >/dev/null
  cat "$printed.said"
  grep -q 'more than 200 stacks: the .* least frequent are merged' "$printed.said"
  refute grep lost "$printed.said"
}

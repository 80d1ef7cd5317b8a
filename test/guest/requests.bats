# pyrequest's causes, held against a program that plants them and has clocks of its own.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  requests=$top/test/workloads/requests.py
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
}

# Runs pyrequest on the workload: its rows are in $printed, what the program says is in $said.  On a busy machine Python may
# take ten seconds to start, of which pyrequest warns.
# usage: requested PYTHON CAUSES STAP'S ARGUMENTS...
requested() {
  said=$BATS_TEST_TMPDIR/said
  script_says pyrequest -c "env LD_PRELOAD=$shim $1 $requests $2" "${@:3}" 'handle*' path >"$said.all" || {
    cat "$said.all"
    return 1
  }
  refute grep -E 'WARNING: (lost|skipped|more than|no room)|ERROR|could not be read' "$printed.said"
  grep '^{"path"' "$said.all" >"$said"
}

# The tables' first cause is the one that was planted in the slow requests of each path; their numbers are the program's.
check_causes() {
  /usr/bin/python3 - "$printed" "$said" <<'PY'
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
keys = {" ".join(row) for row in rows if "wall_us" not in row}
assert keys == {"requests failed mean_us p50_us p90_us p99_us max_us by function file",
                "share median_us slowest_us difference_us cause by function file",
                " ".join(rows[-1])}, keys
causes = {"gil": "GIL", "cpu": "CPU", "run_queue": "run queue", "page_fault": "page fault"}
groups = {row["by"].strip("'"): row for row in rows if "p50_us" in row}
assert set(groups) == {one["path"] for one in said}, groups
first = {}
for row in rows:
    if "cause" in row:
        first.setdefault(row["by"].strip("'"), row)
        assert row["difference_us"] <= row["slowest_us"] + 1 and 0 <= row["share"] <= 100, row
for path, group in groups.items():
    took = sorted(one["us"] for one in said if one["path"] == path)
    print(path, group, first[path], took[-1])
    assert group["requests"] == len(took) and group["failed"] == 0, group
    assert group["max_us"] <= took[-1] + 1
    cause = causes.get(path, path)
    key = cause.lower().replace(" ", "_") + "_us"
    slowest = [row for row in rows if "stack" in row and row["by"].strip("'") == path]
    walls = [row["wall_us"] for row in slowest]
    assert len(slowest) == 20 and walls == sorted(walls, reverse=True) and abs(walls[0] - group["max_us"]) < 1
    # each slow one has its cause, whatever else a busy machine does to it
    of_path = [one for one in said if one["path"] == path]
    for row, one in zip(sorted(slowest, key=lambda row: row["start"]), of_path):
        beside = sum(row[name] for name in ("run_queue_us", "gil_us", "loop_us") if name != key)
        wanted = 20000 if path in ("cpu", "run_queue", "gil") else one["off_us"] * 0.99 - 50 - beside
        assert not one["slow"] or row[key] >= wanted, (one, row)
    # the first row is what the slowest request has more of than those around the median
    keys = [name for name in slowest[0] if name.endswith("_us") and name not in ("wall_us", "gc_us", "import_us", "longest_us")]
    middle = sorted(slowest, key=lambda row: row["wall_us"])[7:12]
    more = {name: slowest[0][name] - sum(row[name] for row in middle) / len(middle) for name in keys}
    named = first[path]["cause"].lower().replace(" ", "_") + "_us"
    assert max(more.values()) - more[named] < 2, (first[path], more)
    if slowest[0][key] > walls[0] / 2:
        assert first[path]["cause"] == cause, (path, first[path])
        if path not in ("cpu", "run_queue", "gil", "loop", "task", "future"):
            assert slowest[0]["stack"][0].split("\t")[0] == cause and slowest[0]["stack"][-1].endswith("in <module>"), slowest[0]
assert set(rows[-1]) >= {"left_out_at_end", "left_out_thread_ended"} and not any(rows[-1].values()), rows[-1]
PY
}

@test "the first cause that pyrequest names is the one that makes the slow requests slow" {
  requested "$system" 'gil lock socket timer page_fault run_queue cpu' -G json=1 -G slowest=20
  check_causes
}

@test "the parts of each request add up to the wall time of the program's own clock" {
  requested "$system" 'lock socket cpu nested' -G json=1 -G each=1
  /usr/bin/python3 - "$printed" "$said" <<'PY'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
assert rows.pop() == {"left_out_at_begin": 0, "left_out_at_end": 0, "left_out_thread_ended": 0}
inner, outer, raises = rows[-3:]
for row in rows:
    parts = sum(value for key, value in row.items() if key.endswith("_us") and key not in ("wall_us", "gc_us", "import_us", "longest_us"))
    assert abs(parts - row["wall_us"]) < 0.1, row
assert len(rows) == len(said) + 3
for row, one in zip(rows, said):
    slack = max(50, one["us"] * 0.01)
    # the shim's markers and the first and last line's own time are not within
    print(one, row["wall_us"])
    assert one["within_us"] - 1 <= row["wall_us"] <= one["us"] + slack, (row, one)
assert (inner["function"], outer["function"], raises["function"]) == ("handle", "handle_outer", "handle")
assert inner["timer_us"] <= outer["timer_us"] and inner["wall_us"] <= outer["wall_us"] and outer["stack"] == inner["stack"]
assert [row["failed"] for row in (inner, outer, raises)] == [False, False, True]
PY
}

# The stack of each row is the one that the program said at the wait.
check_callers() {
  grep '^\["File' "$BATS_TEST_TMPDIR/said" | /usr/bin/python3 -c '
import json
import sys

said = [json.loads(line) for line in sys.stdin]
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:-1]
outer = rows.pop()
assert (outer["function"], len(rows), len(said)) == ("handle_twice", 14, 14), (rows, said)
compared = set()
for row, names in zip(rows, said):
    if row["longest_us"] < 100000 or row["stack"][0] != "timer":
        continue # of a busy machine
    assert row["stack"][1:] == names, (row, names)
    compared.add((row["function"], len(names)))
assert len(compared) == 5, compared
' "$printed"
}

@test "the stack of a request's longest wait has each caller's present line, whoever called before" {
  local python
  cat >"$BATS_TEST_TMPDIR/callers.py" <<'PY'
import json
import sys
import time


# The callers are read at the short wait.
def naps():
    time.sleep(0.001)
    print(json.dumps(stack())) or time.sleep(0.2)


def stack():
    frame, names = sys._getframe(1), []
    while frame:
        code = frame.f_code
        names.append('File "%s", line %d, in %s' % (code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return names


def handle():
    naps()


def handle_generator():
    naps()
    yield
    naps()


def handle_twice():
    time.sleep(0.001)
    handle()
    handle()


def deep(depth):
    deep(depth - 1) if depth else handle()


for _ in range(2):
    handle()
    handle()
    deep(3)
    deep(30)
    generator = handle_generator()
    next(generator)
    next(generator, None)
handle_twice()
PY
  while read -r python <&9; do
    echo "$python"
    script_says pyrequest -c "env LD_PRELOAD=$shim $python $BATS_TEST_TMPDIR/callers.py" -G json=1 -G each=1 'handle*' >"$BATS_TEST_TMPDIR/said"
    check_callers
  done 9< <(guest_pythons)
}

@test "the life of a task of asyncio is divided, too: its steps, and what it waits for between them" {
  need_time
  requested "$system" tasks -G json=1 -G slowest=20 -G tasks=1
  check_causes
  requested "$system" tasks -G json=1 -G each=1 -G tasks=1
  /usr/bin/python3 - "$printed" "$said" <<'PY'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:-1]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
assert len(rows) == len(said) and {row["function"] for row in rows} == {"handle_task"}
for row, one in zip(rows, said):
    print(one, row)
    parts = sum(value for key, value in row.items() if key.endswith("_us") and key not in ("wall_us", "gc_us", "import_us", "longest_us"))
    assert abs(parts - row["wall_us"]) < 0.1, row
    assert one["within_us"] - 1 <= row["wall_us"] <= one["us"] + max(50, one["us"] * 0.01), (row, one)
PY
}

@test "with waker a request says who ended its longest wait: a thread of the process, another Python, an interrupt" {
  local told=$BATS_TEST_TMPDIR/told
  need_time
  requested "$system" 'lock socket timer' -G json=1 -G each=1 waker
  /usr/bin/python3 - "$printed" <<'PY'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:-1]
assert len(rows) == 60 and {type(row["woken_by"]) for row in rows} == {list}
seen = set()
for row in rows:
    cause = row["by"].strip("'")
    if row[cause + "_us"] < 100000 or row["longest_us"] > row[cause + "_us"]:
        continue
    print(row)
    seen.add(cause)
    assert row["stack"][0].split("\t")[0] == cause and row["stack"][-1].endswith(" in <module>"), row
    if cause == "timer":
        assert row["woken_by"] == ["[interrupt]"], row
    else:
        assert row["woken_by"][0].endswith(" in naps") and row["woken_by"][-1].endswith(" in _bootstrap"), row
assert seen == {"lock", "socket", "timer"}, seen
PY
  cat >"$BATS_TEST_TMPDIR/other.py" <<'PY'
import os
import time


def writes(end):
    time.sleep(0.4)
    os.write(end, b"x")


def handle(path):
    os.read(ours, 1)


ours, theirs = os.pipe()
if not os.fork():
    writes(theirs)
    os._exit(0)
handle("pipe")
os.wait()
PY
  script_says pyrequest -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/other.py" waker 'handle*' path
  sed -nE '/^    \[woken by\]$/,$ { s/\([0-9]+\)/(PID)/; s/File ".*" *, line [0-9]+, //; s/^ +//; p }' "$printed" >"$told"
  printf '%s\n' '[woken by]' 'in writes' 'in <module>' '[python3 (PID)]' | diff - <(sed 's/python3[.0-9t]*/python3/' "$told")
}

@test "pyrequest says that PATTERN names nothing, counts requests in which their threads end, values that it can't read, and coroutines that are no task" {
  need_time
  script_says pyrequest -c "env LD_PRELOAD=$shim $system -c 'import time; time.sleep(14)'" 'handle*' path
  [ "$(grep -c 'no call of a function that PATTERN names was seen in 10 seconds' "$printed.said")" = 1 ]
  [ "$(grep -c 'no request has ended' "$printed.said")" = 1 ]
  cat >"$BATS_TEST_TMPDIR/ends.py" <<'PY'
import threading


def handle(event):
    event.set()
    threading.Event().wait()


def handle_other(path):
    raise KeyError(path)


begins = threading.Event()
threading.Thread(target=handle, args=(begins,), daemon=True).start()
begins.wait()
try:
    handle_other(7)
except KeyError:
    pass
PY
  script_says pyrequest -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/ends.py" 'handle*' path
  grep -xF 'Left out: 0 requests open at the begin, 0 open at the end, 1 in which their threads ended' "$printed"
  grep -qE '^ +1 +1 .* 7 +handle_other +/' "$printed"
  [ "$(grep -cF '"path" could not be read in 1 of the requests' "$printed.said")" = 1 ]
  # tasks that wait when their process is killed
  cat >"$BATS_TEST_TMPDIR/killed.py" <<'PY'
import asyncio
import os


async def handle(path):
    await asyncio.sleep(1000)


async def main():
    tasks = [asyncio.ensure_future(handle(path)) for path in range(3)]
    await asyncio.sleep(0.1)
    os.kill(os.getpid(), 9)
    await asyncio.wait(tasks)


asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
PY
  script_says pyrequest -c "sh -c 'env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/killed.py; :'" 'handle*' path -G tasks=1
  grep -xF 'Left out: an unknown number open at the begin, 0 open at the end, 3 in which their threads ended' "$printed"
  # one that another coroutine awaits
  cat >"$BATS_TEST_TMPDIR/awaits.py" <<'PY'
import asyncio


async def handle(path):
    await asyncio.sleep(0)


async def main():
    await handle("awaited")


asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
PY
  script_says pyrequest -G tasks=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/awaits.py" 'handle*' path
  [ "$(grep -c 'no task that began meanwhile .*; one that another coroutine awaits is no task$' "$printed.said")" = 1 ]
  refute grep -E 'call of a function|could not be read' "$printed.said"
}

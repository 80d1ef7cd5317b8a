# The tasks of asyncio: which of them runs, and where and for what the others wait.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# The system's; with EVERY, and with those of a release, all that have tasks with names.
task_pythons() {
  local python
  for python in $(if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then pythons; else system_python; fi); do
    ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || echo "$python"
  done
}

@test "python_task() and print_python_tasks() say what Python itself does of its tasks and their coroutines" {
  local python expected=$BATS_TEST_TMPDIR/expected
  cat >"$BATS_TEST_TMPDIR/tasks.stp" <<'STP'
probe process.syscall {
  if (syscall_name($syscall) != "getppid" || python_funcname() != "trigger") next
  print_python_tasks()
  printf("current: %s\n\n", python_task())
}
STP
  for python in $(task_pythons); do
    echo "$python"
    stap -o "$printed" "$BATS_TEST_TMPDIR/tasks.stp" -c "env LD_PRELOAD=$shim $python $top/test/workloads/tasks.py $expected"
    run "$system" "$top/test/workloads/tasks.py" check "$expected" "$printed"
    echo "$output"
    [[ $output =~ ([0-9]+)" tasks compared" ]]
    [ "${BASH_REMATCH[1]}" -gt 330 ]
  done
}

# What the workload measures is within the steps, and around the awaits: so many microseconds may be beside that.
@test "pytasks has the tasks, their steps and their times that the tasks measure themselves, and the stack of the slowest step" {
  local python own=$BATS_TEST_TMPDIR/own
  for python in $(task_pythons); do
    echo "$python"
    script pytasks -c "env LD_PRELOAD=$shim $python $top/test/workloads/stretches.py $own"
    cat "$own"
    awk '
      function near(what, expected, got, more) {
        # a busy machine may stop the guest for long, and the clocks of both go on
        if (got < expected - 2000 || got > expected * 1.5 + more) { printf "%s: %s: %d, not %d\n", $1, what, got, expected; bad = 1 }
      }
      NR == FNR { row[$7] = $0; next }
      { if (split(row[$1], has, " ") != 8 || has[1] != $2 || has[2] != $3) { print "not so many:", row[$1]; bad = 1 }
        near("RUN", $4, has[3], 20000 * $3)
        # each await begins and ends in a step
        near("LOOP + OTHERS", $5, has[4] + has[5] + 20000 * $3, 40000 * $3)
        if ($1 == "late") near("LOOP", 400000, has[4], 100000)
        if ($1 == "blocks") near("SLOWEST", $4, has[6], 40000)
        compared++ }
      END { exit bad || compared != 4 }' <(grep -E '(computes|blocks|late|waits)$' "$printed") "$own"
    grep -qE '^The slowest step: [4-6][0-9]{5} us of blocks, blocks$' "$printed"
    grep -A1 '^The slowest step' "$printed" | grep -q "^slow_step ($top/test/workloads/stretches.py:$(grep -n 'sleep(0.4)' "$top/test/workloads/stretches.py" | cut -d: -f1))"
  done
}

# What each task of workloads/flows.py enters and leaves in its two steps, by its depth.
flows() {
  local name
  for name in one two one two; do
    printf "$name %s\n" '=> outer' ' => inner' '  => deep' '   => deepest' '   <= deepest' '  <= deep' ' <= inner' '<= outer'
  done
}

@test "pyflow with tasks=1 has a flow for each task, pyslow names the task, and pytrace with tasks=1 has a track for each" {
  local python pattern='*/flows.py:out* */flows.py:inn* */flows.py:deep*'
  flows >"$BATS_TEST_TMPDIR/expected"
  for python in $(task_pythons); do
    echo "$python"
    script pyflow -G tasks=1 -c "env LD_PRELOAD=$shim $python $top/test/workloads/flows.py" "$pattern"
    diff "$BATS_TEST_TMPDIR/expected" <(sed -nE 's/^ *[0-9]+ [^ ]+\([0-9]+ (one|two)\): ( *[<=>]{2} [a-z]+) in .*/\1 \2/p' "$printed")
    [ "$(grep -c 'flows.py' "$printed")" = 32 ]
    script pyslow -c "env LD_PRELOAD=$shim $python $top/test/workloads/flows.py" 15 '*/flows.py:deepest'
    diff <(printf '%s\n' one two one two) <(sed -nE 's/^[0-9.]+ ms [^ ]+\([0-9]+\) deepest, in task (.*)$/\1/p' "$printed")
    script pytrace -G tasks=1 -c "env LD_PRELOAD=$shim $python $top/test/workloads/flows.py" "$pattern"
    "$system" - "$printed" <<'PY'
import json, sys

with open(sys.argv[1]) as file:
    events = json.load(file)
names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
assert sorted(names.values()) == ["task one", "task two"], names
for tid in names:
    own = [(event["ph"], event["name"]) for event in events if event["tid"] == tid and event["ph"] != "M"]
    calls = ["outer", "inner", "deep", "deepest"]
    step = [("B", name) for name in calls] + [("E", name) for name in reversed(calls)]
    assert own == 2 * step, own
assert not [event for event in events if event["ph"] in "BE" and event["tid"] not in names]
PY
  done
}

# What the workload measures is within the stretches, and around the awaits.
@test "pytime with tasks=1 has each task's functions, its stretches and its waits, as the tasks measure them" {
  local python own=$BATS_TEST_TMPDIR/own
  for python in $(task_pythons); do
    echo "$python"
    script pytime exact -G tasks=1 -G top=2000 -c "env LD_PRELOAD=$shim $python $top/test/workloads/stretches.py $own"
    cat "$own"
    # a step that stalls, as a busy machine's guest does, is part of the await that the workload measures from its end
    awk -v stalls=$((20000 * (2 * SLOW - 1))) '
      NR == FNR { calls[$1, $5] += $2; time[$1, $5] += $4; next }
      { runs = calls[$1, "(runs)"]; ran = time[$1, "(runs)"]; waited = time[$1, "(waits)"]
        # the loop has tasks without a name, too, as it ends
        if (($1 != "Task-N" && runs != $3) || runs < $3 || calls[$1, "(waits)"] != $3 - $2) { print "not so many:", $1, runs, calls[$1, "(waits)"]; bad = 1 }
        if (ran < $4 - 2000 || ran > $4 * 1.5 + stalls * $3) { print "ran:", $1, ran, $4; bad = 1 }
        if (waited < $5 - stalls * $3 || waited > $5 * 1.5 + stalls * $3) { print "waited:", $1, waited, $5; bad = 1 }
        compared++ }
      END { if (calls["blocks", "slow_step"] != 1 || calls["computes", "busy"] != 6 || calls["-", "slow_step"]) { print "functions"; bad = 1 }
        exit bad || compared != 4 }' "$printed" "$own"
    head -n 1 "$printed" | grep -q '^TASK  *CALLS  *INCL(us)  *EXCL(us) '
  done
}

@test "tasks in uvloop's loop are found, too, and pytasks says that it does not see its steps" {
  need_time
  "$system" -c 'import uvloop' 2>/dev/null || skip "needs python3-uvloop: run test/lib/setup check"
  cat >"$BATS_TEST_TMPDIR/uv.py" <<'PY'
import asyncio
import os

import uvloop


def trigger():
    os.getppid()


async def inner():
    await asyncio.sleep(0.5)


async def fetch():
    await inner()


async def runs():
    await asyncio.sleep(0.1)
    trigger()


async def main():
    tasks = [asyncio.create_task(fetch(), name="fetches"), asyncio.create_task(runs(), name="runs")]
    await asyncio.gather(*tasks)


uvloop.install()
asyncio.run(main())
PY
  cat >"$BATS_TEST_TMPDIR/uv.stp" <<'STP'
probe process.syscall {
  if (syscall_name($syscall) != "getppid" || python_funcname() != "trigger") next
  print_python_tasks()
  printf("current: %s\n", python_task())
}
STP
  stap -o "$printed" "$BATS_TEST_TMPDIR/uv.stp" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/uv.py"
  cat "$printed"
  grep -qE '^Task "runs", running in thread [0-9]+$' "$printed"
  grep -qx 'Task "Task-1", waits for "fetches", "runs"' "$printed"
  grep -A2 '^Task "fetches", waits for Future$' "$printed" | tail -1 | grep -q 'uv.py", line 12, in inner$'
  grep -qx 'current: runs' "$printed"
  script_says pytasks -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/uv.py"
  grep -qF 'WARNING: no step of a loop was seen' "$printed.said"
}

@test "with nest_asyncio, a loop within a task, each task is there once, and the innermost is the one that runs" {
  local program=$BATS_TEST_TMPDIR/nested.py python=/usr/bin/python3
  [ -z "${ONLY_PYTHONS:-}" ] || skip "needs the system's Python"
  "$python" -c 'import nest_asyncio' 2>/dev/null || skip "needs python3-nest-asyncio"
  cat >"$program" <<'PY'
import asyncio
import os

import nest_asyncio

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
nest_asyncio.apply(loop)


def trigger():
    os.getppid()


async def other():
    await asyncio.sleep(1000)


async def inner():
    await asyncio.sleep(0.01)
    trigger()


async def outer():
    waits = loop.create_task(other(), name="other")
    await asyncio.sleep(0)
    loop.run_until_complete(loop.create_task(inner(), name="inner"))
    trigger()
    waits.cancel()


loop.run_until_complete(loop.create_task(outer(), name="outer"))
PY
  cat >"$BATS_TEST_TMPDIR/tasks.stp" <<'STP'
probe process.syscall {
  if (syscall_name($syscall) != "getppid" || python_funcname() != "trigger") next
  print_python_tasks()
  printf("current: %s\n", python_task())
}
STP
  stap -o "$printed" "$BATS_TEST_TMPDIR/tasks.stp" -c "env LD_PRELOAD=$shim $python $program"
  cat "$printed"
  [ "$(grep -E '^Task|^current' "$printed" | sed 's/thread [0-9]*/thread/' | sort)" = "$(
    sort <<'TASKS'
Task "inner", running in thread
Task "outer", running
Task "other", waits for Future
current: inner
Task "outer", running in thread
Task "other", waits for Future
current: outer
TASKS
  )" ]
  # the loop that outer runs is not its own coroutine
  grep -A1 '^Task "outer", running$' "$printed" | grep -qx "File \"$program\", line [0-9]*, in outer"
}

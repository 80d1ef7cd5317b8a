# What scripts print for flame graphs: folded stacks, and files for speedscope.  And pywall, whose sums are held against a
# program's own clocks.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
}

# Checks with Python what was printed: lines, which maps each folded stack, a tuple of names, to its number; what was
# printed behind these for speedscope must be the same, in the unit $1.
check_graph() {
  { cat <<'PY' && cat; } >"$BATS_TEST_TMPDIR/check.py"
import collections
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    folded, start, rest = file.read().partition('{"$schema"')
lines = collections.defaultdict(int)
for line in folded.splitlines():
    assert re.match(r"[^;]+(;[^;]+)* [0-9]+$", line), line
    stack, _, number = line.rpartition(" ")
    lines[tuple(stack.split(";"))] += int(number)
profile, = json.loads(start + rest)["profiles"]
names = [frame["name"] for frame in json.loads(start + rest)["shared"]["frames"]]
assert profile["unit"] == sys.argv[2], profile["unit"]
weights = collections.defaultdict(int)
for sample, weight in zip(profile["samples"], profile["weights"]):
    weights[tuple(names[frame] for frame in sample)] += weight
assert lines and weights == lines, (weights.items() ^ lines.items())
assert sum(lines.values()) == profile["endValue"], profile["endValue"]


def of(function, kind):
    "The sum of the stacks with a function and a last name that begin so."
    return sum(number for stack, number in lines.items()
               if stack[-1].startswith(kind) and any(name.startswith(function + " (") for name in stack))


PY
  /usr/bin/python3 "$BATS_TEST_TMPDIR/check.py" "$printed" "$@"
}

# The same numbers once more, for speedscope: the arguments of __python_stacks_print().
also_speedscope() {
  echo "probe end(2) { __python_stacks_print(\"script\", 1, $1, 3000, \"\") }"
}

@test "pywall's sums are each thread's wall time and CPU time, and say what it waited for" {
  script pywall -E "$(also_speedscope '"microseconds", 0, 1, 1000')" \
    -c "env LD_PRELOAD=$shim $system $top/test/workloads/wall.py 3" >"$BATS_TEST_TMPDIR/all" || {
    cat "$BATS_TEST_TMPDIR/all"
    return 1
  }
  grep '^{"function"' "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/said"
  check_graph microseconds "$BATS_TEST_TMPDIR/said" <<'PY'
with open(sys.argv[3]) as file:
    *threads, whole = map(json.loads, file)
all_cpu = 0
for said in threads:
    own = {stack: number / 1e6 for stack, number in lines.items() if re.search(r"\(%d[ )]" % said["tid"], stack[0])}
    is_asleep = lambda stack: stack[-1].startswith("[") and stack[-1] not in ("[no Python]", "[exit]", "[unknown]")
    cpu = sum(number for stack, number in own.items() if not is_asleep(stack))
    kinds = collections.Counter()
    for stack, number in own.items():
        kinds[stack[-1] if is_asleep(stack) else "CPU" if stack[-1][0] != "[" else stack[-1]] += number
    print(said, sum(own.values()), dict(kinds))
    assert (said["end"] - said["begin"]) * 0.999 <= sum(own.values()) <= (said["after"] - said["before"]) * 1.01
    assert said["cpu"] * 0.99 <= cpu
    # the end of a thread is no longer a part of its process's time
    all_cpu += cpu - kinds["[exit]"]
print(whole, all_cpu)
assert all_cpu <= whole["cpu"] * 1.01
# a thread may begin to sleep when a part of its time is over
slept = of("naps", "[timer]")
assert slept > 0 and slept + of("naps", "[run queue]") + of("naps", "[GIL]") >= threads[0]["naps"] * 0.95e6
assert of("reads_a_pipe", "[pipe [%d]]" % whole["pipe"]) > 0
assert of("computes", "[GIL]") > 0 and of("runs_threads", "[lock]") > 0
# the stacks divide the time on a CPU: these three do little else
for name in "computes", "computes_in_c":
    cpu = sum(said["cpu"] * 1e6 for said in threads if said["function"] == name)
    assert cpu * 0.7 <= of(name, name + " (") <= cpu * 1.1, (name, cpu)
PY
}

@test "pyblocked's folded stacks end with what was waited for" {
  script pyblocked -G folded=1 -G top=3000 -E "$(also_speedscope '"microseconds", 0, 1, 1000')" \
    -c "env LD_PRELOAD=$shim $system $top/test/workloads/waits.py of_timers of_polls" >"$BATS_TEST_TMPDIR/all" || {
    cat "$BATS_TEST_TMPDIR/all"
    return 1
  }
  grep '^{"function"' "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/said"
  check_graph microseconds "$BATS_TEST_TMPDIR/said" <<'PY'
slept = collections.defaultdict(lambda: [0, 0])
for one in map(json.loads, open(sys.argv[3])):
    times = slept[one["function"], "[%s]" % " ".join(filter(None, (one["kind"], one["which"])))]
    times[0] += one["least_us"]
    times[1] += one["most_us"]
assert len(slept) == 7, slept
for (function, kind), (least, most) in slept.items():
    beside = of(function, "") - sum(of(*key) for key in slept if key[0] == function)
    print(function, kind, "slept", least, "to", most, "printed", of(function, kind), "beside", beside)
    assert of(function, kind) <= most * 1.05 + 20000
    assert of(function, kind) + beside >= least * 0.9 - 20000
assert all(stack[-1][0] == "[" and stack[0].startswith(("python", "Thread-")) for stack in lines), lines
PY
}

@test "pymalloc, pysyscalls, pyexc, pystacks and pygil print their stacks in their units" {
  need_time
  local known=$top/test/workloads/allocations.py counted=$top/test/workloads/counted.py
  script pymalloc -G folded=1 -E "$(also_speedscope '"bytes", 0, 1, 1')" -c "env LD_PRELOAD=$shim $system $known"
  check_graph bytes <<'PY'
assert (of("mallocs", "[malloc]"), of("callocs", "[calloc]"), of("maps", "[mmap]")) == (70049, 231033, 1234567), lines
PY
  script pysyscalls -G folded=1 -G by_process=1 -E "$(also_speedscope '"microseconds", 0, 1, 1')" \
    -c "env LD_PRELOAD=$shim $system $timed"
  check_graph microseconds <<'PY'
assert of("sleeps_200_ms", "[clock_nanosleep]") >= 790000, lines
assert all(re.search(r" \([0-9]+\)$", stack[0]) for stack in lines), lines
PY
  script pyexc -G folded=1 -E "$(also_speedscope '"none", -1, 1, 1')" -c "env LD_PRELOAD=$shim $system $counted"
  check_graph none <<'PY'
assert of("raises_11", "[ValueError]") == 11, lines
PY
  script pystacks -E "$(also_speedscope '"microseconds", 0, 1, 1000')" -c "env LD_PRELOAD=$shim $system $timed" main
  check_graph microseconds <<'PY'
assert sum(number for stack, number in lines.items() if stack[-1] == "sleeps_200_ms") >= 790000, lines
PY
  script_says pygil -G folded=1 -E "$(also_speedscope '"microseconds", 0, 1, 1000')" \
    -c "env LD_PRELOAD=$shim $system $top/test/workloads/gil.py computes 3"
  check_graph microseconds <<'PY'
assert all("[GIL]" in stack for stack in lines), lines
PY
}

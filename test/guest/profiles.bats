# Stacks of running threads, in probes that are no markers of Python's, and the scripts that are made of them.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# The system's; with EVERY, and with those of a release, all.
sampled_pythons() {
  if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then pythons; else system_python; fi
}

# The samples in the stacks that match $1; false: none.
samples() {
  awk -v stack="$1" '{ count = $NF; sub(/ [0-9]+$/, "") } $0 ~ stack { sum += count } END { print sum + 0; exit !sum }' "$printed"
}

# With PYTHON_STAP_DEBUG the shim would say that it sets a hook: script() allows no message.
@test "pyprof's stacks are all possible, its shares right, and no hook is set" {
  local python seconds status
  for python in $(sampled_pythons); do
    echo "$python"
    # beside a load ticks come late and together, so that a function has many more or less of them than its share, the less so
    # the longer it runs
    for seconds in 6 24 96; do
      status=0
      script pyprof 997 -c "env PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim $python $top/test/workloads/sampled.py $seconds" >"$BATS_TEST_TMPDIR/all" || {
        grep -v '^python3;' "$BATS_TEST_TMPDIR/all"
        return 1
      }
      grep -F '[unknown]' "$printed" || true
      grep -vF '[unknown]' "$printed" | "$system" "$top/test/workloads/sampled.py" check 6 || status=$?
      [ "$status" = 2 ] || break
    done
    [ "$status" = 0 ]
  done
}

@test "a name that execve() has copied, but not ended yet, is read to its 15th character" {
  # as a timer's interrupt may find it; of SystemTap's execname() the kernel panics
  cat >"$BATS_TEST_TMPDIR/name.stp" <<'STP'
global name, process, root
%{ static char python_test_comm[TASK_COMM_LEN]; %}
function begin_name() %{
  memcpy(python_test_comm, current->comm, TASK_COMM_LEN);
  memset(current->comm, 'x', TASK_COMM_LEN);
%}
function end_name() %{ memcpy(current->comm, python_test_comm, TASK_COMM_LEN); %}
probe begin(1) { begin_name() }
probe begin(2) {
  name = python_execname()
  process = __python_process_name()
  root = __python_program(pid())
}
probe begin(3) {
  end_name()
  printf("%s\n%s\n%s\n", name, process, root)
  exit()
}
STP
  run stap -g "$BATS_TEST_TMPDIR/name.stp"
  echo "$output"
  [ "$(grep -xcE 'x{15}' <<<"$output")" = 2 ]
  grep -xE 'x{15} \([0-9]+\)' <<<"$output"
}

@test "at most one stack in a thousand is unknown between a program's first line and its last" {
  local python seconds
  for python in $(sampled_pythons); do
    echo "$python"
    cat >"$BATS_TEST_TMPDIR/unknown.stp" <<'STP'
global began, samples, unknown, maybe, numbers[4000]
probe perf.sw.cpu_clock.hz(997) {
  if (!python_in_target() || (!began && python_filename() !~ "/sampled.py$")) next
  began = 1
  stack = python_backtrace()
  samples++
  if (stack != "" && stack !~ "[.][.][.]") numbers[python_stack(), stack] <<< 1
  if (stack =~ "<unknown>") maybe++
  else if (stack != "") { unknown += maybe; maybe = 0 }
}
probe end {
  printf("%d samples, %d unknown\n", samples, unknown)
  foreach ([number, text] in numbers- limit 20) {
    printf("%stext, number %d:\n", text, number > 0)
    print_python_stack(number)
    print_python_folded(number)
    println(" folded")
  }
}
STP
    # a machine that is busy has fewer samples in a second
    for seconds in 4 16 64; do
      run stap "$BATS_TEST_TMPDIR/unknown.stp" -c "env LD_PRELOAD=$shim $python $top/test/workloads/sampled.py $seconds"
      echo "$output"
      [[ $output =~ ([0-9]+)" samples, "([0-9]+)" unknown" ]]
      [ "${BASH_REMATCH[1]}" -le 500 ] || break
    done
    [ "${BASH_REMATCH[1]}" -gt 500 ]
    # one in a small sample says nothing
    [ $((BASH_REMATCH[2] * 1000)) -le $((BASH_REMATCH[1] + 1000)) ]
    # the number of a stack is that of its text: the same functions and lines, in the other order when folded;
    # that of a collection has <GC> besides
    awk '
      /^File "/ { match($0, /", line /); file = substr($0, 7, RSTART - 7); split(substr($0, RSTART + 8), part, ", in ")
                  text = text part[2] " (" file ":" part[1] ")\n"; next }
      /text, number 1:$/ { wanted = text; text = ""; lines = ""; next }
      /^<GC>$/ { next }
      / folded$/ { sub(/(;<GC>)? folded$/, ""); count = split($0, name, ";"); folded = ""
                   for (i = count; i > 0; i--) folded = folded name[i] "\n"
                   if (lines != wanted || folded != wanted) { print "not the same:", wanted, lines, folded; bad = 1 }
                   compared++; text = ""; next }
      { lines = lines $0 "\n" }
      END { exit bad || compared < 10 }' <<<"$output"
  done
}

@test "a system call, a page fault, a context switch, a signal, a function of C and a marker of C++ tell which Python function they are in" {
  cat >"$BATS_TEST_TMPDIR/places.stp" <<'STP'
global seen, lines
function place(name:string) {
  if (python_in_target() && python_filename() =~ "/places.py$") {
    seen[name, python_funcname()] <<< 1
    lines[name] = python_lineno()
  }
}
probe process.syscall { if (syscall_name($syscall) =~ "^(p?select6?|connect)$") place(syscall_name($syscall)) }
probe perf.type(1).config(2).sample(1) { place("page fault") }
probe perf.type(1).config(3).sample(1) { place("context switch") }
probe process("/usr/lib/*/libc.so.6").function("malloc") !, process("/lib64/libc.so.6").function("malloc") {
  if (ulong_arg(1) > 5000 && ulong_arg(1) < 5100) place("malloc")
}
probe kernel.trace("signal:signal_deliver") { if ($sig == 10) place("signal") }
probe process("/usr/lib/*/libstdc++.so.6").provider("libstdcxx").mark("throw") !,
      process("/usr/lib64/libstdc++.so.6").provider("libstdcxx").mark("throw") { place("throw") }
probe end {
  foreach ([name, caller] in seen) printf("%s %s %d\n", name, caller, @count(seen[name, caller]))
  foreach (name in lines) printf("line %s %d\n", name, lines[name])
}
STP
  run stap "$BATS_TEST_TMPDIR/places.stp" -c "env LD_PRELOAD=$shim $system $top/test/workloads/places.py 3"
  echo "$output"
  grep -qE '^p?select6? sleeps [1-9]' <<<"$output"
  grep -qE '^context switch sleeps [1-9]' <<<"$output"
  grep -qE '^page fault faults [1-9]' <<<"$output"
  grep -qE '^connect connects [1-9]' <<<"$output"
  # a free-threaded build has an allocator of its own for all objects
  is_free_threaded "$system" || grep -qE '^malloc allocates [1-9]' <<<"$output"
  grep -qE '^signal signals [1-9]' <<<"$output"
  grep -qxE 'throw throws 1' <<<"$output"
  grep -qxE "line p?select6? $(grep -n 'select.select' "$top/test/workloads/places.py" | cut -d: -f1)" <<<"$output"
  refute grep -E '^(p?select6?|connect|malloc|signal) (faults|<module>)' <<<"$output"
}

# The tracepoint of the kernel's handlers of such interrupts is within them.
@test "a stack in a non-maskable interrupt is whole and possible" {
  need_time
  "$top/test/vm/guest" status >/dev/null || skip "needs the guest, which can be sent such interrupts"
  cat >"$BATS_TEST_TMPDIR/nmi.stp" <<'STP'
global stacks[4000], interrupts, unknown
probe kernel.trace("nmi:nmi_handler") {
  if (!python_in_target() || python_filename() !~ "/sampled.py$") next
  interrupts++
  if (python_backtrace() =~ "<unknown>") unknown++
  stacks[python_stack()] <<< 1
  # half of them are in tenths(), of which the checker wants a hundred
  if (interrupts == 400) exit()
}
probe end {
  foreach (number in stacks) {
    print_python_folded(number)
    printf(" %d\n", @count(stacks[number]))
  }
  printf("%d interrupts, %d unknown\n", interrupts, unknown)
}
STP
  local python
  for python in $(sampled_pythons); do
    echo "$python"
    (
      sleep 8
      while [ ! -e "$BATS_TEST_TMPDIR/ended" ]; do "$top/test/vm/guest" nmi 20; done
    ) &
    run stap "$BATS_TEST_TMPDIR/nmi.stp" -c "env LD_PRELOAD=$shim $python $top/test/workloads/sampled.py 60"
    touch "$BATS_TEST_TMPDIR/ended"
    wait
    rm "$BATS_TEST_TMPDIR/ended"
    echo "$output"
    [[ $output =~ ([0-9]+)" interrupts, 0 unknown" ]]
    [ "${BASH_REMATCH[1]}" -ge 400 ]
    # as pyprof has them
    sed -nE '/ [0-9]+$/{ s/:[0-9]+\)/)/g; s/^[^ ]+ \(/python;&/p }' <<<"$output" |
      "$system" "$top/test/workloads/sampled.py" check 30
  done
}

@test "pydump prints each thread's stack once, which of them sleep, for which lock, and which wait for each other" {
  local pid minor rlocks
  cat >"$BATS_TEST_TMPDIR/threads.py" <<'PY'
import threading
import time


def waits():
    lock.acquire()


def naps():
    time.sleep(600)


def crosses(one, other):
    with one:
        both.wait()
        with other:
            pass


lock, first, second, both = threading.Lock(), threading.RLock(), threading.RLock(), threading.Barrier(2)
lock.acquire()
for function in waits, naps, naps:
    threading.Thread(target=function, daemon=True).start()
for locks in (first, second), (second, first):
    threading.Thread(target=crosses, args=locks, daemon=True, name="crosses").start()
while True:
    time.sleep(0.2)
PY
  pid=$(start_in_guest "$BATS_TEST_TMPDIR/threads.py")
  # the main thread wakes five times a second, and a dump that is made just then says so
  for _ in 1 2 3 4 5; do
    script pydump -x "$pid"
    grep -qE '^Thread [0-9]+ "MainThread", running$' "$printed" || break
  done
  end_in_guest "$pid"
  [ "$(grep -cE '^Thread [0-9]+ "Thread-[0-9]( \((waits|naps)\))?", asleep$' "$printed")" = 3 ]
  [ "$(grep -cE '^Thread [0-9]+ "MainThread", asleep$' "$printed")" = 1 ]
  [ "$(grep -c "^File \"$BATS_TEST_TMPDIR/threads.py\", line 10, in naps$" "$printed")" = 2 ]
  [ "$(grep -c "^File \"$BATS_TEST_TMPDIR/threads.py\", line 6, in waits$" "$printed")" = 1 ]
  [ "$(grep -c "^File \"$BATS_TEST_TMPDIR/threads.py\", line 27, in <module>$" "$printed")" = 1 ]
  # in later CPythons a Lock and then an RLock doesn't show who sleeps for it
  minor=$("$system" -c 'import sys; print(sys.version_info[1])')
  rlocks=$((minor < 14 ? 2 : 0))
  [ "$minor" -ge 13 ] ||
    [ "$(grep -A1 -E '^Thread [0-9]+ "Thread-1( \(waits\))?"' "$printed" | tail -n 1)" = "waits for lock in waits" ]
  [ "$(grep -cE '^waits for other in crosses, which is held by Thread [0-9]+ "crosses"$' "$printed")" = "$rlocks" ]
  [ "$(grep -cE '^deadlock: Thread ([0-9]+) -> Thread [0-9]+ -> Thread \1$' "$printed")" = "$rlocks" ]
}

@test "pyprof's stacks say which thread computes, in which class's method, and where the main thread collects garbage" {
  local python mark class all
  for python in $(sampled_pythons); do
    echo "$python"
    script pyprof 997 -G threads=1 -G qualified=1 -c "env LD_PRELOAD=$shim $python $top/test/workloads/named.py 1"
    sed -i "s, ([^();]*/named.py),,g; s,^[^ ]* (,(," "$printed"
    mark=';<GC>' class='Worker.'
    ! "$python" -c "import sys; sys.exit(sys.version_info >= (3, 7) and 't' not in sys.abiflags)" || mark=''
    "$python" -c "import sys; sys.exit(sys.version_info < (3, 11))" || class=''
    samples "^\([0-9]+ worker:1\);[^;]*;[^;]*;[^;]*;${class}computes$"
    samples "^\([0-9]+ MainThread\);<module>;collects$mark$"
    all=$(samples "^\([0-9]+ MainThread\);<module>;collects")
    # all that the function does is to collect
    [ $(($(samples "^\([0-9]+ MainThread\);<module>;collects$mark$") * 10)) -ge $((all * 8)) ]
    # the worker runs where the collections leave the GIL to it
    refute grep -E 'worker:1.*<GC>|<GC>;' "$printed"
  done
}

@test "pydump has the variables, each thread's tasks and several processes in one document of JSON" {
  local pids
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import asyncio
import os
import threading
import time


def naps(seconds):
    time.sleep(seconds)


async def fetch(name):
    await asyncio.sleep(1000)


# The descriptor says that the tasks wait.
async def main():
    asyncio.get_event_loop().call_later(0.1, os.dup2, 1, 99)
    await asyncio.gather(*(asyncio.ensure_future(fetch(name)) for name in ["first", "second"]))


threading.Thread(target=naps, args=(600,), daemon=True).start()
asyncio.new_event_loop().run_until_complete(main())
PY
  cp "$BATS_TEST_TMPDIR/loop.py" "$BATS_TEST_TMPDIR/other.py"
  mapfile -t pids < <(start_in_guest "$BATS_TEST_TMPDIR/loop.py" "$BATS_TEST_TMPDIR/other.py")
  # shellcheck disable=SC2016
  in_guest sh -c 'for pid; do until [ -e "/proc/$pid/fd/99" ]; do [ -e "/proc/$pid/fd" ] || exit 1; sleep 0.2; done; done' sh "${pids[@]}"
  script_says pydump -G json=1 -G tasks=1 -G locals=1 -G "__python_targets1=${pids[0]}_${pids[1]}_999999"
  end_in_guest "${pids[@]}"
  # of what isn't there a line says so, and the others are printed
  [ "$(grep -c 'no Python stack in process ' "$printed.said")" = 1 ]
  grep -q 'no Python stack in process 999999: ' "$printed.said"
  /usr/bin/python3 - "$printed" "${pids[@]}" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    processes = json.load(file)["processes"]
assert sorted(one["pid"] for one in processes) == sorted(int(pid) for pid in sys.argv[2:]), processes
for one in processes:
    loop, naps = sorted(one["threads"], key=lambda thread: thread["frames"][0]["function"] == "naps")
    assert loop["tid"] == one["pid"] and loop["whole"] and one["all_tasks"] and one["all_locals"] and one["all_threads"], one
    assert loop["name"] == "MainThread" and naps["name"].startswith("Thread-1"), one
    assert naps["state"] == "asleep" and naps["frames"][0]["locals"] == {"seconds": "600"}, naps
    assert loop["frames"][-1]["function"] == "<module>" and naps["tasks"] == one["tasks"] == [], one
    main, = (task for task in loop["tasks"] if task["frames"][-1]["function"] == "main")
    fetches = [task for task in loop["tasks"] if task is not main]
    assert sorted(task["task"] for task in main["waits_for"]) == sorted(task["name"] for task in fetches), loop["tasks"]
    assert sorted(task["frames"][-1]["locals"]["name"] for task in fetches) == ["'first'", "'second'"], fetches
    assert all(task["state"] == "waits" and task["waits_for"] == [{"class": "Future"}] for task in fetches), fetches
PY
}

@test "pyprof's table of each second has the shares of functions" {
  need_time
  script pyprof -G live=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/sampled.py 4"
  # in each sample but those of the start; what it calls has the most
  awk '/main \(/ { if ($2 > 20 && $1 < 5) main++ } /spin \(/ { if ($1 > 20 && $1 == $2) spin++ }
       END { exit !(main && spin) }' "$printed"
  [ "$(grep -c '^ OWN(%) TOTAL(%)  FUNCTION$' "$printed")" -ge 3 ]
}

@test "stap-python top on a terminal orders the functions of all samples, whatever their names" {
  cat >"$BATS_TEST_TMPDIR/x.py" <<'PY'
def spin():
    for _ in range(1000):
        pass


code = spin.__code__
names = code.co_name, "9 9 odd\n7 7 line\n\n\033[2J"
try:
    odd = type(spin)(code.replace(co_name=names[1]), {})
except AttributeError:
    odd = spin
print("printed", flush=True)
while True:
    spin()
    odd()
PY
  STAP=$top/test/vm/stap TERM=xterm LIMIT=600 run timeout -k 5 $((900 * SLOW)) /usr/bin/python3 "$top/test/lib/terminal.py" size=24x150 \
    'see=^\d+ s: [1-9]\d+ samples' 'see=  9 9 odd.n7 7 line.n.n.x1b\[2J \(' key=t 'see=FUNCTION\n +\d\.\d +\d\d+\.\d  <module>' key=q -- \
    "$top/build/stap-python" top -r 199 -- "$system" "$BATS_TEST_TMPDIR/x.py"
  echo "$output"
  [[ $output == *$'\nprinted\n'*$'\nstatus 0' ]]
}

# All of it runs where stap's probes are, with a module that is compiled here: a FIFO does not lead out of the guest.
@test "record --push sends what pyprof samples in each interval" {
  need_time
  local folder=$BATS_TEST_TMPDIR/server n
  mkdir "$folder"
  echo takes >"$folder/mode"
  # until the server has two intervals, and one of them has spin()
  cat >"$BATS_TEST_TMPDIR/spins.py" <<'PY'
import glob
import gzip
import sys
import time


def spin():
    for number in range(100000):
        number * number


def main():
    taken = set()
    seen = False
    while len(taken) < 2 or not seen:
        spin()
        time.sleep(0.05)
        for path in set(glob.glob(sys.argv[1] + "/*.body")) - taken:
            taken.add(path)
            with gzip.open(path) as file:
                seen = seen or b"spin" in file.read()


main()
PY
  (cd "$BATS_TEST_TMPDIR" && stap -p4 -m pushed "$top/scripts/pyprof.stp" 19)
  cat >"$BATS_TEST_TMPDIR/stap" <<'SH'
#!/bin/sh
[ $# -gt 1 ] || { echo "Systemtap translator/driver (version 4.8/0.188, Debian version 4.8-2)" && exit; }
for word; do
  case $before in
    -c | -o) set -- "$@" "$before" "$word" ;;
    -G) globals="$globals $word" ;;
  esac
  before=$word
  shift
done
exec staprun "$@" "${0%/*}/pushed.ko" $globals
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  # a server that is too slow for what is sent at the end is not an error here
  # shellcheck disable=SC2016
  in_guest sh -c '
    /usr/bin/python3 "$1/test/workloads/pyroscope.py" "$2/server" 2>/dev/null &
    until [ -s "$2/server/port" ]; do sleep 0.1; done
    STAP=$2/stap SYSTEMTAP_DIR=$2/systemtap "$1/build/stap-python" record --push "http://127.0.0.1:$(cat "$2/server/port")" --every 2 -r 19 --service spins \
      -- "$3" "$2/spins.py" "$2/server"
    kill $!' sh "$top" "$BATS_TEST_TMPDIR" "$system" >"$printed" 2>&1
  cat "$printed" "$folder"/*.path
  for n in "$folder"/*.body; do
    /usr/bin/python3 "$top/test/lib/profiles.py" raw "$n"
  done >"$folder/decoded"
  cat "$folder/decoded"
  [ "$(grep -c 'period 52631578 cpu/nanoseconds$' "$folder/decoded")" -ge 2 ]
  grep -qE '(^|;)<module> [^;]*;main [^;]*;spin [^;]*:[0-9]+ [1-9]' "$folder/decoded"
  # an interval begins where the one before ends, and all have the same process; one whose answer is late may be there twice
  for n in "$folder"/*.path; do
    sed -E 's/.*name=spins%7Bhost%3D[^%]*%2Cpid%3D([0-9]+)%7D&from=([0-9]+)&until=([0-9]+)&.*/\1 \2 \3/' "$n" && echo
  done | grep . | sort -u | awk '{ print } $3 <= $2 || (NR > 1 && ($1 != pid || $2 != until)) { bad = 1 } { pid = $1; until = $3 } END { exit bad || NR < 2 }'
}

@test "a process can't give false names to the functions of another user's process" {
  local forges honest
  script pyprof 199 -G native=1 -G by_process=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/forges.py" >"$BATS_TEST_TMPDIR/who"
  cat "$BATS_TEST_TMPDIR/who"
  forges=$(awk '/^forges/ { print $2 }' "$BATS_TEST_TMPDIR/who")
  honest=$(awk '/^honest/ { print $2 }' "$BATS_TEST_TMPDIR/who")
  grep -q "^python[^;]*($forges);.*;FORGED_name (.*;\[libz[^]]*\] FORG" "$printed"
  grep -q "^python[^;]*($honest);.*;checks_sums (.*;\[libz[^]]*\] crc32" "$printed"
  refute grep "^python[^;]*($honest);.*FORG" "$printed"
}

@test "pyprof joins the kernel's functions and libraries to the stacks of the functions that call them" {
  script_says pyprof 199 -G kernel=1 -G native=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/inner.py 4"
  sed -i "s, ($top/test/workloads/inner.py),,g" "$printed"
  grep -E '<module>;(reads|sums|spins)' "$printed"
  # in their order, at the inner end alone, and without those of the interrupt itself
  grep -qE '^python[0-9.]+t?;<module>;reads;([^;]+_\[k\];)+vfs_read_\[k\];([^;]+_\[k\];)*[^;]+_\[k\] [0-9]+$' "$printed"
  grep -qE '^python[0-9.]+t?;<module>;sums;\[libz\.so\.1[^]]*\] crc32(_z)? [0-9]+$' "$printed"
  # a compiler may have the interpreter's loop in pieces without names
  grep -qE '^python[0-9.]+t?;<module>;spins(;\[python[0-9.]+t?\])? [0-9]+$' "$printed"
  refute grep -E '_\[k\];([^;]+;)*(reads|sums|spins|<module>)[; ]|\[[a-z][^]]*[.][^]]*\][^;]*;' "$printed"
  refute grep -E 'perf_swevent|stack_trace_save|python_' "$printed"
  # the same for speedscope, with what stap-python record adds on a terminal
  script_says pyprof 199 -G kernel=1 -G speedscope=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/inner.py 3" \
    -E 'probe timer.s(1) { __python_output_seconds(3) } probe end { __python_output_seconds(-1) }'
  grep -q 'sampling: 1 of 3 s' "$printed.said"
  /usr/bin/python3 - "$printed" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    said = json.load(file)
profile, = said["profiles"]
names = [frame["name"] for frame in said["shared"]["frames"]]
stacks = [[names[frame] for frame in sample] for sample in profile["samples"]]
assert len(profile["weights"]) == len(stacks) and sum(profile["weights"]) == profile["endValue"], profile
assert any(stack[0].startswith("python") and stack[2].startswith("reads (") and "vfs_read_[k]" in stack[3:] for stack in stacks), stacks
PY
}

@test "of a Python without the shim they say once what to do" {
  need_time
  script_says pyprof -c "$system -c 'import time
end = time.time() + 5
while time.time() < end: pass'"
  [ "$(grep -c 'WARNING: Python process \([0-9]*\) and perhaps others have no shim, and so no Python stack: stap-python attach \1$' "$printed.said")" = 1 ]
  grep -qE '^python[0-9.]+t?;\[no Python\] [0-9]+$' "$printed"
}

@test "they say nothing of a Python that preloads the shim and takes long to start" {
  need_time
  need gcc
  local spins=$BATS_TEST_TMPDIR/spins
  cat >"$spins.c" <<'C'
#include <time.h>

__attribute__((constructor)) static void computes(void)
{
    while (clock() < 4 * CLOCKS_PER_SEC)
        ;
}
C
  gcc -shared -fPIC -o "$spins.so" "$spins.c"
  # constructors run from the last to the first, so this one runs before the shim's
  script pyprof -c "env LD_PRELOAD=$shim:$spins.so $system -c pass"
  grep -qE '^python[0-9.]+t?;\[no Python\] [0-9]{3,}$' "$printed"
}

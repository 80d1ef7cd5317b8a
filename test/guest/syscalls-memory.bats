# The scripts that show Python and the system together: system calls and memory.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# The first four columns of pysyscalls' row for the system call $1 in the function $2 of the file $3.
row() {
  awk -v call="$1" -v function_="$2" -v file="$3" \
    '$5 == call && $6 == function_ && $7 == file { print $1, $2, $3, $4 }' "$printed"
}

calls() {
  row "$@" | cut -d' ' -f1
}

# Checks that one row has $1 calls, of at least $2 us each.
took() {
  row "${@:3}" | awk -v n="$1" -v least="$2" '
    { exit !($1 == n && $2 >= n * least && $2 < 20000000 && $3 == int($2 / n) && $4 >= $3 && $4 <= $2) }
    END { if (NR != 1) exit 1 }'
}

@test "pysyscalls counts the system calls of each function, and the time in them" {
  cat >"$BATS_TEST_TMPDIR/calls.py" <<'PY'
import os
import threading
import time


def fails_7():
    for _ in range(7):
        try:
            os.rmdir("/nonexistent")
        except OSError:
            pass


def in_thread_13():
    for _ in range(13):
        os.getppid()


def in_child_3():
    for _ in range(3):
        os.getppid()


def forks_5():
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os.getppid()
            in_child_3()
            os.getppid()
            os._exit(0)
        os.waitpid(child, 0)


fails_7()
thread = threading.Thread(target=in_thread_13)
thread.start()
thread.join()
time.sleep(0.1)  # else the kernel may count the thread still, of which CPython would warn at the fork
forks_5()
PY
  # nothing of this child is in memory yet but what fork() has copied
  local child=$top/test/workloads/child.py
  script pysyscalls -G top=1000 -c "env LD_PRELOAD=$shim sh -c '$system $counted; $system $timed; $system $BATS_TEST_TMPDIR/calls.py; $system $child'"
  [ "$(head -n 1 "$printed")" = "   CALLS   TOTAL(us)   AVG(us)   MAX(us)  SYSCALL          FUNCTION                 FILE" ]
  [ "$(calls getppid main "$counted")" = 19 ]
  # and without a GIL the collector's, of /proc/self/status
  [ "$(calls openat main "$counted")" = 3 ] || { is_free_threaded "$system" && [ "$(calls openat main "$counted")" -gt 3 ]; }
  [ "$(calls rmdir fails_7 "$BATS_TEST_TMPDIR/calls.py")" = 7 ]
  [ "$(calls getppid in_thread_13 "$BATS_TEST_TMPDIR/calls.py")" = 13 ]
  # the children are in the functions of their parent
  [ "$(calls getppid in_child_3 "$BATS_TEST_TMPDIR/calls.py")" = 15 ]
  [ "$(calls getppid forks_5 "$BATS_TEST_TMPDIR/calls.py")" = 10 ]
  [ "$(calls exit_group forks_5 "$BATS_TEST_TMPDIR/calls.py")" = 5 ]
  [ "$(calls getppid forks "$child")" = 20 ]
  # four sleeps of 200 ms, and one of 500 ms: until a time that Python computes before the call, so that all
  # between the two shortens the sleep, another thread's turn and what stops the guest too
  took 4 150000 clock_nanosleep sleeps_200_ms "$timed"
  took 1 400000 clock_nanosleep holder "$timed"
  # nothing else: rows in full, largest first
  refute grep -vE '^ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+  [a-z0-9_]+ +[^ ]+ +[^ ].*$' <(tail -n +2 "$printed")
  tail -n +2 "$printed" | sort -s -c -k2,2nr
}

@test "pysyscalls with trace shows calls and system calls, indented, in colour on demand" {
  need_time
  local escape=$'\033'
  cat >"$BATS_TEST_TMPDIR/calls.py" <<'PY'
import os


def outer():
    os.getppid()
    inner()
    os.getppid()


def inner():
    try:
        os.rmdir("/nonexistent")
    except OSError:
        pass


outer()
PY
  script pysyscalls trace -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/calls.py"
  sed -nE '/=> <module> in .*calls.py:/,/<= <module> in .*calls.py:/p' "$printed" |
    sed -E "s,^ *[0-9]+ [^ (]+\([0-9]+\):,,; s, in $BATS_TEST_TMPDIR/, ,; s, = [0-9]+ \([0-9]+ us\)$, = N,; s,\([0-9]+ us\),(T us)," |
    grep -E '=|rmdir' >"$printed.text"
  cat "$printed.text"
  diff "$printed.text" - <<'EXPECTED'
 => <module> calls.py:1
  => outer calls.py:4
   getppid = N
   => inner calls.py:10
    rmdir = -2 (ENOENT) (T us)
   <= inner calls.py:14
   getppid = N
  <= outer calls.py:7
 <= <module> calls.py:17
EXPECTED
  refute grep "$escape\|CALLS" "$printed"
  script pysyscalls trace -G color=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/calls.py"
  grep -qF " ${escape}[32m=> outer in $BATS_TEST_TMPDIR/calls.py:4${escape}[0m" "$printed"
  [ "$(grep -cE " ${escape}\[33mgetppid = [0-9]+ \([0-9]+ us\)${escape}\[0m" "$printed")" = 2 ]
  grep -qE " ${escape}\[31mrmdir = -2 \(ENOENT\) \([0-9]+ us\)${escape}\[0m" "$printed"
}

# COUNT, BYTES and MAX of pymalloc's row for the kind $1 in the function $2 of the file $3.
allocations() {
  awk -v kind="$1" -v function_="$2" -v file="$3" '$4 == kind && $5 == function_ && $6 == file { print $1, $2, $3 }' "$printed"
}

@test "pymalloc tells the bytes of each function, by what it calls, in threads too" {
  local known=$top/test/workloads/allocations.py small=$BATS_TEST_TMPDIR/small.py in_malloc=$BATS_TEST_TMPDIR/in_malloc.py count allocator=malloc
  # a free-threaded build has no objects in malloc, but in memory that it maps itself, and keeps for others
  ! is_free_threaded "$system" || allocator=default
  cat >"$small" <<'PY'
def objects(room):
    for number in range(1009):
        room[number] = object()


objects([None] * 1009)
PY
  cp "$small" "$in_malloc"
  script pymalloc -G top=1000 -c "env LD_PRELOAD=$shim sh -c '$system $timed; $system $known; $system $small; PYTHONMALLOC=$allocator $system $in_malloc'"
  [ "$(head -n 1 "$printed")" = "    COUNT         BYTES         MAX  KIND       FUNCTION                 FILE" ]
  # a byte more than the program has asked for
  [ $allocator = default ] || [ "$(allocations malloc allocates_8_mb "$timed")" = "5 41943045 8388609" ]
  [ "$(allocations malloc mallocs "$known")" = "7 70049 10007" ]
  [ "$(allocations calloc callocs "$known")" = "11 231033 21003" ]
  # these call malloc, with nothing to start with and with no special alignment
  [ "$(allocations realloc reallocs "$known")" = "2 900018 600011" ]
  [ "$(allocations memalign aligned "$known")" = "2 90030 50021" ]
  refute grep -E "^ +[0-9]+ +[0-9]{5,} +[0-9]+  malloc +(reallocs|aligned) +$known" "$printed"
  read -r count _ < <(allocations mremap reallocs "$known")
  [ "$count" = 1 ]
  [ "$(allocations mmap maps "$known")" = "1 1234567 1234567" ]
  grep -qE "^ +1 +12345 +12345  mmap file  maps +$known$" "$printed"
  [ "$(allocations brk breaks "$known")" = "1 20480 20480" ]
  # Python's own allocator has the small objects, or malloc
  if [ $allocator = malloc ]; then
    read -r count _ < <(allocations malloc objects "$in_malloc")
    [ "$count" -ge 1009 ]
  fi
  read -r count _ < <(allocations malloc objects "$small" && echo 0)
  [ "$count" -lt 20 ]
  # rows in full, largest first
  refute grep -vE '^ +[0-9]+ +[0-9]+ +[0-9]+  (malloc|calloc|realloc|memalign|brk|mmap|mmap file|mremap) +[^ ]+ +[^ ].*$' <(tail -n +2 "$printed")
  tail -n +2 "$printed" | sort -s -c -k2,2nr
}

@test "pymalloc with stacks=1 has each stack once" {
  need_time
  ! is_free_threaded "$system" || skip "needs a Python whose objects are malloc()'s, not mimalloc's"
  script pymalloc -G stacks=1 -G top=3 -c "env LD_PRELOAD=$shim $system $timed"
  # the first of them, up to the next
  diff - <(awk '/^ +[0-9]/ { n++ } n == 1' "$printed" | sed "s,$timed,timed.py,") <<'EXPECTED'
        5      41943045     8388609  malloc
File "timed.py", line 30, in allocates_8_mb
File "timed.py", line 51, in main
File "timed.py", line 60, in <module>

EXPECTED
  [ "$(grep -cE '^ +[0-9]+ +[0-9]+ +[0-9]+  [a-z ]+$' "$printed")" = 3 ]
  grep -qE '^and [0-9]+ more rows$' "$printed"
}

# Of the rows of pyheap that have the function $1 as their innermost one: the number of the first, and the sum of LIVE.
heap_rows() {
  awk -v name="$1" '
    /^ +[0-9]/ { row++; live = $1; inner = 1; next }
    inner && $NF == name { sum += live; first = first ? first : row }
    { inner = 0 }
    END { print first + 0, sum + 0 }' "$printed"
}

@test "pyheap tells what code allocated the memory that is in use, and how right that is" {
  local name kept
  # 98 percent of the blocks of 1,000 bytes are samples: a deviation of 0.3 percent
  script pyheap -G bytes=256 -c "env LD_PRELOAD=$shim sh -c '$system $top/test/workloads/keeps.py 3000 >$BATS_TEST_TMPDIR/kept'"
  [[ $(heap_rows remembers) == "1 "* ]]
  [[ $(heap_rows later) == "2 "* ]]
  while read -r name kept; do
    heap_rows "$name" | awk -v kept="$kept" -v name="$name" '{ print name, kept, $2; exit $2 < kept * 0.95 || $2 > kept * 1.05 }'
  done <"$BATS_TEST_TMPDIR/kept"
  # a burst is freed, and all of it counts as allocated
  [ "$(heap_rows '<listcomp>')" = "0 0" ]
  grep -qE '^In use: [0-9]+ bytes, [+]- [1-9][0-9]*, from [0-9]+ samples; resident: [1-9][0-9]{6,}$' "$printed"
}

# The rows of pyheap have what each function of classes.py keeps, by its class.
check_classes() {
  "$system" - "$printed" "$BATS_TEST_TMPDIR/classes.py" <<'PY'
import collections
import json
import sys

blocks = collections.Counter()
for row in map(json.loads, open(sys.argv[1])):
    if len(row.get("stack", ())) > 1 and sys.argv[2] in row["stack"][1]:
        blocks[row["stack"][1].split(" in ")[-1], row["stack"][0]] += row["blocks"]
print(blocks)
# a third of the blocks of 24 bytes are samples, more of larger ones: an error of 4 percent
for key in ("points", "[__main__.Point]"), ("dicts", "[dict]"), ("texts", "[str]"), ("floats", "[float]"), ("buffers", "[list]"), \
        ("buffers", "[no object]"):
    assert 1700 < blocks[key] < 2300, key
assert not [key for key in blocks if key[1] == "[type]" and key[0] != "<module>"], blocks
PY
}

@test "pyheap with types=1 tells the class of what each function keeps" {
  local python
  need_time
  cat >"$BATS_TEST_TMPDIR/classes.py" <<'PY'
class Point:
    def __init__(self):
        self.x = 1


def points(kept):
    for _ in range(2000):
        kept.append(Point())


def dicts(kept):
    for _ in range(2000):
        kept.append({})


def texts(kept):
    for number in range(2000):
        kept.append("%0100d" % number)


def floats(kept):
    for number in range(2000):
        kept.append(number + 0.5)


def buffers(kept):
    for _ in range(2000):
        kept.append([None] * 25)


kept = [[None] for _ in range(5)]
for make, into in zip((points, dicts, texts, floats, buffers), kept):
    make(into)
PY
  while read -r python <&9; do
    echo "$python"
    script pyheap -G bytes=64 -G types=1 -G json=1 -G top=3000 -c "env LD_PRELOAD=$shim $python -I -S $BATS_TEST_TMPDIR/classes.py"
    check_classes
  done 9< <(guest_pythons)
}

# Starts a program that does a bit of everything twice, as traced.py and other.py; their PIDs are in $traced
# and $other.
start_two() {
  cat >"$BATS_TEST_TMPDIR/traced.py" <<'PY'
import gc
import os
import sys
import time

gc.disable()
own = os.path.basename(__file__)[:-3]


def step():
    os.getppid()
    gc.collect(0)
    try:
        __import__("no_such_" + own)
    except ImportError:
        pass
    sys.audit("own." + own)
    bytearray(1000003)
    time.sleep(0.05)


while True:
    step()
PY
  cp "$BATS_TEST_TMPDIR"/{traced,other}.py
  start_in_guest "$BATS_TEST_TMPDIR"/{traced,other}.py >"$BATS_TEST_TMPDIR/pids"
  { read -r traced && read -r other; } <"$BATS_TEST_TMPDIR/pids"
}

# Runs a script on $traced alone, for three seconds.
script_x() {
  script_says "$1" -x "$traced" -E 'probe timer.s(3) { exit() }' "${@:2}"
  refute grep -vE 'Kernel function symbol|had begun before this script' "$printed.said"
  refute grep -E "other|^(.* )?$other " "$printed"
}

@test "pycalls, pygc, pyimport and pyaudit with -x tell of that process alone" {
  need_time
  local traced other file=$BATS_TEST_TMPDIR/traced.py
  start_two
  script_x pycalls
  awk -v file="$file" '$3 == "step" && $4 == file && $1 >= 5 && $2 >= 50000 * ($1 - 2) { n++ } END { exit n != 1 }' "$printed"
  script_x pygc
  sed '/^$/,$d' "$printed" | awk -v pid="$traced" 'NR > 1 && ($2 != pid || $4 != 0) { exit 1 } END { if (NR < 6) exit 1 }'
  script_x pyimport
  awk '$1 >= 5 && $1 == $2 && $5 == "no_such_traced" { n++ } END { exit n != 1 }' "$printed"
  script_x pyaudit '^own'
  awk '$1 >= 5 && $2 == "own.traced" { n++ } END { exit n != 1 }' "$printed"
  end_in_guest "$traced" "$other"
}

@test "pymalloc with -x tells of that process alone; pysyscalls, pywho and pystat without it of all" {
  need_time
  local traced other file=$BATS_TEST_TMPDIR/traced.py
  start_two
  script_x pymalloc
  is_free_threaded "$system" || awk -v file="$file" '$4 == "malloc" && $5 == "step" && $6 == file && $1 >= 5 && $2 >= 1000004 * 5 && $3 == 1000004 { n++ }
    END { exit n != 1 }' "$printed"
  # not with -x: for process.syscall stap would look for the process on the machine on which it compiles
  script pysyscalls -E 'probe timer.s(3) { exit() }'
  [ "$(calls getppid step "$file")" -ge 5 ]
  [ "$(calls getppid step "$BATS_TEST_TMPDIR/other.py")" -ge 5 ]
  script pywho -G by_process=1 -E 'probe timer.s(3) { exit() }'
  awk -v a="$traced $file" -v b="$other $BATS_TEST_TMPDIR/other.py" \
    '$4 == "step" && $3 >= 5 { n[$2 " " $5] = 1 } END { exit !(a in n && b in n) }' "$printed"
  script pystat -E 'probe timer.s(3) { exit() }'
  awk -v a="$traced" -v b="$other" '$3 + $4 { for (i = 3; i <= 6; i++) n[$2, i] += $i }
    END { for (i = 3; i <= 6; i++) if (n[a, i] < 5 || n[b, i] < 5) exit 1 }' "$printed"
  end_in_guest "$traced" "$other"
}

@test "samples with a size or weight that none has are counted, and the others are shown" {
  local output
  printf 'memory__sample %s 1\n' '0x1000 100 524288' '0x2000 100 -1000000' '0x3000 100 1152921504606846976' '0x4000 -1 524288' \
    '0x5000 100 0' '0x6000 100 1073741924' '0x7000 100 1073741925' >"$BATS_TEST_TMPDIR/events"
  SYSTEMTAP_TAPSET=$top/build/test/tapset script_says pyheap -G record=1 -c "$driver $BATS_TEST_TMPDIR/events"
  # two samples, of 524288 and 1073741924 bytes, of blocks of 100
  output=$(grep -v '^#' "$printed")
  [[ $output == "driver ("*");[no Python] 1074266212 10742662 1074266212 10742662" ]]
  grep -q '5 samples had no room .* or a false size' "$printed.said"
}

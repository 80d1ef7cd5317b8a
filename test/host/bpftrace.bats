# The scripts of scripts/bpftrace, on workloads with known counts and times: run by bpftrace on this machine's kernel,
# and by stap-python SCRIPT --backend bpftrace.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031,SC2154

load ../lib/helper
load ../lib/launcher

setup() {
  can_bpftrace
  launcher=$top/build/stap-python
  programs=()
  system=$(system_python)
  counted=$BATS_TEST_TMPDIR/counted.py timed=$BATS_TEST_TMPDIR/timed.py
  cp "$top"/test/workloads/{counted,timed}.py "$BATS_TEST_TMPDIR"
}

# What bpftrace prints on stderr, 0.17 and 0.27, if all is well.
expected_errors='RLIMIT_MEMLOCK|failed to detach probe|uprobe_events|^Attached [0-9]+ probes?$'

# Runs scripts/bpftrace/NAME.bt while PYTHON runs COMMAND with the shim; the script's output is in $trace.
# usage: script "NAME ARGUMENTS..." PYTHON COMMAND...
script() {
  PROGRAM_ARGUMENTS=${1#"${1%% *}"} bpftrace_while "$(cat "$top/build/bpftrace/${1%% *}.bt")" \
    env LD_PRELOAD="$shim" "${@:2}"
  # bpftrace 0.27 warns of much that 0.17 needs, each time with the line of the script
  sed '/WARNING/,/~$/d' "$trace.log" | refute grep -vE "$expected_errors"
}

# Checks that the script's output has a line that matches each pattern, and so has the example in the script's head.
# usage: documented NAME PATTERN...
documented() {
  local pattern
  for pattern in "${@:2}"; do
    echo "$pattern"
    grep -qxE -- "$pattern" "$trace"
    sed -n 's/^ \*   //p' "$top/scripts/bpftrace/$1.bt" | grep -qxE -- "$pattern"
  done
}

@test "pycalls counts what the workload calls; the time of a recursive function is that of its outermost call" {
  local python function time
  cat >"$BATS_TEST_TMPDIR/recursive.py" <<'PY'
import time


def recursive(n):
    if n in (0, 20):
        time.sleep(0.1)
    if n:
        recursive(n - 1)


recursive(20)
PY
  for python in $(few_pythons | some 3); do
    echo "$python"
    # shellcheck disable=SC2016
    script pycalls sh -c '"$@" && "$1" "${2%/*}/recursive.py"' sh "$python" "$counted"
    grep -F "$BATS_TEST_TMPDIR" "$trace"
    for function in called_2:2 called_31:31 called_127:127 outer_5:5 inner_15:15 generated:8 raises_11:11 in_thread_13:13; do
      grep -qxF "@calls[${function%:*}, $counted]: ${function#*:}" "$trace"
      grep -qE "^@time_us\[${function%:*}, $counted\]: [0-9]+$" "$trace"
    done
    grep -q '^@calls\[recursive, .*: 21$' "$trace"
    time=$(sed -n 's/^@time_us\[recursive, .*: //p' "$trace")
    # twenty times as long if each level counted
    [ "$time" -ge 200000 ]
    [ "$time" -lt $((2000000 * SLOW)) ]
    refute grep -E '^@(open|began)' "$trace"
  done
  documented pycalls '@calls\[called_127, .*/counted.py\]: 127' '@time_us\[collects, .*/counted.py\]: [0-9]+'
}

@test "the tables of pytop have the workload's calls in all, one a second or as many seconds as asked for" {
  script pytop "$system" "$timed"
  cat "$trace"
  # bpftrace loses those between print() and clear()
  awk -F': ' '/^@calls\[quick, / { sum += $2 } END { exit !(sum > 500 && sum <= 1010) }' "$trace"
  [ "$(grep -cE '^[0-9:]{8}$' "$trace")" -ge 2 ]
  documented pytop '[0-9]{2}:[0-9]{2}:[0-9]{2}' '@calls\[quick, .*/timed.py\]: [0-9]+'
  script "pytop 0 60" "$system" "$timed"
  cat "$trace"
  [ "$(grep -cE '^[0-9:]{8}$' "$trace")" = 1 ]
  # 20 lines are the most
  [ "$(grep -c '^@' "$trace")" = 20 ]
  [ "$(grep '^@' "$trace" | tail -n 1)" = "@calls[quick, $timed]: 1010" ]
}

@test "pyslow prints the slow calls with their callers, and no others" {
  script pyslow "$system" "$timed"
  cat "$trace"
  [ "$(grep -cE "^[0-9]+\.[0-9]{3} ms [^ ]+\([0-9]+\) sleeps_200_ms in $timed:11$" "$trace")" = 4 ]
  # up to 3.10 a module begins at its first statement
  diff - <(grep -A 4 -m 1 ' sleeps_200_ms in ' "$trace" | tail -n 4 | sed '/<module>/s/:6$/:1/') <<CALLERS
    called by both in $timed:20
    called by main in $timed:44
    called by <module> in $timed:1

CALLERS
  [ "$(grep -cE "^[0-9.]+ ms .* both in $timed:22$" "$trace")" = 3 ]
  [ "$(grep -c ' ms .* computes_100_ms in ' "$trace")" = 3 ]
  grep -q " ms .* waits_for_the_lock in $timed:" "$trace"
  # 100 by default
  [ "$(slower_than 100)" = all ]
  documented pyslow '[0-9]+\.[0-9]{3} ms python3[.0-9t]*\([0-9]+\) sleeps_200_ms in .*/timed.py:11' '    called by main in .*/timed.py:44'
}

# Prints "all" if $trace has calls, each of which took at least $1 milliseconds.
slower_than() {
  awk -v least="$1" '$2 == "ms" { n++; if ($1 < least) bad = 1 } END { if (n && !bad) print "all" }' "$trace"
}

@test "pygc has each collection that the workload makes, and sums and histograms of all" {
  cat >"$BATS_TEST_TMPDIR/collects.py" <<'PY'
import gc
import os

gc.disable()
gc.collect(0)  # without the GIL, of all objects
for generation, times in (1, 5), (2, 7):
    for _ in range(times):
        cycle = []
        cycle.append(cycle)
        del cycle
        gc.collect(generation)
os._exit(0)
PY
  script pygc "$system" -I -S "$BATS_TEST_TMPDIR/collects.py"
  cat "$trace"
  [ "$(awk '$4 == 1 && $6 == 1' "$trace" | wc -l)" = 5 ]
  [ "$(awk '$4 == 2' "$trace" | wc -l)" = 7 ]
  grep -qx '@collected\[1\]: 5' "$trace"
  # 0.27: { .count = 7, .average = 400, .total = 2800 }
  grep -qE '^@pauses_us\[2\]: [^0-9]*count[ =]+7, [^0-9]*average[ =]+[0-9]+, [^0-9]*total[ =]+[0-9]+' "$trace"
  [ "$(sed -n '/^@pause_us\[2\]/,/^$/s/.*) \+\([0-9]\+\) |.*/\1/p' "$trace" | paste -sd+ | bc)" = 7 ]
  documented pygc '  TIME\(ms\)     PID PROGRAM         GEN  PAUSE\(us\)  COLLECTED' ' +[0-9]+ +[0-9]+ python3[.0-9t]* +2 +[0-9]+ +1' \
    '@pause_us\[2\]: ?' '@pauses_us\[2\]: [^0-9]*count[ =]+[78], [^0-9]*average[ =]+[0-9]+, [^0-9]*total[ =]+[0-9]+[ }]*'
  # a limit hides lines only
  script "pygc 0 10000000" "$system" -I -S "$BATS_TEST_TMPDIR/collects.py"
  refute grep -E '^ +[0-9]+ +[0-9]+ python3 ' "$trace"
  grep -qE '^@pauses_us\[2\]: [^0-9]*count[ =]+7, ' "$trace"
}

@test "pyflow is what sys.setprofile() sees, indented by depth" {
  local program=$BATS_TEST_TMPDIR/call_stack.py
  cp "$top/test/workloads/call_stack.py" "$program"
  expect_events "$system" "$program"
  script "pyflow 0 $program" "$system" "$program" >/dev/null
  cat "$trace"
  diff "$expected.functions" <(sed -nE 's/^ *[0-9]+ [^ ]+\([0-9]+\): *([<=])[=>] *(.*) in .*:([0-9]+)$/\1 \2 \3/p' "$trace" | tr '=' '>')
  grep -F ' in ' "$trace" | refute grep -vF " in $program:"
  # each line is indented by one more than the enclosing call
  awk '/ => / { match($0, / +=> /); if (RLENGTH - 4 != depth++) exit 1 }
       / <= / { match($0, / +<= /); if (RLENGTH - 4 != --depth) exit 1 }' "$trace"
  documented pyflow 'TIME\(us\)' ' *[0-9]+ python3[.0-9t]*\([0-9]+\):  +=> [^ ]+ in .*.py:[0-9]+' ' *[0-9]+ python3[.0-9t]*\([0-9]+\): <= <module> in .*.py:[0-9]+'
}

# Runs stap-python NAME --backend bpftrace with ARGUMENTS while COMMAND runs; its output is in $trace.  Fails if bpftrace
# lost an event or printed an error, or if its answers to stap-python are in the output.
# usage: traces "NAME COMMAND..." ARGUMENTS...
traces() {
  trace=$BATS_TEST_TMPDIR/trace
  BPFTRACE_PERF_RB_PAGES=4096 launcher "${1%% *}" --backend bpftrace -c "${1#* }" "${@:2}" >"$trace" 2>"$trace.log"
  refute grep -h -e 'Lost .* events' -e 'stap-python attached' "$trace" "$trace.log"
  refute grep -vE "$expected_errors" "$trace.log"
}

@test "pystat counts a process's calls, C calls, collections, imports and threads, each in a line of its own" {
  local pids
  # with the output of the program: the PIDs of its children
  traces "pystat $system $top/test/workloads/three_children.py" 600
  cat "$trace"
  pids=$(grep -xE '[0-9]+' "$trace")
  # shellcheck disable=SC2086
  set -- $pids
  row() { awk -v pid="$1" '$2 == pid' "$trace"; }
  row "$1" | grep -qE "^..:..:.. +$1 +10 +25 +3 +0 +3 python3"
  row "$2" | grep -qE "^..:..:.. +$2 +[1-9][0-9]* +[1-9][0-9]* +0 +2 +1 python3"
  row "$3" | grep -qE "^..:..:.. +$3 +2 +1 +0 +0 +1 python3"
  # the parent's too, and no other
  [ "$(grep -c '^..:..:..' "$trace")" = 4 ]
  documented pystat 'TIME         PID     CALLS    CCALLS     GC IMPORTS THREADS PROGRAM' '..:..:.. +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ python3[.0-9t]*'
}

@test "the lines of pystat have all calls, and none for a second in which there are none" {
  local times
  cat >"$BATS_TEST_TMPDIR/seconds.py" <<'PY'
import sys
import time


def called():
    pass


for number in 700, 0, 0, 0, 0, 1100, 1300:
    for _ in range(number * int(sys.argv[1])):
        called()
    time.sleep(int(sys.argv[1]))
PY
  for times in 0 1; do
    traces "pystat $system -I -S $BATS_TEST_TMPDIR/seconds.py $times"
    cat "$trace"
    awk '/^..:..:../ { sum += $3; lines++ } END { print sum, lines }' "$trace" >"$BATS_TEST_TMPDIR/sum.$times"
  done
  cat "$BATS_TEST_TMPDIR"/sum.*
  paste -d' ' "$BATS_TEST_TMPDIR"/sum.{0,1} | awk '{ exit !($3 - $1 == 3100 && $4 >= 3) }'
}

# The number of the function $2 of $timed in the table $1 of pytime; 0 if it is not among the 50.
in_table() {
  sed -n "s|^@$1\[$2, $timed\]: ||p" "$trace" | grep . || echo 0
}

@test "pytime counts the calls and gives the time in them, and in them alone" {
  local name least incl excl
  traces "pytime $system -I -S $timed"
  grep -F "$timed" "$trace"
  while read -r name least; do
    incl=$(in_table incl_us "$name") excl=$(in_table excl_us "$name")
    echo "$name $incl $excl"
    [ "$incl" -ge "$least" ]
    [ "$incl" -le "$(in_table incl_us main)" ]
    case $name in
      both) [ "$excl" -lt 300000 ] ;;
      # rounded down ten times a second
      *) [ $((incl - excl)) -ge -20 ] && [ $((incl - excl)) -le 20 ] ;;
    esac
  done <<'EXPECTED'
sleeps_200_ms 800000
computes_100_ms 300000
both 900000
allocates_8_mb 0
EXPECTED
  [ "$(in_table calls quick)" = 1010 ]
  documented pytime '@calls\[quick, .*/timed.py\]: 1010' '@incl_us\[main, .*/timed.py\]: [0-9]+' '@excl_us\[sleeps_200_ms, .*/timed.py\]: [0-9]+'
}

@test "pydist counts each call of the functions that match, by its time" {
  traces "pydist $system $timed" 'quick sleeps_200_ms'
  cat "$trace"
  [ "$(grep -c '^@us\[' "$trace")" = 2 ]
  diff - <(grep '^@calls' "$trace") <<CALLS
@calls[sleeps_200_ms, $timed]: 4
@calls[quick, $timed]: 1010
CALLS
  [ "$(sed -n "s|^@total_us\[sleeps_200_ms, $timed\]: ||p" "$trace")" -ge 800000 ]
  # each call is in a row, and a sleep in none below its 200 ms
  awk '/^@us/ { name = $1 }
    / \|[@ ]*\|$/ { sub(/ +\|.*/, ""); calls[name] += $NF; if (name ~ /sleeps/ && $NF && $1 !~ /^\[(128|256|512)K|M/) low++ }
    END { exit !(calls["@us[quick,"] == 1010 && calls["@us[sleeps_200_ms,"] == 4 && !low) }' "$trace"
  documented pydist '@us\[quick, .*/timed.py\]: ?' '@calls\[quick, .*/timed.py\]: 1010' '@total_us\[sleeps_200_ms, .*/timed.py\]: [0-9]+'
  # without a PATTERN all functions
  traces "pydist $system $timed"
  grep -q '^@total_us\[main, ' "$trace"
}

# The lines of imports in pyimport's output.
imported() {
  sed '/^$/,$d' "$trace" | grep -E '^ *[0-9]+ python'
}

@test "pyimport prints the tree that -X importtime prints, the misses, and tables that add up" {
  local folder=$BATS_TEST_TMPDIR
  mkdir "$folder/package"
  printf 'import colorsys\ntry:\n    import package.raises\nexcept ValueError:\n    pass\n' >"$folder/package/__init__.py"
  printf 'import time\nimport package.slower\ntime.sleep(0.2)\n' >"$folder/package/slow.py"
  printf 'import time\ntime.sleep(0.5)\n' >"$folder/package/slower.py"
  printf 'raise ValueError\n' >"$folder/package/raises.py"
  printf 'import package.slow\nfor _ in range(2):\n    try:\n        import no_such_module\n    except ImportError:\n        pass\n' >"$folder/program.py"
  traces "pyimport $system -X importtime $folder/program.py 2>$folder/importtime"
  cat "$trace"
  imported | sed '1,/  site$/d' >"$folder/tree"
  diff <(sed 's/^.\{50\}//; s/ (miss)$//' "$folder/tree") <(sed '1,/| site$/d; s/^.* | //' "$folder/importtime")
  diff <(awk '{ print $5, $6 }' "$folder/tree" | grep miss) - <<'MISSES'
package.raises (miss)
no_such_module (miss)
no_such_module (miss)
MISSES
  awk '$5 == "package.slow" { self = $3; all = $4 } $5 == "package.slower" { inner = $4; if ($3 != $4) exit 1 }
    END { exit !(inner >= 500000 && self >= 200000 && all >= self + inner - 2) }' "$folder/tree"
  grep -qx '@misses\[no_such_module\]: 2' "$trace"
  grep -qE '^@inclusive_us\[package.slow\]: [0-9]{6,}$' "$trace"
  grep -qE '^@self_us\[package.slower\]: [0-9]{6,}$' "$trace"
  [ "$(sed -n 's/^@all_imports: //p' "$trace")" = "$(imported | wc -l)" ]
  [ "$(sed -n 's/^@all_us: //p' "$trace")" = "$(imported | awk '{ sum += $3 } END { print sum }')" ]
  documented pyimport '    PID PROGRAM           SELF\(us\) INCLUSIVE\(us\)  MODULE' ' +[0-9]+ python3[.0-9t]* +[0-9]+ +[0-9]+  +no_such_module \(miss\)' \
    '@misses\[no_such_module\]: 2' '@self_us\[[^]]*\]: [0-9]+' '@all_misses: [0-9]+'
  # a limit hides lines only
  traces "pyimport $system -I -S $folder/package/slower.py" 10000000
  refute imported
  grep -qE '^@self_us\[[^]]*\]: [0-9]+$' "$trace"
}

@test "pyaudit prints the events, or those of a name, and counts them" {
  cat >"$BATS_TEST_TMPDIR/audits.py" <<'PY'
import sys

for number in range(5):
    sys.audit("own.event", number)
for number in range(3):
    sys.audit("own.event.longer")
with open("/dev/null"):
    pass
PY
  traces "pyaudit $system $BATS_TEST_TMPDIR/audits.py" own.event
  cat "$trace"
  [ "$(grep -cE '^ +[0-9]+\.[0-9]{6} +[0-9]+ python3[.0-9t]* +own.event$' "$trace")" = 5 ]
  [ "$(grep '^@' "$trace")" = '@events[own.event]: 5' ]
  traces "pyaudit $system $BATS_TEST_TMPDIR/audits.py"
  grep -qx '@events\[own.event.longer\]: 3' "$trace"
  [ "$(grep -c ' own\.' "$trace")" = 8 ]
  documented pyaudit '     TIME\(s\)     PID PROGRAM         EVENT' ' +[0-9]+\.[0-9]{6} +[0-9]+ python3[.0-9t]* +open' '@events\[open\]: [0-9]+'
}

@test "pyexc counts each raise once, by class and place" {
  local raises=$top/test/workloads/raises.py class
  traces "pyexc $system $counted" ValueError
  [ "$(grep '^@.*counted' "$trace")" = "@exceptions[ValueError, raises_11, $counted, 38]: 11" ]
  documented pyexc '@exceptions\[ValueError, raises_11, .*/counted.py, 38\]: 11'
  # the counts are in the workload's comments; only the 50 most frequent are printed
  for class in Failure ZeroDivisionError Odd; do
    traces "pyexc $system $raises" "$class"
    grep '^@' "$trace"
    diff <(awk -v class="$class" '{ for (i = 1; i < NF; i++) if ($i == "#" && $(i + 2) == class) print FNR, $(i + 1) }' "$raises" | sort) \
      <(sed -nE "s|^@exceptions\[$class, [^ ]+, $raises, ([0-9]+)\]: |\1 |p" "$trace" | sort)
  done
}

@test "pyline prints each line that runs, or counts those of the functions that match" {
  local pattern reached=$BATS_TEST_TMPDIR/reached
  traces "pyline $system -I -S $counted"
  head -n 30 "$trace"
  grep -qx '    TIME(us)     TID PROGRAM         FUNCTION             FILE:LINE' "$trace"
  # from 3.14 on the thread that counted.py starts has a name
  sed -nE "s,^ *[0-9]+ +[0-9]+ (python3[.0-9t]*|Thread-1 [(][a-z]*) +[^ ]+ +$counted:([0-9]+)\$,\2,p" "$trace" | sort -n | uniq -c | awk '{ print $2, $1 }' >"$reached"
  grep -qx '16 31' "$reached"
  for pattern in "$counted:*" '*/counted.py:* no.such.*'; do
    traces "pyline $system -I -S $counted" "$pattern"
    diff "$reached" <(sed -nE "s|^@hits\[$counted, ([0-9]+)\]: ([0-9]+)\$|\1 \2|p" "$trace" | sort -n)
    grep '^@hits' "$trace" | refute grep -vF "[$counted, "
  done
  documented pyline '@hits\[.*/counted.py, 20\]: 127' '@hits\[.*/counted.py, 16\]: 31'
}

@test "pywho tells one user's calls from another's" {
  cat >"$BATS_TEST_TMPDIR/who.py" <<'PY'
import os


def called():
    pass


for _ in range(700):
    called()
os.setuid(4321)
for _ in range(1100):
    called()
PY
  traces "pywho $system $BATS_TEST_TMPDIR/who.py"
  diff - <(grep '^@calls.*who.py' "$trace" | tail -n 2) <<EXPECTED
@calls[0, called, $BATS_TEST_TMPDIR/who.py]: 700
@calls[4321, called, $BATS_TEST_TMPDIR/who.py]: 1100
EXPECTED
  [ "$(grep -c '^@' "$trace")" = 100 ]
  traces "pywho $system -I -S $counted"
  documented pywho '@calls\[0, called_127, .*/counted.py\]: 127'
}

@test "pywatch prints each call of the functions that match, with its time, and whether an exception left it" {
  traces "pywatch $system $timed" 'sleeps_200_ms quick'
  [ "$(grep -cE '^[0-9]+\.[0-9]{6} python3[.0-9t]*\([0-9]+\): quick\(\) <[0-9]+\.[0-9]{6}>$' "$trace")" = 1010 ]
  awk '/ sleeps_200_ms\(\) </ { took = $NF; gsub(/[<>]/, "", took); if (took < 0.2) bad = 1; calls++ } END { exit !(calls == 4 && !bad) }' "$trace"
  [ "$(grep -c '<.*>$' "$trace")" = 1014 ]
  traces "pywatch $system $counted" 'called_2 raises_11'
  [ "$(grep -c 'raises_11() ! <' "$trace")" = 11 ]
  [ "$(grep -c 'called_2() <' "$trace")" = 2 ]
  documented pywatch '[0-9]+\.[0-9]{6} python3[.0-9t]*\([0-9]+\): called_2\(\) <[0-9]+\.[0-9]{6}>' '[0-9]+\.[0-9]{6} python3[.0-9t]*\([0-9]+\): raises_11\(\) ! <[0-9]+\.[0-9]{6}>'
}

# Whether the filtered markers of the process $2 are for the functions of the pattern $1.
filtered() {
  [ "$("$launcher" filter "$2")" = "$1" ]
}

@test "a PATTERN is set in the process of -x and its children while the script runs, and what was there before comes back" {
  local folder=$BATS_TEST_TMPDIR parent child later tracer
  trace=$folder/trace
  cat >"$folder/works.py" <<'PY'
import os
import sys
import time


def works():
    time.sleep(0.01)


def rests():
    time.sleep(0.01)


def forks(name):
    pid = os.fork()
    if pid:
        open(sys.argv[1] + name, "w").write(str(pid))
    return pid


parent = forks("/child")
while True:
    works()
    rests()
    if parent and os.path.exists(sys.argv[1] + "/fork") and not os.path.exists(sys.argv[1] + "/later"):
        parent = forks("/later")
PY
  LD_PRELOAD=$shim "$system" "$folder/works.py" "$folder" 3>&- &
  parent=$!
  programs+=("$parent")
  wait_for test -s "$folder/child"
  child=$(cat "$folder/child")
  programs+=("$child")
  wait_for "$launcher" filter "$child" rests
  "$launcher" pywatch --backend bpftrace -x "$parent" works >"$trace" 2>&1 3>&- &
  tracer=$!
  programs+=("$tracer")
  wait_for grep -q "($parent): works() <" "$trace"
  wait_for grep -q "($child): works() <" "$trace"
  filtered works "$parent"
  filtered works "$child"
  touch "$folder/fork"
  wait_for test -s "$folder/later"
  later=$(cat "$folder/later")
  programs+=("$later")
  wait_for grep -q "($later): works() <" "$trace"
  kill -INT "$tracer"
  wait "$tracer"
  refute grep -F 'rests()' "$trace"
  filtered 'all functions' "$parent"
  filtered 'all functions' "$later"
  filtered rests "$child"
}

@test "without -x and -c stap-python says how a PATTERN is set" {
  local fake=$BATS_TEST_TMPDIR/bin
  mkdir "$fake"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "$4: $5"\n' >"$fake/bpftrace"
  chmod +x "$fake/bpftrace"
  PATH=$fake:$PATH run launcher pywatch --backend bpftrace 'app.*'
  echo "$output"
  [[ $output == *'without -x and -c the PATTERN is not set in any process: stap-python filter PID PATTERN'* ]]
  [[ $output == *'0: app.*' ]]
}

# Starts a Python with the shim.  Whenever $folder/go exists and $folder/FUNCTION does not, it calls FUNCTION 127 times
# and makes $folder/FUNCTION.  $! is its PID, or that of the COMMAND that starts it.
# usage: waiting FUNCTION COMMAND...
waiting() {
  cat >"$folder/$1.py" <<PY
import os, time
def $1(): pass
open("$folder/started.$1", "w")
while True:
    while not os.path.exists("$folder/go") or os.path.exists("$folder/$1"): time.sleep(0.02)
    for _ in range(127): $1()
    open("$folder/$1", "w")
PY
  LD_PRELOAD=$shim setsid "${@:2}" "$system" "$folder/$1.py" 3>&- &
  wait_for test -e "$folder/started.$1"
}

@test "values are where scripts/README.md says, in the frame that the markers pass and in what is returned" {
  local python minor variable characters program
  cat >"$BATS_TEST_TMPDIR/view.py" <<'PY'
def view(first, second):
    return "returned" + second


name = "first" * 2
view(name, "second")
PY
  program=$(sed -n "/^sudo bpftrace -e 'usdt:.*view/,/'\$/p" "$top/scripts/README.md" | sed "s/.*-e '//; s/'\$//; s|/path/of/libpython-stap.so.0|$shim|")
  for python in $(pythons | with_minor | awk '$1 + 0 > 6 { print $2 }'); do
    echo "$python"
    minor=$(version_of "$python")
    case $minor in
      3.[789]) variable='*(uint64 *)(arg3 + 360)' ;;
      3.10) variable='*(uint64 *)(arg3 + 352)' ;;
      3.11 | 3.12 | 3.13) variable='*(uint64 *)(arg3 + 72)' ;;
      *) variable='(*(uint64 *)(arg3 + 80) \& ~7)' ;;
    esac
    case $minor in
      3.[789] | 3.1[01]) characters=48 ;;
      *) characters=40 ;;
    esac
    ! is_free_threaded "$python" || characters=$((characters + 16))
    bpftrace_while "$(sed "s/[*](uint64 [*])(arg3 + 72)/$variable/; s/+ 48)/+ $characters)/" <<<"$program")" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/view.py"
    diff - <(grep . "$trace") <<'EOF'
view(firstfirst)
returns returnedsecond
EOF
  done
}

@test "a PID selects that process and its children, also one that runs already" {
  local folder=$BATS_TEST_TMPDIR one parent
  waiting one && one=$!
  # shellcheck disable=SC2016
  waiting child sh -c '"$@"; true' sh && parent=$!
  waiting other
  programs+=("$one" "$parent" "$(pgrep -P "$parent")" $!)
  # once these have the hooks
  # shellcheck disable=SC2016
  counts() {
    rm -f "$folder/go"
    sleep 0.1
    rm -f "$folder"/{one,child,other}
    PROGRAM_ARGUMENTS=$1 bpftrace_while "$(cat "$top/build/bpftrace/pycalls.bt")" \
      sh -c 'sleep '"$SLOW"'; touch "$0/go"; until [ -e "$0/one" ] && [ -e "$0/child" ] && [ -e "$0/other" ]; do sleep 0.05; done' "$folder"
  }
  counted_calls() {
    sed -nE 's/^(@calls\[(one|child|other),) .*: /\1 /p' "$trace" | sort
  }
  counts "$one"
  [ "$(counted_calls)" = '@calls[one, 127' ]
  counts "$parent"
  [ "$(counted_calls)" = '@calls[child, 127' ]
  counts 0
  [ "$(counted_calls)" = $'@calls[child, 127\n@calls[one, 127\n@calls[other, 127' ]
}

@test "stap-python SCRIPT --backend bpftrace -c traces the command from its first line to its last, with the shim" {
  trace=$BATS_TEST_TMPDIR/trace
  launcher pyslow.stp --backend bpftrace 450 -c "$system $timed" >"$trace" # an argument may stand in front of -c
  cat "$trace"
  grep -q " ms .* <module> in $timed:60$" "$trace"
  [ "$(slower_than 450)" = all ]
  # what needs a shell; names of up to 127 bytes
  mkdir -p "$BATS_TEST_TMPDIR/$(printf 'long%.0s' {1..15})"
  cp "$counted" "$BATS_TEST_TMPDIR"/longlong*
  launcher pycalls --backend bpftrace -c "cd '$BATS_TEST_TMPDIR'/longlong* && $system \$PWD/counted.py; echo ready" >"$trace"
  grep -qx ready "$trace"
  grep -q '^@calls\[called_127, .*/longlong[^ ]*/counted.py\]: 127$' "$trace"
  # its start, all but what Debian's 3.9 does before the shim is there
  grep -qE '^@calls\[(_set_bootstrap_module, <frozen importlib._bootstrap>|<module>, <frozen zipimport>)' "$trace"
}

@test "stap-python SCRIPT --backend bpftrace -x traces a running process, and loads the shim into it if it lacks it" {
  local seconds said=
  need_remote_calls
  start_program "$system"
  # on a machine under load it may take longer to attach
  for seconds in 3 10 40; do
    run env --default-signal=INT timeout -k 5 -s INT "$seconds" "$launcher" pycalls --backend bpftrace -x "$program"
    echo "$output"
    [[ $output != *"stap-python: attached to $program: active"* ]] || said=seen
    [[ $output != *"@calls[fib, "* ]] || break
  done
  [ "$said" = seen ]
  [[ $output == *"@calls[fib, $BATS_TEST_TMPDIR/program.py]: "* ]]
  program_ends
}

@test "stap-python --backend says in one line what it can't do" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  refuses 2 'no bpftrace script pystacks in .*: there are pyaudit, pycalls, pydist, pyexc, pyflow, pygc, pyimport, pyline, pyslow, pystat, pytime, pytop, pywatch, pywho$' pystacks --backend bpftrace
  refuses 2 '--backend is stap, bpftrace, or auto: stap if it is known to work' pycalls --backend dtrace
  refuses 2 '--backend is stap, bpftrace, or auto' pycalls --backend
  refuses 2 "unknown option '-G': with bpftrace there are -x PID and -c CMD" pycalls --backend bpftrace -G top=1
  refuses 2 'either -x or -c' pycalls --backend bpftrace -x 1 -c true
  refuses 2 '-c needs a value' pycalls --backend bpftrace -c
  refuses 2 '-x python3: give a PID' pycalls --backend bpftrace -x python3
  refuses 2 "pystat: with bpftrace it takes 1 argument, and no '5': see the head of .*/pystat.bt" pystat --backend bpftrace -c true 60 5
  refuses 2 "pytime: with bpftrace it takes 0 arguments, and no 'exact'" pytime --backend bpftrace -c true exact
  refuses 2 'pywatch: an argument is missing: see the head of .*/pywatch.bt' pywatch --backend bpftrace -c true
  refuses 2 'PATTERN has more than 4071 bytes' pywatch --backend bpftrace -c true "$(printf '%05000d' 0)"
  refuses 1 '4194305: no such process' pycalls --backend bpftrace -x 4194305
  PYTHON_STAP=off start_program "$system"
  refuses 1 "$program lacks the markers, and the shim can't be loaded: it was started with PYTHON_STAP=off" pycalls --backend bpftrace -x "$program"
  launcher() {
    PATH=$BATS_TEST_TMPDIR/bin "$(type -P timeout)" -k 5 60 "$launcher" "$@"
  }
  refuses 127 'bpftrace not found: install the package bpftrace' pycalls --backend bpftrace
}

@test "make puts the path of the shim into the scripts, in the tree and where it installs" {
  local destdir=$BATS_TEST_TMPDIR/destdir script
  timeout -k 5 $((60 * SLOW)) make -s -C "$top" DESTDIR="$destdir" shim_path='/usr/lib/*/x/libpython-stap.so.0' install
  for script in "$top"/scripts/bpftrace/*.bt; do
    grep -q '^usdt:@SHIM@:python:' "$script"
    grep -qF "](bpftrace/${script##*/})" "$top/scripts/README.md"
    grep -q "^usdt:$shim:python:" "$top/build/bpftrace/${script##*/}"
    script=$destdir/usr/local/share/systemtap/examples/cpython/bpftrace/${script##*/}
    [ -x "$script" ]
    grep -qF 'usdt:/usr/lib/*/x/libpython-stap.so.0:python:' "$script"
    refute grep -F '@SHIM@' "$script" "$top/build/bpftrace/${script##*/}"
  done
}

@test "bpftrace takes the scripts of a tree with a space in its path" {
  make_tree_in "$BATS_TEST_TMPDIR/a tree"
  make -C "$BATS_TEST_TMPDIR/a tree" -j"$(nproc)" >/dev/null 2>&1
  local lists=-l
  [[ $(bpftrace --version) != *v0.1* ]] || lists=-d # which lists no script's probes
  run timeout $((60 * SLOW)) bpftrace "$lists" "$BATS_TEST_TMPDIR/a tree/build/bpftrace/pycalls.bt"
  echo "$output" | head -n 20
  [ "$status" = 0 ]
  [[ $output == *"usdt:$BATS_TEST_TMPDIR/a tree/build/libpython-stap.so.0:python:function__count"* ]]
}

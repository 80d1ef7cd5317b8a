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

# Runs scripts/bpftrace/NAME.bt while PYTHON runs COMMAND with the shim; the script's output is in $trace.
# usage: script "NAME ARGUMENTS..." PYTHON COMMAND...
script() {
  PROGRAM_ARGUMENTS=${1#"${1%% *}"} bpftrace_while "$(cat "$top/build/bpftrace/${1%% *}.bt")" \
    env LD_PRELOAD="$shim" "${@:2}"
  refute grep -v -e RLIMIT_MEMLOCK -e 'failed to detach probe' -e uprobe_events "$trace.log"
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
    [ "$time" -ge 200000 ]
    [ "$time" -lt 2000000 ]
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
  diff - <(grep -A 4 -m 1 ' sleeps_200_ms in ' "$trace" | tail -n 4) <<CALLERS
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
  grep -qE '^@pauses_us\[2\]: count 7, average [0-9]+, total [0-9]+$' "$trace"
  [ "$(sed -n '/^@pause_us\[2\]/,/^$/s/.*) \+\([0-9]\+\) |.*/\1/p' "$trace" | paste -sd+ | bc)" = 7 ]
  documented pygc '  TIME\(ms\)     PID PROGRAM         GEN  PAUSE\(us\)  COLLECTED' ' +[0-9]+ +[0-9]+ python3[.0-9t]* +2 +[0-9]+ +1' \
    '@pause_us\[2\]: ?' '@pauses_us\[2\]: count [78], average [0-9]+, total [0-9]+'
  # a limit hides lines only
  script "pygc 0 10000000" "$system" -I -S "$BATS_TEST_TMPDIR/collects.py"
  refute grep -E '^ +[0-9]+ +[0-9]+ python3 ' "$trace"
  grep -q '^@pauses_us\[2\]: count 7, ' "$trace"
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
      sh -c 'sleep 0.5; touch "$0/go"; until [ -e "$0/one" ] && [ -e "$0/child" ] && [ -e "$0/other" ]; do sleep 0.05; done' "$folder"
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
  launcher pyslow.stp --backend bpftrace -c "$system $timed" 450 >"$trace"
  cat "$trace"
  grep -q " ms .* <module> in $timed:60$" "$trace"
  [ "$(slower_than 450)" = all ]
  # what needs a shell; names of up to 127 bytes
  mkdir -p "$BATS_TEST_TMPDIR/$(printf 'long%.0s' {1..15})"
  cp "$counted" "$BATS_TEST_TMPDIR"/longlong*
  launcher pycalls --backend bpftrace -c "cd '$BATS_TEST_TMPDIR'/longlong* && $system \$PWD/counted.py; echo ready" >"$trace"
  grep -qx ready "$trace"
  grep -q '^@calls\[called_127, .*/longlong[^ ]*/counted.py\]: 127$' "$trace"
  # all of its start
  grep -qF '@calls[_set_bootstrap_module, <frozen importlib._bootstrap' "$trace"
}

@test "stap-python SCRIPT --backend bpftrace -x traces a running process" {
  start_program env LD_PRELOAD="$shim" "$system"
  # on a machine under load it may take longer to attach
  local seconds
  for seconds in 3 10 40; do
    run env --default-signal=INT timeout -k 5 -s INT "$seconds" "$launcher" pycalls --backend bpftrace -x "$program"
    echo "$output"
    [[ $output != *"@calls[fib, "* ]] || break
  done
  [[ $output == *"@calls[fib, $BATS_TEST_TMPDIR/program.py]: "* ]]
  program_ends
}

@test "stap-python --backend says in one line what it can't do" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  refuses 2 'no bpftrace script pystacks in .*: there are pycalls, pyflow, pygc, pyslow, pytop$' pystacks --backend bpftrace
  refuses 2 '--backend is bpftrace' pycalls --backend dtrace
  refuses 2 '--backend is bpftrace' pycalls --backend
  refuses 2 "unknown option '-G': with bpftrace there are -x PID and -c CMD" pycalls --backend bpftrace -G top=1
  refuses 2 'either -x or -c' pycalls --backend bpftrace -x 1 -c true
  refuses 2 '-c needs a value' pycalls --backend bpftrace -c
  refuses 2 '-x python3: give a PID' pycalls --backend bpftrace -x python3
  refuses 1 '4194305: no such process' pycalls --backend bpftrace -x 4194305
  start_program "$system"
  refuses 1 "$program: the shim is not loaded: run stap-python attach $program" pycalls --backend bpftrace -x "$program"
  launcher() {
    PATH=$BATS_TEST_TMPDIR/bin "$(type -P timeout)" -k 5 60 "$launcher" "$@"
  }
  refuses 127 'bpftrace not found: install the package bpftrace' pycalls --backend bpftrace
}

@test "make puts the path of the shim into the scripts, in the tree and where it installs" {
  local destdir=$BATS_TEST_TMPDIR/destdir script
  timeout -k 5 60 make -s -C "$top" DESTDIR="$destdir" shim_path='/usr/lib/*/x/libpython-stap.so.0' install
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
  run timeout 60 bpftrace -d "$BATS_TEST_TMPDIR/a tree/build/bpftrace/pycalls.bt" 0
  echo "$output" | head -n 20
  [ "$status" = 0 ]
  [[ $output == *"usdt:$BATS_TEST_TMPDIR/a tree/build/libpython-stap.so.0:python:function__count"* ]]
}

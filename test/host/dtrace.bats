# dtrace on the CPythons of this machine: scripts/call_stack.d, CPython's own scripts, several processes.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

# Checks once what this machine lacks, because it takes seconds.
setup_file() {
  export lack=
  if [ "$(id -u)" != 0 ]; then
    lack="needs root, for dtrace"
  elif ! "$top/test/long/dtrace/dtrace" -V >/dev/null 2>&1; then
    lack="needs dtrace: test/long/dtrace/dtrace fetch"
  elif ! "$top/test/long/dtrace/dtrace" -n 'BEGIN { exit(0); }' >/dev/null 2>&1; then
    lack="needs a kernel in which dtrace attaches to markers"
  fi
}

setup() {
  [ -z "$lack" ] || skip "$lack"
  script=$top/scripts/call_stack.d
  program=$top/test/workloads/call_stack.py
  trace=$BATS_TEST_TMPDIR/trace
}

# Whether DTrace waits in vain for the end of a program that it started, having left one of the program's threads stopped
# (probes/LIMITS.md, "dtrace -c"): seen 20 times in 2 seconds in the process group GROUP. False if GROUP ended before.
# usage: left_stopped GROUP
left_stopped() {
  local seen=0
  while kill -0 "$1" 2>/dev/null; do
    if LC_ALL=C ps -eLo pgid=,pid=,lwp=,stat= | awk -v group="$1" '
      $1 == group && $2 == $3 && $4 ~ /^Z/ { ended[$2] }
      $1 == group && $4 ~ /^t/ { stopped[$2] }
      END { for (pid in stopped) if (pid in ended) exit 0; exit 1 }'; then
      seen=$((seen + 1))
    else
      seen=0
    fi
    [ "$seen" -lt 20 ] || return 0
    sleep 0.1
  done
  return 1
}

# Runs COMMAND, which runs dtrace.  Its output is in $trace.log.  Runs it again if DTrace left a thread stopped, which it
# does seldom: three times in a row are another fault.
# usage: unless_left_stopped SECONDS COMMAND...
unless_left_stopped() {
  local job i limit=$(($1 * SLOW))
  shift
  for i in 1 2 3; do
    rm -f "$trace"                                       # dtrace -o appends to it
    timeout -k 5 "$limit" "$@" >"$trace.log" 2>&1 3>&- & # leads a process group of its own
    job=$!
    left_stopped "$job" || { wait "$job" && return || return; }
    echo "# DTrace left a thread of the program stopped, and waits for its end: killed, and run again ($i)" >&3
    kill -KILL -- "-$job"
    wait "$job" || true
  done
  echo "DTrace left a thread stopped three times" >>"$trace.log"
  return 1
}

# Runs dtrace; its output is in $trace, that of each CPU in one piece.  Fails if events were lost ("drops"), or if
# arguments couldn't be read.
dtrace() {
  unless_left_stopped 60 "$top/test/long/dtrace/dtrace" -b 16m -o "$trace" "$@" || { cat "$trace.log" && return 1; }
  refute grep '^dtrace: ' "$trace.log"
}

# The output of call_stack.d in the order of time.
in_order() {
  sort -n "$trace" | grep .
}

# The events of FILE in this output, in the form of expect.py.
# usage: events_of FILE
events_of() {
  in_order | sed -nE "s/^[0-9]+\t *function-(entry|return): *${1##*/}:(.*):([0-9]+)\$/\1 \2 \3/p" |
    sed 's/^entry/>/; s/^return/</'
}

# Checks that every line is indented by as many spaces as calls are open.
well_indented() {
  in_order | awk '
    match($0, /function-(entry|return): */) {
      indent = RLENGTH - length(/function-entry/ ? "function-entry:" : "function-return:")
      if (/function-return/) depth--
      if (indent != depth && bad++ < 10) print "expected an indent of", depth ":", $0
      if (/function-entry/) depth++
      lines++
    }
    END { if (depth) print "calls left open:", depth; exit bad || depth || !lines }'
}

# Starts two processes that call step() in a loop for two minutes: $first and $second; the messages of their shims are
# in the files loop.1 and loop.2.
# usage: start_loops PYTHON
start_loops() {
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.002)


end = time.time() + 120
while time.time() < end:
    step()
PY
  export PYTHON_STAP_DEBUG=1
  LD_PRELOAD=$shim "$1" "$BATS_TEST_TMPDIR/loop.py" 2>"$BATS_TEST_TMPDIR/loop.1" 3>&- &
  first=$!
  LD_PRELOAD=$shim "$1" "$BATS_TEST_TMPDIR/loop.py" 2>"$BATS_TEST_TMPDIR/loop.2" 3>&- &
  second=$!
  wait_for thread_has "$first" comm python-stap
  wait_for thread_has "$second" comm python-stap
}

@test "call_stack.d prints what happens between a function's entry and its return, on every kind of hook" {
  local python
  for python in $(pythons_by_hook); do
    echo "$python"
    expect_events "$python" "$program"
    LD_PRELOAD=$shim dtrace -s "$script" -c "$python $program" main
    events_of "$program" | diff <(sed '/^> main /,/^< main /!d' "$expected.functions") -
    well_indented
  done
}

@test "call_stack.d stays within a function that calls itself until the outermost call returns" {
  expect_events /usr/bin/python3 "$program"
  LD_PRELOAD=$shim dtrace -s "$script" -c "/usr/bin/python3 $program" sum_up
  diff <(grep sum_up "$expected.functions") <(events_of "$program")
  [ "$(in_order | wc -l)" = 6 ]
  well_indented
}

@test "call_stack.d without a function shows every way in which a frame starts and ends" {
  local python semantics=$top/test/workloads/semantics.py
  for python in $(pythons_by_hook); do
    echo "$python"
    expect_events "$python" "$semantics"
    LD_PRELOAD=$shim dtrace -s "$script" -c "$python $semantics"
    events_of "$semantics" | diff "$expected.functions" -
    well_indented
  done
}

@test "call_stack.d shows a name that can't be encoded as an empty one, and goes on" {
  LD_PRELOAD=$shim dtrace -s "$script" -c "/usr/bin/python3 $top/test/workloads/names.py" call_all
  in_order | cut -f 2 >"$BATS_TEST_TMPDIR/names"
  # "", "\ud800", "a\udc80b"; and a file's
  [ "$(grep -c '^ function-entry: names::9$' "$BATS_TEST_TMPDIR/names")" = 3 ]
  [ "$(grep -c '^function-return: :f:9$' "$BATS_TEST_TMPDIR/names")" = 1 ]
  well_indented
}

@test "call_stack.d -p shows one running Python from the frames that it is in on, and leaves no hook" {
  local python first second loop
  for python in $(pythons_by_hook); do
    echo "$python"
    start_loops "$python"
    loop=$BATS_TEST_TMPDIR/loop
    dtrace -s "$script" -n 'tick-2s { exit(0); }' -p "$first"
    # shellcheck disable=SC2016 # sh expands it
    wait_for sh -c 'tail -n 1 "$1" | grep -q "hook: removed$"' - "$BATS_TEST_TMPDIR/loop.1"
    kill -0 "$first"
    kill "$first" "$second"
    # it is asleep in step(), or on its way to the next call
    events_of "$loop.py" | awk '
      NR == 1 { expected = "> <module> (9|10)" }
      NR == 2 { expected = before == "> <module> 10" ? "> step [45]" : "> step 4" }
      NR > 2 { expected = NR % 2 ? "< step 5" : "> step 4" }
      $0 !~ "^" expected "$" { print "expected", expected ":", $0; bad = 1; exit }
      { before = $0 }
      END { exit bad || NR < 50 }'
    refute grep -vE '[: ]loop\.py:(step|<module>):' <(in_order)
    cat "$loop.1"
    tail -n 1 "$loop.1" | grep -q 'hook: removed$'
    [ ! -s "$loop.2" ]
  done
}

@test "several Pythons are traced at once, each by its PID" {
  local first second
  start_loops /usr/bin/python3
  dtrace -q -p "$first" -p "$second" -n "
    python$first:libpython-stap.so.0::function-entry, python$second:libpython-stap.so.0::function-entry
    /copyinstr(arg1) == \"step\"/ { @[pid] = count(); } tick-2s { exit(0); }"
  kill "$first" "$second"
  cat "$trace"
  awk -v first="$first" -v second="$second" '$2 > 50 { seen[$1] = 1 } END { exit !(first in seen && second in seen) }' "$trace"
}

@test "CPython's own test_dtrace passes: its scripts, unmodified, with the shim" {
  local python pythons=
  for python in $(pythons); do
    ! "$python" -c 'import test.test_dtrace' 2>/dev/null || pythons+=" $python"
  done
  [ -n "$pythons" ] || skip "needs a CPython with its test package"
  mkdir "$BATS_TEST_TMPDIR/bin"
  ln -s "$top/test/long/dtrace/dtrace" "$BATS_TEST_TMPDIR/bin/dtrace"
  # dtrace and the program print to the same pipe, so that the program must do it in whole lines.
  unset PYTHONUNBUFFERED
  # shellcheck disable=SC2086
  for python in $(pythons_by_hook $pythons); do
    LD_PRELOAD=$shim PATH=$BATS_TEST_TMPDIR/bin:$PATH unless_left_stopped 120 "$python" -m unittest -v \
      test.test_dtrace.DTraceNormalTests.test_{function_entry_return,line,gc} || { cat "$trace.log" && return 1; }
    [ "$(grep -c '\.\.\. ok$' "$trace.log")" = 3 ]
  done
}

@test "a CPython's own gc, import and audit markers say what the interpreter says" {
  local python pythons=
  for python in $(pythons); do
    [[ $(own_markers "$python" "$(own_file "$python")") != *gc__start*audit* ]] || pythons+=" $python"
  done
  [ -n "$pythons" ] || skip "needs a CPython with markers of its own"
  cat >"$BATS_TEST_TMPDIR/own.py" <<'PY'
import gc
import sys

events = []


def callback(phase, info):
    if phase == "start":
        events.append("gc %d" % info["generation"])
    else:
        events.append("collected %d" % (info["collected"] + info["uncollectable"]))


gc.disable()
gc.collect()
gc.callbacks.append(callback)
import colorsys

gc.collect(0)
gc.collect(1)
cycle = []
cycle.append(cycle)
del cycle
gc.collect()
sys.audit("systemtap.test", 1)
try:
    import no_such_module
except ImportError:
    events.append("found no_such_module 0")
gc.callbacks.clear()
print("import colorsys", "found colorsys 1", *events[:-1], sep="\n")
print("audit systemtap.test", "import no_such_module", events[-1], sep="\n")
PY
  for python in $pythons; do
    echo "$python"
    # shellcheck disable=SC2016
    dtrace -q -c "$python $BATS_TEST_TMPDIR/own.py" -n '
      python$target:::import-find-load-start /copyinstr(arg0) == "colorsys"/ { self->on = 1; }
      python$target:::import-find-load-start /self->on/ { printf("%d\timport %s\n", timestamp, copyinstr(arg0)); }
      python$target:::import-find-load-done /self->on/ { printf("%d\tfound %s %d\n", timestamp, copyinstr(arg0), arg1); }
      python$target:::gc-start /self->on/ { printf("%d\tgc %d\n", timestamp, arg0); }
      python$target:::gc-done /self->on/ { printf("%d\tcollected %d\n", timestamp, arg0); }
      python$target:::audit /self->on && copyinstr(arg0) == "systemtap.test"/ { printf("%d\taudit %s\n", timestamp, copyinstr(arg0)); }
      python$target:::import-find-load-done /copyinstr(arg0) == "no_such_module"/ { self->on = 0; }'
    "$python" "$BATS_TEST_TMPDIR/own.py" >"$BATS_TEST_TMPDIR/expected"
    grep -qx 'collected 1' "$BATS_TEST_TMPDIR/expected"
    in_order | cut -f 2 | diff "$BATS_TEST_TMPDIR/expected" -
  done
}

@test "half a million events come without a loss; a loss fails these tests" {
  cat >"$BATS_TEST_TMPDIR/busy.py" <<'PY'
def call():
    pass


def start():
    for _ in range(250000):
        call()


start()
PY
  LD_PRELOAD=$shim dtrace -s "$script" -c "/usr/bin/python3 $BATS_TEST_TMPDIR/busy.py" start
  [ "$(grep -c :call: "$trace")" = 500000 ]
  LD_PRELOAD=$shim refute dtrace -b 4k -s "$script" -c "/usr/bin/python3 $BATS_TEST_TMPDIR/busy.py" start
  grep ' drops on CPU ' "$trace.log"
}

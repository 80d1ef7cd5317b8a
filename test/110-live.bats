# The real stap on real Pythons: the tapset, the shim and the scripts together.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  need_live_stap
  program=$top/test/workloads/call_stack.py
  system=$(system_python)
}

# What an interpreter sees of the functions of $program, without the shim.
expect() {
  EXPECT=$BATS_TEST_TMPDIR/all "$1" "$top/test/expect.py" "$program"
  grep '^[<>]' "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/expected"
}

# The events of the output of a script that prints as the how-to's does, as expect.py writes them.
events() {
  sed -nE "s,^ *[0-9]+ [^:]*: *(=>|<=) (.*) in $program:([0-9]+)\$,\1 \2 \3,p" "$1" |
    sed 's/^=>/>/; s/^<=/</'
}

# Every line is indented by as many spaces as calls are open.
well_indented() {
  awk '
    match($0, /: *(=>|<=) /) {
      indent = RLENGTH - 4
      if (/ => /) depth++
      if (indent != depth && bad++ < 10) print "expected an indent of", depth ":", $0
      if (/ <= /) depth--
      lines++
    }
    END { if (depth) print "calls left open:", depth; exit bad || depth || !lines }' "$1"
}

# The scripts of CPython's how-to (Doc/howto/instrumentation.rst), as they stand there but for the paths,
# which are $1 and $2.
how_to_marks() {
  cat <<STP
probe process("$1")$2.mark("function__entry") {
     filename = user_string(\$arg1);
     funcname = user_string(\$arg2);
     lineno = \$arg3;

     printf("%s => %s in %s:%d\\n",
            thread_indent(1), funcname, filename, lineno);
}

probe process("$1")$2.mark("function__return") {
    filename = user_string(\$arg1);
    funcname = user_string(\$arg2);
    lineno = \$arg3;

    printf("%s <= %s in %s:%d\\n",
           thread_indent(-1), funcname, filename, lineno);
}
STP
}

how_to_tapset() {
  cat <<'STP'
probe python.function.entry
{
     printf("%s => %s in %s:%d\n",
       thread_indent(1), funcname, filename, lineno);
}

probe python.function.return
{
    printf("%s <= %s in %s:%d\n",
       thread_indent(-1), funcname, filename, lineno);
}
STP
}

how_to_top() {
  cat <<'STP'
global fn_calls;

probe python.function.entry
{
    fn_calls[pid(), filename, funcname, lineno] += 1;
}

probe timer.ms(1000) {
    printf("\033[2J\033[1;1H") /* clear screen */
    printf("%6s %80s %6s %30s %6s\n",
           "PID", "FILENAME", "LINE", "FUNCTION", "CALLS")
    foreach ([pid, filename, funcname, lineno] in fn_calls- limit 20) {
        printf("%6d %80s %6d %30s %6d\n",
            pid, filename, lineno, funcname,
            fn_calls[pid, filename, funcname, lineno]);
    }
    delete fn_calls;
}
STP
}

@test "the how-to's tapset script prints the hierarchy of call_stack.py on every kind of hook" {
  local python output=$BATS_TEST_TMPDIR/output
  how_to_tapset >"$BATS_TEST_TMPDIR/howto.stp"
  for python in $(guest_pythons); do
    echo "$python"
    expect "$python"
    stap -o "$output" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $python $program"
    events "$output" | diff "$BATS_TEST_TMPDIR/expected" -
    well_indented "$output"
  done
}

@test "the how-to's scripts on marks print the same, of the library's file or of a program's library" {
  need_time
  local output=$BATS_TEST_TMPDIR/output python
  python=$(readlink -f "$system")
  expect "$python"
  for process in "$shim:" "$python:.library(\"$shim\")"; do
    how_to_marks "${process%%:*}" "${process#*:}" >"$BATS_TEST_TMPDIR/howto.stp"
    cat "$BATS_TEST_TMPDIR/howto.stp"
    stap -o "$output" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $python $program"
    events "$output" | diff "$BATS_TEST_TMPDIR/expected" -
    well_indented "$output"
  done
}

@test "the how-to's script that is like top counts the calls of each second" {
  local output=$BATS_TEST_TMPDIR/output
  how_to_top >"$BATS_TEST_TMPDIR/howto.stp"
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def often():
    pass


def seldom():
    pass


# not in the same second as its start, which has more functions than are printed
time.sleep(1.1)
for _ in range(14):
    seldom()
    for _ in range(5):
        often()
    time.sleep(0.2)
PY
  stap -o "$output" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/loop.py"
  cat "$output"
  grep -qE '^ +PID +FILENAME +LINE +FUNCTION +CALLS$' <(tr -d '\033' <"$output" | sed 's/^.*H//')
  # the last second is not printed
  awk -v file="$BATS_TEST_TMPDIR/loop.py" '$2 == file { n[$4] += $5; line[$4] = $3 }
    END { exit !(n["seldom"] >= 5 && n["seldom"] <= 14 && n["often"] == 5 * n["seldom"] && line["often"] == 4) }' "$output"
}

# Turns python.X into python.shim.X for an interpreter that has function markers of its own, which pass
# neither frame nor module, and tell of fewer lines.
# usage: from_shim_for PYTHON <SCRIPT
from_shim_for() {
  if grep -qx function__entry <(own_markers "$1" "$(own_file "$1")"); then
    sed 's/python\.\([a-z]*[. "]\)/python.shim.\1/g'
  else
    cat
  fi
}

# Prints each event as expect.py does, with its file before the rest.
all_points() {
  cat <<'STP'
probe python.function.entry, python.function.return {
  printf("%s %s %s %d %s %d\n", name == "python.function.entry" ? ">" : "<", filename, funcname, lineno, modulename, frameptr != 0)
}
probe python.cfunction.entry, python.cfunction.return {
  printf("%s %s %s %d %s\n", name == "python.cfunction.entry" ? "(" : ")", filename, funcname, lineno, modulename)
}
probe python.line { printf(". %s %s %d\n", filename, funcname, lineno) }
probe python.gc.start, python.gc.done, python.import.start, python.import.done, python.audit {
  printf("%s %s\n", name, probestr)
}
STP
}

@test "every probe point is the event of CPython that it says, on every kind of hook" {
  local python mark output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  local semantics=$top/test/workloads/semantics.py
  cat >"$BATS_TEST_TMPDIR/events.py" <<'PY'
import gc
import sys

gc.disable()
gc.collect()
garbage = []
garbage.append(garbage)
del garbage
gc.collect(1)
try:
    import no_such_module
except ImportError:
    pass
import colorsys
open("/dev/null").close()
if hasattr(sys, "audit"):
    sys.audit("own", 1, ("two", None))
PY
  for python in $(guest_pythons); do
    echo "$python"
    all_points | from_shim_for "$python" >"$BATS_TEST_TMPDIR/points.stp"
    EXPECT=$expected "$python" "$top/test/expect.py" "$semantics" >/dev/null
    LINES=1 EXPECT=$expected.lines "$python" "$top/test/expect.py" "$semantics" >/dev/null
    stap -DSTP_NO_OVERLOAD -o "$output" "$BATS_TEST_TMPDIR/points.stp" \
      -c "env LD_PRELOAD=$shim sh -c '$python $semantics; $python $BATS_TEST_TMPDIR/events.py'"
    for mark in '<>' '()'; do
      diff <(grep "^[$mark]" "$expected") <(awk -v file="$semantics" '$2 == file { print $1, $3, $4 }' "$output" | grep "^[$mark]")
    done
    diff "$expected.lines" <(awk -v file="$semantics" '$1 == "." && $2 == file { print $1, $3, $4 }' "$output")
    # functions of the program's own module
    grep -qE "^> $semantics [a-z_]+ [0-9]+ __main__ 1$" "$output"
    refute grep -E '^[<>] .* 0$' "$output"
    grep -qxF "( $BATS_TEST_TMPDIR/events.py collect 9 gc" "$output"
    diff - <(sed 's/^python\.shim/python/' "$output" | grep -xE 'python\.(gc\.(start generation 1|done collected 1)|import\.(start|done) (no_such_module|colorsys).*)' | uniq) <<'EVENTS'
python.gc.start generation 1
python.gc.done collected 1
python.import.start no_such_module
python.import.done no_such_module not found
python.import.start colorsys
python.import.done colorsys found
EVENTS
    case $(version_of "$python") in
      3.[67]) ;;
      *)
        [ "$(grep -cxE "python\.(shim\.)?audit own\(1, \('two', None\)\)" "$output")" = 1 ]
        [ "$(grep -cE "^python\.(shim\.)?audit open\('/dev/null', 'r', [0-9]+\)$" "$output")" = 1 ]
        ;;
    esac
  done
}

@test "python_backtrace() prints the stack that Python itself walks" {
  local python output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  for python in $(guest_pythons); do
    echo "$python"
    from_shim_for "$python" >"$BATS_TEST_TMPDIR/stacks.stp" <<'STP'
probe python.function.entry, python.function.return {
  if (funcname == "here") print_python_backtrace(frameptr)
}
STP
    stap -DSTP_NO_OVERLOAD -o "$output" "$BATS_TEST_TMPDIR/stacks.stp" \
      -c "env PYTHONIOENCODING=utf-8 LD_PRELOAD=$shim $python $top/test/workloads/stacks.py" >"$expected"
    [ "$(wc -l <"$expected")" -gt 200 ]
    diff "$expected" "$output"
  done
}

@test "a stack is cut where it is too deep or too long, and unknown where there is none" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/deep.py" <<'PY'
def deeper(depth):
    if depth:
        deeper(depth - 1)


deeper(100)
PY
  stap -o "$output" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/deep.py" -e '
    global depth
    probe python.function.entry {
      if (funcname != "deeper" || ++depth != 101) next
      print_python_backtrace(frameptr, 2)
      println("--")
      print_python_backtrace(frameptr)
      println("--")
      print_python_backtrace(frameptr, 1000)
      println("--")
      print(python_backtrace(frameptr))
      println("--")
      print(python_backtrace(0), python_backtrace(frameptr, 0), python_backtrace(frameptr + 1), python_backtrace(0xffffffff81000000))
      println(python_argstr(0), python_argstr(0xdead), python_argstr(frameptr))
    }'
  csplit -s -f "$output." "$output" '/^--$/' '{*}'
  local here="File \"$BATS_TEST_TMPDIR/deep.py\", line"
  diff "$output.00" - <<EXPECTED
$here 1, in deeper
$here 3, in deeper
...
EXPECTED
  [ "$(grep -c "^$here" "$output.01")" = 64 ]
  [ "$(tail -n 1 "$output.01")" = ... ]
  [ "$(grep -c "^$here" "$output.02")" = 102 ]
  [ "$(tail -n 1 "$output.02")" = "$here 6, in <module>" ]
  [ "$(grep -cv "^$here [13], in deeper$" "$output.03")" = 2 ]
  [ "$(tail -n 1 "$output.03")" = ... ]
  diff <(tail -n +2 "$output.04") - <<'EXPECTED'
<unknown>
...
<unknown>
<unknown>
<unknown><frame>
EXPECTED
}

@test "python_argstr() is repr() for what audit events pass, from the shim and from CPython's own marker" {
  local python preload output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  local audited=$top/test/workloads/audited.py
  for python in $(guest_pythons); do
    case $(version_of "$python") in 3.[67]) continue ;; esac
    for preload in "$shim" ''; do
      # Only an interpreter with markers of its own has them without the shim.
      [ -n "$preload" ] || grep -qx audit <(own_markers "$python" "$(own_file "$python")") || continue
      echo "$python $preload"
      stap -DMAXSTRINGLEN=1024 -o "$output" -e 'probe python.audit { if (event == "stap") println(probestr) }' \
        -c "env PYTHONIOENCODING=utf-8 LD_PRELOAD=$preload $python -X utf8 $audited" >"$expected"
      [ "$(wc -l <"$expected")" -gt 20 ]
      diff "$expected" "$output"
    done
  done
}

@test "text that has no room ends in dots, in whole lines of a stack and whole characters" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/short.py" <<'PY'
exec(compile("""import sys
def f():
    sys.audit("own", "\u4e2d" * 40, 1)
def caller(depth):
    caller(depth - 1) if depth else f()
caller(3)""", "x.py", "exec"))
PY
  stap -DMAXSTRINGLEN=64 -o "$output" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/short.py" -e '
    probe python.audit { if (event == "own") println(argstr) }
    probe python.function.entry {
      if (funcname == "f") print(python_backtrace(frameptr), "--\n", python_backtrace(frameptr, 1), "--\n")
    }'
  cat "$output"
  # 64 bytes with the NUL: 3 for the dots, 2 before, and as many of three as fit
  grep -qx "('$(printf '\xe4\xb8\xad%.0s' {1..19})\.\.\." "$output"
  diff <(grep -v "^(" "$output") - <<'EXPECTED'
File "x.py", line 2, in f
...
--
File "x.py", line 2, in f
...
--
EXPECTED
}

@test "python_version() tells each process's version, in any probe" {
  need_time
  local output=$BATS_TEST_TMPDIR/output python all
  all=$(pythons_by_hook | tr '\n' ' ')
  cat >"$BATS_TEST_TMPDIR/ask.py" <<'PY'
import os
os.rmdir("/nonexistent")
PY
  # rmdir(2) on x86-64
  # shellcheck disable=SC2016 # it is stap's $syscall
  stap -o "$output" -e 'probe process.syscall { if ($syscall == 84) println("[", python_version(), "]") }' \
    -c "sh -c 'for python in $all; do LD_PRELOAD=$shim \$python $BATS_TEST_TMPDIR/ask.py; done 2>/dev/null; rmdir /nonexistent
      $system $BATS_TEST_TMPDIR/ask.py 2>/dev/null; true'"
  for python in $all; do
    echo "[$("$python" -c 'import sys; print(sys.version.split()[0])')]"
  done >"$BATS_TEST_TMPDIR/expected"
  printf '[]\n[%s]\n' "$(version_of "$system")" >>"$BATS_TEST_TMPDIR/expected"
  diff "$BATS_TEST_TMPDIR/expected" "$output"
}

@test "pyflow shows the functions of one file, indented by depth" {
  local output=$BATS_TEST_TMPDIR/output
  expect "$system"
  stap -o "$output" "$top/scripts/pyflow.stp" -c "env LD_PRELOAD=$shim $system $program" call_stack
  cat "$output"
  events "$output" | diff "$BATS_TEST_TMPDIR/expected" -
  well_indented "$output"
  [ "$(grep -cE '=>|<=' "$output")" = "$(wc -l <"$BATS_TEST_TMPDIR/expected")" ]
}

@test "pyflow -x follows one running process and no other" {
  local output=$BATS_TEST_TMPDIR/output pids
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.02)


end = time.time() + 60
while time.time() < end:
    step()
PY
  # two of them in the guest, or here
  pids=$("$top/test/vm/guest" exec -- sh -c "for i in 1 2; do
    LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/loop.py >/dev/null 2>&1 & echo \$!; done")
  # shellcheck disable=SC2086
  set -- $pids
  stap -o "$output" -x "$1" -E 'probe timer.s(2) { exit() }' "$top/scripts/pyflow.stp"
  "$top/test/vm/guest" exec -- kill "$1" "$2"
  head "$output"
  # the module's frame is entered when the tracer comes
  [ "$(grep -c "python3[.0-9]*($1): => <module> in $BATS_TEST_TMPDIR/loop.py:" "$output")" = 1 ]
  [ "$(grep -c "python3[.0-9]*($1):  => step in $BATS_TEST_TMPDIR/loop.py:4$" "$output")" -ge 5 ]
  [ "$(grep -c "python3[.0-9]*($1):  <= step in $BATS_TEST_TMPDIR/loop.py:5$" "$output")" -ge 5 ]
  refute grep -v "python3[.0-9]*($1)" "$output"
}

@test "without -c and -x every Python that runs is seen, whichever its version" {
  local output=$BATS_TEST_TMPDIR/output all pids
  all=$(pythons_by_hook | tr '\n' ' ')
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.02)


while True:
    step()
PY
  pids=$("$top/test/vm/guest" exec -- sh -c "for python in $all; do
    LD_PRELOAD=$shim timeout 300 \$python $BATS_TEST_TMPDIR/loop.py >/dev/null 2>&1 & done
    for i in \$(seq 300); do
      pids=\$(pgrep -f '^[^ ]*python[^ ]* $BATS_TEST_TMPDIR/loop.py')
      [ \$(echo \$pids | wc -w) != $(wc -w <<<"$all") ] || break
      sleep 0.1
    done
    echo \$pids")
  [ "$(wc -w <<<"$pids")" = "$(wc -w <<<"$all")" ]
  stap -o "$output" -e '
    global entries, returns
    probe python.function.entry { if (funcname == "step") entries[pid(), python_version()]++ }
    probe python.function.return { if (funcname == "step") returns[pid()]++ }
    probe timer.s(4) { exit() }
    probe end { foreach ([p+, v] in entries) if (entries[p, v] >= 5 && returns[p] >= 5) println(p, " ", v) }'
  # shellcheck disable=SC2086
  "$top/test/vm/guest" exec -- kill $pids
  cat "$output"
  diff <(tr ' ' '\n' <<<"$pids" | sort) <(cut -d' ' -f1 "$output" | sort)
  diff <(for python in $all; do "$python" -c 'import sys; print(sys.version.split()[0])'; done | sort) \
    <(cut -d' ' -f2 "$output" | sort)
}

@test "CPython's own function and line markers give the same, with the shim and without it" {
  local python file preload found='' output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  cat >"$BATS_TEST_TMPDIR/native.stp" <<'STP'
probe python.function.entry { printf("> %s %s %d %d\n", filename, funcname, lineno, frameptr) }
probe python.function.return { printf("< %s %s %d %d\n", filename, funcname, lineno, frameptr) }
probe python.line { printf(". %s %s %d\n", filename, funcname, lineno) }
STP
  for python in $(pythons); do
    file=$(own_file "$python")
    grep -qx line <(own_markers "$python" "$file") && [ "$(version_of "$python")" != 3.11 ] || continue
    found=1
    tapset=$tapsets/tapset
    if [[ $file != /usr/bin/* ]]; then
      tapset=$BATS_TEST_TMPDIR/tapset
      cp -a "$tapsets/tapset" "$tapset"
      rm "$tapset/python_local.stp"
      echo "@python_interpreter_310(\"$file\")" >"$tapset/python_local.stp"
    fi
    expect "$python"
    LINES=1 EXPECT=$expected.lines "$python" "$top/test/expect.py" "$program" >/dev/null
    for preload in "$shim" ''; do
      echo "$python $preload"
      stap_with_tapset -DSTP_NO_OVERLOAD -o "$output" "$BATS_TEST_TMPDIR/native.stp" \
        -c "env LD_PRELOAD=$preload $python $program"
      diff "$expected" <(awk -v file="$program" '/^[<>]/ && $2 == file { print $1, $3, $4 }' "$output")
      diff "$expected.lines" <(awk -v file="$program" '/^[.]/ && $2 == file { print $1, $3, $4 }' "$output")
      refute grep -E '^[<>] .* [^0]$' "$output"
    done
  done
  [ -n "$found" ] || skip "needs a CPython 3.6 to 3.10 with markers of its own, as Debian 11 has it (make check-distros)"
}

@test "two sessions at once see the same, each all of it" {
  local first=$BATS_TEST_TMPDIR/first second=$BATS_TEST_TMPDIR/second tracer
  expect "$system"
  how_to_tapset >"$BATS_TEST_TMPDIR/howto.stp"
  # ends when the program of the second has
  stap -o "$first" "$BATS_TEST_TMPDIR/howto.stp" "$program" -E '
    global done
    probe python.function.return { if (filename == @1 && funcname == "<module>") done = 1 }
    probe timer.ms(200) { if (done) exit() }' &
  tracer=$!
  # it has begun: its module is loaded
  for _ in {1..200}; do
    [ -z "$("$top/test/vm/guest" exec -- sh -c 'grep -l "^stap_" /proc/modules' 2>/dev/null)" ] || break
    sleep 0.1
  done
  sleep 1
  stap -o "$second" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $system $program"
  wait "$tracer"
  events "$second" | diff "$BATS_TEST_TMPDIR/expected" -
  events "$first" | diff "$BATS_TEST_TMPDIR/expected" -
}

@test "processes that fork, exec and end in the middle of it are seen, no event more or less" {
  local output=$BATS_TEST_TMPDIR/output python name cases folder=$BATS_TEST_TMPDIR
  cases="fork fork_that_ends_in_order fork_in_a_thread multiprocessing_spawn execute leaves_at_once threads"
  for python in "$system" ${EVERY:+"$(pythons_by_hook | tail -n 1)"}; do
    echo "$python"
    for name in $cases; do
      cp "$top/test/workloads/processes.py" "$folder/$name.py"
    done
    stap -o "$output" -e '
      global entries, returns
      probe python.function.entry { if (funcname == "marked") entries[filename]++ }
      probe python.function.return { if (funcname == "marked") returns[filename]++ }
      probe end { foreach (f in entries) println(f, " ", entries[f], " ", returns[f]) }' \
      -c "env LD_PRELOAD=$shim sh -c 'for name in $cases; do $python -W ignore $folder/\$name.py \$name >$folder/\$name.plain 2>&1; done; true'"
    cat "$output"
    for name in $cases; do
      grep -xF "$folder/$name.py $(marked_by "$name") $(marked_by "$name")" "$output"
    done
  done
}

@test "a process that is killed in the middle of a probed call takes nothing with it" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/last.py" <<'PY'
import os
import signal


def call(left):
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)


for left in range(2000, -1, -1):
    call(left)
PY
  stap -o "$output" -e '
    global entries, returns
    probe python.function.entry { if (funcname == "call") entries[pid()] <<< lineno }
    probe python.function.return { if (funcname == "call") returns[pid()] <<< lineno }
    probe end { foreach (p in entries) println(@count(entries[p]), " ", @count(returns[p])) }' \
    -c "sh -c 'for i in 1 2 3; do LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/last.py; done; true'"
  cat "$output"
  [ "$(grep -cx '2001 2000' "$output")" = 3 ]
}

# A probe point for each marker, on the driver.
@test "the tapset shows the driver's events as they are described, odd ones too" {
  local output=$BATS_TEST_TMPDIR/output events=$BATS_TEST_TMPDIR/events
  cat >"$events" <<'EVENTS'
function__entry "/a.py" "f" 3 0x7f0000001230 "\xc3\xa4\t"
function__entry NULL "" -1 NULL 0xdead
function__entry 0xffffffff81000000 "x" * 10000 -2147483648 0xffffffffffffffff NULL
function__return "/\xff\xfe.py" "\x1b[31m\n" 2147483647 0x1 "m"
cfunction__entry "/a.py" "len" 7 "builtins"
cfunction__return "/a.py" "upper" -7 NULL
cfunction__return 0xdead "append" 8 0xdead
line "/a.py" "f" 4
line NULL NULL 0
gc__start -2147483648
gc__start 2
gc__done 9223372036854775807
gc__done -9223372036854775808
import__find__load__start "a.b"
import__find__load__start NULL
import__find__load__done "a.b" 1
import__find__load__done 0xdead 0
audit "open" NULL
audit 0xdead 0xdead
audit "e" 0xffffffff81000000
10000 * line "/b.py" "g" 5
EVENTS
  for source in '' shim.; do
    tapset=$tapsets/test/tapset stap_with_tapset -o "$output" -c "$driver $events" -e "
      global lines
      probe python.${source}function.entry, python.${source}function.return {
        printf(\"%s|%s|%s|%d|%d|%x|%s|\\n\", name, filename, substr(funcname, 0, 6), strlen(funcname) > 500, lineno, frameptr, modulename)
      }
      probe python.${source}cfunction.entry, python.${source}cfunction.return { printf(\"%s|%s|%s|%d|%s|%s|\\n\", name, filename, funcname, lineno, modulename, probestr) }
      probe python.${source}line {
        if (filename == \"/b.py\") lines[funcname, lineno]++
        else printf(\"%s|%s|%s|%d|%s|\\n\", name, filename, funcname, lineno, probestr)
      }
      probe python.${source}gc.start { printf(\"%s|%d|%s|\\n\", name, generation, probestr) }
      probe python.${source}gc.done { printf(\"%s|%d|%s|\\n\", name, collected, probestr) }
      probe python.${source}import.start { printf(\"%s|%s|%s|\\n\", name, modulename, probestr) }
      probe python.${source}import.done { printf(\"%s|%s|%d|%s|\\n\", name, modulename, found, probestr) }
      probe python.${source}audit { printf(\"%s|%s|%x|%s|%s|\\n\", name, event, args, argstr, probestr) }
      probe end { foreach ([f, l] in lines) println(f, l, \" \", lines[f, l]) }"
    diff "$output" - <<EXPECTED
python.${source}function.entry|/a.py|f|0|3|7f0000001230|$(printf '\xc3\xa4\t')|
python.${source}function.entry|||0|-1|0||
python.${source}function.entry||xxxxxx|1|-2147483648|ffffffffffffffff||
python.${source}function.return|$(printf '/\xff\xfe.py|\x1b[31m\n')
|0|2147483647|1|m|
python.${source}cfunction.entry|/a.py|len|7|builtins|builtins.len(/a.py:7)|
python.${source}cfunction.return|/a.py|upper|-7||.upper(/a.py:-7)|
python.${source}cfunction.return||append|8||.append(:8)|
python.${source}line|/a.py|f|4|f(/a.py:4)|
python.${source}line|||0|(:0)|
python.${source}gc.start|-2147483648|generation -2147483648|
python.${source}gc.start|2|generation 2|
python.${source}gc.done|9223372036854775807|collected 9223372036854775807|
python.${source}gc.done|-9223372036854775808|collected -9223372036854775808|
python.${source}import.start|a.b|a.b|
python.${source}import.start|||
python.${source}import.done|a.b|1|a.b found|
python.${source}import.done||0| not found|
python.${source}audit|open|0||open|
python.${source}audit||dead|<unknown>|<unknown>|
python.${source}audit|e|ffffffff81000000|<unknown>|e<unknown>|
g5 10000
EXPECTED
  done
}

@test "a string on a page that isn't in memory is empty, and the session goes on" {
  local folder=$BATS_TEST_TMPDIR output=$BATS_TEST_TMPDIR/output
  cat >"$folder/pages.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <fcntl.h>
int main(int argc, char **argv)
{
    int file = open(argv[1], O_RDONLY);
    char *untouched = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE, file, 0);
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *audited = strdup("untouched"), *end = strdup("the end");
    memset(two, 'x', 4096); /* a string that goes on in a page that was never touched */
    STAP_PROBE1(python, import__find__load__start, untouched);
    STAP_PROBE1(python, import__find__load__start, forbidden);
    STAP_PROBE1(python, import__find__load__start, two + 4000);
    STAP_PROBE1(python, import__find__load__start, two + 4096);
    STAP_PROBE2(python, audit, audited, untouched);
    STAP_PROBE1(python, import__find__load__start, end);
    return argc < 0;
}
C
  gcc -o "$folder/pages" "$folder/pages.c"
  printf 'contents' >"$folder/file"
  cp -a "$tapsets/tapset" "$folder/tapset"
  awk -v shim="$folder/pages" -f "$top/tapset/paths.awk" "$top/probes/native.list" >"$folder/tapset/python_paths.stpm"
  tapset=$folder/tapset stap_with_tapset -o "$output" -c "$folder/pages $folder/file" -e '
    probe python.import.start { println("[", modulename, "]") }
    probe python.audit { println(probestr) }'
  diff "$output" - <<'EXPECTED'
[]
[]
[]
[]
untouched<unknown>
[the end]
EXPECTED
}

@test "the examples of the man pages run" {
  local name file command folder=$BATS_TEST_TMPDIR/examples output=$BATS_TEST_TMPDIR/output count=0
  examples "$folder" >"$BATS_TEST_TMPDIR/list"
  while IFS=$'\t' read -r name file command <&9; do
    echo "$name: $command"
    # as it is written, but for how the shim is loaded; python3 is the system's
    command=${command//SCRIPT/$file}
    command=${command//stap-python run/env LD_PRELOAD=$shim}
    PATH=/usr/bin:$PATH eval "$command" </dev/null >"$output" 2>"$output.err"
    cat "$output" "$output.err" | head -n 20
    refute grep -E 'ERROR|WARNING: [^K]' "$output.err"
    [ "$name" = python.import.done ] || [ "$name" = python.cfunction.return ] || [ -s "$output" ]
    count=$((count + 1))
  done 9< <(some 8 <"$BATS_TEST_TMPDIR/list")
  [ "$count" -ge 2 ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -ge 12 ]
}

# The hierarchy of a program's calls, as CPython's how-to and pyflow print it.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  program=$top/test/workloads/call_stack.py
  system=$(system_python)
}

# The events in the output of a script that prints like the how-to's, as expect.py writes them.
events() {
  sed -nE "s,^ *[0-9]+ [^:]*: *(=>|<=) (.*) in $program:([0-9]+)\$,\1 \2 \3,p" "$1" |
    sed 's/^=>/>/; s/^<=/</'
}

# Checks that every line is indented by as many spaces as calls are open.
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

# The scripts of CPython's how-to (Doc/howto/instrumentation.rst), word for word, except the paths, which
# are $1 and $2.
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
  need_time
  local python output=$BATS_TEST_TMPDIR/output
  how_to_tapset >"$BATS_TEST_TMPDIR/howto.stp"
  for python in $(guest_pythons); do
    echo "$python"
    expect_events "$python" "$program"
    stap -o "$output" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $python $program"
    events "$output" | diff "$expected.functions" -
    well_indented "$output"
  done
}

@test "the how-to's scripts on marks print the same, of the library's file or of a program's library" {
  need_time
  local output=$BATS_TEST_TMPDIR/output python
  python=$(readlink -f "$system")
  expect_events "$python" "$program"
  for process in "$shim:" "$python:.library(\"$shim\")"; do
    how_to_marks "${process%%:*}" "${process#*:}" >"$BATS_TEST_TMPDIR/howto.stp"
    cat "$BATS_TEST_TMPDIR/howto.stp"
    stap -o "$output" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $python $program"
    events "$output" | diff "$expected.functions" -
    well_indented "$output"
  done
}

@test "the how-to's script that is like top counts the calls of each second" {
  need_time
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
  # the last second is not printed; the one before may end within the five calls
  awk -v file="$BATS_TEST_TMPDIR/loop.py" '$2 == file { n[$4] += $5; line[$4] = $3 }
    END { exit !(n["seldom"] >= 5 && n["seldom"] <= 14 && n["often"] >= 5 * (n["seldom"] - 1) && n["often"] <= 5 * n["seldom"] && line["often"] == 4) }' "$output"
}

@test "pyflow shows the functions of one file, indented by depth" {
  local output=$BATS_TEST_TMPDIR/output
  expect_events "$system" "$program"
  stap -o "$output" "$top/scripts/pyflow.stp" -c "env LD_PRELOAD=$shim $system $program" '*/call_stack.py:*'
  cat "$output"
  events "$output" | diff "$expected.functions" -
  well_indented "$output"
  [ "$(grep -cE '=>|<=' "$output")" = "$(wc -l <"$expected.functions")" ]
}

@test "pyflow with cfunctions has the functions in C that those of a file call, in pairs also where they raise" {
  local output=$BATS_TEST_TMPDIR/output python file=$BATS_TEST_TMPDIR/in_c.py
  cat >"$file" <<'PY'
import math


def key(value):
    return math.floor(value)


def calls():
    sorted([2.5, 1.5], key=key)
    try:
        math.sqrt(-1)
    except ValueError:
        pass
    "x".upper()


calls()
PY
  for python in $(guest_pythons); do
    echo "$python"
    stap -o "$output" "$top/scripts/pyflow.stp" cfunctions '*/in_c.py:calls */in_c.py:key' -c "env LD_PRELOAD=$shim $python $file"
    cat "$output"
    diff - <(sed -nE "s,^ *[0-9]+ [^:]*:( *(=>|<=) .*) in $file:([0-9]+)\$,\1 \3,p" "$output") <<'EOF'
 => calls 8
  => builtins.sorted (C) 9
   => key 4
    => math.floor (C) 5
    <= math.floor (C) 5
   <= key 5
   => key 4
    => math.floor (C) 5
    <= math.floor (C) 5
   <= key 5
  <= builtins.sorted (C) 9
  => math.sqrt (C) 11
  <= math.sqrt (C) 11
  => upper (C) 14
  <= upper (C) 14
 <= calls 14
EOF
  done
}

@test "two sessions at once see the same, each all of it" {
  need_time
  local first=$BATS_TEST_TMPDIR/first second=$BATS_TEST_TMPDIR/second tracer
  expect_events "$system" "$program"
  how_to_tapset >"$BATS_TEST_TMPDIR/howto.stp"
  # ends when the program of the second has returned
  stap -o "$first" "$BATS_TEST_TMPDIR/howto.stp" "$program" -E '
    global done
    probe python.function.return { if (filename == @1 && funcname == "<module>") done = 1 }
    probe timer.ms(200) { if (done) exit() }' &
  tracer=$!
  # until its module is loaded
  for _ in {1..200}; do
    [ -z "$(in_guest sh -c 'grep -l "^stap_" /proc/modules' 2>/dev/null)" ] || break
    sleep 0.1
  done
  sleep 1
  stap -o "$second" "$BATS_TEST_TMPDIR/howto.stp" -c "env LD_PRELOAD=$shim $system $program"
  wait "$tracer"
  events "$second" | diff "$expected.functions" -
  events "$first" | diff "$expected.functions" -
}

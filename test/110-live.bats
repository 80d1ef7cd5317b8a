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

# The script of CPython's how-to (Doc/howto/instrumentation.rst, "Tapsets").
how_to() {
  cat >"$BATS_TEST_TMPDIR/howto.stp" <<'STP'
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
  echo "$BATS_TEST_TMPDIR/howto.stp"
}

@test "the how-to's script, unmodified, prints the hierarchy of call_stack.py on every kind of hook" {
  local python output=$BATS_TEST_TMPDIR/output
  for python in $(pythons_by_hook); do
    echo "$python"
    expect "$python"
    stap -o "$output" "$(how_to)" -c "env LD_PRELOAD=$shim $python $program"
    events "$output" | diff "$BATS_TEST_TMPDIR/expected" -
    well_indented "$output"
  done
}

@test "functions, C functions, lines, collections, imports and audit events: all ten markers" {
  local python mark output=$BATS_TEST_TMPDIR/output expected=$BATS_TEST_TMPDIR/expected
  cat >"$BATS_TEST_TMPDIR/markers.stp" <<'STP'
probe process(@1).mark("function__entry"), process(@1).mark("function__return") {
  printf("%s %s %s %d\n", $$name == "function__entry" ? ">" : "<", user_string2($arg1, ""), user_string2($arg2, ""), $arg3)
}
probe process(@1).mark("cfunction__entry"), process(@1).mark("cfunction__return") {
  printf("%s %s %s %d\n", $$name == "cfunction__entry" ? "(" : ")", user_string2($arg1, ""), user_string2($arg2, ""), $arg3)
}
probe process(@1).mark("line") { printf(". %s %s %d\n", user_string2($arg1, ""), user_string2($arg2, ""), $arg3) }
probe process(@1).mark("gc__start") { printf("gc %d\n", $arg1) }
probe process(@1).mark("gc__done") { printf("collected %d\n", $arg1) }
probe process(@1).mark("import__find__load__start") { printf("import %s\n", user_string2($arg1, "")) }
probe process(@1).mark("import__find__load__done") { printf("found %s %d\n", user_string2($arg1, ""), $arg2) }
probe process(@1).mark("audit") { printf("audit %s\n", user_string2($arg1, "")) }
STP
  local semantics=$top/test/workloads/semantics.py
  for python in $(pythons_by_hook); do
    echo "$python"
    EXPECT=$expected "$python" "$top/test/expect.py" "$semantics" >/dev/null
    LINES=1 EXPECT=$expected.lines "$python" "$top/test/expect.py" "$semantics" >/dev/null
    stap -DSTP_NO_OVERLOAD -o "$output" "$BATS_TEST_TMPDIR/markers.stp" "$shim" \
      -c "env PYTHON_STAP=all LD_PRELOAD=$shim $python $semantics"
    for mark in '<>' '()'; do
      diff <(grep "^[$mark]" "$expected") <(awk -v file="$semantics" '$2 == file { print $1, $3, $4 }' "$output" | grep "^[$mark]")
    done
    diff "$expected.lines" <(awk -v file="$semantics" '$1 == "." && $2 == file { print $1, $3, $4 }' "$output")
    for event in 'gc 2' 'collected [0-9]+' 'import functools' 'found functools 1'; do
      grep -qxE "$event" "$output"
    done
    case $(version_of "$python") in
      3.[67]) ;;
      *) grep -qx 'audit compile' "$output" ;;
    esac
  done
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

@test "frameptr is not 0, modulename is __main__" {
  stap -o "$BATS_TEST_TMPDIR/output" -c "env LD_PRELOAD=$shim $system $program" \
    -e 'probe python.function.entry { printf("%s %d %p %s\n", funcname, lineno, frameptr, modulename) }'
  grep -xE 'area 8 0x[0-9a-f]{5,} __main__' "$BATS_TEST_TMPDIR/output"
  refute grep -E ' 0x0 ' "$BATS_TEST_TMPDIR/output"
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

@test "several Pythons are traced at the same time without -c or -x" {
  local output=$BATS_TEST_TMPDIR/output all
  all=$(pythons_by_hook | tr '\n' ' ')
  stap -o "$output" -e '
    global seen
    probe python.function.entry { if (funcname == "area") seen[pid()]++ }
    probe end { foreach (p+ in seen) println(seen[p]) }' \
    -c "sh -c 'for python in $all; do LD_PRELOAD=$shim \$python $program & done; wait'"
  cat "$output"
  [ "$(grep -xc 2 "$output")" = "$(wc -w <<<"$all")" ]
}

@test "the tapset shows the driver's events as they are described, odd ones too" {
  local output=$BATS_TEST_TMPDIR/output events=$BATS_TEST_TMPDIR/events
  cat >"$events" <<'EVENTS'
function__entry "/a.py" "f" 3 0x7f0000001230 "\xc3\xa4\t"
function__entry NULL "" -1 NULL 0xdead
function__entry 0xffffffff81000000 "x" * 10000 -2147483648 0xffffffffffffffff NULL
10000 * function__return "/a.py" "f" 2147483647 0x1 "m"
EVENTS
  tapset=$tapsets/test/tapset stap_with_tapset -o "$output" -c "$driver $events" -e '
    global returns
    probe python.shim.function.entry {
      printf("%s|%s|%d|%d|%x|%s|\n", filename, substr(funcname, 0, 3), strlen(funcname) > 500, lineno, frameptr, modulename)
    }
    probe python.shim.function.return { returns[lineno, frameptr]++ }
    probe end { foreach ([line, frame] in returns) println(line, " ", frame, " ", returns[line, frame]) }'
  diff "$output" - <<EXPECTED
/a.py|f|0|3|7f0000001230|$(printf '\xc3\xa4\t')|
||0|-1|0||
|xxx|1|-2147483648|ffffffffffffffff||
2147483647 1 10000
EXPECTED
}

# The driver: the language of its descriptions, and its events, which a tracer sees as described.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  events=$BATS_TEST_TMPDIR/events
}

# A bpftrace program that prints the driver's events of all markers, with their arguments between bars, whose
# types are in the driver's --list: the first six, which is as many as bpftrace 0.17 knows.
all_events() {
  "$driver" --list | awk -v driver="$driver" -F '[(),]' '{
    format = values = ""
    for (i = 2; i < NF && i < 8; i++) {
      format = format "|" ($i ~ /char \*/ ? "%s" : $i ~ /\*/ ? "0x%lx" : $i ~ /long/ ? "%ld" : "%d")
      values = values ", " ($i ~ /char \*/ ? "str(arg" i - 2 ")" : "arg" i - 2)
    }
    printf "usdt:%s:python:%s { printf(\"%s%s|\\n\"%s); }\n", driver, $1, $1, format, values
  }'
}

# Runs bpftrace with PROGRAM while the driver replays $events, which it begins when all markers of PROGRAM are
# probed.
# usage: replay PROGRAM [OPTION...]
replay() {
  local program=$1 waits
  shift
  mapfile -t waits < <(grep -oE 'python:[a-z_]+' <<<"$program" | sed 's/python:/--wait=/')
  bpftrace_while "$program" "$driver" "${waits[@]}" "$@" "$events"
}

# What bpftrace printed, without the empty lines with which it ends.
printed() {
  sed '/^$/d' "$trace"
}

# Checks that the driver refuses the lines $2..., of which the last is wrong, in one line on stderr with the
# words $1, and fires nothing.
refuses() {
  local cause=$1 status=0
  shift
  printf '%s\n' 'gc__start 1' "$@" >"$events"
  echo "$*"
  "$driver" --always --count "$events" >"$events.out" 2>"$events.err" || status=$?
  cat "$events.err"
  [ "$status" = 2 ]
  [ ! -s "$events.out" ]
  [ "$(wc -l <"$events.err")" = 1 ]
  [[ $(cat "$events.err") == "driver: $events:$(($# + 1)): "*"$cause"* ]]
}

@test "--list shows the markers and the arguments of python.d" {
  diff <(sed -n 's/^ *probe \(.*\);$/\1/p' "$top/probes/python.d") <("$driver" --list)
}

@test "the marker sites are those of the shim" {
  need readelf
  notes() { readelf --wide --notes "$1" | grep -E 'Provider:|Name:|Arguments:'; }
  diff <(notes "$shim") <(notes "$driver")
  [ "$(notes "$driver" | grep Name: | sort -u | wc -l)" = "$("$driver" --list | wc -l)" ]
}

@test "each marker arrives with each kind of argument as given" {
  can_bpftrace
  cat >"$events" <<'EVENTS'
# the usual
function__entry "/a b/c.py" "<module>" 1 0x7f0000001230 "__main__"
function__return "/a b/c.py" "\xc3\xa4\xff" 2147483647 0xffffffffffffffff "a#\"\\\tb" 0x7f0000001240 NULL
line "/a.py" "f" -2147483648
cfunction__entry "/a.py" "print" 0 "builtins"
cfunction__return	"/a.py"	"print"	-1	"builtins"
gc__start -1
gc__done -9223372036854775808
gc__done 9223372036854775807
import__find__load__start "a.b"
import__find__load__done "a.b" -7
audit "open" 0x1
# NULL, no text, bad pointers
function__entry NULL "" 1 NULL 0x10
function__return 0xffffffff81000000 NULL 2 0x0 NULL NULL 0x20
line 0xdead 0xffffffffffffffff 3
cfunction__entry NULL NULL 4 NULL # all of them
cfunction__return 0x1 0x1 5 0x1
  import__find__load__start NULL
import__find__load__done 0x7fffffffffff 0
audit NULL NULL
EVENTS
  BPFTRACE_STRLEN=64 replay "$(all_events)" # five strings in one event
  diff <(printed) - <<EXPECTED
function__entry|/a b/c.py|<module>|1|0x7f0000001230|__main__|
function__return|/a b/c.py|$(printf '\xc3\xa4\xff')|2147483647|0xffffffffffffffff|a#"\\$(printf '\t')b|0x7f0000001240|
line|/a.py|f|-2147483648|
cfunction__entry|/a.py|print|0|builtins|
cfunction__return|/a.py|print|-1|builtins|
gc__start|-1|
gc__done|-9223372036854775808|
gc__done|9223372036854775807|
import__find__load__start|a.b|
import__find__load__done|a.b|-7|
audit|open|0x1|
function__entry|||1|0x0||
function__return|||2|0x0||0x0|
line|||3|
cfunction__entry|||4||
cfunction__return|||5||
import__find__load__start||
import__find__load__done||0|
audit||0x0|
EXPECTED
}

@test "a string of 10,000 characters arrives whole" {
  can_bpftrace
  echo 'import__find__load__start "0123456789" * 1000' >"$events"
  replay "usdt:$driver:python:import__find__load__start
    { printf(\"%s %s %d\n\", str(arg0, 15), str(arg0 + 9993), *(uint8 *)(arg0 + 10000)); }"
  [ "$(printed)" = "012345678901234 3456789 0" ]
}

@test "steps are repeated, in the order in which they stand" {
  can_bpftrace
  cat >"$events" <<'EVENTS'
2 * {
  gc__start 1
  2 * {
    gc__start 2
    2*gc__start 3
  }
}
0 * {
  gc__start 4
}
0 * gc__start 5
gc__start 6
EVENTS
  replay "usdt:$driver:python:gc__start { printf(\"%d\n\", arg0); }"
  [ "$(printed | xargs)" = "1 2 3 3 2 3 3 1 2 3 3 2 3 3 6" ]
}

@test "the site that events pass is the kernel's: of five bytes from Linux 6.18 on, else of one" {
  can_bpftrace
  need readelf objdump
  local site expected=90
  [ "$(printf '6.18\n%s\n' "$(uname -r)" | sort -V | head -n 1)" != 6.18 ] || expected='0f 1f 44 00 00'
  [ "$(uname -m)" = x86_64 ] || skip "needs x86_64: it compares that machine's nops"
  echo '3 * gc__start 1' >"$events"
  replay "usdt:$driver:python:gc__start { printf(\"%x\n\", reg(\"ip\") & 0xfff); }"
  [ "$(printed | wc -l)" = 3 ]
  [ "$(printed | sort -u | wc -l)" = 1 ]
  site=$(readelf --wide --notes "$driver" | grep -A 1 'Name: gc__start' | grep -oE "Location: 0x[0-9a-f]*$(printed | head -n 1)\b" | cut -d' ' -f2)
  objdump -d --start-address="$site" --stop-address=$((site + 5)) "$driver" | grep -E "^ +[0-9a-f]+:\s+${expected}\s"
}

@test "several descriptions are replayed one after the other, standard input among them" {
  can_bpftrace
  echo 'gc__start 1' >"$events"
  echo 'gc__start 3' >"$events.more"
  bpftrace_while "usdt:$driver:python:gc__start { printf(\"%d\n\", arg0); }" \
    "$driver" --wait "$events" - "$events.more" <<<'gc__start 2'
  [ "$(printed | xargs)" = "1 2 3" ]
}

@test "of a million events a million arrive" {
  can_bpftrace
  local description
  for description in '1000000 * line "/a.py" "f" 1' $'1000 * {\nline "/a.py" "f" 1\n999 * line "/a.py" "f" 2\n}'; do
    echo "$description" >"$events"
    replay "usdt:$driver:python:line { @ = count(); }" --count >"$events.counts"
    grep -x '@: 1000000' "$trace"
    [ "$(cat "$events.counts")" = "line 1000000 fired, 0 passed over" ]
  done
}

@test "events that nobody probes are passed over, unless it is told to fire always" {
  can_bpftrace
  printf '%s\n' '1000000 * line "/a.py" "f" 1' '3 * gc__start 2' >"$events"
  # A probe in the marker's function, before the site, raises no semaphore.
  local program="uprobe:$driver:marker_line { @line = count(); } usdt:$driver:python:gc__start { @gc = count(); }"
  replay "$program" --count >"$events.counts"
  refute grep '@line: [1-9]' "$trace"
  grep -x '@gc: 3' "$trace"
  diff "$events.counts" - <<<$'line 0 fired, 1000000 passed over\ngc__start 3 fired, 0 passed over'
  replay "$program" --always --count >"$events.counts"
  grep -x '@line: 1000000' "$trace"
  grep -x '@gc: 3' "$trace"
  diff "$events.counts" - <<<$'line 1000000 fired, 0 passed over\ngc__start 3 fired, 0 passed over'
}

@test "--wait begins when the tracer has come" {
  can_bpftrace
  printf '%s\n' 'gc__start 1' 'gc__done 2' >"$events"
  local option pid
  for option in --wait '--wait=gc__start --wait=gc__done'; do
    echo "$option"
    # shellcheck disable=SC2086
    "$driver" $option --timeout=30 "$events" 3>&- &
    pid=$!
    bpftrace_while "usdt:$driver:python:gc__start { printf(\"start %d\n\", arg0); }
      usdt:$driver:python:gc__done { printf(\"done %d\n\", arg0); }" tail --pid="$pid" -s 0.1 -f /dev/null
    wait "$pid"
    diff <(printed) - <<<$'start 1\ndone 2'
  done
}

@test "--wait gives up in one line, and fires nothing, when the marker's tracer doesn't come" {
  can_bpftrace
  printf '%s\n' 'gc__start 1' 'gc__done 2' >"$events"
  local status=0
  bpftrace_while "usdt:$driver:python:gc__start { printf(\"start\n\"); }" \
    "$driver" --wait=gc__start --wait=gc__done --timeout=1 "$events" 2>"$events.err" || status=$?
  [ "$status" = 1 ]
  [ "$(wc -l <"$events.err")" = 1 ]
  grep 'no tracer attached within 1 s' "$events.err"
  [ -z "$(printed)" ]
}

@test "sleep lasts" {
  local start=${EPOCHREALTIME/./}
  "$driver" <<<'2 * sleep 120'
  [ $((${EPOCHREALTIME/./} - start)) -ge 240000 ]
}

@test "a bad description fires nothing and is one line that names file, line, cause and cure" {
  refuses 'nosuch is not a marker: driver --list' 'nosuch 1'
  refuses '??]0;x? is not a marker' $'\e\x7f]0;x\a'
  refuses 'lacks its argument 3, "int lineno": add it' '' '# one line more' 'line "a" "b"'
  refuses '2 is too much' 'gc__start 1 2'
  refuses '"int generation": give a number from -2147483648 to 2147483647' 'gc__start 2147483648'
  refuses '"int generation": give a number from' 'gc__start -2147483649'
  refuses 'more than 64 bits' 'gc__done 9223372036854775808'
  refuses 'more than 64 bits' 'audit NULL 0x10000000000000000'
  refuses '1.5 is not "long collected": give a decimal number' 'gc__done 1.5'
  refuses 'NULL is not "int generation"' 'gc__start NULL'
  refuses 'is not "const char *filename": give "text", NULL or 0xADDRESS' 'line a "b" 1'
  refuses 'NULLS is no' 'line NULLS "b" 1'
  refuses '12 is no' 'line 12 "b" 1'
  refuses '0x1g is no' 'line 0x1g "b" 1'
  refuses '"x" is not "PyObject *args": give NULL or 0xADDRESS' 'audit "a" "x"'
  refuses 'without its closing "' 'audit "a NULL'
  refuses 'none of \n \t \\ \" \xHH' 'audit "\q" NULL'
  refuses 'none of \n \t \\ \" \xHH' 'audit "\x4" NULL'
  refuses '\x00 would end the string' 'audit "\x00" NULL'
  refuses 'adjoins a string' 'line "a""b" 1'
  refuses '* without a count' 'audit "a" * NULL'
  refuses 'more than 1073741824 bytes' 'audit "a" * 1073741825 NULL'
  refuses 'more than 1073741824 bytes' 'audit "ab" * 9223372036854775807 NULL'
  refuses 'a count without its "*"' '3 gc__start 1'
  refuses '-3 times' '-3 * gc__start 1'
  refuses 'nothing behind its *' '3 *'
  refuses 'a } without its {' '}'
  refuses 'a { without its }' '2 * {'
  refuses 'sleep without a time' 'sleep -1'
  refuses 'sleep without a time' 'sleep'
}

@test "a byte 0 and an unreadable file are refused too" {
  local status=0
  printf 'gc__start 1\ngc__start 1\0\n' | "$driver" 2>"$events.err" || status=$?
  [ "$status" = 2 ]
  [[ $(cat "$events.err") == "driver: standard input:2: a byte 0"* ]]
  run "$driver" "$events"
  [ "$status" = 2 ]
  [ "$output" = "driver: $events can't be opened: No such file or directory" ]
}

@test "--check says what is wrong with a description and fires nothing of a good one" {
  run "$driver" --check --always --count - <<<'gc__start 1'
  [ "$status" = 0 ]
  [ -z "$output" ]
  run "$driver" --check - <<<'gc__start x'
  [ "$status" = 2 ]
  [[ $output == "driver: standard input:1: x is not"* ]]
}

@test "bad usage is one line on stderr and exit status 2; --help and a full disk" {
  local arguments
  for arguments in --nosuch -z --timeout --timeout=x --timeout=-1 --count=3 --wait=nosuch; do
    run "$driver" "$arguments" - <<<'gc__start 1'
    echo "$arguments: $status $output"
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == "driver: "* ]]
  done
  run "$driver" --help
  [ "$status" = 0 ]
  [[ $output == "usage: driver "* ]]
  run bash -c '"$0" --list >/dev/full' "$driver"
  [ "$status" = 1 ]
  [[ $output == "driver: standard output can't be written to: "* ]]
}

@test "with its own tapset, stap's python.function.entry is on the driver's file" {
  need stap
  tapset=$top/build/test/tapset run stap_with_tapset -p2 -e 'probe python.shim.function.entry {
    println(filename, funcname, lineno, frameptr, modulename) }'
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *"process(\"$driver\")"* ]]
}

# The driver's events arrive at a tracer as they are described.  The language of descriptions: test/fast/driver.bats.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
  events=$BATS_TEST_TMPDIR/events
}

# A bpftrace program that prints the driver's events of all markers, with their arguments between bars.  The types of
# arguments are those of the driver's --list; of each marker the first six, which is the limit of bpftrace 0.17.
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

# Runs bpftrace with PROGRAM, and the driver, which replays $events once all markers of PROGRAM are probed.
# usage: replay PROGRAM [OPTION...]
replay() {
  local program=$1 waits
  shift
  mapfile -t waits < <(grep -oE 'python:[a-z_]+' <<<"$program" | sed 's/python:/--wait=/')
  bpftrace_while "$program" "$driver" "${waits[@]}" "$@" "$events"
}

# The output of bpftrace without its empty lines at the end.
printed() {
  sed '/^$/d' "$trace"
}

@test "each marker arrives with each kind of argument as given" {
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
  echo 'import__find__load__start "0123456789" * 1000' >"$events"
  replay "usdt:$driver:python:import__find__load__start
    { printf(\"%s %s %d\n\", str(arg0, 15), str(arg0 + 9993), *(uint8 *)(arg0 + 10000)); }"
  [ "$(printed)" = "012345678901234 3456789 0" ]
}

@test "steps are repeated, in the order in which they stand" {
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
  echo 'gc__start 1' >"$events"
  echo 'gc__start 3' >"$events.more"
  bpftrace_while "usdt:$driver:python:gc__start { printf(\"%d\n\", arg0); }" \
    "$driver" --wait "$events" - "$events.more" <<<'gc__start 2'
  [ "$(printed | xargs)" = "1 2 3" ]
}

@test "of a million events a million arrive" {
  local description
  for description in '1000000 * line "/a.py" "f" 1' $'1000 * {\nline "/a.py" "f" 1\n999 * line "/a.py" "f" 2\n}'; do
    echo "$description" >"$events"
    replay "usdt:$driver:python:line { @ = count(); }" --count >"$events.counts"
    grep -x '@: 1000000' "$trace"
    [ "$(cat "$events.counts")" = "line 1000000 fired, 0 passed over" ]
  done
}

@test "events that nobody probes are passed over, unless it is told to fire always" {
  printf '%s\n' '100000 * line "/a.py" "f" 1' '3 * gc__start 2' >"$events"
  # A probe in the marker's function, before the site, raises no semaphore.
  local program="uprobe:$driver:marker_line { @line = count(); } usdt:$driver:python:gc__start { @gc = count(); }"
  replay "$program" --count >"$events.counts"
  refute grep '@line: [1-9]' "$trace"
  grep -x '@gc: 3' "$trace"
  diff "$events.counts" - <<<$'line 0 fired, 100000 passed over\ngc__start 3 fired, 0 passed over'
  replay "$program" --always --count >"$events.counts"
  grep -x '@line: 100000' "$trace"
  grep -x '@gc: 3' "$trace"
  diff "$events.counts" - <<<$'line 100000 fired, 0 passed over\ngc__start 3 fired, 0 passed over'
}

@test "--wait begins when the tracer has come" {
  local option pid
  # of --wait alone the first marker's semaphore is the tracer
  for option in --wait '--wait=gc__start --wait=gc__done'; do
    echo "$option"
    printf '%s\n' 'gc__start 1' 'gc__done 2' | head -n $((1 + (${#option} > 6))) >"$events"
    # shellcheck disable=SC2086
    "$driver" $option --timeout=30 "$events" 3>&- &
    pid=$!
    bpftrace_while "usdt:$driver:python:gc__start { printf(\"start %d\n\", arg0); }
      usdt:$driver:python:gc__done { printf(\"done %d\n\", arg0); }" tail --pid="$pid" -s 0.1 -f /dev/null
    wait "$pid"
    diff <(printed) <(sed 's/gc__//' "$events")
  done
}

@test "--wait gives up in one line, and fires nothing, when the marker's tracer doesn't come" {
  printf '%s\n' 'gc__start 1' 'gc__done 2' >"$events"
  local status=0
  bpftrace_while "usdt:$driver:python:gc__start { printf(\"start\n\"); }" \
    "$driver" --wait=gc__start --wait=gc__done --timeout=1 "$events" 2>"$events.err" || status=$?
  [ "$status" = 1 ]
  [ "$(wc -l <"$events.err")" = 1 ]
  grep 'no tracer attached within 1 s' "$events.err"
  [ -z "$(printed)" ]
}

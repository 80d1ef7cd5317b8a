# The scripts that measure time, on programs with known times.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# Calls, INCL and EXCL of a function of the file $1 in pytime's table.
times_of() {
  awk -v file="$1" -v name="$2" '$5 == file && $4 == name { print $1, $2, $3; found++ } END { exit found != 1 }' "$printed"
}

@test "pytime counts the calls and gives the time in them, and in them alone" {
  local name expected calls least incl excl before=
  script pytime -G top=1000 -c "env LD_PRELOAD=$shim $system $timed"
  [ "$(head -n 1 "$printed")" = "   CALLS     INCL(us)     EXCL(us)  FUNCTION                       FILE" ]
  refute grep -vE '^ *[0-9]+ +[0-9]+ +[0-9]+  [^ ]+ +[^ ].*$|^   CALLS ' "$printed"
  while read -r name expected least; do
    read -r calls incl excl < <(times_of "$timed" "$name")
    echo "$name $calls $incl $excl"
    [ "$calls" = "$expected" ]
    [ "$incl" -ge "$least" ]
    [ "$incl" -lt $((least * 5 + 2000000)) ]
    case $name in
      sleeps* | computes* | quick | allocates*) [ "$incl" = "$excl" ] ;;
      both) [ "$excl" -lt 300000 ] ;;
    esac
  done <<'EXPECTED'
sleeps_200_ms 4 800000
computes_100_ms 3 300000
both 3 900000
quick 1010 1
allocates_8_mb 5 1
waits_for_the_lock 1 300000
holder 1 500000
EXPECTED
  while read -r _ _ excl _; do
    [ -z "$before" ] || [ "$before" -ge "$excl" ]
    before=$excl
  done < <(tail -n +2 "$printed")
}

@test "pytime gives a recursive function's time once, and each of a generator's stretches" {
  local program=$BATS_TEST_TMPDIR/recursive.py incl excl inner before=
  cat >"$program" <<'PY'
import time


def recursive(depth):
    time.sleep(0.1)
    if depth:
        recursive(depth - 1)


def generated():
    for number in range(3):
        time.sleep(0.05)
        yield number


def calls():
    recursive(2)
    recursive(0)
    for _ in generated():
        pass


calls()
PY
  script pytime -G inclusive=1 -G top=1000 -c "env LD_PRELOAD=$shim $system $program"
  # it calls nothing else: all of its time is its own
  read -r calls incl excl < <(times_of "$program" recursive)
  [ "$calls" = 4 ]
  [ "$incl" = "$excl" ]
  [ "$incl" -ge 400000 ]
  [ "$incl" -lt 3000000 ]
  inner=$incl
  read -r calls incl excl < <(times_of "$program" generated)
  [ "$calls" = 4 ]
  [ "$incl" = "$excl" ]
  [ "$incl" -ge 150000 ]
  [ "$incl" -lt 3000000 ]
  inner=$((inner + incl))
  read -r calls incl excl < <(times_of "$program" calls)
  # but for what each of the four loses to rounding
  [ "$calls" = 1 ]
  [ $((incl - excl - inner)) -ge -1 ]
  [ $((incl - excl - inner)) -le 2 ]
  while read -r _ incl _; do
    [ -z "$before" ] || [ "$before" -ge "$incl" ]
    before=$incl
  done < <(tail -n +2 "$printed")
}

# The functions of the file $1 that pyslow printed, with how often.
slow_in() {
  awk -v RS= -v file="$1" 'index($0, "\nFile \"" file "\", line ") == index($0, "\n") { sub(/\n.*/, ""); print $NF }' "$printed" |
    sort | uniq -c | awk '{ print $2, $1 }'
}

@test "pyslow prints the calls that are slow enough, each with its stack" {
  need_time
  script pyslow 190 -c "env LD_PRELOAD=$shim $system $timed"
  slow_in "$timed" | grep -vE '^(computes_100_ms|allocates_8_mb|quick) ' | diff - <(printf '%s\n' '<module> 1' 'both 3' 'holder 1' 'main 1' 'sleeps_200_ms 4' 'waits_for_the_lock 1')
  # nothing but calls, none of them fast, and stacks; from 3.14 on threads have names of their own
  refute grep -vE '^$|^[0-9]+\.[0-9]{3} ms (python3[.0-9t]*|Thread-1 \(holde)\([0-9]+\) [^ ]+$|^File ".+", line [0-9]+, in [^ ]+$' "$printed"
  awk '/ ms / && $1 < 190 { bad++ } END { exit bad > 0 }' "$printed"
  [ "$(grep -A 4 ' sleeps_200_ms$' "$printed" | grep -A 3 ' in sleeps_200_ms$' | sed 's/^File .* in //' | tr '\n' ' ' |
    grep -oE 'sleeps_200_ms both main <module> ' | wc -l)" = 3 ]
}

@test "pydist counts each call of the functions that match, by its time" {
  script pydist 'quick sleeps_200_ms' -c "env LD_PRELOAD=$shim $system $timed"
  [ "$(grep -c ' calls, total ' "$printed")" = 2 ]
  grep -qE "^sleeps_200_ms in $timed: 4 calls, total [0-9]+ us, average [0-9]+ us$" "$printed"
  grep -qE "^quick in $timed: 1010 calls, total [0-9]+ us, average [0-9]+ us$" "$printed"
  # each call is in a row, and a sleep in none below its 200 ms
  awk '/ calls, / { name = $1 }
    / \|.* [0-9]+$/ && !/count/ { calls[name] += $NF; if (name == "sleeps_200_ms" && $NF && $1 < 131072) low++ }
    END { exit !(calls["quick"] == 1010 && calls["sleeps_200_ms"] == 4 && !low) }' "$printed"
  awk '/ calls, / { sub(/.* total /, ""); if (before && $1 > before) bad++; before = $1 } END { exit bad > 0 }' "$printed"
}

# With other programs on the guest's two CPUs, elapsed time is much longer than time on a CPU.  The program
# measures the latter itself, around each function, with the same clock; its time has the probes' in
# addition, which depends on the machine.  The kernel updates a thread's time at its ticks, and whenever a
# program asks for it: functions that ask at their end say how large the difference is when the time is up
# to date, and it may not be much larger at those that don't.  If the guest is stopped between the two
# measurements they differ by that, in few of the functions: the medians count.
@test "pytime and pydist have the time on a CPU to a millisecond, asleep or while others have the CPU" {
  local program=$top/test/workloads/computes.py busy incl cpu own
  cat >"$BATS_TEST_TMPDIR/busy" <<SH
others=
for other in 1 2 3; do
  (while :; do :; done) &
  others="\$others \$!"
done
env LD_PRELOAD=$shim $system $program
kill \$others
SH
  busy="sh $BATS_TEST_TMPDIR/busy"
  # compares the names and microseconds on stdin with what the program measured
  as_they_say() {
    awk 'NR == FNR { said[$1] = $2; next }
      $1 in said { kind = $1; sub(/_.*/, "", kind); print kind, said[$1] - $2 }' \
      <(grep -xE '(computes|updates)_[0-9]+ [0-9]+' "$printed.output") - | sort -n -k 2 >"$printed.differ"
    awk '$2 < -1 { more++ } { all[$1] = all[$1] " " $2; if (++seen[$1] == 10) median[$1] = $2 }
      END { for (kind in all) print kind ", median " median[kind] ":" all[kind]
        exit !(seen["computes"] == 20 && seen["updates"] == 20 && !more && median["computes"] < 1.5 * median["updates"] + 400) }' \
      "$printed.differ"
  }
  script pytime exact -G cpu=1 -G top=1000 -c "$busy" >"$printed.output"
  grep -E "FUNCTION|$program\$" "$printed"
  [ "$(head -n 1 "$printed")" = "   CALLS     INCL(us)     EXCL(us) CPU_INCL(us) CPU_EXCL(us)  FUNCTION                       FILE" ]
  awk '$4 == $5 { print $6, $4 }' "$printed" | as_they_say
  cpu_times_of() {
    awk -v file="$program" -v name="$1" '$7 == file && $6 == name { print $1, $2, $4, $5; found++ } END { exit found != 1 }' "$printed"
  }
  read -r _ incl cpu own < <(cpu_times_of sleeps)
  [ "$incl" -ge 300000 ]
  [ "$cpu" -lt 100000 ]
  # 300 ms are the sleep; what it calls is not its own
  read -r _ incl cpu own < <(cpu_times_of all_of_them)
  [ $((incl - 300000)) -gt $((cpu * 5 / 4)) ]
  [ $((own * 5)) -lt "$cpu" ]
  awk 'NR > 1 { if (before != "" && $5 > before) bad++; before = $5 } END { exit bad > 0 }' "$printed"

  [ -n "${EVERY:-}" ] || return 0
  script pydist 'computes_* updates_* sleeps' -G cpu=1 -G top=41 -c "$busy" >"$printed.output"
  sed -nE "s|^([a-z_0-9]+) in $program: 1 calls, total ([0-9]+) us.*|\1 \2|p" "$printed" >"$printed.dist"
  as_they_say <"$printed.dist"
  [ "$(sed -n 's/^sleeps //p' "$printed.dist")" -lt 100000 ]
}

# Events that can't be had from a Python on demand: the driver's, in stdin's description.
replay() {
  cat >"$BATS_TEST_TMPDIR/events"
  SYSTEMTAP_TAPSET=$tapsets/test/tapset script_says "$@" -c "$driver $BATS_TEST_TMPDIR/events"
}

# The entries of such a text as function__count has them, one by one.
counted() {
  sed -E '/function__return/d; s/function__entry (".*" ".*" [0-9]+) 0x[0-9a-f]+ (".*")/function__count \1 \2 1/'
}

@test "a return finds its call, whatever else was not seen, and what has none is counted" {
  replay pytime exact <<'EVENTS'
# before anything: no loss, it began before the script
function__return "/a.py" "earlier" 1 0x10 "m" NULL NULL
# a call without its return, within one that has its return
function__entry "/a.py" "outer" 1 0x10 "m"
function__entry "/a.py" "unreturned" 1 0x20 "m"
sleep 100
function__return "/a.py" "outer" 1 0x10 "m" NULL NULL
# a call without its entry; one of the same name in another frame
function__entry "/a.py" "outer" 1 0x10 "m"
function__return "/a.py" "unentered" 1 0x20 "m" NULL NULL
function__return "/a.py" "outer" 1 0x20 "m" NULL NULL
sleep 50
function__return "/a.py" "outer" 1 0x10 "m" NULL NULL
# a recursion: the outermost call has all of the time, and each its own
function__entry "/a.py" "recursive" 1 0x30 "m"
function__entry "/a.py" "between" 1 0x40 "m"
function__entry "/a.py" "recursive" 1 0x50 "m"
sleep 100
function__return "/a.py" "recursive" 1 0x50 "m" NULL NULL
sleep 50
function__return "/a.py" "between" 1 0x40 "m" NULL NULL
function__return "/a.py" "recursive" 1 0x30 "m" NULL NULL
# the same name in another file is another function
function__entry "/b.py" "outer" 1 0x10 "m"
function__return "/b.py" "outer" 1 0x10 "m" NULL NULL
# more calls at a time than have room
70000 * function__entry "/a.py" "deep" 1 0x60 "m"
70000 * function__return "/a.py" "deep" 1 0x60 "m" NULL NULL
EVENTS
  [ "$(awk 'NR > 1 { print $1, $4, $5 }' "$printed" | sort)" = "$(printf '%s\n' '1 between /a.py' '1 outer /b.py' '2 outer /a.py' '2 recursive /a.py' '65535 deep /a.py')" ]
  awk 'NR > 1 && ($2 < 0 || $3 < 0 || $2 > 60000000) { bad++ } END { exit bad > 0 }' "$printed"
  awk '$4 == "outer" && $5 == "/a.py" && $2 == $3 && $2 >= 150000 && $2 < 1000000 { found++ } END { exit !found }' "$printed"
  awk '$4 == "recursive" && $2 >= 150000 && $2 < 1000000 && $3 >= 100000 && $3 <= $2 - 50000 { found++ } END { exit !found }' "$printed"
  awk '$4 == "between" && $2 >= 150000 && $3 >= 50000 && $3 <= $2 - 100000 { found++ } END { exit !found }' "$printed"
  diff <(grep -o 'lost: .*' "$printed.said") - <<'LOST'
lost: 4465 calls, as too many were open at a time
lost: 1 calls, as their callers returned before them
lost: 2 calls, as their entry was not seen
LOST
}

@test "pystacks weighs each stack with its own time, in the folded form" {
  script pystacks -c "env LD_PRELOAD=$shim $system $timed"
  python3 - "$printed" <<'PY'
import re
import sys

weights = {}
for line in open(sys.argv[1]):
    stack, weight = re.fullmatch(r"(python3[.0-9t]*(?:;[^;\n]+)+) (\d+)\n", line).groups()
    stack = stack.split(";", 1)[1]
    assert stack not in weights, stack
    weights[stack] = int(weight)
assert list(weights.values()) == sorted(weights.values(), reverse=True)
both = "<module>;main;both"
for stack, least in (
    (both + ";sleeps_200_ms", 600000),
    (both + ";computes_100_ms", 300000),
    ("<module>;main;sleeps_200_ms", 200000),
    ("<module>;main;waits_for_the_lock", 300000),
):
    assert least <= weights[stack] < 5 * least, (stack, weights[stack])
assert weights[both] < 300000
assert [w for s, w in weights.items() if s.endswith(";run;holder")][0] >= 500000
PY
}

@test "pystacks has stacks of any depth and with any names, and with cpu=1 the time on a CPU" {
  cat >"$BATS_TEST_TMPDIR/deep" <<'EVENTS'
function__entry "/a.py" "semi;colon and\nline" 1 0x10 "m"
500 * function__entry "/a.py" "deeper" 1 0x20 "mo.dule"
function__entry "/a.py" "sleeps" 1 0x30 "m"
sleep 300
function__return "/a.py" "sleeps" 1 0x30 "m" NULL NULL
function__entry "/a.py" "burns" 1 0x30 "m"
100000000 * line "/a.py" "burns" 1
function__return "/a.py" "burns" 1 0x30 "m" NULL NULL
500 * function__return "/a.py" "deeper" 1 0x20 "mo.dule" NULL NULL
function__return "/a.py" "semi;colon and\nline" 1 0x10 "m" NULL NULL
EVENTS
  replay pystacks <"$BATS_TEST_TMPDIR/deep" >/dev/null
  refute grep -v 'symbol table' "$printed.said"
  [ "$(wc -l <"$printed")" = 503 ]
  grep -qE '^driver;semi:colon and\\nline(;deeper){500};sleeps (3[0-9]|[4-9][0-9])[0-9]{4}$' "$printed"
  grep -qE '^driver;semi:colon and\\nline(;deeper){250} [0-9]+$' "$printed"

  replay pystacks -G cpu=1 -G modules=1 -G top=2 <"$BATS_TEST_TMPDIR/deep" >/dev/null
  grep -qF '501 stacks with less time are left out' "$printed.said"
  [ "$(wc -l <"$printed")" = 2 ]
  head -n 1 "$printed" | grep -qE '^driver;m\.semi:colon and\\nline(;mo\.dule\.deeper){500};m\.burns [0-9]{6,}$'
  refute grep -E ';m\.sleeps [0-9]{6,}$' "$printed"
}

# A start with 20,000 stacks, then a view that is called 100 times, with stacks in between that occur once.
start_and_view() {
  awk 'function call(name, frame) { printf "function__entry \"/a.py\" \"%s\" 1 %#x \"m\"\n", name, frame }
    function end(name, frame) { printf "function__return \"/a.py\" \"%s\" 1 %#x \"m\" NULL NULL\n", name, frame }
    BEGIN {
      call("main", 16)
      for (i = 0; i < 20000; i++) {
        call("module_" i, 32); call("starts_" i, 48); end("starts_" i, 48); end("module_" i, 32)
      }
      for (i = 0; i < 100; i++) {
        call("serve", 32); call("view", 48); call("query", 64); end("query", 64); end("view", 48)
        for (k = 0; k < 20; k++) { call("once_" i "_" k, 48); end("once_" i "_" k, 48) }
        end("serve", 32)
      }
      end("main", 16)
    }'
}

@test "pystacks has room for what comes often: what a program's start has gives way, and that is said" {
  need_time
  local said
  printf 'driver;main;serve%s 100\n' '' ';view' ';view;query' >"$printed.view"
  # the view's are whole, and so is the sum, 42301 calls
  start_and_view | replay pystacks -G calls=1 -DPYTHON_STACKS=3000 >"$printed.few"
  grep -xE 'driver;main;serve(;view(;query)?)? 100' "$printed" | sort | diff "$printed.view" -
  awk '{ sum += $NF } / [0-9]+$/ && /\(other\)/ { seldom += $NF } END { print sum, seldom; exit sum != 42301 || seldom < 39000 }' "$printed"
  said=$(grep -o 'more than 3000 stacks: .*' "$printed.said")
  [[ $said =~ ^'more than 3000 stacks: the '([0-9]+)' least frequent are merged, with their '([0-9]+)' calls, into "(other)": see -DPYTHON_STACKS'$ ]]
  [ "${BASH_REMATCH[1]}" -ge 39000 ]
  [ "${BASH_REMATCH[2]}" = "$(awk '/\(other\)/ { sum += $NF } END { print sum }' "$printed")" ]
  [ -n "${EVERY:-}" ] || return 0

  # with room for more stacks than there are: all of them
  start_and_view | replay pystacks -G calls=1 >"$printed.all"
  refute grep -v -e 'symbol table' -e 'stacks with less calls are left out' "$printed.said"
  grep -qF '39004 stacks with less calls are left out' "$printed.said"
  grep -xE 'driver;main;serve(;view(;query)?)? 100' "$printed" | sort | diff "$printed.view" -

  # names have room of their own
  start_and_view | replay pystacks -G calls=1 -DPYTHON_NAMES=1000 >"$printed.names"
  grep -qE 'no room for names: "\(no room\)" was used [0-9]+ times: see -DPYTHON_NAMES' "$printed.said"
  awk '{ sum += $NF } END { exit sum != 42301 }' "$printed"

  # and a start can be left out
  start_and_view | replay pystacks '^serve$' -G calls=1 >"$printed.begun"
  refute grep -v 'symbol table' "$printed.said"
  diff <(sed 's/;main//' "$printed.view") <(head -n 3 "$printed" | sort)
  [ "$(wc -l <"$printed")" = 2003 ]
}

@test "the tables of functions have room for what comes often, too" {
  need_time
  start_and_view >"$BATS_TEST_TMPDIR/start"
  # 42,003 functions of 42,301 calls: what the functions of the start have is that of "(other)" in their file
  counted <"$BATS_TEST_TMPDIR/start" | replay pycalls -DPYTHON_STACKS=1000 >/dev/null
  grep -qE 'more than 1000 functions and files: the [0-9]+ least frequent are merged, with their [0-9]+ calls, into "\(other\)": see -DPYTHON_STACKS$' "$printed.said"
  [ "$(awk '$1 == 100 { print $3 }' "$printed" | sort | xargs)" = "query serve view" ]
  [ "$(awk '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }' "$printed")" = 42301 ]
  awk '$3 == "(other)" && $4 == "/a.py" && $1 > 40000 { found = 1 } END { exit !found }' "$printed"
  [ -n "${EVERY:-}" ] || return 0

  # room for all of them
  counted <"$BATS_TEST_TMPDIR/start" | replay pycalls >/dev/null
  refute grep -v 'symbol table' "$printed.said"
  [ "$(awk '$1 == 100 { print $3 }' "$printed" | sort | xargs)" = "query serve view" ]
  [ "$(awk '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }' "$printed")" = 42301 ]

  replay pytime exact -DPYTHON_STACKS=1000 -G top=1000 <"$BATS_TEST_TMPDIR/start" >/dev/null
  [ "$(awk '$1 == 100 { print $4 }' "$printed" | sort | xargs)" = "query serve view" ]
  [ "$(awk '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }' "$printed")" = 42301 ]

  replay pydist -DPYTHON_STACKS=4000 -G top=500 <"$BATS_TEST_TMPDIR/start" >/dev/null
  grep -qE '^view in /a.py: 100 calls, total ' "$printed"
  grep -qE '^query in /a.py: 100 calls, total ' "$printed"
}

# The numbers of pyblocked's first stack of this kind that begins with these functions, the innermost first; the same
# functions may be at several lines.
blocked_in() {
  awk -v RS= -v kind="$1" -v want="${*:2}" '{
    n = split($0, lines, "\n"); stack = ""; first = 1
    if (lines[1] ~ /TOTAL\(us\)/) first = 2
    if (substr(lines[first], 39) != kind) next
    for (i = first + 1; i <= n; i++) { name = lines[i]; sub(/.* in /, "", name); stack = stack " " name }
    if (!found && index(stack " ", " " want " ") == 1) { split(lines[first], f, " "); print f[1], f[2], f[3]; found++ }
  } END { exit !found }' "$printed"
}

@test "pyblocked says with which stacks threads sleep, and how long, and not where they compute" {
  local least expected kind stack total sleeps most
  script pyblocked -G top=1000 -c "env LD_PRELOAD=$shim $system $timed"
  [ "$(head -n 1 "$printed")" = "   TOTAL(us)     SLEEPS  LONGEST(us)  KIND" ]
  # a timer has begun before its thread leaves the CPU, in a busy guest long before
  while read -r least expected kind stack; do
    # shellcheck disable=SC2086
    read -r total sleeps most < <(blocked_in $kind $stack)
    echo "$kind $stack: $total $sleeps $most"
    [ "$total" -ge "$least" ]
    [ "$total" -lt $((least * 4)) ]
    [ "$sleeps" -ge "$expected" ]
    [ "$sleeps" -lt $((expected + 20)) ]
    [ "$most" -ge $((least / expected)) ]
    [ "$most" -le "$total" ]
  done <<'EXPECTED'
450000 3 timer sleeps_200_ms both main <module>
150000 1 timer sleeps_200_ms main <module>
350000 1 timer holder run _bootstrap_inner _bootstrap
200000 1 lock waits_for_the_lock main <module>
EXPECTED
  grep -qxF "File \"$timed\", line 11, in sleeps_200_ms" "$printed"
  # it waits for nothing, but the guest's disk and memory may
  for kind in timer lock GIL file 'page fault'; do
    total=$(blocked_in "$kind" computes_100_ms) || total=0
    [ "${total%% *}" -lt 100000 ]
  done
  awk '/TOTAL/ { before = "" } /^ +[0-9]/ { if (before != "" && $1 > before) bad++; before = $1 } END { exit bad > 0 }' "$printed"
  # the kinds, at the end
  [ "$(tail -n +2 "$printed" | awk '/TOTAL/ { table++ } table && $4 == "timer" && $1 >= 950000 { print $4 }')" = timer ]
}

@test "-x keeps to one process, and without it each script has them all" {
  need_time
  local pids name calls incl excl
  for name in traced other; do
    cat >"$BATS_TEST_TMPDIR/$name.py" <<PY
import threading
import time


def step_$name():
    time.sleep(0.02)


def naps_$name():
    time.sleep(600)


while True:
    for _ in range(40):
        step_$name()
    threading.Thread(target=naps_$name, daemon=True).start()
PY
  done
  pids=$(start_in_guest "$BATS_TEST_TMPDIR"/{traced,other}.py)
  # shellcheck disable=SC2086
  set -- $pids
  script pystacks -E 'probe timer.s(3) { exit() }'
  cp "$printed" "$printed.stacks"
  if [ -n "${EVERY:-}" ]; then
    script pyblocked -x "$1" -E 'probe timer.s(3) { exit() }'
    cp "$printed" "$printed.blocked"
    script pydist 'step_*' -E 'probe timer.s(3) { exit() }'
    cp "$printed" "$printed.dist"
  fi
  script pytime -x "$1" -E 'probe timer.s(3) { exit() }'
  end_in_guest "$@"
  read -r calls incl excl < <(times_of "$BATS_TEST_TMPDIR/traced.py" step_traced)
  [ "$calls" -ge 5 ]
  [ "$incl" -ge $((calls * 20000)) ]
  [ "$incl" -le 6000000 ]
  [ "$incl" = "$excl" ]
  # its <module> has not returned
  refute grep -E '<module>|other\.py' "$printed"
  grep -qE ';step_traced [0-9]{5,}$' "$printed.stacks"
  grep -qE ';step_other [0-9]{5,}$' "$printed.stacks"
  [ -n "${EVERY:-}" ] || return 0
  printed=$printed.blocked blocked_in timer 'step_traced <module>'
  # threads that still sleep are in it too
  [ "$(printed=$printed.blocked blocked_in timer naps_traced run | cut -d' ' -f3)" -ge 100000 ]
  refute grep -F other "$printed.blocked"
  grep -qE "^step_traced in $BATS_TEST_TMPDIR/traced.py: [1-9][0-9]* calls" "$printed.dist"
  grep -qE "^step_other in $BATS_TEST_TMPDIR/other.py: [1-9][0-9]* calls" "$printed.dist"
}

@test "pytime's numbers are right in each CPython" {
  local python file name expected least calls incl excl
  while read -r python; do
    cp "$timed" "$BATS_TEST_TMPDIR/timed-$(abi_of "$python").py"
    echo "LD_PRELOAD=$shim $python $BATS_TEST_TMPDIR/timed-$(abi_of "$python").py"
  done < <(guest_pythons) >"$BATS_TEST_TMPDIR/all"
  [ -s "$BATS_TEST_TMPDIR/all" ]
  script pytime -G top=1000 -c "sh $BATS_TEST_TMPDIR/all"
  while read -r _ python file; do
    while read -r name expected least; do
      read -r calls incl excl < <(times_of "$file" "$name")
      echo "$python $name $calls $incl $excl"
      [ "$calls" = "$expected" ]
      [ "$incl" -ge "$least" ]
      [ "$excl" -le "$incl" ]
      [ "$incl" -lt 20000000 ]
    done <<'EXPECTED'
sleeps_200_ms 4 800000
computes_100_ms 3 300000
both 3 900000
quick 1010 1
waits_for_the_lock 1 300000
main 1 1600000
<module> 1 1600000
EXPECTED
  done <"$BATS_TEST_TMPDIR/all"
}

@test "the scripts refuse what they don't understand, in one line" {
  local name arguments message
  while IFS='|' read -r name arguments message <&9; do
    # shellcheck disable=SC2086
    refuses "$message" "$name" $arguments
  done 9< <(
    some 9 <<'REFUSED'
pytime|5|pytime: the only argument is "exact", not "5"
pytime|-G cpu=1|pytime: cpu=1 needs the argument "exact"
pytime|-G tasks=1|pytime: tasks=1 needs the argument "exact"
pytime|exact -G tasks=1 -G by_process=1|pytime: either tasks=1 or by_process=1
pydist|-G top=0|pydist: top must be 1 to 500, not 0
pyslow|0|pyslow: MS must be a number of milliseconds, from 1 on, not "0"
pystacks|-G top=3001|pystacks: top must be 1 to 3000, not 3001
pyblocked|-G min=-1|pyblocked: min must be 0 or more, not -1
pyblocked|who|pyblocked takes one argument, waker, but was given "who"
pyblocked|-G which=3|pyblocked: which must be 0, 1 or 2, not 3
REFUSED
  )
}

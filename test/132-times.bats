# The scripts that measure time, live, on known times.
#
# SPDX-License-Identifier: MIT

load helper

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
  [ "$(head -n 1 "$printed")" = "   CALLS      INCL_us      EXCL_us  FUNCTION                       FILE" ]
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

@test "pytime -x measures one running process and no other" {
  local pids calls incl excl
  for name in traced other; do
    cat >"$BATS_TEST_TMPDIR/$name.py" <<'PY'
import time


def step():
    time.sleep(0.02)


while True:
    step()
PY
  done
  pids=$(start_in_guest "$BATS_TEST_TMPDIR"/{traced,other}.py)
  # shellcheck disable=SC2086
  set -- $pids
  script pytime -x "$1" -E 'probe timer.s(3) { exit() }'
  end_in_guest "$@"
  read -r calls incl excl < <(times_of "$BATS_TEST_TMPDIR/traced.py" step)
  [ "$calls" -ge 5 ]
  [ "$incl" -ge $((calls * 20000)) ]
  [ "$incl" -le 6000000 ]
  [ "$incl" = "$excl" ]
  # its <module> has not returned
  [ "$(wc -l <"$printed")" = 2 ]
}

# The functions of the file $1 that pyslow printed, with how often.
slow_in() {
  awk -v RS= -v file="$1" 'index($0, "\nFile \"" file "\", line ") == index($0, "\n") { print $4 }' "$printed" |
    sort | uniq -c | awk '{ print $2, $1 }'
}

@test "pyslow prints the calls that are slow enough, each with its stack" {
  script pyslow 190 -c "env LD_PRELOAD=$shim $system $timed"
  slow_in "$timed" | grep -vE '^(computes_100_ms|allocates_8_mb|quick) ' | diff - <(printf '%s\n' '<module> 1' 'both 3' 'holder 1' 'main 1' 'sleeps_200_ms 4' 'waits_for_the_lock 1')
  # nothing but calls, none of them fast, and stacks
  refute grep -vE '^$|^[0-9]+\.[0-9]{3} ms python3[.0-9]*\([0-9]+\) [^ ]+$|^File ".+", line [0-9]+, in [^ ]+$' "$printed"
  awk '/ ms / && $1 < 190 { bad++ } END { exit bad > 0 }' "$printed"
  [ "$(grep -A 4 ' sleeps_200_ms$' "$printed" | grep -A 3 ' in sleeps_200_ms$' | sed 's/^File .* in //' | tr '\n' ' ' |
    grep -oE 'sleeps_200_ms both main <module> ' | wc -l)" = 3 ]
}

@test "pydist counts each call of the functions that match, by its time" {
  script pydist '^(quick|sleeps_200_ms)$' -c "env LD_PRELOAD=$shim $system $timed"
  [ "$(grep -c ' calls, total ' "$printed")" = 2 ]
  grep -qE "^sleeps_200_ms in $timed: 4 calls, total [0-9]+ us, average [0-9]+ us$" "$printed"
  grep -qE "^quick in $timed: 1010 calls, total [0-9]+ us, average [0-9]+ us$" "$printed"
  # each call is in a row, and a sleep in none below its 200 ms
  awk '/ calls, / { name = $1 }
    / \|.* [0-9]+$/ && !/count/ { calls[name] += $NF; if (name == "sleeps_200_ms" && $NF && $1 < 131072) low++ }
    END { exit !(calls["quick"] == 1010 && calls["sleeps_200_ms"] == 4 && !low) }' "$printed"
  awk '/ calls, / { sub(/.* total /, ""); if (before && $1 > before) bad++; before = $1 } END { exit bad > 0 }' "$printed"
}

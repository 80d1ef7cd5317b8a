# Who waits for the GIL, and who has it meanwhile.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  gil=$top/test/workloads/gil.py
  export PYTHON_GIL=1 # in a free-threaded build
}

# Those in which the GIL is in other places; 3.6 has it in variables of its own, from 3.12 on each interpreter may have
# one, and free-threaded builds have another first word in it.
gil_pythons() {
  pythons | with_minor | awk -v every="${EVERY:-}${ONLY_PYTHONS:-}" 'every != "" || $1 + 0 <= 8 || $1 + 0 >= 11 { print $2 }'
}

# Runs pygil on a part of the workload; what the workload said, without stap's message, is in $printed.said.
# usage: pygil PYTHON PART SECONDS STAP'S ARGUMENTS...
pygil() {
  script_says pygil "${@:4}" -c "env LD_PRELOAD=$shim $1 $gil $2 $3" >/dev/null || {
    cat "$printed.said"
    return 1
  }
  refute grep -vE '^[a-z_]+( -?[0-9]+)+$|Kernel function symbol table|^test/vm/prepare: ' "$printed.said"
}

# The microseconds of the folded lines whose waiter and whose holder match.
waited() {
  awk -v waiter="$1" -v holder="$2" '{
    us = $NF; sub(/ [0-9]+$/, ""); at = index($0, ";[GIL];")
    if (substr($0, 1, at - 1) ~ waiter && substr($0, at + 7) ~ holder) sum += us
  } END { print sum + 0 }' "$printed"
}

@test "waiting for the GIL is charged to the function that has it: asleep, in C, and for less than the switch interval" {
  local python name least most took charged all right elsewhere
  for python in $(gil_pythons); do
    echo "$python"
    pygil "$python" holds 4 -G folded=1
    echo "[free]: $(waited 'wants_it ' '^\\[free\\]'), [unknown]: $(waited 'wants_it ' '^\\[unknown\\]')"
    right=0 elsewhere=0
    while read -r name least most took; do
      charged=$(waited 'wants_it ' "$name ")
      echo "$name: $charged, of $least to $most"
      [ "$least" -gt 30000 ] || [ "$name" = keeps_it_briefly ]
      [ "$charged" -ge $((least * 95 / 100)) ]
      [ "$charged" -le $((most * 105 / 100)) ]
      right=$((right + charged)) elsewhere=$((elsewhere - took))
    done < <(grep '^keeps_' "$printed.said")
    read -r _ least _ took < <(grep '^holds ' "$printed.said")
    # what the thread may have had the GIL for before it slept or when it had: the machine may stop it anywhere
    elsewhere=$((elsewhere + took - least - $(waited 'rests ' .))) elsewhere=$((elsewhere > 0 ? elsewhere : 0))
    all=$(waited 'wants_it ' ';holds ')
    echo "$right of $all, and $elsewhere elsewhere"
    [ "$all" -gt 1000000 ]
    [ "$right" -ge $((all * 95 / 100 - elsewhere)) ]
    # the other one waits when it has slept, for the one that computes, and then for a CPU
    charged=$(waited 'rests ' 'wants_it ') all=$(($(waited 'rests ' .) - $(waited 'rests ' '^\\[free\\]')))
    echo "rests: $charged of $all"
    [ "$charged" -gt 100000 ]
    [ "$charged" -ge $((all * 95 / 100)) ]
  done
}

@test "two functions that compute have the GIL for as long as each is on a CPU" {
  need_time
  local python much little a b
  for python in $(gil_pythons | some 3); do
    echo "$python"
    pygil "$python" computes 10 -G folded=1
    read -r _ little < <(grep computes_little "$printed.said")
    read -r _ much < <(grep computes_much "$printed.said")
    # of the two threads only: the main thread and threads that begin wait, too
    a=$(waited 'computes ' 'computes_little ') b=$(waited 'computes ' 'computes_much ')
    echo "on a CPU: $little $much; waited: $a $b"
    [ "$b" -gt 3000000 ]
    # Of all, within ten points: a stop of the machine may be a tenth of a second of one of them, and in a thread that has
    # no GIL, but is on a CPU.
    awk -v a="$a" -v b="$b" -v l="$little" -v m="$much" \
      'BEGIN { is = 100 * a / (a + b); was = 100 * l / (l + m); print is, was; exit is < was - 10 || is > was + 10 }'
  done
}

@test "an interpreter with a GIL of its own has waiters and holders of its own" {
  need_time
  local python
  # shellcheck disable=SC2046
  set -- $(gil_pythons | with_minor | awk '$1 + 0 >= 12 { print $2 }' | some 2)
  [ $# -gt 0 ] || skip "needs CPython 3.12 or later"
  for python; do
    echo "$python"
    pygil "$python" interpreters 3 -G folded=1
    [ "$(waited 'computes_elsewhere ' 'computes_elsewhere ')" -gt 300000 ]
    [ "$(waited 'computes ' 'computes ')" -gt 300000 ]
    [ "$(waited 'computes_elsewhere ' 'computes ')" = 0 ]
    [ "$(waited 'computes ' 'computes_elsewhere ')" = 0 ]
    pygil "$python" interpreters 3
    cat "$printed"
    # a line for each GIL in a second
    [ "$(awk '$3 ~ /^python/ && $4 > 20 { print $1 }' "$printed" | sort | uniq -c | awk '$1 == 2' | wc -l)" -ge 1 ]
  done
}

@test "the seconds and the tables of pygil say the same as its stacks" {
  pygil "$system" computes 5
  cat "$printed"
  # one of the two threads waits at each moment: half of their time
  awk '/PROGRAM/ && !lines { print; lines++ } $3 ~ /^python/ && $4 ~ /^[0-9.]+$/ { seconds++; if ($4 > 45 && $5 > 0.45 && $5 < 1.1 && $6 > 10) busy++ }
    END { exit !(lines == 1 && seconds >= 4 && seconds <= 8 && busy >= 3) }' "$printed"
  # each table has all of the waiting: one waits while the other one computes, or is about to (an emulated CPU takes
  # a tenth of the time for that)
  awk '/^ +WAITED\(us\) +TOTAL\(us\)  FUNCTION$/ { part = 1 } /^ +HELD\(us\) +TOTAL\(us\)  FUNCTION$/ { part = 2 }
    part { all[part] += $1 } part && $3 ~ /^(computes_|\[free\])/ { sum[part] += $1 } part && $3 == "[free]" { free = $1 }
    END { print all[1], all[2], sum[1], sum[2], free
      exit !(sum[1] > 2000000 && all[2] > all[1] * 0.99 && all[2] < all[1] * 1.01 && sum[1] > all[1] * 0.9 &&
        sum[2] > all[1] * 0.9 && free < all[1] * 0.3) }' "$printed"
}

@test "pygil says once of a free-threaded program that it has no GIL, and charges nothing" {
  local python
  for python in $(free_threaded_pythons); do
    echo "$python"
    script_says pygil -G folded=1 -c "env PYTHON_GIL=0 LD_PRELOAD=$shim $python $gil computes 3" >/dev/null
    cat "$printed.said"
    [ "$(grep -c 'WARNING: process [0-9]*, and perhaps others, runs without a GIL: no thread waits for it$' "$printed.said")" = 1 ]
    [ ! -s "$printed" ]
  done
  [ -e "$printed.said" ] || skip "needs a free-threaded CPython"
}

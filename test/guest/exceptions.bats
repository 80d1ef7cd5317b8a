# Exceptions in the kernel: python.exception, and pyexc.  test/host/markers.bats has the marker in every interpreter.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  raises=$top/test/workloads/raises.py
}

# What workloads/raises.py says that it raises, as LINE TYPE COUNT, with COUNT times $1.
raised() {
  awk -v times="$1" '/  # [0-9]+ [A-Za-z]+$/ { print NR, $NF, $(NF - 1) * times }' "$raises" | sort
}

@test "pyexc counts each raise once, in every way of hooking, and prints it with its arguments" {
  local python pythons
  for python in $(pythons_by_hook); do
    echo "LD_PRELOAD=$shim $python $raises"
  done >"$BATS_TEST_TMPDIR/all.sh"
  pythons=$(wc -l <"$BATS_TEST_TMPDIR/all.sh")
  script pyexc -G live=1 -G top=1000 -c "sh $BATS_TEST_TMPDIR/all.sh"
  sed '1,/^ *COUNT  EXCEPTION/d' "$printed" |
    awk -v file="$raises:" 'index($4, file) == 1 { print substr($4, length(file) + 1), $2, $1 }' | sort |
    diff <(raised "$pythons") -
  # the same by the lines
  grep -F " $raises:" "$printed" | sed -nE 's/^[0-9]+[.][0-9]{6} .*\([0-9]+\): ([A-Za-z]+)\(.*:([0-9]+)$/\2 \1/p' |
    sort | uniq -c | awk '{ print $2, $3, $1 }' | sort | diff <(raised "$pythons") -
  [ "$(grep -cF ": ValueError('x') in raises $raises:" "$printed")" = $((4 * pythons)) ]
  [ "$(grep -cF ": Failure('deep') in down $raises:" "$printed")" = "$pythons" ]
  [ "$(grep -cF ": ZeroDivisionError('division by zero') in by_an_instruction $raises:" "$printed")" = "$pythons" ]
}

@test "pyexc has a row for each stack, of the classes that match" {
  script pyexc -G stacks=1 -G live=1 -G by_process=1 -G top=1000 -c "env LD_PRELOAD=$shim $system $raises" '^(ValueError|KeyError)$'
  refute grep -E 'Failure|AttributeError' "$printed"
  # live, and in the table
  [ "$(grep -A 2 -E "^[0-9.]+ .*\([0-9]+\): ValueError\('x'\) in raises $raises:25$" "$printed" |
    grep -cE "^File \"$raises\", line [0-9]+, in (passes|takes|<lambda>)$")" = 4 ]
  sed '1,/COUNT  EXCEPTION$/d' "$printed" >"$BATS_TEST_TMPDIR/table"
  cat "$BATS_TEST_TMPDIR/table"
  grep -A 2 -E '^ *[0-9]+ +1  ValueError$' "$BATS_TEST_TMPDIR/table" | grep -x "File \"$raises\", line 29, in passes"
  grep -A 2 -E '^ *[0-9]+ +1  KeyError$' "$BATS_TEST_TMPDIR/table" | grep -x "File \"$raises\", line 48, in by_a_subscript"
}

@test "pyexc's rows are JSON" {
  need_time
  script pyexc -G live=1 -G json=1 -c "env LD_PRELOAD=$shim $system $raises" 'Odd|Runtime'
  jq -r 'select(.time_s) | "\(.exception) \(.function) \(.line)"' "$printed" | grep -x 'Odd() another_from_it 81'
  jq -r 'select(.count) | "\(.count) \(.exception) \(.function) \(.file) \(.line)"' "$printed" |
    sort | diff <(printf '%s\n' "1 Odd another_from_it $raises 81" "1 RuntimeError another_from_it $raises 83") -
}

@test "pyexc refuses a number of rows that it can't print" {
  need_time
  refuses 'pyexc: top must be 1 to 1000, not 1001' pyexc -G top=1001
}

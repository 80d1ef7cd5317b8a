# The driver: the language of its descriptions, and its options.  Events of the driver: test/host/driver-events.bats.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  events=$BATS_TEST_TMPDIR/events
}

# Checks that the driver refuses the lines $2..., whose last one is wrong: one line on stderr with the words $1, and
# nothing is fired.
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
  [ "$(notes "$driver" | grep -A 1 'Provider: python$' | grep Name: | sort -u | wc -l)" = "$("$driver" --list | wc -l)" ]
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

# test/lib/run and test/lib/nightly: which suites run at the same time, with which shim, and what is printed at the end.
# test/lib/run or a long check runs every suite of the tree.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper

teardown() {
  [ ! "${tree:-}" ] || rm -rf "$tree"
}

# Makes $tree, a tree with test/lib/run, a fake guest and no suites.  $tree/log lists what runs.
make_tree() {
  tree=$(mktemp -d "$(fit_folder)/runner.XXXXXX")
  chmod 755 "$tree"
  mkdir -p "$tree"/{build,test/{lib/helpers,vm,fast,host,guest}}
  cp "$top/test/lib/run" "$tree/test/lib"
  cp "$top/test/lib/helpers/place.bash" "$tree/test/lib/helpers"
  printf '#!/bin/sh\necho "guest $*" >>"%s/log"\n' "$tree" >"$tree/test/vm/guest"
  printf '#!/bin/sh\n' >"$tree/test/vm/stap"
  chmod +x "$tree"/test/vm/*
  echo "the shim" >"$tree/build/libpython-stap.so.0"
  : >"$tree/log"
}

# Makes a suite of one test, which logs its beginning, with its shim, and its end, and runs COMMAND in between.
# usage: suite FOLDER/NAME COMMAND [LINE OF ITS HEAD]
suite() {
  # "@test" here would be a test of this suite
  sed 's/^TEST/@test/' >"$tree/test/$1.bats" <<BATS
# A suite.
${3:-#}

TEST "$1 is run" {
  echo "$1 begins \${SHIM:-}" >>"$tree/log"
  $2
  echo "$1 ends" >>"$tree/log"
}
BATS
}

# Runs the tree's test/lib/run without the variables of the bats that runs this suite.
# usage: run_suites ARGUMENTS...
run_suites() {
  local name unset=()
  for name in "${!BATS_@}" SHIM TREE ONLY_PYTHONS STAP_VM_ROOT; do unset+=(-u "$name"); done
  run env "${unset[@]}" "$tree/test/lib/run" "$@"
  echo "$output"
  cat "$tree/log"
}

# The number of the line in the log.
line() {
  grep -nxF "$1" "$tree/log" | cut -d: -f1
}

# What a suite runs to wait for a line in the log.
waits_for() {
  echo "timeout $((60 * SLOW)) sh -c 'until grep -q \"^$1\" \"$tree/log\"; do sleep 0.1; done'"
}

@test "the suites of test/fast run before those of test/host, and those of test/guest beside both" {
  make_tree
  echo >"$tree/build/check.lock"
  chmod 644 "$tree/build/check.lock"
  suite fast/first "$(waits_for 'fast/second begins') && $(waits_for 'guest/only ends')"
  suite fast/second "$(waits_for 'fast/first begins')"
  suite host/plain true
  suite host/copied '[ "$(cat "$SHIM")" = "the shim" ]' '# copy of the shim'
  suite guest/only 'sleep 0.1'
  run_suites
  [ "$status" = 0 ]
  [[ ${lines[-1]} == "5 passed, 0 failed, 0 skipped in "*" min "*" s" ]]
  grep -x 'ok host/plain is run in [0-9]*ms' "$tree/build/check.tap"
  # two at a time, as each has waited for the other, and all ends before a tracer may attach
  [ "$(line 'fast/first ends')" -lt "$(line 'host/plain begins ')" ]
  [ "$(line 'fast/second ends')" -lt "$(line "host/copied begins $tree/build/copy/libpython-stap.so.0")" ]
  [ "$(line 'guest/only ends')" -lt "$(line 'host/plain begins ')" ]
  # no other user can stop it by the lock
  [ "$(stat -c %a "$tree/build/check.lock")" = 600 ]
  # a guest that ran before goes on
  refute grep -x 'guest stop' "$tree/log"
}

@test "a suite alone, one that fails, one that is skipped and one that breaks off are told in the last lines" {
  make_tree
  suite fast/good true
  suite fast/bad '{ seq 30; false; }'
  suite host/lacks 'skip "needs luck"'
  suite host/breaks 'kill -KILL $PPID $$'
  run_suites test/fast/good.bats
  [ "$status" = 0 ]
  [[ ${lines[-1]} == "1 passed, 0 failed, 0 skipped in "* ]]
  run_suites
  [ "$status" = 1 ]
  grep -xE '  host/lacks is run in [0-9]*ms # skip needs luck' <<<"$output"
  grep -xE '  fast/bad is run in [0-9]*ms' <<<"$output"
  grep -xE "    #   .\{ seq 30; false; \}' failed" <<<"$output"
  grep -xE '    # +30' <<<"$output"
  refute grep -xE '    # +10' <<<"$output"
  grep -xF 'not run: 1' <<<"$output"
  [[ ${lines[-1]} == "1 passed, 2 failed, 1 skipped in "* ]]
}

@test "make check-fast runs those of test/fast without the tests tagged slow, and looks for no guest" {
  make_tree
  suite fast/first true
  suite fast/long 'sleep 9' '# bats file_tags=slow'
  suite host/plain true
  suite guest/only true
  run_suites --fast
  [ "$status" = 0 ]
  [[ ${lines[-1]} == "1 passed, 0 failed, 0 skipped in "* ]]
  diff - "$tree/log" <<<$'fast/first begins \nfast/first ends'
}

@test "an interpreter that isn't there is named, and no test passes for want of it" {
  local variable name unset=()
  make_tree
  suite fast/one true
  cp "$top/test/lib/setup_suite.bash" "$tree/test/lib"
  ln -s ../lib/setup_suite.bash "$tree/test/fast"
  for name in "${!BATS_@}"; do unset+=(-u "$name"); done
  for variable in PYTHONS ONLY_PYTHONS; do
    run env "${unset[@]}" "$variable=/nonexistent/python3" bats "$tree/test/fast/one.bats"
    echo "$output"
    [ "$status" != 0 ]
    grep -qF "there is no /nonexistent/python3 (PYTHONS, ONLY_PYTHONS)" <<<"$output"
    refute grep 'one begins' "$tree/log"
  done
}

@test "what a check needs is installed once nothing else holds the package manager's locks" {
  local bin=$BATS_TEST_TMPDIR/bin
  tree=$(mktemp -d "$BATS_TEST_TMPDIR/setup.XXXXXX")
  mkdir -p "$tree/test/lib" "$tree/test/vm" "$bin"
  cp "$top/test/lib/setup" "$tree/test/lib"
  cp "$top/test/vm/lib.sh" "$tree/test/vm"
  echo 'check needed - - /nonexistent/needed' >"$tree/test/lib/setup.list"
  # apt-get update does not wait for its lock, and install does if told to
  cat >"$bin/apt-get" <<'SH'
#!/bin/sh
echo "apt-get $*" >>"$TREE/calls"
case " $* " in
  *" update "*)
    [ "$(grep -c update "$TREE/calls")" -gt "$HELD" ] && exit
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 21942 (apt-get)" >&2
    exit 100 ;;
esac
SH
  printf '#!/bin/sh\necho "sleep $*" >>"$TREE/calls"\n' >"$bin/sleep"
  printf '#!/bin/sh\nexec "$@"\n' >"$bin/sudo"
  chmod +x "$bin"/*
  run env PATH="$bin:$PATH" TREE="$tree" HELD=2 STAP_VM=never "$tree/test/lib/setup" check
  echo "$output"
  cat "$tree/calls"
  [ "$status" = 0 ]
  [ "$(grep -c ' update' "$tree/calls")" = 3 ]
  [ "$(grep -c ^sleep "$tree/calls")" = 2 ]
  grep -qF "waiting for another apt-get" <<<"$output"
  grep -qE 'DPkg::Lock::Timeout=[0-9]+ .*install.* needed' "$tree/calls"
  # for ever it does not
  rm "$tree/calls"
  run env PATH="$bin:$PATH" TREE="$tree" HELD=1000 STAP_VM=never "$tree/test/lib/setup" check
  echo "$output"
  [ "$status" = 1 ]
  grep -qF "held by process 21942" <<<"$output"
  refute grep -q install "$tree/calls"
}

@test "make check-nightly runs its checks one after the other, whatever comes of each, and prints a table of them" {
  local make=$BATS_TEST_TMPDIR/make
  tree=$(mktemp -d "$BATS_TEST_TMPDIR/nightly.XXXXXX")
  mkdir -p "$tree/test/lib"
  cp "$top/test/lib/nightly" "$tree/test/lib"
  cat >"$make" <<'SH'
#!/bin/sh
echo "$*" >>calls
echo "some lines of $2"
echo "7 passed in $2"
[ "$2" != check-stress ] || { echo "make: *** [Makefile:1: check-stress] Error 1" >&2; exit 2; }
SH
  chmod +x "$make"
  MAKE=$make run "$tree/test/lib/nightly"
  echo "$output"
  [ "$status" = 1 ]
  diff <(sed 's/.*-//' "$tree/calls") - <<<$'every\nmutants\nstress\nmemory\nfuzz\nload'
  diff <(tail -n 6 <<<"$output" | tr -s ' ') - <<'TABLE'
check-every passed 0 min 7 passed in check-every
check-mutants passed 0 min 7 passed in check-mutants
check-stress FAILED 0 min 7 passed in check-stress
check-memory passed 0 min 7 passed in check-memory
check-fuzz passed 0 min 7 passed in check-fuzz
check-load passed 0 min 7 passed in check-load
TABLE
  grep -qx 'some lines of check-fuzz' "$tree/build/nightly/fuzz.log"
  MAKE=$make run "$tree/test/lib/nightly" memory
  [ "$status" = 0 ]
  [[ ${lines[-1]} == "check-memory "*passed* ]]
}

@test "every suite is run by make check or by a long check" {
  local file count=0
  while read -r file; do
    count=$((count + 1))
    case $file in
      test/fast/*/* | test/host/*/* | test/guest/*/*) ;;
      test/fast/* | test/host/* | test/guest/*) continue ;;
      test/long/*/*/*) ;;
      test/long/*/*) ! grep -qF -e "${file##*/}" -e '*.bats' "$top/${file%/*}/run" || continue ;;
    esac
    echo "nothing runs $file"
    return 1
  done < <(project_files | grep '\.bats$')
  [ "$count" -gt 60 ]
}

@test "the suites of test/fast need no tracer; those that have a copy of the shim don't run stap-python" {
  cd "$top"
  refute grep -nE '(can_bpftrac[e]|bpftrace_(whil[e]|besid[e]|unti[l])|need_live_sta[p])' test/fast/*.bats
  grep -lx '# copy of the shim' test/*/*.bats >"$BATS_TEST_TMPDIR/copied"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/copied")" -gt 5 ]
  refute grep -v '^test/host/' "$BATS_TEST_TMPDIR/copied"
  refute xargs grep -n '^load ../lib/launcher$' <"$BATS_TEST_TMPDIR/copied"
}

@test "the C files and programs that the benchmark names are there" {
  local path found=0
  cd "$top"
  while IFS= read -r path; do
    [ -e "test/$path" ] || { echo "test/bench/run names test/$path" && return 1; }
    found=$((found + 1))
  done < <(grep -oE '(library\(|os\.path\.join\(TOP, "test", )"[^)]*"\)' test/bench/run | grep -oE '"[^)]*"' |
    sed 's/^"test", //; s/", "/\//g; s/"//g')
  [ "$found" -ge 3 ]
}

@test "test/README.md has each suite in the column of its folder" {
  local column=3 folder
  for folder in fast host guest; do
    sed '1,/^| | fast | host | guest |$/d; /^$/,$d' "$top/test/README.md" | cut -d'|' -f"$column" | grep -oE '[a-z]*(-[a-z]+)+|[a-z]+' |
      sed 's/^-/stap-python-/' | sort | diff - <(cd "$top/test/$folder" && printf '%s\n' *.bats | sed 's/\.bats$//' | sort)
    column=$((column + 1))
  done
}

@test "the checker of pytrace's timeline objects to what Perfetto would drop or show wrong" {
  python3 - "$top/test/lib/timeline.py" "$BATS_TEST_TMPDIR/trace" <<'PY'
import copy
import json
import subprocess
import sys


def track(tid, name):
    return dict(ph="M", ts=0, pid=1, tid=tid, name="thread_name", args={"name": name})


whole = [
    track(1, "a"), track(2, "b"), track(5000001, "a state"),
    dict(ph="B", ts=1, pid=1, tid=1, name="f", cat="x.py"),
    dict(ph="X", ts=1, dur=1, pid=1, tid=5000001, name="CPU 0", cat="state"),
    dict(ph="X", ts=2, dur=2, pid=1, tid=5000001, name="timer", cat="state"),
    dict(ph="B", ts=2, pid=1, tid=2, name="futex", cat="system call"),
    dict(ph="s", ts=2, pid=1, tid=2, name="GIL", cat="gil", id=1),
    dict(ph="f", ts=3, pid=1, tid=1, name="GIL", cat="gil", id=1),
    dict(ph="E", ts=3, pid=1, tid=2),
    dict(ph="E", ts=4, pid=1, tid=1, name="f"),
]


def accepts(change):
    events = copy.deepcopy(whole)
    change(events)
    with open(sys.argv[2], "w") as file:
        json.dump(events, file)
    return not subprocess.call([sys.executable, sys.argv[1], sys.argv[2]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


assert accepts(lambda events: None)
for name, change in {
    "no end": lambda events: events.pop(),
    "two ends": lambda events: events.append(dict(events[-1], ts=5)),
    "another's end": lambda events: events[-1].update(name="g"),
    "an overlap": lambda events: events[5].update(ts=1.5),
    "a gap": lambda events: events[5].update(ts=2.5),
    "back in time": lambda events: events.insert(4, dict(events[3], ph="i", ts=0.5)),
    "no beginning of an arrow": lambda events: events.pop(7),
    "no end of an arrow": lambda events: events.pop(8),
    "an arrow from nowhere": lambda events: events[7].update(ts=3.5),
    "an arrow back in time": lambda events: events[8].update(ts=1.5),
    "a track without a name": lambda events: events.pop(1),
}.items():
    assert not accepts(change), name
PY
}

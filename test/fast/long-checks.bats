# The tools of the long checks: lists, arguments, and how "make check-cpython" compares results.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

@test "the list of make check-arm64 names suites that are there, and words of their tests" {
  local guest release suite filter words count=0
  while read -r guest release suite filter; do
    echo "$guest $release $suite $filter"
    [ -e "$top/test/$suite" ]
    while read -r words; do
      [ "$(bats --count --filter "${words:-.}" "$top/test/$suite")" -gt 0 ]
    done < <(tr '|' '\n' <<<"$filter")
    count=$((count + 1))
  done < <("$top/test/long/arm64/run" --list)
  [ "$count" -gt 10 ]
}

@test "make check-arm64 refuses what it doesn't know" {
  refuses_arguments test/long/arm64/run "--quickly" "no_such_suite"
}

@test "what makes roots is installed for each long check that has some" {
  local check file
  while IFS= read -r file; do
    check=check-${file%%/*}
    grep -qE "^$check +mmdebstrap " "$top/test/lib/setup.list" || { echo "$check: no mmdebstrap" && false; }
  done < <(cd "$top/test/long" && grep -rlE --exclude='*.md' 'type -P mmdebstrap|roots\.bash' -- *)
}

@test "make check-jit refuses what it doesn't know" {
  refuses_arguments test/long/jit/run "no_such_suite.bats" "--quickly" "no_such_python"
}

@test "make check-browser refuses what it doesn't know" {
  refuses_arguments test/long/browser/run "--quickly" "x.svg"
}

@test "make check-features refuses what it doesn't know" {
  refuses_arguments test/long/features/run "--quickly"
}

@test "make check-locks refuses what it doesn't know" {
  refuses_arguments test/long/locks/run "--quickly" "pyprof"
}

@test "make check-processors refuses what it doesn't know" {
  refuses_arguments test/long/processors/run "--quickly" "pyprof"
}

# Makes a fake interpreter with CPython's tests.  Each test file has two tests; the file's name has their result
# without the shim and with it.  Each run adds a line to $ran.
stand_in() {
  cat >"$1" <<'SH'
#!/bin/bash
case $* in
  -c*) printf '3.11\n3.11 of Monday\n' && exit ;;
esac
xml=$5 name=${!#} way=${LD_PRELOAD:+with} outcome='' status=0
unset LD_PRELOAD
echo "$name${way:+ $way}" >>"$ran"
case $name in
  *skips) echo "$name skipped -- no such thing here" && exit ;;
  *hangs) echo "test_it (test.it)" && exec sleep 60 ;;
  *dies_$way) kill -SEGV $$ ;;
  *fails_$way) outcome='<failure/>' status=2 ;;
  *fails) outcome='<error/>' status=2 ;;
esac
echo "<testsuite><testcase name='test.$name.first'>$outcome</testcase><testcase name='test.$name.other'/></testsuite>" >"$xml"
exit "$status"
SH
  chmod +x "$1"
}

@test "what differs in a stand-in for CPython's tests is reported, what does not end without the shim is left out" {
  local ran=$BATS_TEST_TMPDIR/ran compare
  export ran control=/nonexistent
  stand_in "$BATS_TEST_TMPDIR/python"
  compare=(/usr/bin/python3 -B "$top/test/long/cpython/compare.py" --limit 2 "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/python")
  run "${compare[@]}" test_good test_fails test_skips test_hangs test_fails_with test_dies_with
  echo "$output"
  [ "$status" = 1 ]
  diff <(sed -E 's/[0-9]+ s, with the shim [0-9]+ s/TIMES/' <<<"${output%$'\n'*}" | sort) - <<'END'
  differs: test.test_dies_with.first: ok; with the shim absent (4 of 4)
  differs: test.test_dies_with.other: ok; with the shim absent (4 of 4)
  differs: test.test_fails_with.first: ok; with the shim failure (4 of 4)
  differs: test_dies_with (end): ok; with the shim exit status -11, in no test (4 of 4)
  fails without the shim too: test.test_fails.first
test_dies_with: 0 the same; TIMES
test_fails: 3 the same; TIMES
test_fails_with: 2 the same; TIMES
test_good: 3 the same; TIMES
test_hangs: left out: no end in 2 s, in test_it (test.it) without the shim
test_skips: left out: skipped -- no such thing here without the shim
END
  [ "$(grep -c '^test_good' "$ran")" = 2 ]

  # What was done with this shim, or without one, is not repeated.
  : >"$ran"
  "${compare[@]}" --continue test_good
  "${compare[@]}" test_good
  cp "$shim" "$BATS_TEST_TMPDIR/other.so"
  shim=$BATS_TEST_TMPDIR/other.so "${compare[@]}" --continue test_good
  diff - "$ran" <<'END'
test_good with
test_good with
END
}

@test "the other tool in the shim's place is in a test's children too" {
  local python tried=0 tool_library=$BATS_TEST_TMPDIR/tool.so
  export tool="import sys; print(sys.monitoring.get_tool(4))"
  "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -o "$tool_library" "$top/test/long/cpython/control.c"
  for python in $(pythons); do
    LD_PRELOAD=$tool_library "$python" -X dev -c 'print("still a program")'
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || continue
    tried=$((tried + 1))
    LD_PRELOAD=$tool_library run "$python" -c 'import os, subprocess, sys
for options in [], ["-I", "-S"], ["-X", "dev"]:
    subprocess.run([sys.executable, *options, "-c", os.environ["tool"]], check=True)
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, os.environ["tool"])
interpreters.destroy(other)'
    echo "$python: $output"
    [ "$status" = 0 ]
    [ "$output" = $'control\ncontrol\ncontrol\ncontrol' ]
  done
  [ "$tried" -gt 0 ] || skip "needs CPython 3.12 or later"
}

@test "test/long/load/run names what it can't do in one line" {
  refuses_arguments test/long/load/run "--seconds 7" "--rate fast" "--quickly" "no_such_script"
}

@test "test/long/service/run names what it can't do in one line" {
  refuses_arguments test/long/service/run "--requests none" "--quickly" "no_such_script"
}

@test "test/long/soak/run names what it can't do in one line" {
  refuses_arguments test/long/soak/run "--minutes 2" "--seed 40000" "--quickly" "pycalls"
}

@test "what tracers left in the memory of a process is named: a raised semaphore, a byte of code" {
  local line way system
  read -r system < <(system_python)
  make_semaphores "$BATS_TEST_TMPDIR" gc__start
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
import sys
code = next(line for line in open("/proc/self/maps") if " r-xp " in line and "libpython-stap" in line)
if len(sys.argv) > 1:
    with open("/proc/self/mem", "r+b", 0) as memory:
        memory.seek(int(code.split()[0].split("-")[1], 16) - 1)
        memory.write(b"\xcc")
print("ready", flush=True)
sys.stdin.read()
PY
  for way in '' left; do
    coproc program { LD_PRELOAD="${way:+$BATS_TEST_TMPDIR/semaphores.so }$shim" exec "$system" "$BATS_TEST_TMPDIR/program.py" $way; }
    read -r line <&"${program[0]}"
    [ "$line" = ready ]
    semaphore_notes "$shim" | sed "s|^|$shim |" | "$system" "$top/test/lib/left_in_memory.py" "$program_PID" >"$BATS_TEST_TMPDIR/found$way"
    kill "$program_PID"
    wait "$program_PID" || true
  done
  cat "$BATS_TEST_TMPDIR"/found*
  [ ! -s "$BATS_TEST_TMPDIR/found" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/foundleft")" = 2 ]
  grep -qE '^[0-9]+: code of .*/libpython-stap[^ ]* at 0x[0-9a-f]+: 0xcc, was 0x..$' "$BATS_TEST_TMPDIR/foundleft"
  grep -qE '^[0-9]+: semaphore of gc__start in .*/libpython-stap[^ ]*: 1$' "$BATS_TEST_TMPDIR/foundleft"
}

@test "the stress names its parts, and what is none of them" {
  run "$top/test/long/stress/run" --list
  [ "$status" = 0 ]
  [[ $output == *filters* ]]
  run "$top/test/long/stress/run" filter
  echo "$output"
  [ "$status" = 2 ]
  [[ $output == 'test/long/stress/run: there is no part "filter": the parts are tracers '* ]]
}

# figures FILE LINE...: a table of test/bench/run --csv.
figures() {
  printf '%s\n' part,what,python,unit,base,value,ratio,target "${@:2}" >"$1"
}

@test "what has become more than 3 % dearer is named, and what is in one of two tables alone" {
  cd "$BATS_TEST_TMPDIR"
  figures old 'part,"dear, indeed",3.11.2,ns,0.0,1000.0,1.000,' part,same,3.11.2,ns,0.0,1000.0,1.000, \
    part,cheap,3.11.2,ns,0.0,1000.0,1.000, part,small,3.11.2,ns,0.0,1.0,1.000, part,gone,3.11.2,ns,0.0,1.0,1.000,
  figures new 'part,"dear, indeed",3.11.2,ns,9.0,1030.1,1.000,' part,same,3.11.2,ns,0.0,1030.0,1.000, \
    part,cheap,3.11.2,ns,0.0,10.0,1.000, part,small,3.11.2,ns,0.0,2.0,1.000, part,fresh,3.11.2,ns,0.0,1.0,1.000,
  run "$top/test/bench/run" --compare old new
  [ "$status" = 1 ]
  diff - <(echo "$output") <<'END'
dearer: part: dear, indeed, 3.11.2: 1030.1, it was 1000.0
gone: part: gone, 3.11.2
new: part: fresh, 3.11.2
END
  run "$top/test/bench/run" --compare new new
  [ "$status" = 0 ]
  [ "$output" = "" ]
}

@test "make check-instructions compares with figures that are there, of each script that sees events" {
  local script scripts=''
  refuses_arguments test/long/instructions/run "--quickly"
  for script in "$top"/scripts/*.stp; do
    script=$(basename "$script" .stp)
    # it prints once, and sees no events
    [ "$script" = pydump ] || scripts+=$script$'\n'
  done
  diff <(sort <<<"${scripts%$'\n'}") <(grep -oE '^instructions,py[a-z]+( [^:]*)?: ' "$top/test/bench/instructions.csv" |
    sed -E 's/^instructions,(py[a-z]+).*/\1/' | sort -u)
}

# stap-python: scripts by their names, with a fake stap.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Checks that the fake stap runs with these arguments, and that stap-python prints LINE on stderr, or nothing if it
# is "".
# usage: says LINE ARGUMENTS...
says() {
  says_and_gives "$1" "$([ $# = 2 ] || printf ' <%s>' "${@:3}")" "${@:2}"
}

# The same, but the fake stap gets WORDS, " <WORD> <WORD>...", after what it always gets.
# usage: says_and_gives LINE WORDS ARGUMENTS...
says_and_gives() {
  local line=$1 words=$2
  shift 2
  run quietly "$@"
  echo "$*: $status $output"
  cat "$said"
  [ "$status" = 5 ]
  [ "${lines[*]:1}" = "<$top/scripts/$1.stp> $always$words" ]
  [ "$(cat "$said")" = "${line:+stap-python: $line}" ]
}

# Makes $STAP_PYTHON_ROOT, whose /proc has these processes only.
only_processes() {
  local pid
  export STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/root
  rm -rf "$STAP_PYTHON_ROOT"
  mkdir -p "$STAP_PYTHON_ROOT/proc/self"
  cp /proc/self/status "$STAP_PYTHON_ROOT/proc/self"
  for pid in "$@"; do
    ln -s "/proc/$pid" "$STAP_PYTHON_ROOT/proc"
  done
}

@test "a script's name runs stap on it, with the tapset and the arguments, and ends with its status" {
  fake_stap
  run quietly pyaudit -v x
  [ "$status" = 5 ]
  [ "${lines[*]}" = "tapset $top/build/tapset <$top/scripts/pyaudit.stp> $always <-v> <x>" ]
  run quietly pycalls.stp
  [ "${lines[*]}" = "tapset $top/build/tapset <$top/scripts/pycalls.stp> $always" ]
  run env SYSTEMTAP_TAPSET=/mine timeout $((20 * SLOW)) "$launcher" pygc -c true
  [ "${lines[0]}" = "tapset /mine" ]
  STAP=$BATS_TEST_TMPDIR/none refuses 127 'none not found: run stap-python doctor' pygc
}

@test "what -c of a script starts has the shim, however it is written" {
  local line given got with="$env_program 'LD_PRELOAD=$shim'"
  fake_stap
  # each line: the arguments, and what stap gets
  while read -r line; do
    given=${line%% => *} got=${line#* => }
    eval "run quietly pyaudit $given"
    echo "$given: ${lines[*]:2}"
    [ "${lines[*]:2}" = "$always $got" ]
  done <<LINES
-c 'python3 x.py' => <-c> <$with python3 x.py>
-c'python3 x.py' => <-c$with python3 x.py>
-vc 'A=1 python3 x.py' => <-vc> <$with A=1 python3 x.py>
-c 'a; b' => <-c> <$with sh -c 'a; b'>
-c "a 'b c' | d" => <-c> <$with sh -c 'a '\\''b c'\\'' | d'>
-c "'b c' | d" => <-c> <$with sh -c ' '\\''b c'\\'' | d'>
-o x -c 'x' y => <-o> <x> <-c> <$with x> <y>
-o -c x => <-o> <-c> <x>
-e -c -c x => <-e> <-c> <-c> <$with x>
-- -c => <--> <-c>
--compatible -c x => <--compatible> <-c> <$with x>
-c => <-c>
LINES
}

@test "--list-scripts has each script and its title" {
  local script
  run launcher --list-scripts
  [ "$status" = 0 ]
  [ "${#lines[@]}" = "$(find "$top/scripts" -maxdepth 1 -name '*.stp' | wc -l)" ]
  for script in "$top"/scripts/*.stp; do
    script=${script##*/}
    grep -qE "^${script%.stp} +$(sed -n 's/^title: //p' "$top/scripts/${script%.stp}.meta")$" <<<"$output"
  done
}

@test "each script's --help is the comment at its head, as for stap-python, and its parameters are globals" {
  local script name parameter usages example
  fake_stap
  for script in "$top"/scripts/*.stp; do
    name=$(basename "$script" .stp)
    echo "$name"
    usages=3 example="-c 'python3 PROGRAM.py'"
    if [ "$name" = pydump ]; then usages=1 example='-x PID'; fi
    run launcher "$name" --help
    [ "$status" = 0 ]
    [[ ${lines[0]} == "$name - "* ]]
    [ "$(grep -c "^\(usage: \|       \)stap-python $name\( \|$\)" <<<"$output")" = "$usages" ]
    [ "${lines[-2]}" = "example: stap-python $name $example" ]
    [ -s "${lines[-1]#its output: }" ]
    # all of it, and nothing else
    diff <(sed -e '1,2d' -e '/SPDX/,$d' -e 's/^ \* \?//' "$script" | grep -v "stap .*$name\.stp") \
      <(head -n -2 <<<"$output" | grep -v "stap-python $name")
    while read -r parameter; do
      grep -E '^global ' "$script" | grep -qE "[ ,]$parameter = [0-9]+"
    done < <(sed -n 's/^-G \([a-z_]*\)=.*/\1/p' <<<"$output")
  done
  # wherever it is, unless it is an option's value, or behind the options
  run launcher pycalls -x 5 cfunctions -h
  [[ $status == 0 && ${lines[0]} == "pycalls - "* ]]
  run quietly pycalls -o --help -c x
  [ "$status" = 5 ]
  run quietly pyflow -c x -- -h
  [ "$status" = 5 ]
}

@test "a parameter that a script doesn't have, and a wrong argument, are refused before stap runs" {
  fake_stap
  refuses 2 'pytop: unknown -G topp; there are: by_process, clear, json, top, user \(see stap-python pytop --help\)$' pytop -G topp=5
  refuses 2 'pytop: unknown -G to; there are' pytop -Gtop=3 -vGto=5
  # not a parameter: what its argument sets
  refuses 2 'pygc: unknown -G least; there are: json \(' pygc -G least=5
  refuses 2 "pytop: -G top must be a number, not 'many' \(" pytop -G top=many
  refuses 2 "pytop: -G clear must be a number, not ''" pytop -G clear=
  refuses 2 "pytime: wrong argument 'x'; it takes \[exact\] \(see stap-python pytime --help\)$" pytime -c true x
  refuses 2 "pywho: wrong argument 'x'; it takes none \(see stap-python pywho --help\)$" pywho -c true x
  refuses 2 "pygc: wrong argument '6'; it takes \[MIN_US\] \(" pygc 5 6
  refuses 2 "pyslow: wrong argument 'slow'; it takes \[MS \[PATTERN\]\] \(" pyslow slow -c true
  refuses 2 "pyslow: wrong argument 'x'; it takes \[MS \[PATTERN\]\] \(" pyslow 5 'app.*' x -c true
  refuses 2 "pycalls: wrong argument 'x'; it takes \[cfunctions\] \[SECONDS\] \(" pycalls cfunctions -v -- 3 x
  refuses 2 "pycalls: wrong argument 'cfunctions'" pycalls 3 cfunctions
  refuses 2 "pycalls: wrong argument 'cfunction'" pycalls cfunction
  refuses 2 "pystacks: wrong argument '-c'; it takes \[REGEX\] \(" pystacks -o x a -- -c
  refuses 2 "pywatch: PATTERN is missing; it takes PATTERN \[EXPRESSION...\] \(see stap-python pywatch --help\)$" pywatch -c true
  says '' pycalls -p4 cfunctions
  says_and_gives '' ' <-G> <__python_argument1=33> <-p4> <->' pycalls -p4 3
  says '' pytop -G top=5 -vG by_process=1 -p4
  says '' pytime -o x -s 5 --compatible 4.8 --vp 1 -p4
  says '' pystacks -o x a -p4
  says_and_gives '' ' <-G> <__python_argument1=35> <-G> <__python_argument2=6170702e2a> <-> <-> <-p4>' pyslow 5 'app.*' -p4
  says_and_gives '' ' <-G> <__python_argument1=35> <-> <-p4>' pyslow 5 -p4
}

@test "-x of a process without the shim attaches first and says so, and then says nothing" {
  fake_stap
  start_program /usr/bin/python3
  says_and_gives "attached to $program: active" " <-G> <__python_argument1=35> <-x> <$program> <->" pycalls -x "$program" 5
  grep -qF "$shim" "/proc/$program/maps"
  says '' pycalls "-x$program"
  program_ends
}

@test "-x of a process that has started Pythons says that stap does not trace them, and what to do" {
  local child what='to see it, stap-python attach --children'
  fake_stap
  start_program sh -c '"$@" & wait' sh /usr/bin/python3
  child=$(pgrep -P "$program")
  programs+=("$child")
  wait_for runs "$child" /usr/bin/python3
  run quietly pycalls -x "$program"
  cat "$said"
  [ "$status" = 5 ]
  [ "$(cat "$said")" = "stap-python: $program: it does not run CPython; only what it starts from now on is traced
stap-python: -x does not trace the 1 Python that $program has already started: $what $program, then leave out -x" ]
  says "attached to $child: active" pycalls -x "$child"
  program_ends
}

@test "-x loads no shim where stap doesn't trace, and where CPython's own markers do" {
  local live
  fake_stap
  start_program /usr/bin/python3
  says '' pycalls -p4 -x "$program"
  always="<-l> <*>" says_and_gives '' " <-x> <$program>" pycalls -l '*' -x "$program"
  says '' pycalls --remote=host -x "$program"
  live=$(launcher list "$program" | awk '$1 ~ /^gc__/ && $2 == "live" && $4 == "CPython"' | wc -l)
  [ "$live" = 2 ] || skip "needs a /usr/bin/python3 whose own gc markers are live"
  says '' pygc -x "$program"
  refute grep -q libpython-stap "/proc/$program/maps"
  # it calls functions, too
  says "attached to $program: active" pystat -x "$program"
  program_ends
}

@test "with a PATTERN a script needs the shim, also where CPython's own markers do without one" {
  fake_stap
  start_program /usr/bin/python3
  launcher list "$program" | grep -qE '^ *gc__start +live .* CPython$' || skip "needs a /usr/bin/python3 whose own gc markers are live"
  make_tree
  mkdir "$BATS_TEST_TMPDIR/tree/scripts"
  cp "$shim" "$BATS_TEST_TMPDIR/tree/build"
  cp "$top/probes/native.list" "$BATS_TEST_TMPDIR/tree/probes"
  cat >"$BATS_TEST_TMPDIR/tree/scripts/own.stp" <<'STP'
#!/usr/bin/stap
/*
 * own - collections of some functions
 *
 * usage: stap own.stp [MS [PATTERN]]  every Python on the machine
 */
probe python.%( $# > 1 %? filtered. %)gc.start { next }
STP
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  run quietly own -x "$program" 5
  [ "$status" = 5 ] && [ ! -s "$said" ]
  refute grep -q libpython-stap "/proc/$program/maps"
  run quietly own -x "$program" 5 'app.*'
  cat "$said"
  [ "$status" = 5 ]
  grep -qx "stap-python: attached to $program: active" "$said"
  program_ends
}

@test "-x of a process that can't be traced ends at once, and says why" {
  fake_stap
  refuses 1 '4194305: no such process$' pycalls -x 4194305
  refuses 1 '4194305: no such process$' pygc -x4194305
  says "$$: it does not run CPython; only what it starts from now on is traced" pycalls -x "$$"
  # stap reports what it doesn't understand
  says '' pycalls -x nonsense
  start_program env PYTHON_STAP=off /usr/bin/python3
  refuses 1 "$program lacks the markers, and the shim can't be loaded: it was started with PYTHON_STAP=off$" pycalls -x "$program"
  program_ends
  start_program env PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  refuses 1 "$program: the shim is loaded, but tracers don't see it: it was started with PYTHON_STAP=off: restart it without$" pycalls -x "$program"
  program_ends
}

@test "-x goes on with CPython's own markers if these are a part of what the script probes" {
  fake_stap
  start_program env PYTHON_STAP=off /usr/bin/python3
  launcher list "$program" | grep -qE '^ *gc__start +live .* CPython$' || skip "needs a /usr/bin/python3 whose own gc markers are live"
  says "$program has only markers of its own, as the shim can't be loaded: it was started with PYTHON_STAP=off" pystat -x "$program"
  program_ends
}

@test "without -x and -c the Pythons that run are counted, and those with the shim" {
  local tail='; stap-python attach --all loads it into the rest, which stap-python ps lists' whose=''
  [ "$(id -u)" = 0 ] || whose=' of yours'
  fake_stap
  only_processes
  says "no Python$whose runs; stap-python run CMD starts one with the shim" pycalls
  start_program /usr/bin/python3
  only_processes "$program" "$$"
  says "1 Python$whose runs, 0 with the shim$tail" pycalls
  start_program env LD_PRELOAD="$shim" /usr/bin/python3
  only_processes "${programs[@]}" "$$"
  says "2 Pythons$whose run, 1 with the shim$tail" pycalls
  only_processes "$program"
  says "1 Python$whose runs, 1 with the shim" pycalls
  says '' pycalls -p4
  run quietly pycalls -c true
  [ "$status" = 5 ] && [ ! -s "$said" ]
  unset STAP_PYTHON_ROOT
  run quietly pygc
  grep -qE '^stap-python: [1-9][0-9]* Pythons?( of yours)? runs?, [1-9][0-9]* with the shim' "$said"
  launcher list "${programs[0]}" | grep -qE '^ *gc__start +live .* CPython$' || skip "needs a /usr/bin/python3 whose own gc markers are live"
  grep -qE ', [1-9][0-9]* with live markers of CPython.s own' "$said"
  run quietly pycalls
  refute grep -q 'of CPython' "$said"
}

@test "a user sees the count of their own Pythons, and that another's is unknown" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  fake_stap
  start_program /usr/bin/python3
  chmod 755 "$BATS_TEST_TMPDIR"
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups env STAP=/bin/true "$launcher" pycalls
  echo "$output"
  [[ $output == "stap-python: no Python of yours runs; "* ]]
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups env STAP=/bin/true "$launcher" pycalls -x "$program"
  [ "$status" = 0 ]
  [ "$output" = "stap-python: $program: whether it has the shim is unknown: cannot read its maps: run this as its user or root" ]
}

@test "on a terminal the script says when it begins, unless a command's start shows it" {
  local terminal='import pty, sys; pty.spawn(sys.argv[1:])'
  fake_stap
  run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" pycalls 5
  echo "$output"
  grep -qF '<-E>' <<<"$output"
  grep -qF '<probe begin { __python_output_begins() }>' <<<"$output"
  grep -qF '<__python_announces=1>' <<<"$output"
  run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" pycalls -c true
  refute grep -qF '__python_announces' <<<"$output"
}

# Checks that the fake stap runs with these words behind the script.
# usage: samples SCRIPT "<WORD> <WORD>..." ARGUMENTS...
samples() {
  run quietly "${@:3}"
  echo "${*:3}: $status $output"
  [ "$status" = 5 ]
  [ "${lines[*]:1}" = "<$top/scripts/$1.stp> $always${2:+ $2}" ]
}

@test "record, top and dump run pyprof, pywall and pydump, with the options of py-spy's commands" {
  local pid preload="$env_program 'LD_PRELOAD=$top/build/libpython-stap.so.0'"
  fake_stap
  LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(600)' &
  pid=$!
  programs+=("$pid")
  wait_for runs "$pid" /usr/bin/python3
  samples pyprof "<-x> <$pid>" record -p "$pid"
  samples pyprof '<19>' record --all -r 19
  samples pyprof "<-G> <threads=1> <-G> <native=1> <-x> <$pid> <-G> <seconds=10> <-o> <$BATS_TEST_TMPDIR/100%%> <199>" \
    record --rate 199 --pid "$pid" --output "$BATS_TEST_TMPDIR/100%" --duration 10 --format raw --threads --native
  samples pyprof "<-c> <$preload 'python3' 'a b.py' '-p'> <99>" record -r 99 -- python3 'a b.py' -p
  samples pywall "<-x> <$pid> <49>" record --wall -r 49 -p "$pid"
  samples pyheap "<-x> <$pid> <-G> <folded=1>" record --memory -p "$pid"
  samples pyprof "<-x> <$pid> <-G> <live=1>" top -p "$pid"
  samples pyprof "<-x> <$pid> <-G> <seconds=2> <-G> <live=1> <997>" top -d 2 -p "$pid" -r 997
  samples pydump "<-x> <$pid> <-G> <tasks=1>" dump -p "$pid"
  samples pydump "<-G> <__python_argument1=35> <-G> <locals=1> <-G> <json=1> <-x> <$pid> <-G> <tasks=1> <->" \
    dump -p "$pid" --locals --json --depth 5
  samples pydump "<-G> <__python_argument1=35> <-x> <$pid> <->" pydump -x "$pid" 5
  refuses 2 "pydump: wrong argument 'five'; it takes \[DEPTH\] " pydump -x "$pid" five
  refuses 2 'pydump: name a process by -x PID \(see stap-python pydump --help\)' pydump "$pid"
  refuses 2 'record: name a process by -p PID, or a command behind --' record
  refuses 2 'record: name a process by -p PID, or a command behind --' record -p "$pid" -- true
  refuses 2 'dump: name a process by -p PID \(see' dump true
  refuses 2 "dump: '1x' is not a PID" dump -p 1x
  refuses 2 "dump: the depth must be a number from 1 on, not '0'" dump --depth 0 -p "$pid"
  refuses 2 'top: unknown option, or one without its value' top --wall -p "$pid"
  refuses 2 'top: unknown option, or one without its value' top --locals -p "$pid"
  refuses 2 'top: unknown option, or one without its value' top -o file -p "$pid"
  refuses 2 'record: unknown option, or one without its value' record -p
  refuses 2 "record: the rate must be a number from 1 on, not '0'" record -r 0 -p "$pid"
  refuses 2 "record: the duration, in seconds, must be a number from 1 on, not '1.5'" record -d 1.5 -p "$pid"
  refuses 2 'record: the format is folded \(or raw\), flamegraph \(or svg\), html, sources, speedscope or pprof, not .png.$' record -f png -p "$pid"
  refuses 2 'record: samples are of threads on a CPU: stap-python record --wall has the time asleep, too, and stap-python dump' record --idle -p "$pid"
  refuses 1 'record: cannot write /nonexistent/file: No such file or directory' record -o /nonexistent/file -p "$pid"
  refuses 1 '4194305: no such process' dump -p 4194305
}

@test "record, top and dump take several processes, by PIDs and by name, with the children that they have" {
  local pid parent worker other
  fake_stap
  cat >"$BATS_TEST_TMPDIR/prefork.py" <<'PY'
import os
import time

if os.fork() == 0:
    os.execv("/usr/bin/python3", ["python3", __file__ + ".worker", "-"])
time.sleep(600)
PY
  echo 'import time; time.sleep(600)' >"$BATS_TEST_TMPDIR/prefork.py.worker"
  LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(600)' &
  pid=$!
  LD_PRELOAD=$shim /usr/bin/python3 "$BATS_TEST_TMPDIR/prefork.py" &
  parent=$!
  sleep 600 &
  other=$!
  programs+=("$pid" "$parent" "$other")
  wait_for runs "$pid" /usr/bin/python3
  wait_for pgrep -f "^python3 $BATS_TEST_TMPDIR/prefork.py.worker"
  worker=$(pgrep -f "^python3 $BATS_TEST_TMPDIR/prefork.py.worker")
  programs+=("$worker")
  wait_for runs "$worker" /usr/bin/python3
  # a profile of several has each process apart
  samples pyprof "<-G> <__python_targets1=${pid}_$parent> <-G> <by_process=1>" record -p "$pid,$parent"
  samples pyprof "<-G> <threads=1> <-G> <__python_targets1=${pid}_$parent> <-G> <by_process=1> <-G> <seconds=3>" \
    record -p "$pid" -t --pid "$parent" -d 3 -p "$pid"
  samples pyprof "<-G> <__python_targets1=${parent}_$worker> <-G> <live=1>" top --children -p "$parent"
  samples pydump "<-G> <__python_targets1=${parent}_$worker> <-G> <tasks=1>" dump --name "$BATS_TEST_TMPDIR/prefork.py*"
  # of one process a warning says what is beside it, and how to see that
  samples pyprof "<-x> <$parent>" record -p "$parent"
  [ "$(<"$said")" = "stap-python: -p does not trace the 1 Python that $parent has already started: to see it, stap-python record --children -p $parent" ]
  # one line each for those that are left out, and the others go on
  samples pydump "<-G> <__python_targets1=$pid> <-G> <tasks=1>" dump -p "4194301,$pid,$other"
  [ "$(grep -c . "$said")" = 2 ]
  grep -qx 'stap-python: dump: 4194301: no such process' "$said"
  grep -qx "stap-python: dump: $other: it does not run CPython" "$said"
  samples pyprof "<-G> <__python_targets1=$pid>" record -p "$pid,$other"
  run launcher dump -p "4194301,$other"
  [ "$status ${lines[*]}" = "1 stap-python: dump: 4194301: no such process stap-python: dump: $other: it does not run CPython stap-python: dump: no process is left" ]
  run launcher top --name "$BATS_TEST_TMPDIR/nothing"
  [[ $status == 1 && ${lines[*]} == *"stap-python: top: no such Python runs"* ]]
  refuses 2 'record: --all stands alone, and --children with -p or --name' record --all -p "$pid"
  refuses 2 'top: --all stands alone, and --children with -p or --name' top --children
  refuses 2 "top: '' is not a PID" top -p "$pid,"
}

@test "on a terminal record says how far it is" {
  local terminal='import pty, sys; pty.spawn(sys.argv[1:])'
  fake_stap
  run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" record -d 60 -- true
  [[ $(tr -d '\r' <<<"${lines[*]}") == *"<-G> <seconds=60> <-G> <progress=1> "* ]]
  run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" record -- true
  [[ $(tr -d '\r' <<<"${lines[*]}") == *" <-G> <progress=1> "* ]]
  run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" top -- true
  refute grep -qF 'progress' <<<"$output"
}

# Makes a fake stap of this version that prints its umask, makes a module, and runs the command of -c.
stap_with_umask() {
  cat >"$BATS_TEST_TMPDIR/stap" <<SH
#!/bin/bash
if [ "\$1" = --version ]; then echo "Systemtap translator/driver (version $1/0.191, Debian version $1-5)"; exit; fi
echo "stap \$(umask)"
[[ $1 != 5.1 ]] || umask 0
mkdir -p "\$SYSTEMTAP_DIR/cache"
: >"\$SYSTEMTAP_DIR/cache/stap_1.ko"
while [ \$# -gt 0 ] && [ "\$1" != -c ]; do shift; done
[ \$# = 0 ] || eval "\$2"
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap SYSTEMTAP_DIR=$BATS_TEST_TMPDIR/dir
  rm -rf "$SYSTEMTAP_DIR"
}

@test "stap and bpftrace let no others write to what they make, and -c has the caller's umask" {
  local version mask wanted
  for version in 4.8 5.1; do
    for mask in 0000 0002 0022 0077 0007; do
      wanted=$mask
      [ "$mask" != 0000 ] || wanted=0022
      stap_with_umask "$version"
      run bash -c "umask $mask && exec \"\$@\"" bash timeout $((20 * SLOW)) "$launcher" pygc -c 'sh -c umask'
      echo "$version $mask: $status $output"
      [ "$status" = 0 ]
      [ "$output" = "stap $wanted"$'\n'"$mask" ]
      # a command that needs a shell
      run bash -c "umask $mask && exec \"\$@\"" bash timeout $((20 * SLOW)) "$launcher" pygc -c 'umask; true'
      [ "$output" = "stap $wanted"$'\n'"$mask" ]
      # nobody else reaches the modules, which 5.1 makes for everybody
      [ "$(stat -c %a "$SYSTEMTAP_DIR/cache")" = 700 ]
      [ "$((8#$(stat -c %a "$SYSTEMTAP_DIR") & 2))" = 0 ]
    done
  done
  mkdir "$BATS_TEST_TMPDIR/bin"
  # answers as the probes that stap-python puts around a script
  cat >"$BATS_TEST_TMPDIR/bin/bpftrace" <<'PY'
#!/usr/bin/python3
import os
print("bpftrace %04o" % os.umask(0))
print("stap-python attached 1\nstap-python attached 2")
PY
  chmod +x "$BATS_TEST_TMPDIR/bin/bpftrace"
  run bash -c 'umask 0 && PATH=$0:$PATH exec "$@"' "$BATS_TEST_TMPDIR/bin" timeout $((20 * SLOW)) "$launcher" pygc --backend bpftrace -c umask
  [ "$(sort <<<"$output")" = $'0000\nbpftrace 0022' ]
  run bash -c 'umask 0 && PATH=$0:$PATH exec "$@"' "$BATS_TEST_TMPDIR/bin" timeout $((20 * SLOW)) "$launcher" pygc --backend bpftrace
  [ "${lines[0]}" = "bpftrace 0022" ]
}

@test "a cache of stap's that everybody could write to is closed, and that is said once; others are left alone" {
  local said
  stap_with_umask 5.1
  mkdir -p "$SYSTEMTAP_DIR/cache"
  chmod 777 "$SYSTEMTAP_DIR" "$SYSTEMTAP_DIR/cache"
  run launcher pygc -p4
  echo "$output"
  said="stap-python: everybody could write to $SYSTEMTAP_DIR, where stap keeps the modules that it loads, until now: rm -rf $SYSTEMTAP_DIR/cache removes what is there"
  [ "${lines[0]}" = "$said" ]
  [ "$(stat -c %a "$SYSTEMTAP_DIR" "$SYSTEMTAP_DIR/cache")" = $'755\n700' ]
  run launcher pygc -p4
  [[ $output == stap* && $output != *everybody* ]]
  # shared with a group
  chmod 2775 "$SYSTEMTAP_DIR" "$SYSTEMTAP_DIR/cache"
  run launcher pygc -p4
  [ "$(stat -c %a "$SYSTEMTAP_DIR" "$SYSTEMTAP_DIR/cache")" = $'2775\n2775' ]
  # another user may have made the folder to which a link leads
  mv "$SYSTEMTAP_DIR/cache" "$BATS_TEST_TMPDIR/elsewhere"
  chmod 2777 "$BATS_TEST_TMPDIR/elsewhere"
  ln -s "$BATS_TEST_TMPDIR/elsewhere" "$SYSTEMTAP_DIR/cache"
  run launcher pygc -p4
  [ "$(stat -c %a "$BATS_TEST_TMPDIR/elsewhere")" = 2777 ]
  # what is to be removed is one word for a shell
  export SYSTEMTAP_DIR="$BATS_TEST_TMPDIR/a b"
  mkdir "$SYSTEMTAP_DIR"
  chmod 777 "$SYSTEMTAP_DIR"
  run launcher pygc -p4
  [[ ${lines[0]} == *": rm -rf '$SYSTEMTAP_DIR/cache' removes what is there" ]]
}

@test "root takes no folder from the environment that another user can change" {
  [ "$(id -u)" = 0 ] || skip "needs root"
  export STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/machine
  local home before=$TMPDIR folder others=$STAP_PYTHON_ROOT/others
  home=$(getent passwd 0 | cut -d: -f6)
  mkdir -p "$STAP_PYTHON_ROOT$home" "$STAP_PYTHON_ROOT"/{others,own}/share "$others/.systemtap" "$STAP_PYTHON_ROOT/own/.systemtap"
  printf '#!/bin/sh\necho "<$SYSTEMTAP_DIR> <$TMPDIR> <$XDG_DATA_DIRS>"\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap
  unset SYSTEMTAP_DIR
  # root's in theirs; theirs in root's
  chown 65534 "$others" "$STAP_PYTHON_ROOT/own/.systemtap"
  for folder in /others /own; do
    HOME=$folder run launcher pygc -p4
    echo "$output"
    [[ ${lines[0]} == "stap-python: stap's folder is $home/.systemtap and not $folder/.systemtap: "*"owned by another user (uid 65534)"* ]]
    [ "${lines[1]}" = "<$home/.systemtap> <$before> <>" ]
  done
  # a link to theirs; their link, which may lead elsewhere soon; one that is not there yet
  mkdir "$STAP_PYTHON_ROOT/roots"
  ln -s "$others/.systemtap" "$STAP_PYTHON_ROOT/own/link"
  ln -s "$STAP_PYTHON_ROOT/roots" "$others/link"
  mkdir -m 1777 "$STAP_PYTHON_ROOT/shared"
  ln -s "$STAP_PYTHON_ROOT/roots" "$STAP_PYTHON_ROOT/shared/link"
  chown -h 65534 "$STAP_PYTHON_ROOT/shared/link"
  # a folder for everybody, and what they may make in it; a cache that they have made
  mkdir -p "$STAP_PYTHON_ROOT"/{kept/cache,shared/share/systemtap/tapset}
  chown 65534 "$STAP_PYTHON_ROOT/kept/cache"
  for folder in /own/link /others/link /shared/link /others/new /shared /shared/new /kept; do
    SYSTEMTAP_DIR=$folder run launcher pygc -p4
    echo "$folder: $output"
    [[ ${lines[0]} == "stap-python: stap's folder is $home/.systemtap and not $folder: "* ]]
    [ "${lines[1]}" = "<$home/.systemtap> <$before> <>" ]
  done
  [ ! -e "$others/new" ]
  [ ! -e "$STAP_PYTHON_ROOT/shared/new" ]
  [ "$(stat -c %a "$STAP_PYTHON_ROOT/shared")" = 1777 ]
  export SYSTEMTAP_DIR=/dir
  TMPDIR=$others run launcher pygc -p4
  [[ ${lines[0]} == "stap-python: TMPDIR is not used: $others is owned by another user (uid 65534)"* ]]
  [ "${lines[1]}" = "<$SYSTEMTAP_DIR> <> <>" ]
  TMPDIR=$others run launcher record -f svg -o "$BATS_TEST_TMPDIR/x.svg" -- true
  [[ ${lines[0]} == "stap-python: TMPDIR is not used: "* ]]
  TMPDIR=$BATS_TEST_TMPDIR XDG_DATA_DIRS=/others/share:/own/share:/shared:relative run launcher pygc -p4
  [ "$output" = "<$SYSTEMTAP_DIR> <$BATS_TEST_TMPDIR> </own/share>" ]
}

@test "root takes no folder from the environment that another user may have mounted" {
  local home
  [ "$(id -u)" = 0 ] || skip "needs root"
  need unshare
  [ "$(stat -fc %T "$BATS_TEST_TMPDIR")" != tmpfs ] || skip "needs a TMPDIR on a disk"
  home=$(getent passwd 0 | cut -d: -f6)
  mkdir -p "$BATS_TEST_TMPDIR"/{disk,mounted}
  printf '#!/bin/sh\necho "<$SYSTEMTAP_DIR> <$TMPDIR> <$XDG_DATA_DIRS>"\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  # shellcheck disable=SC2016 # for that shell
  STAP=$BATS_TEST_TMPDIR/stap run unshare -m sh -c 'mount --bind "$1" "$2" && mount -o remount,bind,nosuid,nodev "$2" &&
    SYSTEMTAP_DIR=$2/dir TMPDIR=$2 XDG_DATA_DIRS=$2:$1 "$3" pygc -p4' sh "$BATS_TEST_TMPDIR/disk" "$BATS_TEST_TMPDIR/mounted" "$launcher"
  echo "$output"
  [ "$status" = 0 ]
  [ "${lines[${#lines[@]} - 1]}" = "<$home/.systemtap> <> <$BATS_TEST_TMPDIR/disk>" ]
}

# Checks that stap-python runs TRACER with these words.
# usage: runs_by TRACER "<WORD> <WORD>..." ARGUMENTS...
runs_by() {
  run quietly "${@:3}"
  echo "${*:3}: $status $output"
  cat "$said"
  [ "$status" = 5 ]
  [[ $output == "$1 "*"$2" ]]
}

@test "bpftrace runs a script that stap is not known to run, if it takes the same arguments" {
  local tracer
  [ "$(id -u)" = 0 ] || skip "needs root: bpftrace is for root"
  make_machine
  for tracer in stap bpftrace; do
    printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "(version 5.6/0.190)"\nprintf "%s"\nprintf " <%%s>" "$@"\nexit 5\n' "$tracer" >"$machine/bin/$tracer"
    chmod +x "$machine/bin/$tracer"
  done
  export STAP_PYTHON_ROOT=$machine HOME=/home PATH=$machine/bin:$PATH
  unset SYSTEMTAP_DIR
  start_program env LD_PRELOAD="$shim" /usr/bin/python3
  ln -s "/proc/$program" "$machine/proc"
  # no word of this stap and this kernel
  runs_by bpftrace " <0> <7>" pygc 7
  [ "$(cat "$said")" = "stap-python: stap has compiled nothing for this kernel yet, which stap-python doctor has it do: bpftrace runs the script (--backend stap: SystemTap does)" ]
  runs_by bpftrace " <$program> <7>" pyslow 7 "-x$program"
  runs_by bpftrace " <$program>" pytop -x "$program" --
  # what bpftrace's script lacks, or means something else by
  runs_by stap ' <->' pyslow 7 'app.*'
  runs_by stap ' <->' pyflow 'app.*'
  runs_by stap ' <cfunctions>' pycalls cfunctions
  runs_by stap ' <->' pycalls 7
  runs_by stap '' pystacks
  runs_by stap " <-x> <$program> <-G> <top=3>" pytop -x "$program" -G top=3
  refuses 2 "pygc: wrong argument 'x'; it takes \[MIN_US\]" pygc x
  # wherever it is
  runs_by stap " <-x> <$program>" pygc -x "$program" --backend stap
  runs_by bpftrace " <$program>" pygc -x "$program" --backend=bpftrace
  runs_by stap ' <-e> <probe begin {}>' --backend stap -e 'probe begin {}'
  refuses 2 'bpftrace does not run a script of yours' -e 'probe begin {}' --backend bpftrace
  refuses 2 '--backend is stap, bpftrace, or auto' pygc -x 1 --backend
  run quietly pyflow --backend bpftrace --help
  [[ $status == 0 && ${lines[0]} == "pyflow - "* && $output == *$'\nusage: bpftrace pyflow.bt [PID [FILE]]\n'* ]]
  # a file that says nothing
  mkdir -p "$machine/home/.systemtap"
  head -c 3000 /dev/urandom | tr -d "\\0" >"$machine/home/.systemtap/python-checked"
  runs_by bpftrace " <0>" pygc
  printf '\n6.1.0-7-amd64 probe 3 %s %s\n' "$(stat -c %Y "$machine/bin/stap")" "$machine/bin/stap" >>"$machine/home/.systemtap/python-checked"
  runs_by stap '' pygc
  rm "$machine/bin/stap" "$machine/home/.systemtap/python-checked"
  # -x loads the shim, as with stap
  program_ends
  start_program /usr/bin/python3
  ln -s "/proc/$program" "$machine/proc"
  runs_by bpftrace " <$program>" pygc -x "$program"
  grep -qx "stap-python: attached to $program: active" "$said"
  STAP=none refuses 127 'none not found' pygc
  program_ends
}

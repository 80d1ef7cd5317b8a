# stap-python: scripts of the user's, and what stap compiles: once for all values of a script's options, in advance by
# precompile; with a fake stap.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helper
load ../lib/launcher

@test "a script of the user's, by -e or as a file, gets what the project's scripts get" {
  local script=$BATS_TEST_TMPDIR/mine.stp point words
  fake_stap
  start_program /usr/bin/python3
  echo 'probe python.line, python.function.entry { println(pp()) }' >"$script"
  for point in 'probe python.function.entry { println(funcname) }' 'probe timer.profile, python.line { print_python_stack() }'; do
    run quietly -e "$point" -c 'python3 x.py' 5
    echo "$output"
    [ "$status ${lines[*]:1}" = "5 $always <-e> <$point> <-c> <$env_program 'LD_PRELOAD=$shim' python3 x.py> <5>" ]
  done
  # options may come first, and the process of -x is attached to
  run quietly -x "$program" "$script" 5
  echo "$output"
  cat "$said"
  [ "$status ${lines[*]}" = "5 tapset $top/build/tapset $always <-x> <$program> <$script> <5>" ]
  [ "$(cat "$said")" = "stap-python: attached to $program: active" ]
  # no Python is probed
  run quietly -e 'probe begin { exit() }'
  [ "$status $(cat "$said")" = "5 " ]
  run quietly -v -e 'probe begin {}' --help
  [ "$status ${lines[0]}" = "0 usage: stap-python [STAP'S OPTIONS...] -e 'SCRIPT' [ARGUMENTS...]" ]
  refuses 2 "'$BATS_TEST_TMPDIR/none.stp' is neither a command nor a script: there is no such file" "$BATS_TEST_TMPDIR/none.stp"
  refuses 2 "'-v' is neither a command nor a script" -v
  refuses 2 "-e needs a script \\(see stap-python --help\\)" -x 1 -e
  refuses 2 'a script is given by -e or as FILE.stp, not on standard input' - -x 1
  # options whose value, if any, is not known
  cp "$script" "$BATS_TEST_TMPDIR/a b.stp"
  for script in "--ldd|$script|-c|true" "--|$BATS_TEST_TMPDIR/a b.stp|-c"; do
    mapfile -td '|' words < <(printf %s "$script")
    run quietly "${words[@]}"
    echo "${words[*]}: $status $output"
    [[ $status == 5 && $output == *"<${words[1]}>"* ]]
  done
  mkdir "$BATS_TEST_TMPDIR/folder.stp"
  refuses 1 '/folder.stp: cannot be read: it is not a regular file$' "$BATS_TEST_TMPDIR/folder.stp"
  refuses 1 '/folder.stp: cannot be read: it is not a regular file$' -v "$BATS_TEST_TMPDIR/folder.stp"
}

@test "a value of an argument is not a part of what stap compiles, except for a regular expression and a rate" {
  local script line
  fake_stap
  while read -r line; do
    # shellcheck disable=SC2086
    run quietly ${line%% => *}
    echo "$line: ${lines[*]:2}"
    [ "${lines[*]:2}" = "$always${line#* =>}" ]
  done <<'LINES'
pycalls cfunctions 7 => <-G> <__python_argument2=37> <cfunctions> <->
pytrace system a.b* => <-G> <__python_argument2=612e622a> <system> <->
pytrace a.b* => <-G> <__python_argument1=612e622a> <->
pystat 2 => <-G> <__python_argument1=32> <->
pydist a.b* => <-G> <__python_argument1=612e622a> <->
pywatch f x.y => <-G> <__python_argument1=66> <-G> <__python_argument2=782e79> <-> <->
pywatch f f -- -x => <-G> <__python_argument1=66> <-G> <__python_argument2=66> <-G> <__python_argument3=2d78> <-> <-> <--> <->
pywatch - -c => <-G> <__python_argument1=2d> <-> <-c>
pyaudit open => <open>
pyprof 49 => <49>
LINES
  run quietly pywatch $'\n\xc3\xa9"' '' "$(printf '%250s' '')" "$(printf '%251s' '')"
  [ "${lines[*]:2}" = "$always <-G> <__python_argument1=0ac3a922> <-G> <__python_argument3=$(printf '20%.0s' {1..250})> <-> <> <-> <$(printf '%251s' '')>" ]
  for script in "$top"/scripts/*.stp; do
    refute grep -nE '(strtol|python_filter)\(@[0-9]' "$script"
  done
}

# Makes a fake stap that fails if one of its words is $1, and writes a line with its words to $calls.
calls=$BATS_TEST_TMPDIR/calls
compiling_stap() {
  cat >"$BATS_TEST_TMPDIR/stap" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec echo "Systemtap translator/driver (version 5.6/0.190)"
echo "\$*" >>$calls
case " \$* " in *" $1 "*) echo "semantic error: no" >&2 && exit 1 ;; esac
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  rm -f "$calls"
  export STAP=$BATS_TEST_TMPDIR/stap SYSTEMTAP_DIR=$BATS_TEST_TMPDIR/dir
}

@test "precompile has stap compile each script as it is run, once for all values of its arguments" {
  local given
  compiling_stap none
  run quietly precompile pycalls pydist pyaudit pyrequest
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == "11 compiled for "*", in "*" s" ]]
  sed -E 's,^[^ ]*/scripts/,,; s/ -d .*_begins\(\) \}//' "$calls" | diff - <(printf '%s\n' \
    'pycalls.stp -p4' 'pycalls.stp -p4 cfunctions' 'pycalls.stp -G __python_argument2=31 -p4 cfunctions -' \
    'pycalls.stp -G __python_argument1=31 -p4 -' \
    'pydist.stp -p4' 'pydist.stp -G __python_argument1=78 -p4 -' 'pyaudit.stp -p4' \
    'pyrequest.stp -G __python_argument2=78 -p4 waker -' \
    'pyrequest.stp -G __python_argument2=78 -G __python_argument3=78 -p4 waker - -' \
    'pyrequest.stp -G __python_argument1=78 -p4 -' 'pyrequest.stp -G __python_argument1=78 -G __python_argument2=78 -p4 - -')
  # a run has the same words, but for values
  given=$(sed -n 1p "$calls")
  rm "$calls"
  run quietly pycalls -G top=3 -c true
  [ "$(sed -e 's/-G top=3 -c .*/-p4/' "$calls")" = "$given" ]
  # all of them: each script is there
  rm "$calls"
  run quietly precompile
  [ "$status" = 0 ]
  [ "$(cut -d' ' -f1 "$calls" | sort -u)" = "$(printf '%s\n' "$top"/scripts/*.stp)" ]
  refuses 2 "precompile: there is no script 'pynone' \(see stap-python --list-scripts\)" precompile pynone
}

@test "precompile says what stap does not compile, goes on, and fails" {
  compiling_stap cfunctions
  run launcher precompile pycalls pyaudit
  echo "$output"
  [ "$status" = 1 ]
  [ "${lines[0]}" = "stap-python: pycalls cfunctions: semantic error: no" ]
  [ "${lines[-1]}" = "stap-python: 2 of 5 could not be compiled: run stap-python doctor" ]
  [ "$(wc -l <"$calls")" = 5 ]
}

@test "stap ends with the precompile that has started it, however that ends" {
  local signal pid
  compiling_stap none
  # it says so and cleans up, as stap does
  cat >"$STAP" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec echo "(version 5.6/0.190)"
trap 'kill \$!; echo ends; : >$calls.clean; exit' TERM
sleep 60 &
echo "\$\$" >$calls
wait
SH
  for signal in INT TERM KILL; do
    rm -f "$calls" "$calls.clean"
    env --default-signal=INT "$launcher" precompile pygc 3>&- &
    pid=$!
    programs+=("$pid")
    wait_for test -s "$calls"
    kill -s "$signal" "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" = $((128 + $(kill -l "$signal"))) ]
    wait_for has_ended "$(<"$calls")"
    [ "$signal" = KILL ] || [ -e "$calls.clean" ]
  done
}

has_ended() {
  ! [ -e "/proc/$1" ]
}

@test "precompile says in one line that the kernel's headers are missing" {
  make_machine
  rm -r "$machine/lib/modules"
  export STAP_PYTHON_ROOT=$machine HOME=/home PATH=$machine/bin:$PATH
  refuses 1 'no headers for the kernel 6.1.0-7-amd64: run stap-python doctor' precompile
  rm "$machine/bin/stap"
  STAP=none refuses 127 'none not found: run stap-python doctor' precompile
}

@test "how long compiling takes is remembered from when it was not in stap's cache" {
  compiling_stap none
  mkdir "$SYSTEMTAP_DIR"
  printf '%s probe 40 %s %s\n' "$(uname -r)" "$(stat -c %Y "$STAP")" "$STAP" >"$SYSTEMTAP_DIR/python-checked"
  run quietly precompile pygc
  [ "$status" = 0 ]
  grep ' probe 40 ' "$SYSTEMTAP_DIR/python-checked"
}

@test "what waits on a terminal for stap to compile keeps no file of the caller's open" {
  local terminal='import pty, sys; pty.spawn(sys.argv[1:])'
  cat >"$BATS_TEST_TMPDIR/stap" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec echo "(version 5.6/0.190)"
exec 8>&-
for i in \$(seq 50); do
  ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q "$BATS_TEST_TMPDIR/held" || exec echo nobody
  sleep 0.1
done
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  STAP=$BATS_TEST_TMPDIR/stap run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" \
    bash -c 'exec 8>"$0" && exec "$@"' "$BATS_TEST_TMPDIR/held" "$launcher" pygc -c true
  echo "$output"
  [[ $output == *nobody* ]]
}

@test "on a terminal a run says that stap compiles, if it does" {
  local terminal='import pty, sys; pty.spawn(sys.argv[1:])' what starts
  for what in make staprun 'make by another'; do
    starts=
    [[ $what != *another ]] || starts='sh -c '\''"$@"; exit'\'' sh '
    what=${what%% *}
    cp "$(command -v sleep)" "$BATS_TEST_TMPDIR/$what"
    cat >"$BATS_TEST_TMPDIR/stap" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec echo "Systemtap translator/driver (version 5.6/0.190)"
$starts"$BATS_TEST_TMPDIR/$what" 3
exit 0
SH
    chmod +x "$BATS_TEST_TMPDIR/stap"
    STAP=$BATS_TEST_TMPDIR/stap run timeout $((20 * SLOW)) /usr/bin/python3 -c "$terminal" "$launcher" pygc -c true
    echo "$what: $output"
    [ "$(grep -c 'compiling for this kernel, once' <<<"$output")" = "$([ "$what" = make ] && echo 1 || echo 0)" ]
  done
}

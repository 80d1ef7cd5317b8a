# stap-python: command line, manual page and completion.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper
load ../lib/launcher

@test "each command has a help, and --version says which it is" {
  local command
  run launcher --version
  [ "$status $output" = "0 stap-python $(cat "$top/VERSION")" ]
  run launcher -V
  [ "$status $output" = "0 stap-python $(cat "$top/VERSION")" ]
  for command in '' run doctor list attach ps record top dump enable disable; do
    # shellcheck disable=SC2086
    run launcher $command --help
    [ "$status" = 0 ]
    [[ $output == "usage: stap-python "*$command* ]]
    # shellcheck disable=SC2086
    diff <(launcher help $command) <(echo "$output")
  done
}

@test "a usage error is one line and status 2" {
  local words
  refuses 2 'no command given \(see stap-python --help'
  refuses 2 "'nonsense' is neither a command nor a script" nonsense
  refuses 2 "'--nonsense' is neither" --nonsense
  refuses 2 "'../scripts/pyflow' is neither" ../scripts/pyflow
  refuses 2 'no command given' run
  refuses 2 'no command given' run --
  refuses 2 "unknown option '-x'" run -x true
  refuses 2 "unexpected argument 'x'" doctor x
  refuses 2 'one interpreter, PID or file' list a b
  refuses 2 'one interpreter, PID or file' list --all
  refuses 2 'takes one command' help list attach
  refuses 2 "'nonsense' is neither a command nor a script" help nonsense
  for words in '' python 0 -1 99999999999999999999 '1 x' --children --name '--name 1 --names' '--all 1' '--all --children' '--all --name=x'; do
    # shellcheck disable=SC2086
    refuses 2 'takes PIDs, --name PATTERN or --all' attach $words
  done
  refuses 2 "unexpected argument 'x'" ps x
  refuses 2 "unexpected argument 'x'" ps --json x
  refuses 2 'one interpreter' enable a b
  refuses 2 'one interpreter' disable -x
}

@test "output that can't be written is one line and status 1" {
  local words root
  for words in --version --help 'list --help' --list-scripts list 'list /usr/bin/python3' ps 'ps --json' doctor; do
    root='' # ps in one without processes, as it names those that it can't look at
    [[ $words != ps* ]] || root=$BATS_TEST_TMPDIR
    # shellcheck disable=SC2086
    run timeout $((60 * SLOW)) env STAP_PYTHON_ROOT="$root" sh -c '"$0" "$@" >/dev/full' "$launcher" $words
    echo "$words: $status $output"
    [ "$status $output" = "1 stap-python: stdout: No space left on device" ]
  done
  run timeout $((60 * SLOW)) sh -c '"$0" --version >&-' "$launcher"
  [ "$status $output" = "1 stap-python: stdout: Bad file descriptor" ]
}

@test "a file, program or process that does not exist is one line and status 1" {
  refuses 1 '/nonexistent/python: No such file' list /nonexistent/python
  refuses 1 'no-such-python: no such file, and no such command in PATH' list no-such-python
  refuses 1 '4194305: no such process' list 4194305
  refuses 1 '4194305: no such process' attach 4194305
  refuses 1 'no such program' enable /nonexistent/python
  refuses 1 'not a working Python' enable /bin/true
  refuses 1 'not a working Python' disable /bin/cat
}

@test "the man page has no fault, and each command and variable of --help" {
  local word
  need mandoc groff
  SOURCE_DATE_EPOCH=1700000000 make -s -C "$top" BUILD="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/stap-python.8"
  mandoc -T lint -W warning "$BATS_TEST_TMPDIR/stap-python.8"
  [ -z "$(groff -man -ww -z "$BATS_TEST_TMPDIR/stap-python.8" 2>&1)" ]
  mandoc -T ascii "$BATS_TEST_TMPDIR/stap-python.8" | col -bx >"$BATS_TEST_TMPDIR/page"
  head -n 1 "$BATS_TEST_TMPDIR/page" | grep -qE "^STAP-PYTHON\(8\) +System Manager's Manual +STAP-PYTHON\(8\)$"
  grep -q "systemtap-cpython $(cat "$top/VERSION") *2023-11-14" "$BATS_TEST_TMPDIR/page"
  # without that variable the day when the page was last changed
  make -s -B -C "$top" BUILD="$BATS_TEST_TMPDIR" SOURCE_DATE_EPOCH= "$BATS_TEST_TMPDIR/stap-python.8"
  mandoc -T lint -W warning "$BATS_TEST_TMPDIR/stap-python.8"
  mandoc -T ascii "$BATS_TEST_TMPDIR/stap-python.8" | col -bx |
    grep -q "systemtap-cpython $(cat "$top/VERSION") *$(date -u -r "$top/probes/stap-python/stap-python.8" +%F)"
  for word in run doctor --fix --yes list --push --every --service --push-auth-file record top dump attach --name --children --all ps --json enable disable --service --list SCRIPT --list-scripts help --help -V --version STAP NO_COLOR STAP_PYTHON_PUSH_AUTH STAP_PYTHON_ROOT XDG_STATE_HOME; do
    grep -qF -- "$word" "$BATS_TEST_TMPDIR/page"
  done
}

# The completions that bash offers for the line $1.
completions() {
  bash -c '
    source "$1/probes/stap-python/stap-python.bash"
    compopt() { echo "compopt $*"; }
    PATH=$1/build:$PATH
    read -ra COMP_WORDS <<<"$2"
    [[ $2 != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _stap_python
    printf "%s\n" "${COMPREPLY[@]}"' - "$top" "$1"
}

@test "bash completes commands, scripts, interpreters and the PIDs of Pythons" {
  local script
  /usr/bin/python3 -c 'import time; time.sleep(3600)' &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  [ "$(completions 'stap-python att')" = attach ]
  completions 'stap-python ' >"$BATS_TEST_TMPDIR/all"
  for script in "$top"/scripts/*.stp; do
    grep -qx "$(basename "$script" .stp)" "$BATS_TEST_TMPDIR/all"
  done
  grep -qx disable "$BATS_TEST_TMPDIR/all"
  completions 'stap-python attach ' | grep -qx "${programs[0]}"
  completions "stap-python list ${programs[0]}" | grep -qx "${programs[0]}"
  refute grep -qx "$$" <(completions 'stap-python attach ')
  completions "stap-python attach 1 --children " | grep -qx "${programs[0]}"
  completions 'stap-python attach --n' | grep -qx -- --name
  completions 'stap-python ps --' | grep -qx -- --json
  completions 'stap-python help att' | grep -qx attach
  completions 'stap-python pycalls -x ' | grep -qx "${programs[0]}"
  refute grep -qx "$$" <(completions 'stap-python pycalls -x ')
  [ "$(completions 'stap-python pytop -v -G ')" = $'compopt -o nospace\nby_process=\nclear=\njson=\ntop=\nuser=' ]
  [ "$(completions 'stap-python pytop -G t' | tail -n 1)" = top= ]
  [ "$(completions 'stap-python pygc ')" = $'-c\n-G\n-x\n--backend\n--help' ]
  completions 'stap-python enable pyth' | grep -qx python3
  refute grep -x python3-config <(completions 'stap-python enable pyth')
  completions 'stap-python list /usr/bin/python' | grep -qx /usr/bin/python3
  completions 'stap-python run tru' | grep -qx true
  [ "$(completions 'stap-python doctor ')" = $'--fix\n--help' ]
  [ "$(completions 'stap-python doctor --fix ')" = --yes ]
  [ "$(completions 'stap-python enable --' | sort | paste -sd' ')" = '--help --list --service' ]
  completions 'stap-python disable --' | grep -qx -e --all
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\nprintf "web.service enabled\\nwebhook@.service static\\n"\n' >"$BATS_TEST_TMPDIR/bin/systemctl"
  chmod +x "$BATS_TEST_TMPDIR/bin/systemctl"
  [ "$(PATH=$BATS_TEST_TMPDIR/bin:$PATH completions 'stap-python enable --service we' | paste -sd' ')" = 'web.service webhook@.service' ]
  [ "$(completions 'stap-python record --n')" = $'--name\n--native' ]
  [ "$(completions 'stap-python dump -p 1 --')" = $'--pid\n--name\n--children\n--all\n--locals\n--json\n--depth' ]
  [ "$(completions 'stap-python top -p 1 --')" = $'--pid\n--name\n--children\n--all\n--rate\n--duration' ]
  [ "$(completions 'stap-python record --b')" = --bytes ]
  [ "$(completions 'stap-python record --push' | paste -sd' ')" = '--push --push-auth-file' ]
  [ "$(completions 'stap-python record --format s' | paste -sd' ')" = 'sources speedscope svg' ]
  completions 'stap-python diff --f' | grep -qx -- --format
  completions 'stap-python diff -f j' | grep -qx json
  completions 'stap-python pycalls --b' | grep -qx -- --backend
  completions 'stap-python pycalls --backend ' | grep -qx bpftrace
  # bash quotes these, and ends directories with a slash
  mkdir "$BATS_TEST_TMPDIR/a folder"
  completions "stap-python enable $BATS_TEST_TMPDIR/a" | grep -qx 'compopt -o filenames'
  completions "stap-python enable $BATS_TEST_TMPDIR/a" | grep -qx "$BATS_TEST_TMPDIR/a folder"
  completions "stap-python run cat $BATS_TEST_TMPDIR/a" | grep -qx 'compopt -o filenames'
  completions "stap-python diff $BATS_TEST_TMPDIR/a" | grep -qx "$BATS_TEST_TMPDIR/a folder"
  refute grep -qx 'compopt -o filenames' <(completions 'stap-python enable pyth')
  # the name of a script is a word, never a command
  printf '#!/bin/sh\necho "pygood  good"\necho "\$(touch %s/run)  bad"\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/stap-python"
  chmod +x "$BATS_TEST_TMPDIR/stap-python"
  completions "$BATS_TEST_TMPDIR/stap-python py" | grep -qx pygood
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
}

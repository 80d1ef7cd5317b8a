# stap-python top on a terminal, with a fake stap that prints pyprof's tables.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper
load ../lib/launcher

# Makes a fake stap that runs the command of -c, and prints each file table1, table2, ... when it is there, to the end
# of a file "end" or an interrupt.
setup() {
  launcher_setup
  cd "$BATS_TEST_TMPDIR" || return
  cat >stap <<'SH'
#!/bin/bash
[ "$1" != --version ] || exit
trap 'echo "$$ interrupted" >&2; exit 3' INT TERM HUP QUIT
printf ' <%s>' "$@" >arguments
for word; do
  [ "$before" != -c ] || sh -c "$word"
  before=$word
done
for ((n = 1; ; n++)); do
  until [ -e table$n ]; do
    [ ! -e end ] || exit 4
    sleep 0.02
  done
  cat table$n
  [ ! -e said$n ] || cat said$n >&2
done
SH
  chmod +x stap
  mkdir tmp
  export STAP=$BATS_TEST_TMPDIR/stap TERM=xterm TMPDIR=$BATS_TEST_TMPDIR/tmp
  # own, total and function
  printf '%s\n' 200 '100 150 spin (/srv/a.py)' '0 200 main (/srv/a.py)' '90 90 another (/srv/b.py)' '10 10 [unknown]' '' >table1
  printf '%s\n' 50 '50 50 later (/srv/a.py)' '' >next
}

# Runs `stap-python top` on a terminal: the steps, then its arguments.
# usage: on_terminal STEP... -- ARGUMENTS...
on_terminal() {
  local steps=()
  while [ "$1" != -- ]; do steps+=("$1") && shift; done
  run timeout $((100 * SLOW)) /usr/bin/python3 "$top/test/lib/terminal.py" "${steps[@]}" -- "$launcher" top "${@:2}"
  echo "$status $output"
}

@test "top on a terminal is a screen with a head and the functions, which keys order" {
  on_terminal 'see=^true: 499 samples a second on each CPU$' 'see=^1 s: 200 samples, 5.0 % unknown; 200 so far$' \
    'see=^ OWN\(%\) TOTAL\(%\)  FUNCTION\n   50.0     75.0  spin \(/srv/a.py\)\n   45.0     45.0  another .*\n    5.0 .*\n    0.0    100.0  main \(/srv/a.py\)\Z' \
    key=t 'see=FUNCTION\n    0.0    100.0  main .*\n   50.0     75.0  spin .*\n   45.0 .*\n    5.0' \
    key=f 'see=FUNCTION\n    5.0 +5.0  \[unknown\]\n   45.0 +45.0  another .*\n    0.0 .*\n   50.0' \
    key=o 'see=FUNCTION\n   50' key=2 'see=FUNCTION\n    0' key=3 'see=FUNCTION\n    5' key=1 'see=FUNCTION\n   50' \
    'key=\x1b[f' 'see=FUNCTION\n   50' 'key=?' 'see=^o own, t total, f function' 'key=?' 'see=^\? for the keys$' \
    'run=mv next table2' 'see=^2 s: 50 samples, 0.0 % unknown; 250 so far$' 'see=FUNCTION\n  100.0    100.0  later [^\n]*\Z' \
    key=q -- -r 499 -- true
  [ "$status" = 0 ]
  [[ $(cat arguments) == *" <-G> <live=2> <499>" ]]
  # the last table, what stap said, and nothing of the terminal is other than before
  [[ $output == "true: 499 samples"*$'\n  100.0    100.0  later (/srv/a.py)\n'*" interrupted"$'\nstatus 3' ]]
}

@test "a paused screen stays as it is, and what comes meanwhile is counted" {
  echo 'stap-python: a word' >said2
  on_terminal 'see=spin' key=p 'see=200 so far, paused$' 'run=cp next new; mv new table2' 'see=^stap-python: a word$' 'see=^1 s: 200 samples.*spin' \
    'key= ' 'see=so far$' 'run=cp next new; mv new table3' 'see=^3 s: 50 samples, 0.0 % unknown; 300 so far$' 'see=later' 'run=touch end' -- -- true
  [ "$status" = 0 ]
  [[ $output == *$'later (/srv/a.py)\nstap-python: a word\nstatus 4' ]]
}

@test "each end of top leaves the terminal as it was, and passes signals on to stap" {
  local step
  for step in key=q 'key=\x03' 'key=\x1c' signal=INT signal=TERM signal=HUP signal=QUIT; do
    on_terminal 'see=spin' "$step" -- -- true
    [[ $output == *'spin (/srv/a.py)'*" interrupted"$'\nstatus 3' ]]
    refute kill -0 "$(grep -oE '^[0-9]+ interrupted' <<<"$output" | cut -d' ' -f1)"
  done
  on_terminal 'see=spin' 'run=touch end' -- -- true
  [[ $output == *$'main (/srv/a.py)\nstatus 4' ]]
}

@test "a stopped top gives the terminal back, and takes it again when it continues" {
  on_terminal 'see=spin' 'key=\x1a' stops 'see=\A\Z' signal=CONT 'see=spin' key=q -- -- true
  [[ $output == *" interrupted"$'\nstatus 3' ]]
}

@test "the screen has as many lines as the terminal, also when that changes" {
  { echo 100 && seq 1 60 | sed 's/.*/& & f& (x.py)/' && echo; } >table1
  on_terminal size=20x60 'see=  60.0 .*  45.0     45.0  f45 \(x.py\)\Z' size=30x60 'see=  35.0     35.0  f35 \(x.py\)\Z' \
    size=10x60 'see=\Atrue.*  55.0     55.0  f55 \(x.py\)\Z' key=q -- -- true
  [[ $output == *'status 3' ]]
}

@test "names that a program has chosen do not reach the terminal as its commands" {
  printf '100\n60 60 red \033[31m\033]0;title\007 (x.py)\n30 30 bell \a\302\233 (\377.py)\n10 10 %0500d (x.py)\n\n' 1 >table1
  printf 'warning \033[2J\n' >said1
  on_terminal size=20x60 'see=warning .x1b' 'see=red \\x1b\[31m\\x1b\]0;title' 'see=bell .x07.xc2.x9b \(.xff.py\)$' 'see=^   10.0     10.0  0*\Z' key=q -- \
    -- printf $'\033[2J'
  [[ $output == *'status 3' ]]
}

@test "what the command of top prints comes at the end, and the keys are not for it" {
  on_terminal 'see=FUNCTION' key=q -- -- sh -c 'cat; echo "its $0 words"; echo "its error" >&2' odd
  [[ $output == *' interrupted'$'\nits odd words\nits error\nstatus 3' ]]
  refute compgen -G 'tmp/*'
  on_terminal 'see=FUNCTION' key=q -- -d 5 -- cat
  [[ $output == *' interrupted'$'\nstatus 3' ]]
}

@test "what stap says before the first table is on the terminal at once" {
  printf '#!/bin/sh\necho "no such thing" >&2\nexit 1\n' >stap
  on_terminal -- -- true
  [ "$output" = $'no such thing\nstatus 1' ]
}

@test "without a terminal for the screen and the keys top prints tables" {
  rm table1
  touch end
  TERM=dumb on_terminal -- -- true
  [[ $(cat arguments) == *" <-G> <live=1>" ]]
  run "$launcher" top -- true </dev/null
  [ "$status" = 4 ]
  [[ $(cat arguments) == *" <-G> <live=1>" ]]
}

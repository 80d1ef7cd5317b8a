# stap-python and PyPy, which it recognizes by the symbols and libraries of its files, not by their names.  PyPy can't
# be traced, and each command reports this.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes $1/$2, a fake PyPy with its library.
imitation() {
  need gcc
  mkdir -p "$1"
  echo 'int pypy_main_startup(void) { return 0; }' >"$1/pypy.c"
  gcc -shared -fPIC -Wl,-soname,libpypy3.10-c.so -o "$1/libpypy3.10-c.so" "$1/pypy.c"
  # with -c the program sleeps for a minute
  cat >"$1/main.c" <<'C'
#include <unistd.h>
int pypy_main_startup(void);
int main(int count, char **words)
{
    return count > 2 && words[1][1] == 'c' ? (int)sleep(600) : pypy_main_startup();
}
C
  # shellcheck disable=SC2016
  gcc -o "$1/$2" "$1/main.c" "$1/libpypy3.10-c.so" -Wl,-rpath,'$ORIGIN/'
}

# The paths of PyPys, one a line: a fake called python3, Debian's, and a link to Debian's called python3.
pypys() {
  local folder=$BATS_TEST_TMPDIR
  imitation "$folder/imitation" python3
  echo "$folder/imitation/python3"
  [ -x /usr/bin/pypy3 ] || return 0
  mkdir -p "$folder/link"
  ln -sf /usr/bin/pypy3 "$folder/link/python3"
  printf '%s\n' /usr/bin/pypy3 "$folder/link/python3"
}

# Starts the PyPy $1, which sleeps; its PID is $program.
start_pypy() {
  "$1" -c 'import time; time.sleep(600)' &
  program=$!
  programs+=("$program")
  wait_for grep -q '/libpypy' "/proc/$program/maps"
}

said=$BATS_TEST_TMPDIR/said
nothing='PyPy, not CPython: nothing can be seen of it'

@test "attach, list, ps and a script's -x say of a process that it runs PyPy, and of its program that it is PyPy" {
  local pypy
  printf '#!/bin/sh\nexit 5\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  for pypy in $(pypys); do
    start_pypy "$pypy"
    attach_refuses "it runs $nothing\$"
    refuses 1 "$program: it runs $nothing\$" list "$program"
    refuses 1 "$pypy: it is $nothing\$" list "$pypy"
    # with others, or by the name that its file has
    run launcher attach --name "$(readlink -f "$pypy")"
    [ "$status" = 1 ]
    grep -xF "stap-python: attach: $program: it runs $nothing" <<<"$output"
    launcher ps >"$BATS_TEST_TMPDIR/ps" 2>/dev/null
    grep -E "^ *$program " "$BATS_TEST_TMPDIR/ps"
    grep -xE " *$program  $(id -un) +PyPy +can't: runs PyPy, not CPython +- +- +$pypy -c import time; .*" "$BATS_TEST_TMPDIR/ps"
    launcher ps --json 2>/dev/null | grep -F "\"pid\": $program," | grep -F "\"version\": \"PyPy\", \"shim\": \"can't\", \"reason\": \"it runs $nothing\""
    STAP=$BATS_TEST_TMPDIR/stap launcher pycalls -x "$program" 2>"$said" || [ $? = 5 ]
    cat "$said"
    [ "$(cat "$said")" = "stap-python: $program: it runs $nothing; only what it starts from now on is traced" ]
    STAP=$BATS_TEST_TMPDIR/stap launcher pycalls 2>"$said" || [ $? = 5 ]
    cat "$said"
    grep -qxE 'stap-python: [0-9]+ processe?s? runs? PyPy, not CPython: nothing can be seen of (it|them)' "$said"
    kill "$program"
    # a reaped process has no line any more
    wait "$program" || true
  done
}

@test "run, and -c of a script, start PyPy and say that nothing can be seen of it" {
  local pypy line
  printf '#!/bin/sh\nexit 5\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  for pypy in $(pypys); do
    printf '#!%s\n' "$pypy" >"$BATS_TEST_TMPDIR/app"
    printf '#!/usr/bin/env %s\n' "$(basename "$pypy")" >"$BATS_TEST_TMPDIR/app2"
    chmod +x "$BATS_TEST_TMPDIR"/app{,2}
    line="stap-python: $pypy is $nothing"
    launcher run "$pypy" </dev/null 2>"$said"
    cat "$said"
    [ "$(cat "$said")" = "$line" ]
    launcher run env A=1 "$pypy" </dev/null 2>"$said"
    [ "$(cat "$said")" = "$line" ]
    launcher run "$BATS_TEST_TMPDIR/app" </dev/null 2>"$said"
    cat "$said"
    [ "$(cat "$said")" = "$line" ]
    PATH=$(dirname "$pypy"):$PATH launcher run "$BATS_TEST_TMPDIR/app2" </dev/null 2>"$said"
    cat "$said"
    [ "$(cat "$said")" = "$line" ]
    for command in "$pypy x.py" "timeout 5 $pypy x.py" "A=1 $pypy x.py | cat" "$(basename "$pypy") x.py"; do
      PATH=$(dirname "$pypy"):$PATH STAP=$BATS_TEST_TMPDIR/stap launcher pycalls -c "$command" 2>"$said" || [ $? = 5 ]
      cat "$said"
      [ "$(cat "$said")" = "$line" ]
    done
  done
  # for a CPython nothing is printed
  launcher run /usr/bin/python3 -c 'print()' 2>"$said"
  [ ! -s "$said" ]
}

@test "enable refuses PyPy, and what else says that it is no CPython; disable still removes what is there" {
  local pypy site folder=$BATS_TEST_TMPDIR/env
  for pypy in $(pypys); do
    refuses 1 "$pypy: it is $nothing\$" enable "$pypy"
  done
  printf '#!/bin/sh\nprintf "\\nimplementation: graalpy\\n\\nsite: 3 11 - /tmp\\n"\n' >"$BATS_TEST_TMPDIR/python"
  chmod +x "$BATS_TEST_TMPDIR/python"
  refuses 1 "$BATS_TEST_TMPDIR/python: it is graalpy, not CPython: nothing can be seen of it\$" enable "$BATS_TEST_TMPDIR/python"
  [ -x /usr/bin/pypy3 ] || skip "needs pypy3 for the rest"
  mkdir -p "$folder/bin"
  ln -s /usr/bin/pypy3 "$folder/bin/python3"
  echo 'home = /usr/bin' >"$folder/pyvenv.cfg"
  site=$(site_of "$folder/bin/python3")
  [[ $site == "$folder/"* ]]
  mkdir -p "$site"
  refuses 1 "it is $nothing\$" enable "$folder/bin/python3"
  refute ls "$site/python_stap.pth"
  # as version 0.1 did
  environments /usr/bin/python3 >/dev/null
  launcher enable "$BATS_TEST_TMPDIR/env1/bin/python3"
  cp -a "$(dirname "$(site_of "$BATS_TEST_TMPDIR/env1/bin/python3")")"/site-packages/python_stap* "$site"
  run launcher disable "$folder/bin/python3"
  echo "$output"
  [ "$status $output" = "0 disabled: $site/python_stap.pth" ]
}

@test "list and doctor have a line for a PyPy in PATH, by any name, and doctor takes it for no Python that can be traced" {
  local pypy
  for pypy in $(pypys); do
    PATH=$(dirname "$pypy"):$PATH launcher list >"$BATS_TEST_TMPDIR/list" 2>&1
    grep -F PyPy "$BATS_TEST_TMPDIR/list"
    grep -xE "$pypy +PyPy +- +unsupported: it is $nothing|$(readlink -f "$pypy") .*unsupported: it is $nothing" "$BATS_TEST_TMPDIR/list"
    PATH=$(dirname "$pypy"):$PATH launcher doctor >"$BATS_TEST_TMPDIR/doctor" 2>&1 || true
    grep -E "^note +python +$pypy, PyPy: .*it is $nothing\$" "$BATS_TEST_TMPDIR/doctor"
  done
}

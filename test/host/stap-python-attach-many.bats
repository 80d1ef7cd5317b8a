# stap-python: attach to several processes, by PID, by name, with their children, and to all.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

@test "attach takes several PIDs, each once, and says of each how it went" {
  alone '
    python; one=$!
    python; two=$!
    sleep 600 & none=$!
    echo "$one $two $none"
    status=0
    "$launcher" attach $one $two $one || status=$?
    echo "status $status"
    "$launcher" attach $one $none 999999 $two 2>"$dir/errors" || status=$?
    echo "status $status"
    cat "$dir/errors"'
  read -r one two none <<<"${lines[0]}"
  [ "${lines[1]}" = "$one: active: $shim" ]
  [ "${lines[2]}" = "$two: active: $shim" ]
  [ "${lines[3]}" = 'status 0' ]
  [ "${lines[4]}" = "$one: already active: $shim" ]
  [ "${lines[5]}" = "$two: already active: $shim" ]
  [ "${lines[6]}" = 'status 1' ]
  [ "${lines[7]}" = "stap-python: attach: $none: it does not run CPython" ]
  [ "${lines[8]}" = 'stap-python: attach: 999999: no such process' ]
  [ "${#lines[@]}" = 9 ]
}

@test "attach --all takes every Python, and names those that it can't with the reason" {
  alone '
    python; one=$!
    python /usr/bin/env PYTHON_STAP=off /usr/bin/python3; off=$!
    python; two=$!
    python; stopped=$!
    kill -STOP $stopped
    until grep -q "State:.T" "/proc/$stopped/status"; do sleep 0.01; done
    sleep 600 &
    echo "$one $off $two $stopped"
    status=0
    "$launcher" attach --all 2>"$dir/errors" || status=$?
    echo "status $status"
    cat "$dir/errors"
    kill -KILL $one $two $off
    wait $one $two $off || true
    "$launcher" attach --all 2>/dev/null || echo "then $?"
    kill -KILL $stopped
    wait $stopped || true
    "$launcher" attach --all || echo "at last $?"'
  read -r one off two stopped <<<"${lines[0]}"
  [ "${lines[1]}" = "$one: active: $shim" ]
  [ "${lines[2]}" = "$two: active: $shim" ]
  [ "${lines[3]}" = 'status 0' ]
  [ "${lines[4]}" = "stap-python: attach: $off: it was started with PYTHON_STAP=off" ]
  [ "${lines[5]}" = "stap-python: attach: $stopped: it is stopped: resume it with kill -CONT $stopped" ]
  [ "$(grep -c '^then 1$' <<<"$output")" = 1 ]
  [[ $output == *'stap-python: attach: no such Python runs'* ]]
  [ "${lines[-1]}" = 'at last 1' ]
}

@test "attach --name takes what has that command name, program, script, module or first word" {
  alone '
    mkdir -p "$dir/srv/shop"
    cp "$dir/ticks.py" "$dir/srv/shop/serve.py"
    cp "$dir/ticks.py" "$dir/srv/shop/worker.py"
    touch "$dir/srv/shop/__init__.py"
    cp /usr/bin/python3 "$dir/srv/python-of-ours"
    cd "$dir/srv"
    wait_for_file() { for _ in {1..400}; do [ ! -e "$1" ] || return 0; sleep 0.05; done; return 1; }
    /usr/bin/python3 -I -W ignore "$dir/srv/shop/serve.py" & script=$!
    wait_for_file "$dir/srv/shop/$script.ticks"
    /usr/bin/python3 -m shop.worker & module=$!
    wait_for_file "$dir/srv/shop/$module.ticks"
    ./python-of-ours "$dir/ticks.py" & program=$!
    wait_for_file "$dir/$program.ticks"
    python env COMM=shopkeeper /usr/bin/python3; comm=$!
    # as uwsgi workers
    COMM=uWSGIWorker1Cor bash -c "exec -a /usr/bin/served /usr/bin/python3 \"$dir/ticks.py\"" & called=$!
    wait_for_file "$dir/$called.ticks"
    # it does not name a script: the word belongs to -c
    /usr/bin/python3 -c "import time; time.sleep(600)" serve.py & none=$!
    bash -c "exec -a serve.py sleep 600" &
    echo "$script $module $program $comm $called $none"
    try() {
      echo "try $*"
      "$launcher" attach "$@" 2>&1 | sed "s/:.*//" | paste -sd" "
    }
    try --name serve.py
    try --name "*/shop/*"
    try --name "shop.w*"
    try --name "python-of-*"
    try --name shopkeeper
    try --name=shopkeepe[r] --name serve.py $comm
    try --name served
    try --name "/usr/*/served"
    try --name "serve"'
  read -r script module program comm called none <<<"${lines[0]}"
  diff - <(printf '%s\n' "${lines[@]:1}") <<SAID
try --name serve.py
$script
try --name */shop/*
$script
try --name shop.w*
$module
try --name python-of-*
$program
try --name shopkeeper
$comm
try --name=shopkeepe[r] --name serve.py $comm
$comm $script
try --name served
$called
try --name /usr/*/served
$called
try --name serve
stap-python
SAID
}

@test "attach --name takes a script by any end of its path, an interpreter of another name, and the words of a title" {
  alone '
    mkdir -p "$dir/srv/shop"
    cp "$dir/ticks.py" "$dir/srv/shop/serve.py"
    cp /usr/bin/python3 "$dir/srv/interpreter"
    wait_for_file() { for _ in {1..400}; do [ ! -e "$1" ] || return 0; sleep 0.05; done; return 1; }
    cd "$dir/srv/shop"
    ../interpreter ./serve.py & script=$!
    wait_for_file "$dir/srv/shop/$script.ticks"
    # as modules do that set titles: over argv[] and the environment
    cat >"$dir/titled.py" <<PY
import ctypes, sys
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
first, last = int(fields[45]), int(fields[48])
ctypes.memmove(first, sys.argv[1].encode().ljust(last - first, b"\\0")[:last - first], last - first)
exec(open("$dir/ticks.py").read().replace("__file__", "\"$dir/titled.py\""))
PY
    /usr/bin/python3 "$dir/titled.py" "gunicorn: worker [shop]" & gunicorn=$!
    wait_for_file "$dir/$gunicorn.ticks"
    /usr/bin/python3 "$dir/titled.py" "[celeryd: celery@host:MainProcess] -active- (worker)" & celery=$!
    wait_for_file "$dir/$celery.ticks"
    echo "$script $gunicorn $celery"
    try() {
      echo "try $*"
      "$launcher" attach "$@" 2>&1 | sed "s/:.*//" | paste -sd" "
    }
    try --name shop/serve.py
    try --name ./serve.py
    try --name "$dir/srv/shop/serve.py"
    try --name interpreter
    try --name gunicorn
    try --name celery
    try --name "gunicorn*"
    try --name guni'
  read -r script gunicorn celery <<<"${lines[0]}"
  diff - <(printf '%s\n' "${lines[@]:1}") <<SAID
try --name shop/serve.py
$script
try --name ./serve.py
$script
try --name $BATS_TEST_TMPDIR/srv/shop/serve.py
$script
try --name interpreter
$script
try --name gunicorn
$gunicorn
try --name celery
$celery
try --name gunicorn*
$gunicorn
try --name guni
stap-python
SAID
}

@test "attach --children takes the descendants that are Pythons, and a PID of another program" {
  alone '
    cat >"$dir/forks.py" <<PY
import os, runpy
child = os.fork()
if not child:
    os.fork()
runpy.run_path("$dir/ticks.py")
PY
    bash -c "/usr/bin/python3 \"\$dir/forks.py\" & wait; :" & shell=$!
    for _ in {1..400}; do
      [ "$(ls "$dir" | grep -c ticks$)" -lt 3 ] || break
      sleep 0.05
    done
    python; other=$!
    echo "$(ls "$dir" | sed -n "s/.ticks$//p" | grep -vx $other | sort -n | paste -sd" ")"
    "$launcher" attach --children $shell || echo "status $?"
    echo "and $("$launcher" attach --children $shell $other | wc -l)"
    grep -c libpython-stap "/proc/$shell/maps" || true
    sleep 600 & none=$!
    "$launcher" attach --children $none || echo "status $?"
    "$launcher" attach --children 999999 || echo "status $?"'
  read -r -a family <<<"${lines[0]}"
  [ "${#family[@]}" = 3 ]
  for i in 0 1 2; do
    [ "${lines[$((i + 1))]}" = "${family[i]}: active: $shim" ]
  done
  [ "${lines[4]}" = 'and 4' ]
  [ "${lines[5]}" = 0 ]
  [ "${lines[6]} ${lines[7]}" = 'stap-python: attach: no such Python runs status 1' ]
  [ "${lines[8]} ${lines[9]}" = 'stap-python: attach: 999999: no such process status 1' ]
}

@test "what ends while others are attached to is an error only if it was named by its PID" {
  need gcc
  # while attach waits for the first, which is at no safe point, the second ends
  alone '
    printf "#include <unistd.h>\nvoid spin(const char *until) { while (access(until, F_OK)) ; }\n" >"$dir/spin.c"
    gcc -O2 -shared -fPIC -o "$dir/spin.so" "$dir/spin.c"
    cat >"$dir/short.py" <<PY
import ctypes, os, sys
library = ctypes.PyDLL("$dir/spin.so")
open(sys.argv[1], "w").close()
library.spin(b"$dir/end")
PY
    pair() {
      rm -f "$dir"/spins.* "$dir/end"
      /usr/bin/python3 "$dir/short.py" "$dir/spins.1" & first=$!
      /usr/bin/python3 "$dir/short.py" "$dir/spins.2" & second=$!
      until [ -e "$dir/spins.1" ] && [ -e "$dir/spins.2" ]; do sleep 0.05; done
      python; third=$!
    }
    # both end when attach works on the first
    attach() {
      "$launcher" attach "$@" & attach=$!
      for _ in {1..400}; do ! pgrep -P $attach >/dev/null || break; sleep 0.05; done
      touch "$dir/end"
      wait $attach
    }
    pair
    status=0
    attach --all || status=$?
    echo "status $status $third"
    kill $third
    pair
    attach $first $second $third || status=$?
    echo "status $status $first $second $third"'
  third=$(awk '$1 == "status" { print $3; exit }' <<<"$output")
  # one that ends now may have been attached to
  sed '/^status/q' <<<"$output" >"$BATS_TEST_TMPDIR/all"
  grep -qx "$third: active: $shim" "$BATS_TEST_TMPDIR/all"
  grep -qx "status 0 $third" "$BATS_TEST_TMPDIR/all"
  refute grep stap-python: "$BATS_TEST_TMPDIR/all"
  read -r _ status _ second third <<<"${lines[-1]}"
  [ "$status" = 1 ]
  grep -qxE "stap-python: attach: $second: (it has ended|no such process|it does not run CPython)" <<<"$output"
  grep -qx "$third: active: $shim" <<<"$output"
}

@test "what is started while attach works on others is not missed" {
  alone '
    python; first=$!
    cat >"$dir/spawns.py" <<PY
import subprocess, time
open("$dir/spawns", "w").close()
# until the shim is here, and so while the others have not had their turn
while "libpython-stap" not in open("/proc/self/maps").read():
    time.sleep(0.005)
print("child", subprocess.Popen(["/usr/bin/python3", "-I", "$dir/ticks.py"], env={}).pid, flush=True)
time.sleep(600)
PY
    /usr/bin/python3 "$dir/spawns.py" &
    while [ ! -e "$dir/spawns" ]; do sleep 0.01; done
    python; last=$!
    # it waits in C, so that attach needs a second for it
    /usr/bin/python3 -c "import time; time.sleep(600)" &
    for _ in {1..400}; do ! grep -q nanosleep "/proc/$!/wchan" || break; sleep 0.05; done
    "$launcher" attach --all'
  child=$(awk '$1 == "child" { print $2 }' <<<"$output")
  grep -qx "$child: active: $shim" <<<"$output"
}

@test "a fault while attach works on one of many ends its turn, and no other's" {
  need gcc
  alone '
    printf "void spin(volatile int *until) { while (!*until) ; }\n" >"$dir/spin.c"
    gcc -O2 -shared -fPIC -o "$dir/spin.so" "$dir/spin.c"
    /usr/bin/python3 -c "import ctypes
open(\"$dir/spins\", \"w\").close()
ctypes.PyDLL(\"$dir/spin.so\").spin(ctypes.byref(ctypes.c_int(0)))" & first=$!
    while [ ! -e "$dir/spins" ]; do sleep 0.05; done
    python; second=$!
    echo "$first $second"
    "$launcher" attach $first $second & attach=$!
    for _ in {1..400}; do ! pgrep -P $attach >/dev/null || break; sleep 0.05; done
    kill -KILL "$(pgrep -P $attach)"
    wait $attach || echo "status $?"'
  read -r first second <<<"${lines[0]}"
  [ "${lines[1]}" = "stap-python: attach: $first: the process of ours that attached to it was killed" ]
  [ "${lines[2]}" = "$second: active: $shim" ]
  [ "${lines[3]}" = 'status 1' ]
}

@test "attach of many without root takes one's own, and says what it may not look at" {
  need setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  chmod a+rwx "$BATS_TEST_TMPDIR"
  alone '
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    python $as /usr/bin/python3; own=$!
    python; other=$!
    echo "$own $other"
    status=0
    $as "$launcher" attach --all || status=$?
    $as "$launcher" attach $own $other || status=$?
    echo "status $status"'
  read -r own other <<<"${lines[0]}"
  [ "${lines[1]}" = "$own: active: $shim" ]
  [[ ${lines[2]} =~ ^stap-python:\ [0-9]+\ process(es)?\ could\ not\ be\ looked\ at:\ run\ this\ as\ root$ ]]
  [ "${lines[3]}" = "$own: already active: $shim" ]
  [ "${lines[4]}" = "stap-python: attach: $other: it belongs to another user (uid 0): run this as that user or root" ]
  [ "${lines[5]}" = 'status 1' ]
}

# stap-python: ps.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Starts a Python that sleeps, with these variables and arguments, and waits until it runs; its PID is $!.
# usage: sleeper [VARIABLE=VALUE...] PYTHON [ARGUMENTS...]
sleeper() {
  local words=()
  while [[ $1 == *=* ]]; do
    words+=("$1")
    shift
  done
  env "${words[@]}" "$@" -c 'import time; time.sleep(600)' &
  programs+=($!)
  wait_for runs "$!" "$(type -P "$1")"
}

# The field $2 of the process $1 in ps --json; null is printed as "None".
field() {
  launcher ps --json 2>/dev/null |
    /usr/bin/python3 -c 'import json, sys; print(*[row[sys.argv[2]] for row in json.load(sys.stdin) if row["pid"] == int(sys.argv[1])])' "$1" "$2"
}

is_active() {
  [ "$(field "$1" shim)" = active ]
}

@test "ps has a line for each Python, with its user, version, and whether the shim is active" {
  local python plain active off
  for python in $(few_pythons); do
    sleeper "$python"
    plain=$!
    sleeper LD_PRELOAD="$shim" "$python"
    active=$!
    sleeper PYTHON_STAP=off LD_PRELOAD="$shim" "$python"
    off=$!
    wait_for thread_has "$active" comm python-stap
    launcher ps >"$BATS_TEST_TMPDIR/ps" 2>/dev/null
    cat "$BATS_TEST_TMPDIR/ps"
    head -n 1 "$BATS_TEST_TMPDIR/ps" | grep -xE ' *PID  USER +VERSION +SHIM +VENV +CONTAINER +COMMAND'
    grep -xE " *$plain  $(id -un) +$(abi_of "$python") +- +- +- +$python -c import time; time.sleep\(600\)" "$BATS_TEST_TMPDIR/ps"
    grep -xE " *$active  $(id -un) +$(abi_of "$python") +active +- +- +$python -c .*" "$BATS_TEST_TMPDIR/ps"
    grep -xE " *$off  $(id -un) +$(abi_of "$python") +off +- +- +$python -c .*" "$BATS_TEST_TMPDIR/ps"
    refute awk -v pid="$$" '$1 == pid { found = 1 } END { exit !found }' "$BATS_TEST_TMPDIR/ps"
  done
}

@test "ps tells a shim that is loaded from one that is active, and does not wait for it" {
  need gcc
  # the GIL is never released, without which the shim can't be active
  /usr/bin/python3 -c 'import ctypes; ctypes.PyDLL(None).sleep(600)' &
  programs+=($!)
  wait_for grep -q nanosleep "/proc/$!/wchan"
  launcher attach "$!" || true
  [ "$(field "$!" shim)" = loaded ]
  sleeper LD_PRELOAD="$shim" /usr/bin/python3
  wait_for grep -q nanosleep "/proc/$!/wchan"
  wait_for is_active "$!"
  for _ in {1..20}; do
    sleeper PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3
  done
  gcc -shared -fPIC -xc -o "$BATS_TEST_TMPDIR/naps.so" - <<'C'
#include <stdio.h>
#include <time.h>
int nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)time, (void)rest;
    fputs("it waits\n", stderr);
    return 0;
}
C
  LD_PRELOAD=$BATS_TEST_TMPDIR/naps.so launcher ps >/dev/null 2>"$BATS_TEST_TMPDIR/naps"
  refute grep -q 'it waits' "$BATS_TEST_TMPDIR/naps"
  # as list does
  LD_PRELOAD=$BATS_TEST_TMPDIR/naps.so launcher list "${programs[-1]}" 2>&1 | grep -q 'it waits'
}

@test "ps says why attach would refuse, in short, and --json in whole" {
  need gcc
  echo 'const char *Py_GetVersion(void) { return "3.11.0"; } int sleep(int); int main(void) { return sleep(600); }' >"$BATS_TEST_TMPDIR/python.c"
  gcc -static -o "$BATS_TEST_TMPDIR/python3.11" "$BATS_TEST_TMPDIR/python.c"
  "$BATS_TEST_TMPDIR/python3.11" &
  programs+=($!)
  gcc -rdynamic -fno-builtin -o "$BATS_TEST_TMPDIR/python3.5" -x c <(sed s/3.11.0/3.5.0/ "$BATS_TEST_TMPDIR/python.c")
  "$BATS_TEST_TMPDIR/python3.5" &
  programs+=($!)
  sleeper /usr/bin/python3
  kill -STOP "$!"
  wait_for grep -q 'State:.T' "/proc/$!/status"
  launcher ps >"$BATS_TEST_TMPDIR/ps" 2>/dev/null
  cat "$BATS_TEST_TMPDIR/ps"
  grep -qE "^ *$! .* can't: stopped  " "$BATS_TEST_TMPDIR/ps"
  [ "$(field "$!" reason)" = "it is stopped: resume it with kill -CONT $!" ]
  [ "$(field "$!" shim)" = "can't" ]
  grep -qE "^ *${programs[1]} .* 3\.5 +can't: older than CPython 3\.6  " "$BATS_TEST_TMPDIR/ps"
}

@test "ps finds the virtual environment by how the program was called, or else by uwsgi's options and VIRTUAL_ENV" {
  local venv=$BATS_TEST_TMPDIR/venv other=$BATS_TEST_TMPDIR/other
  /usr/bin/python3 -m venv --without-pip "$venv"
  /usr/bin/python3 -m venv --without-pip "$other"
  sleeper "$venv/bin/python3"
  [ "$(field "$!" venv)" = "$venv" ]
  launcher ps 2>/dev/null | grep -E "^ *$! .* $venv  "
  # by PATH, and by a path from its directory
  PATH=$venv/bin:$PATH sleeper python3
  [ "$(field "$!" venv)" = "$venv" ]
  cd "$BATS_TEST_TMPDIR"
  sleeper ./venv/bin/python
  [ "$(realpath -s "$(field "$!" venv)")" = "$venv" ]
  # a script of the environment's
  printf '#!%s\nimport time; time.sleep(600)\n' "$venv/bin/python3" >"$venv/bin/serves"
  chmod +x "$venv/bin/serves"
  "$venv/bin/serves" &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  [ "$(field "$!" venv)" = "$venv" ]
  # the system's own in a shell that has activated one: it is not in it
  sleeper VIRTUAL_ENV="$other" /usr/bin/python3
  [ "$(field "$!" venv)" = None ]
  # a program whose command line no longer shows how it was called
  bash -c 'exec -a "web: worker" /usr/bin/env VIRTUAL_ENV="$1" /bin/bash -c "exec -a \"web: worker\" /usr/bin/python3 -c \"import time; time.sleep(600)\""' - "$other" &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  [ "$(field "$!" venv)" = "$other" ]
  # nor does that of a program of another name with a libpython, or with its code
  cp /usr/bin/python3 "$BATS_TEST_TMPDIR/server"
  sleeper VIRTUAL_ENV="$other" "$BATS_TEST_TMPDIR/server"
  [ "$(field "$!" venv)" = "$other" ]
  # uwsgi's command line names it
  cp /usr/bin/python3 "$BATS_TEST_TMPDIR/uwsgi"
  sleeper VIRTUAL_ENV="$venv" "$BATS_TEST_TMPDIR/uwsgi" -X --virtualenv="$other"
  [ "$(field "$!" venv)" = "$other" ]
  "$BATS_TEST_TMPDIR/uwsgi" -c 'import time; time.sleep(600)' -H "$other" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/uwsgi"
  [ "$(field "$!" venv)" = "$other" ]
  sleeper "$BATS_TEST_TMPDIR/uwsgi" -X --home
  [ "$(field "$!" venv)" = None ]
  # an environment that is not there
  sleeper VIRTUAL_ENV=/nonexistent /usr/bin/python3
  [ "$(field "$!" venv)" = None ]
}

@test "ps tells another root and other mounts, and containers by their control groups" {
  local pid group
  # another machine's /proc: the processes are this one's, but for what is replaced
  make_machine
  export STAP_PYTHON_ROOT=$machine
  # usage: process PID ROOT NAMESPACE GROUP
  process() {
    mkdir -p "$machine/proc/$1"/{ns,task/"$1"}
    ln -s "$machine/usr/bin/python3.11" "$machine/proc/$1/exe"
    ln -s "$2" "$machine/proc/$1/root"
    ln -s "$3" "$machine/proc/$1/ns/mnt"
    echo "$1 (python3) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 100 0 0" >"$machine/proc/$1/stat"
    printf 'Name:\tpython3\nState:\tS (sleeping)\nPPid:\t1\nUid:\t0\t0\t0\t0\n' >"$machine/proc/$1/status"
    echo python3 >"$machine/proc/$1/comm"
    echo python3 >"$machine/proc/$1/task/$1/comm"
    printf 'python3\0serve.py\0' >"$machine/proc/$1/cmdline"
    : >"$machine/proc/$1/environ"
    printf '%s\n' "$4" >"$machine/proc/$1/cgroup"
    printf '00400000-00600000 r-xp 00000000 08:01 1 %s\n' "$machine/usr/bin/python3.11" >"$machine/proc/$1/maps"
  }
  local id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  mkdir -p "$machine/proc/self/ns" "$BATS_TEST_TMPDIR/elsewhere$machine/usr/bin" "$machine$machine/usr/bin"
  ln -s 'mnt:[1]' "$machine/proc/self/ns/mnt"
  cp /usr/bin/python3 "$machine$machine/usr/bin/python3.11"
  cp /usr/bin/python3 "$BATS_TEST_TMPDIR/elsewhere$machine/usr/bin/python3.11"
  process 100 "$machine" 'mnt:[1]' "0::/system.slice/docker-$id.scope"
  process 101 "$machine" 'mnt:[2]' '0::/system.slice/web.service'
  process 102 "$BATS_TEST_TMPDIR/elsewhere" 'mnt:[1]' '0::/user.slice'
  pid=200
  while read -r group _; do
    process $((pid++)) "$BATS_TEST_TMPDIR/elsewhere" 'mnt:[3]' "$group"
  done <<LIST
0::/system.slice/docker-$id.scope docker:0123456789ab
12:pids:/docker/$id docker:0123456789ab
0::/machine.slice/libpod-$id.scope/container podman:0123456789ab
0::/machine.slice/libpod-conmon-$id.scope
0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice/cri-containerd-$id.scope
0::/kubepods.slice/kubepods-pod12.slice/crio-$id.scope
4:memory:/kubepods/besteffort/pod12-34/$id
0::/lxc.payload.web/system.slice
2:cpu:/lxc/web
0::/machine.slice/systemd-nspawn@box.service/payload
0::/system.slice/docker-proxy.service
LIST
  launcher ps | tee "$BATS_TEST_TMPDIR/ps"
  [ "$(awk 'NR > 1 { print $1 }' "$BATS_TEST_TMPDIR/ps" | wc -l)" = 14 ]
  diff - <(launcher ps --json | /usr/bin/python3 -c 'import json, sys
for row in json.load(sys.stdin):
    print(row["pid"], row["user"], row["version"], row["container"], row["command"], sep=", ")') <<'SAID'
100, root, 3.11, None, python3 serve.py
101, root, 3.11, other mounts, python3 serve.py
102, root, 3.11, other root, python3 serve.py
200, root, 3.11, docker:0123456789ab, python3 serve.py
201, root, 3.11, docker:0123456789ab, python3 serve.py
202, root, 3.11, podman:0123456789ab, python3 serve.py
203, root, 3.11, other root, python3 serve.py
204, root, 3.11, pod:0123456789ab, python3 serve.py
205, root, 3.11, pod:0123456789ab, python3 serve.py
206, root, 3.11, pod:0123456789ab, python3 serve.py
207, root, 3.11, lxc:web, python3 serve.py
208, root, 3.11, lxc:web, python3 serve.py
209, root, 3.11, nspawn:box, python3 serve.py
210, root, 3.11, other root, python3 serve.py
SAID
}

@test "ps shows a process with other mounts, in truth" {
  [ "$(id -u)" = 0 ] || skip "needs root, to unshare mounts"
  need unshare
  unshare --mount /usr/bin/python3 -c 'import time; time.sleep(600)' &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  [ "$(field "$!" container)" = 'other mounts' ]
}

@test "ps cuts lines at the terminal's width, and nowhere else" {
  need script stty
  sleeper /usr/bin/python3 -X "dev=$(printf 'é%.0s' {1..200})"
  launcher ps 2>/dev/null | LC_ALL=C.UTF-8 grep -E "^ *$! .*é{200} -c import time; time.sleep\(600\)$"
  command script -qec "stty cols 60 && exec $launcher ps" /dev/null </dev/null | tr -d '\r' >"$BATS_TEST_TMPDIR/ps"
  cat "$BATS_TEST_TMPDIR/ps"
  LC_ALL=C.UTF-8 awk -v pid="$!" '$1 == pid { print length($0); exit }' "$BATS_TEST_TMPDIR/ps" | grep -x 60
  # nor is a character cut in two
  iconv -f UTF-8 -t UTF-8 "$BATS_TEST_TMPDIR/ps" >/dev/null
}

@test "ps prints no command of a program's to the terminal, and JSON that any reader takes" {
  local text=$'a"b\\c\e[31m\n\302\2331m\2331m \303\244 \355\240\200 \300\200 \177\342\200\256\342\201\246\330\234\342\200\217\342\200\250'
  sleeper /usr/bin/python3 -X "$text"
  launcher ps >"$BATS_TEST_TMPDIR/ps" 2>/dev/null
  launcher ps --json >"$BATS_TEST_TMPDIR/json" 2>/dev/null
  cat -v "$BATS_TEST_TMPDIR/ps" "$BATS_TEST_TMPDIR/json"
  refute grep -q "[[:cntrl:]]" "$BATS_TEST_TMPDIR/ps"
  refute grep -q "[[:cntrl:]]" "$BATS_TEST_TMPDIR/json"
  refute grep -q $'\330\234\|\342\200\217\|\342\200\250' "$BATS_TEST_TMPDIR/json"
  grep -F 'a"b\c\x1b[31m\x0a\xc2\x9b1m\x9b1m ä \xed\xa0\x80 \xc0\x80 \x7f\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8 -c' "$BATS_TEST_TMPDIR/ps"
  PYTHONIOENCODING=utf-8 /usr/bin/python3 - "$BATS_TEST_TMPDIR/json" "$!" <<'PY'
import json, sys

rows = json.loads(open(sys.argv[1], "rb").read().decode("utf-8"))
command = [row["command"] for row in rows if row["pid"] == int(sys.argv[2])][0]
expected = 'a"b\\c\x1b[31m\n\x9b1m\ufffd1m \xe4 \ufffd\ufffd\ufffd \ufffd\ufffd \x7f\u202e\u2066\u061c\u200f\u2028 -c'
assert expected in command, (command, expected)
PY
}

@test "ps takes little memory, whatever programs write over their command lines and environments" {
  local root=$BATS_TEST_TMPDIR/root python
  python=$(readlink -f /usr/bin/python3)
  # a name that no file has and a great many folders for it, and very many strings
  "$(system_python)" - "$root/proc" "$python" <<'PY'
import os
import sys

for pid in range(4711, 4731):
    os.makedirs("%s/%d" % (sys.argv[1], pid))
    os.chdir("%s/%d" % (sys.argv[1], pid))
    os.symlink(sys.argv[2], "exe")
    os.symlink("/", "root")
    for name, text in {
        "stat": "%d (odd) S 1" % pid + 40 * " 5" + "\n",
        "status": "Name:\todd\nUid:\t0\t0\t0\t0\n",
        "maps": "400000-401000 r-xp 00000000 00:2a 7 %s\n" % sys.argv[2],
        "cmdline": "x" * 1000000 + "\0",
        "environ": "PYTHON_STAP=" + "y" * 600000 + "\0PATH=" + "/:" * 50000 + "\0" * 290000,
    }.items():
        with open(name, "w") as file:
            file.write(text)
PY
  export STAP_PYTHON_ROOT=$root
  ulimit -v 60000
  run launcher ps
  echo "${output:0:300}"
  [ "$status" = 0 ]
  [ "$(awk '/^47/ && length($NF) == 65536' <<<"$output" | wc -l)" = 20 ]
}

@test "ps counts what it may not look at, and says who may" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv unshare
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  # the shell and two more
  run timeout -k 5 $((20 * SLOW)) unshare --pid --fork --mount-proc --kill-child bash -c '
    sleep 600 &
    /usr/bin/python3 -c "import time; time.sleep(600)" &
    sleep 0.5
    echo "$!"
    setpriv --reuid=65534 --regid=65534 --clear-groups "$0" ps
    kill %1
    wait %1
    "$0" ps' "$launcher"
  echo "$output"
  [ "$status" = 0 ]
  [[ ${lines[1]} == *PID* ]]
  [ "${lines[2]}" = 'stap-python: 3 processes could not be looked at: run this as root' ]
  [[ ${lines[-2]} == *PID* ]]
  [[ ${lines[-1]} =~ ^\ *${lines[0]}\ .*time.sleep ]]
}

@test "ps where no Python runs is the header, and an empty array" {
  make_machine
  export STAP_PYTHON_ROOT=$machine
  run launcher ps
  [ "$status $output" = '0 PID  USER  VERSION  SHIM  VENV  CONTAINER  COMMAND' ]
  run launcher ps --json
  [ "$status $output" = '0 []' ]
}

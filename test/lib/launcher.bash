# shellcheck shell=bash
# For the suites of stap-python: the launcher, programs to attach to, and another machine's files.
#
# SPDX-License-Identifier: MIT

launcher_setup() {
  launcher=$top/build/stap-python
  unset STAP STAP_PYTHON_ROOT SYSTEMTAP_TAPSET SYSTEMTAP_RUNTIME XDG_DATA_DIRS LD_PRELOAD
  programs=()
}

setup() { launcher_setup; }

# Ends the programs that the test has started.
launcher_teardown() {
  local pid
  for pid in "${programs[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

teardown() { launcher_teardown; }

# Whether attach can call functions such as dlopen() in other processes on this architecture, as it must below 3.14.
has_remote_calls() {
  [[ $(uname -m) = x86_64 || $(uname -m) = aarch64 ]]
}

need_remote_calls() {
  has_remote_calls || skip "needs x86-64 or aarch64, whose calls attach makes with ptrace"
}

# Runs stap-python.  enable and disable keep their list in the test's directory, as if it were this machine's root.
launcher() {
  case ${1:-} in
    enable | disable) set -- env STAP_PYTHON_ROOT="${STAP_PYTHON_ROOT:-$BATS_TEST_TMPDIR/machine}" "$launcher" "$@" ;;
    *) set -- "$launcher" "$@" ;;
  esac
  timeout -k 5 $((60 * SLOW)) "$@"
}

# Makes a virtual environment of each of these Pythons, as the module venv does but faster; prints their interpreters.  One
# that a script runs in a root folder (check-distros) is run there by a script, too.
environments() {
  local python folder own number=0
  for python; do
    folder=$BATS_TEST_TMPDIR/env$((++number))
    own=$("$python" -c 'import sys; print(sys.executable)')
    mkdir -p "$folder/bin" "$folder/lib/python$(abi_of "$python")/site-packages"
    if grep -qs '^exec chroot' "$python"; then
      ln -s "$own" "$folder/bin/own"
      sed "s# $own # $folder/bin/own #" "$python" >"$folder/bin/python3"
      chmod +x "$folder/bin/python3"
    else
      ln -s "$python" "$folder/bin/python3"
    fi
    echo "home = $(dirname "$own")" >"$folder/pyvenv.cfg"
    echo "$folder/bin/python3"
  done
}

site_of() {
  "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

# The file that loads the shim into an enabled interpreter: from CPython 3.15 on the .start file.
loader_of() {
  echo "$(site_of "$1")/python_stap.$("$1" -c 'import sys; print("start" if sys.version_info >= (3, 18) else "pth")')"
}

# Makes the program $1, which runs a virtual environment of the system's Python and tells enable that it is CPython 3.$2:
# Prints the environment's own interpreter, and the site-packages that enable finds.
# shellcheck disable=SC2016
says_that_it_is() {
  local real abi site
  real=$(environments "$(system_python)")
  abi=$(abi_of "$real")
  site=${real%/bin/*}/lib/python3.$2${abi##*[0-9]}/site-packages
  ln -s "python$abi" "${site%/*}"
  printf '#!/bin/sh\nexec "%s" "$1" -c "import sys\nsys.version_info = (3, %d, 0)\n$3"\n' "$real" "$2" >"$1"
  chmod +x "$1"
  echo "$real $site"
}

# How many threads an interpreter starts with; with the shim it has one more.
threads_of() {
  "$@" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])'
}

# Checks that stap-python exits with this status, and prints nothing but one line on stderr, which matches the pattern.
# usage: refuses STATUS PATTERN ARGUMENTS...
refuses() {
  local expected=$1 pattern=$2 got=0
  shift 2
  launcher "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || got=$?
  echo "$*: $got $(cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err")"
  [ "$got" = "$expected" ]
  [ ! -s "$BATS_TEST_TMPDIR/out" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" = 1 ]
  grep -qE "^stap-python: .*($pattern)" "$BATS_TEST_TMPDIR/err"
}

# Whether the process $1 runs the program $2, and its dynamic linker is done.
runs() {
  [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$2")" ] && grep -q '/libc\.' "/proc/$1/maps"
}

# Makes the files of another machine in $machine: a Debian with all that a probe needs, its stap in $machine/bin.  A
# user other than root is in the groups stapusr and stapdev there.
make_machine() {
  local release=6.1.0-7-amd64 groups=(106 105)
  [ "$(id -u)" = 0 ] || groups=("$(id -g)" "$(id -g)")
  machine=$BATS_TEST_TMPDIR/machine
  mkdir -p "$machine"/{bin,boot,usr/bin,etc,home,"proc/sys/kernel",proc/self,"sys/kernel/security","usr/share/systemtap/runtime/transport"}
  mkdir -p "$machine/usr/share/systemtap/tapset" "$machine/lib/modules/$release/build/include/linux" "$machine$top/build"
  printf 'NAME="Debian GNU/Linux"\nID=debian\n' >"$machine/etc/os-release"
  printf 'root:x:0:\nstapusr:x:%s:\nstapdev:x:%s:\n' "${groups[@]}" >"$machine/etc/group"
  echo "$release" >"$machine/proc/sys/kernel/osrelease"
  echo 0 >"$machine/proc/sys/kernel/modules_disabled"
  : >"$machine/proc/modules"
  printf 'CapBnd:\t000001ffffffffff\n' >"$machine/proc/self/status"
  echo '[none] integrity confidentiality' >"$machine/sys/kernel/security/lockdown"
  printf 'CONFIG_MODULES=y\nCONFIG_UPROBES=y\n' >"$machine/boot/config-$release"
  : >"$machine/lib/modules/$release/build/Makefile"
  cp "$top"/tapset/*.stp "$top"/tapset/*.stpm "$top"/build/python_*.stp "$machine/usr/share/systemtap/tapset"
  awk -v shim="$shim" -f "$top/tapset/generate/paths.awk" "$top"/probes/{shared/versions.h,native.list} >"$machine/usr/share/systemtap/tapset/python_paths.stpm"
  cp "$shim" "$machine$top/build"
  cp /usr/bin/python3 "$machine/usr/bin/python3.11"
  printf '#!/bin/sh\necho "Systemtap translator/driver (version 5.6/0.190, Debian version 5.6-1)"\n' >"$machine/bin/stap"
  chmod +x "$machine/bin/stap"
  # it has compiled the scripts
  touch -d @1000000000 "$machine/bin/stap"
  mkdir -m 755 "$machine/home/.systemtap"
  echo "$release scripts-$(cat "$top/VERSION") 3 1000000000 $machine/bin/stap" >"$machine/home/.systemtap/python-checked"
  # SystemTap's runtime, without the faults for which doctor checks
  echo 'typedef typeof(&task_work_cancel_func) f;' >"$machine/usr/share/systemtap/runtime/stp_task_work.c"
  echo 'int fine;' >"$machine/usr/share/systemtap/runtime/transport/relay_v2.c"
}

# Compiles a fake free-threaded CPython of this PY_VERSION_HEX.
# usage: free_threaded FILE HEX
free_threaded() {
  gcc -rdynamic -o "$1" -x c - <<C
const unsigned long Py_Version = $2;
const char *Py_GetVersion(void) { return "%.80s free-threading build (%.80s) %.80s"; }
int main(void) { return 0; }
C
}

# A checkout of its own in $BATS_TEST_TMPDIR/tree, without a shim.
make_tree() {
  mkdir -p "$BATS_TEST_TMPDIR/tree"/{build,probes}
  cp "$launcher" "$BATS_TEST_TMPDIR/tree/build"
  cp "$top/probes/python.d" "$BATS_TEST_TMPDIR/tree/probes"
}

# The message of attach for a fake shim or a fake Python: the shim was loaded, and does nothing.
# usage: does_nothing PID
does_nothing() {
  echo "stap-python: attach: $1: the shim is loaded, but tracers don't see it: it found no CPython there that it supports: PYTHON_STAP_DEBUG=1 in the program's environment says why"
}

# Compiles a shim with an undefined symbol to the file $1.
make_broken_shim() {
  cat >"$BATS_TEST_TMPDIR/shim.c" <<'C'
#include <sys/sdt.h>
void nowhere(void);
void f(void)
{
    STAP_PROBE(python, line);
    nowhere();
}
C
  gcc -shared -fPIC -Wl,-z,now -o "$1" "$BATS_TEST_TMPDIR/shim.c"
}

# Starts a program that repeats a computation in four threads until the file $end exists, and then prints how often
# the result was wrong.  Its PID is $program, its output in $program_output.
# usage: start_program PYTHON...
start_program() {
  end=$BATS_TEST_TMPDIR/end program_output=$BATS_TEST_TMPDIR/output
  rm -f "$end" "$program_output"
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
import os, sys, threading, time

wrong = []


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute():
    while not os.path.exists(sys.argv[1]):
        text = [str(i) * 50 for i in range(300)]
        if fib(12) != 144 or sum(map(len, text)) != 39500:
            wrong.append(1)


threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
print("started", flush=True)
compute()
for thread in threads:
    thread.join()
print("ended, wrong: %d" % len(wrong))
PY
  "$@" "$BATS_TEST_TMPDIR/program.py" "$end" >"$program_output" 2>&1 &
  program=$!
  programs+=("$program")
  wait_for grep -qs started "$program_output"
}

# Checks that the program still runs, untraced, and ends with the right result.
program_ends() {
  refute grep -qE 'State:.[tT]' "/proc/$program/status"
  [ "$(awk '/TracerPid/ { print $2 }' "/proc/$program/status")" = 0 ]
  : >"$end"
  program_has_ended
}

program_has_ended() {
  local status=0
  wait "$program" || status=$?
  cat "$program_output"
  [ "$status" = 0 ]
  [ "$(cat "$program_output")" = $'started\nended, wrong: 0' ]
}

# Checks that stap-python refuses to attach to the program, with this error, and loads nothing into it.
# usage: attach_refuses PATTERN
attach_refuses() {
  refuses 1 "attach: $program: .*($1)" attach "$program"
  refute grep -q libpython-stap "/proc/$program/maps"
}

# Runs the bash script $1 in a PID namespace with its own /proc, because attach --all and --name would reach other
# programs of this machine, too.  The script has $launcher, $shim, $top, $dir, and the functions below.
alone() {
  [ "$(id -u)" = 0 ] || skip "needs root, for PIDs of its own"
  need unshare
  cat >"$BATS_TEST_TMPDIR/functions" <<'SH'
set -eu
# Starts a program that runs Python code now and then, for a minute, with these words; its PID is $!.
python() {
  "${@:-/usr/bin/python3}" "$dir/ticks.py" &
  started $!
}
started() {
  for _ in {1..400}; do
    ! [ -e "$dir/$1.ticks" ] || return 0
    sleep 0.05
  done
  return 1
}
SH
  cat >"$BATS_TEST_TMPDIR/ticks.py" <<'PY'
import os, sys, time

if "COMM" in os.environ:
    open("/proc/self/comm", "w").write(os.environ["COMM"])
open("%s/%d.ticks" % (os.path.dirname(os.path.abspath(__file__)), os.getpid()), "w").close()
for _ in range(3000):
    time.sleep(0.02)
PY
  # shellcheck disable=SC2016
  printf '. "$dir/functions"\n%s\n' "$1" >"$BATS_TEST_TMPDIR/script"
  run env dir="$BATS_TEST_TMPDIR" launcher="$launcher" shim="$shim" top="$top" \
    timeout -k 5 $((60 * SLOW)) unshare --pid --fork --mount-proc --kill-child bash "$BATS_TEST_TMPDIR/script"
  echo "$output"
}

# Makes a fake stap that prints its tapset, and its arguments a line each.
fake_stap() {
  cat >"$BATS_TEST_TMPDIR/stap" <<'SH'
#!/bin/sh
echo "tapset $SYSTEMTAP_TAPSET"
printf '<%s>\n' "$@"
exit 5
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap
}

# What stap gets behind each script of the project: the module and the second script that all runs have.
env_program=$(command -v env)
# shellcheck disable=SC2034 # by the suites
always="<-d> <$env_program> <-E> <probe begin { __python_output_begins() }>"

# Runs the launcher; its own messages are in $said.
said=$BATS_TEST_TMPDIR/said
quietly() {
  launcher "$@" 2>"$said"
}

# stap-python: attach, and its effects on the program.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes starts.so, with which Python's start waits until the file go exists: as it opens stdin, /dev/null say, it writes
# Py_IsInitialized() to the file starts.
make_start_wait() {
  cat >"$BATS_TEST_TMPDIR/starts.c" <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
int Py_IsInitialized(void) __attribute__((weak));
void *PyInterpreterState_Head(void) __attribute__((weak));
int isatty(int fd)
{
    struct termios terminal;
    if (PyInterpreterState_Head && PyInterpreterState_Head() && access(getenv("STARTS"), F_OK) != 0) {
        int file = open(getenv("STARTS"), O_CREAT | O_WRONLY, 0600);
        write(file, Py_IsInitialized() ? "1" : "0", 1);
        close(file);
        while (access(getenv("GO"), F_OK) != 0)
            usleep(10000);
    }
    return ioctl(fd, TCGETS, &terminal) == 0;
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/starts.so" "$BATS_TEST_TMPDIR/starts.c"
  export STARTS=$BATS_TEST_TMPDIR/starts GO=$BATS_TEST_TMPDIR/go
}

@test "attach loads the shim into a busy program with threads, which runs on and computes the same" {
  local python
  for python in $(pythons); do
    echo "$python"
    start_program "$python"
    run launcher attach "$program"
    echo "$output"
    [ "$status $output" = "0 $program: active: $shim" ]
    grep -q "$shim" "/proc/$program/maps"
    grep -qx python-stap /proc/"$program"/task/*/comm
    run launcher attach "$program"
    # in another root by its path from here
    [[ "$status $output" == "0 $program: already active: "*"$shim" ]]
    [ "$(grep -cx python-stap /proc/"$program"/task/*/comm | grep -c :1)" = 1 ]
    program_ends
  done
}

@test "attach to a Python that starts has it become active once it has started" {
  need gcc
  need_remote_calls
  local python
  make_start_wait
  for python in $(pythons); do
    echo "$python"
    rm -f "$BATS_TEST_TMPDIR"/{starts,go,end}
    LD_PRELOAD=$BATS_TEST_TMPDIR/starts.so "$python" -c '
import os, sys
while not os.path.exists(sys.argv[1]):
    sum(range(20000))
print("ended")' "$BATS_TEST_TMPDIR/end" >"$BATS_TEST_TMPDIR/output" 2>&1 </dev/null 3>&- &
    program=$!
    programs+=("$program")
    wait_for test -s "$BATS_TEST_TMPDIR/starts"
    run launcher attach "$program"
    echo "$output"
    if [ "$(version_of "$python")" = 3.6 ]; then
      # which says from the begin of its start on that it has started, and has no thread that waits for that
      [ "$(cat "$BATS_TEST_TMPDIR/starts") $status" = '1 1' ]
    else
      [ "$(cat "$BATS_TEST_TMPDIR/starts")" = 0 ]
      [ "$status $output" = "0 $program: loaded: $shim; it becomes active when Python code next runs there" ]
    fi
    : >"$BATS_TEST_TMPDIR/go"
    wait_for grep -qrxs --include=comm python-stap "/proc/$program/task"
    : >"$BATS_TEST_TMPDIR/end"
    wait "$program"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = ended ]
  done
}

@test "attach waits until a program that gets little of a processor has become active" {
  local hogs='' i
  need taskset
  start_program taskset -c 0 nice -n 15 /usr/bin/python3
  for i in {1..8}; do
    taskset -c 0 sh -c 'while :; do :; done' 3>&- &
    hogs+=" $!"
  done
  run launcher attach "$program"
  # shellcheck disable=SC2086
  kill $hogs
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

@test "attach loads the shim into a program that sleeps, waits or gets signals, which notices nothing" {
  # each lives for three seconds, on a slow machine longer
  local python kind seconds=$((3 * SLOW))
  cat >"$BATS_TEST_TMPDIR/waits.py" <<'PY'
import os, select, signal, sys, threading, time

start = time.time()
print("started", flush=True)
kind, seconds = sys.argv[1], int(sys.argv[2])
if kind == "sleep":
    time.sleep(seconds)
elif kind == "join":
    thread = threading.Thread(target=time.sleep, args=(seconds,))
    thread.start()
    thread.join()
elif kind == "epoll":
    assert select.epoll().poll(seconds) == []
elif kind == "select":
    assert select.select([], [], [], seconds) == ([], [], [])
elif kind == "read":
    assert sys.stdin.readline() == "line\n"
elif kind == "wait":
    assert os.system("sleep %d; exit 3" % seconds) >> 8 == 3
elif kind == "alarm":
    calls = []
    signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while time.time() < start + seconds:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(calls) > 10
print("took", kind == "read" or seconds - 0.1 < time.time() - start < 5 * seconds)
PY
  # shellcheck disable=SC2046
  for python in $(pythons_by_hook); do
    rm -f "$BATS_TEST_TMPDIR"/{sleep,join,epoll,select,read,wait,alarm}
    for kind in sleep join epoll select read wait alarm; do
      (sleep "$seconds" && echo line) | "$python" "$BATS_TEST_TMPDIR/waits.py" "$kind" "$seconds" >"$BATS_TEST_TMPDIR/$kind" 2>&1 &
      programs+=($!)
    done
    for kind in sleep join epoll select read wait alarm; do
      wait_for grep -qs started "$BATS_TEST_TMPDIR/$kind"
      launcher attach "$(pgrep -f "^[^ ]+ $BATS_TEST_TMPDIR/waits.py $kind")" >"$BATS_TEST_TMPDIR/$kind.attached" 2>&1 &
      programs+=($!)
    done
    wait "${programs[@]}"
    for kind in sleep join epoll select read wait alarm; do
      echo "$python $kind: $(cat "$BATS_TEST_TMPDIR/$kind.attached" "$BATS_TEST_TMPDIR/$kind")"
      grep -qE ': (active|loaded): ' "$BATS_TEST_TMPDIR/$kind.attached"
      [ "$(cat "$BATS_TEST_TMPDIR/$kind")" = $'started\ntook True' ]
    done
    programs=()
  done
}

@test "markers fire after attach" {
  can_bpftrace
  local python
  for python in $(pythons_by_hook); do
    start_program "$python"
    # bpftrace would lose events if this took longer
    bpftrace_while "$(function_markers)" \
      sh -c '"$1" attach "$2" && until grep -q "^< .*/program.py fib " "$4"; do sleep 0.05; done; touch "$3"' \
      - "$launcher" "$program" "$end" "$BATS_TEST_TMPDIR/trace"
    echo "$python: $(wc -l <"$trace") events"
    grep -qE "^> $BATS_TEST_TMPDIR/program.py fib [0-9]+ [0-9a-f]+ __main__" "$trace"
    grep -qE "^< $BATS_TEST_TMPDIR/program.py fib [0-9]+ [0-9a-f]+ __main__" "$trace"
    program_has_ended
  done
}

@test "attach by its user, without root" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  start_program setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

@test "attach reports that dlopen() fails in the program, which runs on" {
  need gcc
  make_tree
  make_broken_shim "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0"
  start_program /usr/bin/python3
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  attach_refuses 'dlopen.. failed in it: .*undefined symbol: nowhere'
  program_ends
}

# Compiles a fake shim that takes 2 s to load, into the checkout of make_tree().  It makes no system call: another sleep
# of the thread would replace what the kernel keeps to restart the interrupted sleep.
make_slow_shim() {
  cat >"$BATS_TEST_TMPDIR/shim.c" <<'C'
#include <sys/sdt.h>
#include <time.h>
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
__attribute__((constructor)) static void load(void)
{
    STAP_PROBE(python, line);
    for (double end = now() + 2; now() < end;)
        ;
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" "$BATS_TEST_TMPDIR/shim.c"
}

@test "attach that gets a signal at any time leaves the program unharmed" {
  local i attach
  start_program /usr/bin/python3
  for i in {1..30}; do
    timeout -s TERM "0.0$((i % 10))" "$launcher" attach "$program" >/dev/null 2>&1 || true
  done
  program_ends
  # while dlopen() runs in it, which takes long with this shim
  need gcc
  make_tree
  make_slow_shim
  start_program /usr/bin/python3
  "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program" >"$BATS_TEST_TMPDIR/attached" 2>&1 &
  attach=$!
  wait_for grep -q "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" "/proc/$program/maps"
  kill -INT "$attach"
  kill -TERM "$attach"
  wait "$attach" || true
  program_ends
}

@test "attach never leaves a dlopen() that takes long, which would kill the program" {
  need_remote_calls
  need gcc
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/hasty" CFLAGS='-O1 -DCALL_MS=500' "$BATS_TEST_TMPDIR/hasty/stap-python"
  launcher=$BATS_TEST_TMPDIR/hasty/stap-python
  make_tree
  make_slow_shim
  start_program /usr/bin/python3
  run timeout $((20 * SLOW)) "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program"
  echo "$output"
  [ "$status" = 1 ]
  [ "${lines[0]}" = "stap-python: attach: $program: dlopen() is slow in it: waiting, as to end now would kill the program" ]
  # this shim has no thread that watches
  [ "${lines[1]}" = "$(does_nothing "$program")" ]
  program_ends
}

@test "no signal handler runs within attach's dlopen(), and none is lost" {
  need_remote_calls
  need gcc
  make_tree
  # a handler in C, as Python runs its own later
  cat >"$BATS_TEST_TMPDIR/handler.c" <<'C'
#include <signal.h>
volatile sig_atomic_t loading, within, calls;
static void handle(int number) { (void)number; calls++; within += loading; }
void set(void) { signal(SIGUSR1, handle); }
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/handler.so" "$BATS_TEST_TMPDIR/handler.c"
  cat >"$BATS_TEST_TMPDIR/shim.c" <<'C'
#include <signal.h>
#include <sys/sdt.h>
#include <time.h>
extern volatile sig_atomic_t loading;
__attribute__((constructor)) static void load(void)
{
    struct timespec left = {2, 0};
    STAP_PROBE(python, line);
    loading = 1;
    while (nanosleep(&left, &left))
        ;
    loading = 0;
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" "$BATS_TEST_TMPDIR/shim.c"
  /usr/bin/python3 -c "
import ctypes, os, sys, time
c = ctypes.CDLL('$BATS_TEST_TMPDIR/handler.so', ctypes.RTLD_GLOBAL)
c.set()
calls, within = ctypes.c_int.in_dll(c, 'calls'), ctypes.c_int.in_dll(c, 'within')
print('started', flush=True)
while not os.path.exists('$BATS_TEST_TMPDIR/end'):
    time.sleep(0.01)
print('calls', calls.value, 'within', within.value)" >"$BATS_TEST_TMPDIR/output" 2>&1 &
  program=$!
  programs+=("$program")
  wait_for grep -q started "$BATS_TEST_TMPDIR/output"
  "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program" 2>"$BATS_TEST_TMPDIR/attached" &
  wait_for grep -q "tree/build/libpython-stap.so.0" "/proc/$program/maps"
  sleep 0.5
  kill -USR1 "$program"
  wait "$!" || true
  [ "$(cat "$BATS_TEST_TMPDIR/attached")" = "$(does_nothing "$program")" ]
  sleep 0.2
  : >"$BATS_TEST_TMPDIR/end"
  wait "$program"
  cat "$BATS_TEST_TMPDIR/output"
  [ "$(tail -n 1 "$BATS_TEST_TMPDIR/output")" = 'calls 1 within 0' ]
}

@test "attach resumes a system call as if it had not been: a signal ends it, and a sleep does not start again" {
  need_remote_calls
  need gcc
  make_tree
  make_slow_shim
  # sleep() of C sleeps for a while, time.sleep() of later CPythons until some time
  local kind pid seconds=$((4 + SLOW))
  cat >"$BATS_TEST_TMPDIR/waits.py" <<'PY'
import ctypes, os, signal, sys, time

def handle(*_):
    print("interrupted", flush=True)
    os._exit(0)

signal.signal(signal.SIGUSR1, handle)
start = time.monotonic()
print("started", flush=True)
if sys.argv[1] == "read":
    os.read(os.pipe()[0], 1)
else:
    ctypes.CDLL(None).sleep(int(sys.argv[2]))
    print("slept", round(time.monotonic() - start))
PY
  for kind in read sleep; do
    /usr/bin/python3 "$BATS_TEST_TMPDIR/waits.py" "$kind" "$seconds" >"$BATS_TEST_TMPDIR/$kind" 2>&1 &
    pid=$!
    programs+=("$pid")
    wait_for grep -qE 'pipe|nanosleep' "/proc/$pid/wchan"
    "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$pid" 2>"$BATS_TEST_TMPDIR/attached" &
    wait_for grep -q "tree/build/libpython-stap.so.0" "/proc/$pid/maps"
    [ "$kind" = sleep ] || kill -USR1 "$pid"
    # the signal ends the program, perhaps before attach checks it again
    wait "$!" || [ "$kind" = read ] || [ "$(cat "$BATS_TEST_TMPDIR/attached")" = "$(does_nothing "$pid")" ]
    wait "$pid"
    cat "$BATS_TEST_TMPDIR/$kind"
  done
  grep -qx interrupted "$BATS_TEST_TMPDIR/read"
  grep -qx "slept $seconds" "$BATS_TEST_TMPDIR/sleep"
}

@test "attach gives up on a program that reaches no safe point, which runs on" {
  need gcc
  cat >"$BATS_TEST_TMPDIR/spin.c" <<'C'
#include <fcntl.h>
void spin(const char *spins, volatile int *until) { creat(spins, 0600); while (!*until) ; }
C
  gcc -O2 -shared -fPIC -o "$BATS_TEST_TMPDIR/spin.so" "$BATS_TEST_TMPDIR/spin.c"
  /usr/bin/python3 -c "
import ctypes, signal
until = ctypes.c_int(0)
ctypes.CDLL('$BATS_TEST_TMPDIR/spin.so').spin(b'$BATS_TEST_TMPDIR/spins', ctypes.byref(until))" &
  program=$!
  programs+=("$program")
  wait_for test -e "$BATS_TEST_TMPDIR/spins"
  (sleep 3 && grep VmPeak "/proc/$(pgrep -xf "$launcher attach $program")/status" >"$BATS_TEST_TMPDIR/peak") &
  attach_refuses 'no thread reached a safe point within 5 s'
  wait "$!"
  cat "$BATS_TEST_TMPDIR/peak"
  # each try frees its memory
  [ "$(awk '{ print $2 }' "$BATS_TEST_TMPDIR/peak")" -lt 200000 ]
  grep -q 'State:.R' "/proc/$program/status"
}

@test "attach notices that the program became another by exec, and calls nothing there" {
  need gcc
  cat >"$BATS_TEST_TMPDIR/spin.c" <<'C'
#include <unistd.h>
void spin(const char *until) { while (access(until, F_OK)) ; }
C
  gcc -O2 -shared -fPIC -o "$BATS_TEST_TMPDIR/spin.so" "$BATS_TEST_TMPDIR/spin.c"
  start_program sh -c 'exec /usr/bin/python3 -c "
import ctypes, os, sys
print(\"spins\", os.getpid(), flush=True)
ctypes.PyDLL(sys.argv[1]).spin(sys.argv[2].encode())
os.execv(\"/usr/bin/python3\", [\"python3\"] + sys.argv[3:])" "$@"' sh "$BATS_TEST_TMPDIR/spin.so" "$BATS_TEST_TMPDIR/traced" &
  end=$BATS_TEST_TMPDIR/end
  wait_for grep -qs spins "$BATS_TEST_TMPDIR/output"
  program=$(sed -n 's/^spins //p' "$BATS_TEST_TMPDIR/output")
  programs+=("$program")
  # shellcheck disable=SC2016
  timeout $((60 * SLOW)) sh -c 'until grep -q "TracerPid:.[1-9]" "/proc/$1/status"; do :; done; : >"$2"' - "$program" "$BATS_TEST_TMPDIR/traced" &
  attach_refuses 'it now runs another program: try again'
  wait_for grep -qs started "$BATS_TEST_TMPDIR/output"
  run launcher attach "$program"
  [ "$status" = 0 ]
  : >"$end"
  wait_for grep -qx 'ended, wrong: 0' "$BATS_TEST_TMPDIR/output"
}

@test "attach says so if the program becomes another by exec after the shim is loaded, before attach has looked" {
  local opening
  need gcc
  need_remote_calls
  # Once the shim is loaded, stap-python's OPENING'th opening of the program's maps waits until it has called exec().
  cat >"$BATS_TEST_TMPDIR/late.c" <<'C'
#include <linux/fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
static int openings;
static int has_shim(const char *path)
{
    static char text[1 << 20];
    size_t length = 0;
    ssize_t got;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    while ((got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    close(fd);
    text[length] = 0;
    return strstr(text, "libpython-stap") != NULL;
}
int open(const char *path, int flags, int mode)
{
    if (strcmp(path, getenv("MAPS")) == 0 && (openings || has_shim(path)) && ++openings == atoi(getenv("OPENING"))) {
        close(syscall(SYS_openat, AT_FDCWD, getenv("FLAG"), O_CREAT | O_WRONLY, 0600));
        while (has_shim(path))
            ;
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
C
  gcc -O2 -shared -fPIC -o "$BATS_TEST_TMPDIR/late.so" "$BATS_TEST_TMPDIR/late.c"
  for opening in 1 2 3; do
    echo "opening $opening"
    rm -f "$BATS_TEST_TMPDIR/flag"
    start_program /usr/bin/python3 -c '
import os, sys
print("started", flush=True)
while not os.path.exists(sys.argv[1]):
    sum(range(20000))
os.execv("/usr/bin/python3", ["python3"] + sys.argv[2:])' "$BATS_TEST_TMPDIR/flag"
    LD_PRELOAD=$BATS_TEST_TMPDIR/late.so MAPS=/proc/$program/maps FLAG=$BATS_TEST_TMPDIR/flag OPENING=$opening \
      attach_refuses 'it now runs another program: try again'
    : >"$end"
    wait "$program"
    [ "$(tail -n 1 "$program_output")" = 'ended, wrong: 0' ]
  done
}

# Attaches to the program ends, of $library, at this moment of its; 3: the machine was too slow for that.
# usage: attach_and_end again|first|starting
attach_and_end() {
  local preload=$shim starting='' status=0
  echo "$library, $1"
  rm -f "$BATS_TEST_TMPDIR"/{ends.out,starts,go}
  case $1 in
    first) preload='' ;;
    starting) preload=$BATS_TEST_TMPDIR/starts.so starting=1 ;;
  esac
  env PYTHONHOME="${library%/lib/*}" LD_PRELOAD="$preload" "$BATS_TEST_TMPDIR/ends" ${starting:+"$starting"} \
    >"$BATS_TEST_TMPDIR/ends.out" 2>&1 </dev/null 3>&- &
  program=$!
  programs+=("$program")
  if [ $starting ]; then
    wait_for test -s "$BATS_TEST_TMPDIR/starts" || return
  else
    wait_for grep -qsx started "$BATS_TEST_TMPDIR/ends.out" || return
  fi
  [ "$1" != again ] || launcher detach "$program" || return
  launcher attach "$program" || true # or it ends before attach has seen it active
  : >"$BATS_TEST_TMPDIR/go"
  wait "$program" || status=$?
  cat "$BATS_TEST_TMPDIR/ends.out"
  ! grep -qx 'too slow' "$BATS_TEST_TMPDIR/ends.out" || return 3
  return "$status"
}

@test "a program ends CPython just after attach, again, for the first time or as CPython started" {
  need gcc
  need_remote_calls
  local library how status late=
  make_start_wait
  for library in $(libpythons); do
    gcc -o "$BATS_TEST_TMPDIR/ends" "$top/test/workloads/ends.c" "$library" -Wl,-rpath,"$(dirname "$library")"
    for how in again first starting; do
      for _ in 1 2 3; do
        status=0
        attach_and_end $how || status=$?
        [ $status = 3 ] || break
      done
      [ $status != 3 ] || {
        late=1
        continue
      }
      [ $status = 0 ]
      [ "$(tail -n 1 "$BATS_TEST_TMPDIR/ends.out")" = "0 0" ]
      # its second start is one that the shim follows, but not in 3.6, in which attach comes after the begin of the first
      [[ $how = first || $how$library == starting*3.6* ]] || grep -qx 'has the watcher: True' "$BATS_TEST_TMPDIR/ends.out"
    done
  done
  [ ! $late ] || skip "needs a machine that is less busy: a program kept the GIL for longer than it should"
}

@test "attach while CPython starts is active in the next CPython, too, after a subinterpreter that comes first, and again in a child" {
  need gcc
  need_remote_calls
  local library how child
  export STARTS=$BATS_TEST_TMPDIR/starts GO=$BATS_TEST_TMPDIR/go END=$BATS_TEST_TMPDIR/end
  for library in $(libpythons); do
    # attach comes after the begin of 3.6's start, in which there is no such moment
    [[ $library != *3.6* ]] || continue
    gcc -rdynamic -o "$BATS_TEST_TMPDIR/starts_again" "$top/test/workloads/starts_again.c" "$library" -Wl,-rpath,"$(dirname "$library")"
    for how in again sub fork; do
      echo "$library, $how"
      rm -f "$STARTS" "$GO" "$END"
      env PYTHONHOME="${library%/lib/*}" "$BATS_TEST_TMPDIR/starts_again" $how >"$BATS_TEST_TMPDIR/said" 2>&1 </dev/null 3>&- &
      program=$!
      programs+=("$program")
      wait_for test -s "$STARTS"
      launcher attach "$program" || true # or it goes on before attach has seen it active
      : >"$GO"
      if [ $how = fork ]; then
        wait_for grep -qs '^child ' "$BATS_TEST_TMPDIR/said"
        child=$(sed -n 's/^child //p' "$BATS_TEST_TMPDIR/said")
        run launcher attach "$child"
        echo "$output"
        [[ "$status $output" == "0 $child: "*active:* ]]
        : >"$END"
      fi
      wait "$program"
      cat "$STARTS" "$BATS_TEST_TMPDIR/said"
      if [ $how = fork ]; then
        [ "$(sed 1d "$BATS_TEST_TMPDIR/said")" = 'has the watcher: True' ]
      else
        [ "$(cat "$BATS_TEST_TMPDIR/said")" = $'has the watcher: True\n0 0' ]
      fi
    done
  done
}

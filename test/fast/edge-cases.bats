# Rare operations (a fork in a fork handler, a thread that exits in C, ...) still work while a tracer attaches or
# detaches in the middle of them.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

# Checks a case of test/workloads/seldom.py in each interpreter for which CONDITION is true, while the markers that
# match the regular expression MARKERS are enabled.  With SHIM the case loads the shim itself, as attach does.
# usage: goes_on CASE CONDITION MARKERS [SHIM]
goes_on() {
  local python preload=$shim
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" "$3"
  [ $# -lt 4 ] || preload=''
  for python in $(few_pythons); do
    "$python" -c "import sys; sys.exit(not ($2))" || continue
    run env LD_PRELOAD="$preload" timeout -k 1 $((30 * SLOW)) "$python" "$top/test/workloads/seldom.py" "$1" "${@:4}"
    echo "$python $1: $status $output"
    [ "$status $output" = "0 fine" ]
  done
}

own_evaluator() {
  need gcc
  export EVALUATOR=$BATS_TEST_TMPDIR/evaluator.so
  gcc -shared -fPIC -o "$EVALUATOR" "$top/test/workloads/evaluator.c"
}

# Checks that a program ends with this output in each free-threaded CPython, each of so many times.  The library
# $beside is preloaded, too, if it is set.
# usage: ends_without_a_gil TIMES OUTPUT PROGRAM [WORD...]
ends_without_a_gil() {
  local python n pythons shim=$shim
  need gcc readelf
  pythons=$(free_threaded_pythons)
  [ "$pythons" ] || skip "needs a free-threaded CPython (make check-freethreaded)"
  raise_semaphores "$BATS_TEST_TMPDIR" function__entry
  for python in $pythons; do
    for ((n = 1; n <= $1; n++)); do
      run env LD_PRELOAD="${beside:-} $shim" timeout -k 1 $((120 * SLOW)) "$python" "${@:3}"
      echo "$python, run $n: $status $output"
      [ "$status $output" = "0 $2" ]
    done
  done
}

# bats test_tags=slow
@test "the child of a fork by C goes on that came while the shim waited for the GIL" {
  goes_on forks_in_c_while_asked 'sys.version_info < (3, 12)' function__entry
}

@test "the child of a fork that the C library tells nobody of goes on, and forks" {
  getconf GNU_LIBC_VERSION >/dev/null || skip "needs glibc"
  python3 -c 'import ctypes; ctypes.CDLL(None)._Fork' || skip "needs _Fork(): glibc 2.34"
  goes_on forks_without_handlers True function__entry
}

# bats test_tags=slow
@test "the child of a fork by C leaves the stacks of threads alone that are not there" {
  goes_on forks_in_c_beside_threads True function__return
}

# bats test_tags=slow
@test "an evaluator of the program's may be put in front of ours again and again" {
  own_evaluator
  goes_on puts_its_evaluator_in_front_again 'sys.version_info >= (3, 9)' function__entry
}

@test "an evaluator of the program's that is in front stays there, whatever the depth" {
  own_evaluator
  goes_on has_its_evaluator_in_front_of_the_deep '(3, 9) <= sys.version_info < (3, 12)' function__entry
}

@test "the next tracer has its hook where a program has put CPython's evaluator back in place of its own" {
  own_evaluator
  goes_on puts_back_the_default_evaluator '(3, 9) <= sys.version_info < (3, 12)' function__entry
}

@test "the shim may be attached while a library's constructor waits for the GIL" {
  need gcc
  export CONSTRUCTOR=$BATS_TEST_TMPDIR/takes_the_gil.so
  gcc -shared -fPIC -o "$CONSTRUCTOR" -x c - <<'C'
#include <unistd.h>

extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int);

__attribute__((constructor)) static void take_the_gil(void)
{
    for (int i = 0; i < 200; i++) {
        int state = PyGILState_Ensure();
        PyGILState_Release(state);
        usleep(5000);
    }
}
C
  goes_on is_attached_to_while_a_library_is_loaded True function__entry "$shim"
}

# A library whose handler of forks takes fork_us microseconds.
slow_forks() {
  need gcc
  export LIBRARY=$BATS_TEST_TMPDIR/slow_forks.so
  gcc -shared -fPIC -pthread -o "$LIBRARY" -x c - <<'C'
#include <pthread.h>
#include <unistd.h>

unsigned fork_us;

static void take_time(void)
{
    usleep(fork_us);
}

void handle_forks(void)
{
    pthread_atfork(take_time, NULL, NULL);
}

void sleep_and_fork(unsigned us)
{
    usleep(us);
    if (fork() == 0)
        _exit(0);
}
C
}

@test "a program may fork in its own handler of a fork, on another thread, while a tracer comes" {
  slow_forks
  goes_on forks_in_a_handler_of_its_own 'sys.version_info >= (3, 7)' function__entry "$shim"
}

@test "CPython warns of no thread of the shim's in the child of a fork in a program's handler of a fork" {
  goes_on forks_in_the_child_of_its_handler 'sys.version_info >= (3, 7)' function__entry "$shim"
}

@test "no hook stays of a tracer that leaves while C forks" {
  slow_forks
  goes_on is_left_while_c_forks True '.*' "$shim"
}

@test "a tracer whose tool id the program has freed leaves nothing changed" {
  goes_on frees_the_tool_id_of_the_shim 'sys.version_info >= (3, 12)' function__count
}

# bats test_tags=slow
@test "a subinterpreter in which the index of code objects is another's goes on" {
  local markers
  for markers in cfunction__entry ${EVERY:+'function__.*'}; do
    goes_on shares_the_index_of_code_objects '(3, 8) <= sys.version_info < (3, 12)' "$markers"
  done
}

# bats test_tags=slow
@test "a list of gc.callbacks that is the program's own may go" {
  goes_on has_a_list_of_gc_callbacks_that_goes True gc__start "$shim"
}

# bats test_tags=slow
@test "an interpreter that starts after the shim was loaded into a running Python has its hooks" {
  goes_on starts_an_interpreter_after_attach '(3, 9) <= sys.version_info < (3, 12)' function__entry "$shim"
}

@test "every callback of the program's hears of a collection in which the tracer leaves" {
  goes_on loses_its_tracer_in_a_gc_callback True gc__start
}

@test "what an audit hook of a subinterpreter raises stays there" {
  goes_on has_a_subinterpreter_that_refuses_once '(3, 12) <= sys.version_info < (3, 13)' function__entry
}

# Skips the test unless the watcher can have a table of descriptors of its own.
need_own_files() {
  python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(436, 1000, 1000, 0))' ||
    skip "needs close_range(): Linux 5.9"
  grep -q '^Seccomp:[[:space:]]*0' /proc/self/status || skip "needs to run without a seccomp filter"
}

# bats test_tags=slow
@test "a program that closes all files and opens its own keeps them" {
  need_own_files
  goes_on closes_all_files_and_opens_its_own True function__entry
}

@test "a pipe ends when the program closes it, though the shim has files of its own" {
  goes_on closes_a_pipe_that_was_its_output True function__entry
}

@test "with PYTHON_STAP_DEBUG it ends too, and messages are printed still" {
  local python
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" function__entry
  for python in $(few_pythons); do
    run env LD_PRELOAD="$shim" PYTHON_STAP_DEBUG=1 timeout -k 1 $((30 * SLOW)) "$python" \
      "$top/test/workloads/seldom.py" closes_a_pipe_that_was_its_output
    echo "$python: $status $output"
    [ "$status ${lines[-1]}" = "0 fine" ]
    # printed by the watcher
    [[ $output == *": its own markers that silence the shim's: "* ]]
  done
}

@test "the child of a fork under a filter that kills at a new system call goes on" {
  need_seccomp
  goes_on forks_under_a_filter_that_kills_what_is_new True function__entry
}

@test "the watcher's name says that a thread has a filter, for as long as it has" {
  need_seccomp
  goes_on tells_of_a_filter_by_its_name True function__entry
}

@test "so it does where the thread has ten thousand groups" {
  need_seccomp
  [ "$(id -u)" = 0 ] || skip "needs root, for setgroups()"
  goes_on tells_of_a_filter_behind_many_groups True function__entry
}

# A filter of the main thread's alone, without futex().  The watcher looks for the main thread's end meanwhile, in its first
# period or a later one.
@test "a program whose filter kills at a wait for another thread may end Python whenever the watcher works" {
  local python looks
  need_seccomp x86_64
  need gcc
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/slow.so" -x c - <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    static int calls;
    (void)thread;
    *clock = 0;
    if (++calls > atoi(getenv("LOOKS")))
        usleep(2000000);
    return 0;
}
C
  for python in $(few_pythons); do
    # 3.14t calls madvise() at its end, without the shim too
    ! is_free_threaded "$python" || continue
    for looks in 0 5; do
      run env LOOKS="$looks" LD_PRELOAD="$BATS_TEST_TMPDIR/slow.so $shim" \
        timeout -k 1 $((30 * SLOW)) "$python" "$top/test/long/stress/filter.py" killed_here 1 </dev/null
      echo "$python $looks: $status $output"
      [ "$status $output" = $'0 begins\nwrong: 0' ]
    done
  done
}

# A watcher that comes late sees no semaphore raised.
@test "no hook stays of a tracer that leaves before the shim's thread first looks" {
  local python found=
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" function__entry
  gcc -D_GNU_SOURCE -shared -fPIC -o "$BATS_TEST_TMPDIR/late.so" -x c - -ldl <<'C'
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...)
{
    void *in[6];
    __builtin_va_list list;
    __builtin_va_start(list, number);
    for (int i = 0; i < 6; i++)
        in[i] = __builtin_va_arg(list, void *);
    __builtin_va_end(list);
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long result = next(number, in[0], in[1], in[2], in[3], in[4], in[5]);
    if (number == SYS_futex && in[1] == (void *)FUTEX_WAKE_PRIVATE && gettid() != getpid())
        sleep(2);
    return result;
}
C
  cat >"$BATS_TEST_TMPDIR/leaves.py" <<PY
import ctypes, sys, time

ctypes.CDLL("$BATS_TEST_TMPDIR/semaphores.so").semaphores_set(0)
sys.path.insert(0, "$top/test/workloads")
from hooks import hooks

before, end = hooks(), time.time() + 20
while hooks() != "." and time.time() < end:
    time.sleep(0.01)
print("%s,%s" % (before, hooks()))
PY
  for python in $(few_pythons); do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || continue # what hooks.py sees
    run env LD_PRELOAD="$BATS_TEST_TMPDIR/late.so $BATS_TEST_TMPDIR/semaphores.so $shim" timeout -k 1 $((60 * SLOW)) "$python" "$BATS_TEST_TMPDIR/leaves.py"
    echo "$python: $status $output"
    [ "$status" = 0 ]
    [[ $output == ' '*,. ]]
    found=yes
  done
  [ -n "$found" ] || skip "needs CPython 3.9 or later"
}

# The shim's thread looks every 50 ms.
@test "no hook stays in a subinterpreter that started while a tracer came and left between two looks of the shim's thread" {
  local python found=
  need gcc readelf
  make_semaphores "$BATS_TEST_TMPDIR" function__entry
  cat >"$BATS_TEST_TMPDIR/starts.py" <<'PY'
import ctypes, sys, time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

semaphores = ctypes.CDLL(None)
semaphores.semaphores_set(0)
code = """
import sys, time
end = time.monotonic() + 20
while any(map(sys.monitoring.get_tool, range(6))) and time.monotonic() < end:
    time.sleep(0.01)
print("hooked" if any(map(sys.monitoring.get_tool, range(6))) else "free", flush=True)
"""
exec(code)
for _ in range(12):
    time.sleep(0.2)
    semaphores.semaphores_set(1)
    other = interpreters.create()
    semaphores.semaphores_set(0)
    interpreters.run_string(other, code)
PY
  for python in $(few_pythons); do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || continue
    run env LD_PRELOAD="$BATS_TEST_TMPDIR/semaphores.so $shim" timeout -k 1 $((100 * SLOW)) "$python" -W ignore "$BATS_TEST_TMPDIR/starts.py"
    echo "$python: $status $output"
    [ "$status" = 0 ]
    [ "$(sort <<<"$output" | uniq -c)" = '     13 free' ]
    found=yes
  done
  [ -n "$found" ] || skip "needs CPython 3.12 or later"
}

# On one processor, and with a policy under which no other thread runs until the main thread waits: a thread that was
# created while Python starts has not begun when the filter is set.  The main thread waits next, for stdin.
@test "a filter for all threads, set before a thread of ours would have run, ends no program" {
  local python
  need_seccomp x86_64
  need chrt taskset
  chrt -f 1 true || skip "needs the right to be scheduled first: CAP_SYS_NICE"
  local without
  for python in $(few_pythons); do
    run "$python" "$top/test/long/stress/filter.py" killed_everywhere </dev/null
    # a free-threaded 3.14 makes a system call at its end that the filter does not allow
    [ "$status" = 0 ] || [ "$(abi_of "$python")" = 3.14t ]
    [ "$output" = $'begins\nwrong: 0' ]
    without=$status
    run env LD_PRELOAD="$shim" timeout -k 1 $((30 * SLOW)) taskset -c 0 chrt -f 1 \
      "$python" "$top/test/long/stress/filter.py" killed_everywhere < <(sleep 0.3)
    echo "$python: $status $output"
    [ "$status $output" = "$without "$'begins\nwrong: 0' ]
  done
}

@test "a tracer takes no address space that the program is short of" {
  goes_on has_little_address_space 'sys.version_info >= (3, 12)' function__entry
}

@test "a thread takes little memory, whatever tracers attach" {
  need_time
  goes_on rests_in_threads True 'function__.*'
}

@test "what C needs of a small stack is left to it, in 3.11" {
  local python
  goes_on recurses_in_c_on_a_small_stack '(3, 11) <= sys.version_info < (3, 12)' '.*'
  for python in $(few_pythons); do
    [ "$(version_of "$python")" = 3.11 ] || continue
    run env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" "$python" "$top/test/workloads/seldom.py" recurses_in_c_on_a_small_stack
    [[ $output == *"calls this deep in a thread's C stack are not seen"* ]]
  done
}

@test "a program may lower the limit of its stack, in 3.11" {
  goes_on lowers_its_stack_limit '(3, 11) <= sys.version_info < (3, 12)' '.*'
}

@test "without a GIL a program ends as without the shim while eight threads call new functions, and its finalizers do" {
  ends_without_a_gil 15 "" "$top/test/workloads/parallel.py" ends
}

@test "without a GIL a program ends as without the shim while its threads run, and tracers come and go" {
  SEMAPHORES_TOGGLE=10 ends_without_a_gil 40 "ended among daemons 20" "$top/test/long/stress/programs.py" daemons 4
}

# 3.15 stops the world as an interpreter ends, with a lock held for which the shim's thread waits.
@test "without a GIL threads fork and end subinterpreters while tracers come and go and the shim's thread is slow" {
  local beside=$BATS_TEST_TMPDIR/slow.so
  need gcc
  gcc -D_GNU_SOURCE -shared -fPIC -o "$beside" -x c - -ldl <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    char name[16] = "";
    int (*next)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    int result = next(mutex);
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strncmp(name, "python-stap", 11) == 0)
        usleep(20000);
    return result;
}
C
  cat >"$BATS_TEST_TMPDIR/ends.py" <<'PY'
import os, subprocess, sys, threading, time

import _interpreters as interpreters


def spin():
    while not done:
        (lambda: None)()


def start_and_end():
    while not done:
        other = interpreters.create()
        interpreters.run_string(other, "(lambda: None)()")
        interpreters.destroy(other)
        ended.append(other)


done, ended = [], []
threads = [threading.Thread(target=target) for target in (spin, start_and_end, start_and_end)]
for thread in threads:
    thread.start()
for _ in range(int(sys.argv[1])):
    subprocess.run(["true"], group=os.getgid())  # so that it forks: by C, in an attached thread
while len(ended) < 80:
    time.sleep(0.01)
done.append(True)
for thread in threads:
    thread.join()
print("ended")
PY
  SEMAPHORES_TOGGLE=10 ends_without_a_gil 2 ended "$BATS_TEST_TMPDIR/ends.py" 0
  SEMAPHORES_TOGGLE=10 ends_without_a_gil 2 ended "$BATS_TEST_TMPDIR/ends.py" 250
}

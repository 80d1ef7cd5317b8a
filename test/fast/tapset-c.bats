# The tapset's C functions, compiled as a library, with which a Python process reads its own memory.
# test/guest/functions.bats and test/guest/times.bats run the same functions in the kernel.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need gcc awk
  pythons=
  for python in $(pythons); do
    ! "$python" -c 'import ctypes' 2>/dev/null || pythons+=" $python"
  done
  [ "$pythons" ] || skip "needs a CPython with ctypes"
}

# Makes $library, with MAXSTRINGLEN $1 and these options of gcc, unless another test has made it.
make_library() {
  library=$BATS_FILE_TMPDIR/library-$1${*:2}.so
  [ ! -e "$library" ] || return 0
  "$top/test/tapset/functions" >"$BATS_TEST_TMPDIR/tapset.h"
  # as the kernel is compiled
  gcc -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Werror -Wno-unused-function -fwrapv -shared -fPIC -DMAXSTRINGLEN="$1" "${@:2}" \
    -I"$BATS_TEST_TMPDIR" -I"$top/test/long/fuzz" -I"$top/probes" -o "$library" "$top/test/tapset/library.c"
}

# Checks in each CPython, with the shim and $behind preloaded, that what the library reads is what Python has.
# usage: reads_itself ROOM PART, where PART is one of test/tapset/objects.py
reads_itself() {
  local python
  for python in $pythons; do
    echo "$python"
    run env LD_PRELOAD="$shim ${behind:-}" PYTHONIOENCODING=utf-8 "$python" "$top/test/tapset/objects.py" "$library" "$1" "$2"
    echo "$output"
    [[ $output == *" compared" ]]
  done
}

# Runs a program of test/tapset in each CPython, with the shim.
# usage: each_runs PROGRAM ARGUMENT...
each_runs() {
  local python
  make_library 512
  for python in $pythons; do
    echo "$python"
    run env LD_PRELOAD="$shim" PYTHONIOENCODING=utf-8 "$python" "$top/test/tapset/$1" "$library" 512 "${@:2}"
    echo "$output"
    [ "$status" = 0 ]
  done
}

@test "python_argstr() is repr() for what audit events pass" {
  local python
  make_library 1024
  for python in $pythons; do
    echo "$python"
    run "$python" -X utf8 "$top/test/tapset/objects.py" "$library" 1024 audited
    echo "$output"
    [[ $output == *" compared" ]]
  done
}

@test "python_backtrace() is the stack that Python itself walks, whole or cut" {
  raise_semaphores "$BATS_TEST_TMPDIR"
  make_library 512
  reads_itself 512 stacks
}

# bats test_tags=slow
@test "the stack of the running thread is what Python itself walks, with no marker probed, and with one since the start" {
  local when
  make_library 512
  for when in "with no marker" "with one since the start"; do
    [ "$when" = "with no marker" ] || raise_semaphores "$BATS_TEST_TMPDIR" function__entry
    echo "$when"
    reads_itself 512 running
  done
  export PYTHON_TLBC=0 # in a free-threaded build: all threads run the same copy of the instructions
  reads_itself 512 running
  # as in a kernel that opens the process's memory for each read
  make_library 512 -DWITHOUT_UNSAFE_GET_USER
  reads_itself 512 running
}

@test "what resolves a lazy import is told from other imports, with its line" {
  local python tried=
  make_library 512
  for python in $pythons; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 15))' || continue
    tried+=" $python"
    echo "$python"
    LD_PRELOAD=$shim "$python" "$top/test/tapset/lazy.py" "$library" 512
  done
  [ "$tried" ] || skip "needs CPython 3.15"
}

@test "a function that runs in the code of CPython's JIT is marked, as its line may be an earlier one" {
  local python compiling
  compiling=$(which_pythons 'sys.version_info >= (3, 15) and sys._jit.is_enabled()')
  [ "$compiling" ] || skip "needs a CPython 3.15 with the JIT (make check-jit)"
  make_library 512
  for python in $compiling; do
    echo "$python"
    LD_PRELOAD=$shim "$python" "$top/test/tapset/in_jit.py" "$library" 512
  done
}

# bats test_tags=slow
@test "the page is found at its second address, too" {
  raise_semaphores "$BATS_TEST_TMPDIR"
  make_library 512
  make_taker "$BATS_TEST_TMPDIR" 0x550070790000
  behind=$BATS_TEST_TMPDIR/taker.so
  reads_itself 512 stacks
  reads_itself 512 running
}

@test "objects are as repr() has them, variables and what is found from them as Python says, in each CPython" {
  make_library 2048
  reads_itself 2048 values
}

@test "a thread has the name that threading has for it, a method that of its class, and who collects garbage <GC>" {
  each_runs names.py
}

# OBJECTS: how many objects are made in each CPython, about 5,000 in a second.
# bats test_tags=slow
@test "of damaged objects something printable is read soon, and nothing is written" {
  each_runs damaged.py "${OBJECTS:-$([ -n "${EVERY:-}" ] && echo 3000 || echo 1000)}"
}

@test "of objects that another thread changes something printable is read soon" {
  each_runs changing.py "$([ -n "${EVERY:-}" ] && echo 2000 || echo 60)"
}

# bats test_tags=slow
@test "what was interrupted is the function that the dynamic linker finds there, or its library, and no other" {
  each_runs interrupted.py
}

@test "a wait for the GIL is charged to who has it, with all that passes meanwhile" {
  export PYTHON_GIL=1 # in a free-threaded build
  each_runs gil.py
}

# Makes needs_gil, a C module without Py_mod_gil, for the free-threaded build $1.
make_needs_gil() {
  local headers
  headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ -e "$headers/Python.h" ] || skip "needs $headers/Python.h"
  gcc -shared -fPIC -I"$headers" -x c -o "$BATS_TEST_TMPDIR/needs_gil.so" - <<'C'
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "needs_gil", .m_size = -1};
PyMODINIT_FUNC PyInit_needs_gil(void)
{
    return PyModule_Create(&definition);
}
C
}

@test "in a free-threaded build there is no GIL until a module turns it on" {
  local python
  make_library 512
  for python in $pythons; do
    is_free_threaded "$python" || continue
    echo "$python"
    make_needs_gil "$python"
    env LD_PRELOAD="$shim" PYTHONPATH="$BATS_TEST_TMPDIR" "$python" "$top/test/tapset/gil_off.py" "$library" 512
  done
  [ -e "$BATS_TEST_TMPDIR/needs_gil.so" ] || skip "needs a free-threaded CPython"
}

@test "the calls, sleeps and stacks that scripts measure are kept and summed up as they were" {
  make_library 512
  # shellcheck disable=SC2086 # the first will do
  set -- $pythons
  run "$1" "$top/test/tapset/calls.py" "$library"
  echo "$output"
  [ "$output" = "all as expected" ]
}

@test "threads on eight CPUs begin and end calls at the same time: none is lost but those that are counted" {
  local program=$BATS_TEST_TMPDIR/threads flags
  # ThreadSanitizer works without address randomization only, and not everywhere
  echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o "$program" - && setarch -R "$program" && local checks=1
  awk -f "$top/test/long/fuzz/tapset.awk" "$top/tapset/python_calls.stp" >"$BATS_TEST_TMPDIR/calls_tapset.h"
  for flags in "" ${checks:+-fsanitize=thread}; do
    # shellcheck disable=SC2086 # none or one
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Werror -Wno-unused-function -fwrapv $flags -pthread \
      -DPYTHON_CALLS=400 -DPYTHON_THREADS=24 -DPYTHON_ASIDE=8 \
      -I"$BATS_TEST_TMPDIR" -I"$top/test/long/fuzz" -I"$top/probes" -o "$program" "$top/test/tapset/threads.c"
    run ${flags:+setarch -R} timeout $((300 * SLOW)) "$program" "$([ -n "$flags" ] && echo 20000 || echo 300000)"
    echo "$output"
    [ "$output" = "all as expected" ]
  done
}

@test "what a thread waits for when it leaves its CPU is said from its system call and its files, whatever becomes of them" {
  local program=$BATS_TEST_TMPDIR/sleeps
  awk -f "$top/test/long/fuzz/tapset.awk" "$top"/tapset/python_{calls,target}.stp "$top"/build/python_{stacks,samples,objects,sleep,json}.stp >"$BATS_TEST_TMPDIR/sleeps_tapset.h"
  gcc -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Werror -Wno-unused-function -fwrapv -I"$BATS_TEST_TMPDIR" -I"$top/test/long/fuzz" \
    -I"$top/probes" -o "$program" "$top/test/tapset/sleeps.c"
  run timeout $((60 * SLOW)) "$program"
  echo "$output"
  [ "$output" = "all as expected" ]
}

@test "a request keeps who ended its longest wait; of what has no room, or whose end was not seen, nothing is left behind" {
  local program=$BATS_TEST_TMPDIR/requests
  awk -f "$top/test/long/fuzz/tapset.awk" "$top"/tapset/python_{calls,target}.stp "$top"/build/python_{stacks,samples,objects,sleep,requests,json}.stp >"$BATS_TEST_TMPDIR/requests_tapset.h"
  gcc -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Werror -Wno-unused-function -fwrapv -I"$BATS_TEST_TMPDIR" -I"$top/test/long/fuzz" \
    -I"$top/probes" -o "$program" "$top/test/tapset/requests.c"
  run timeout $((60 * SLOW)) "$program"
  echo "$output"
  [ "$output" = "all as expected" ]
}

# Leaves in $pythons the interpreters from 3.$1 on, or to 3.$2, and skips the test if there is none.
only_pythons() {
  local all=$pythons python
  pythons=
  for python in $all; do
    ! "$python" -c "import sys; sys.exit(not (3, $1) <= sys.version_info[:2] <= (3, ${2:-99}))" || pythons+=" $python"
  done
  [ "$pythons" ] || skip "needs CPython 3.$1 $([ $# = 1 ] && echo or later || echo "to 3.$2")"
}

@test "the tasks of asyncio are those that Python itself has, with where and for what they wait, in each CPython from 3.8 on" {
  only_pythons 8
  each_runs tasks.py
}

@test "a dump of threads has the variables, the GIL and the tasks that Python has, as text and as JSON, in each CPython" {
  each_runs dump.py
}

# bats test_tags=slow
@test "of many deep stacks 64,000 frames are printed, and dots for the others" {
  pythons=${pythons##* } each_runs dump.py many
}

@test "a dump says for which lock a thread sleeps, by which path it knows the lock, and which threads wait for each other" {
  only_pythons 6 13
  each_runs locks.py
}

@test "the tasks of asyncio, their stacks and which awaits which are those of python -m asyncio ps" {
  only_pythons 14
  each_runs tasks.py ps
}

@test "tasks that are not where CPython's release has them are unknown, which the debug log and stap-python list say" {
  local python list=
  only_pythons 14
  make_library 512
  # reading another process's memory may need root
  [ "$(id -u)" != 0 ] || list=$top/build/stap-python
  for python in $pythons; do
    echo "$python"
    PYTHON_STAP_DEBUG=1 run "$python" "$top/test/tapset/tasks_elsewhere.py" "$library" 512 "$shim" ${list:+"$list"}
    echo "$output"
    [[ $output == *"no tasks: the lists of asyncio's tasks are not where CPython's release has them"* ]]
    [[ $output == *"unknown, and said" ]]
  done
}

# bats test_tags=slow
@test "of damaged tasks something printable is read soon" {
  only_pythons 8
  each_runs damaged_tasks.py "${OBJECTS:-$([ -n "${EVERY:-}" ] && echo 3000 || echo 1000)}"
}

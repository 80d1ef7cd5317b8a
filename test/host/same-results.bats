# A traced program has the same results as without a tracer.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

@test "hostile programs print and end with all markers probed as without the shim" {
  local cases
  cases=$(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$top/test/workloads/hostile.py")
  [ "$(wc -w <<<"$cases")" -ge 8 ]
  cat >"$BATS_TEST_TMPDIR/all" <<'SH'
for python in $pythons; do
  for case in $cases; do
    plain=$("$python" "$top/test/workloads/hostile.py" "$case" 2>&1)
    plain="$? $plain"
    traced=$(LD_PRELOAD=$shim timeout -k 1 $((20 * SLOW)) "$python" "$top/test/workloads/hostile.py" "$case" 2>&1)
    traced="$? $traced"
    [ "$plain" = "$traced" ] || printf '%s %s: expected %s, got %s\n' "$python" "$case" "$plain" "$traced"
  done
done
SH
  TRACE_TIMEOUT=200 cases=$cases pythons=$(pythons) bpftrace_while "$(all_markers)" bash "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/differences"
  head -c 2000 "$BATS_TEST_TMPDIR/differences"
  [ ! -s "$BATS_TEST_TMPDIR/differences" ]
  # they were traced
  [ "$(sed -n 's/^@: //p' "$trace")" -gt 10000 ]
}

@test "a program that is traced has no objects made for its frames, from 3.11 on" {
  local python
  cat >"$BATS_TEST_TMPDIR/frames.py" <<'PY'
import sys


def blocks(depth):
    return blocks(depth - 1) if depth else sys.getallocatedblocks()


sys.setrecursionlimit(3000)
blocks(2500)
more = blocks(2500) - blocks(0)
print(sys.version_info < (3, 11) or more < 3000)  # each has a number
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/frames.py" >"$BATS_TEST_TMPDIR/traced"
    grep -qx True "$BATS_TEST_TMPDIR/traced"
    # and yet each frame has an address, the same at entry and return, and different from any other's
    awk '/^> .*frames.py blocks / { entries++; addresses[$5]; at[++depth] = $5 }
      /^< .*frames.py blocks / { returns++; if (at[depth--] != $5) bad = 1 }
      END { for (a in addresses) different++; exit bad || entries != 5003 || returns != 5003 || different < 2501 }' "$trace"
  done
}

# $pythons: those of pythons_by_hook() from 3.11 on.
from_311() {
  local python
  pythons=
  for python in $(pythons_by_hook); do
    ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || pythons+=" $python"
  done
  [ "$pythons" ] || skip "needs a CPython from 3.11 on"
}

@test "a recursion that only the C stack could end goes on as without the shim, from 3.11 on" {
  local pythons
  cat >"$BATS_TEST_TMPDIR/deep.py" <<'PY'
import sys


def down(n):
    return down(n - 1) + 1 if n else 0


sys.setrecursionlimit(1000000)
print(down(100000))
PY
  from_311
  LD_PRELOAD=$shim bpftrace_while "usdt:$shim:python:function__entry { @entries = count(); }
    usdt:$shim:python:function__return { @returns = count(); }" \
    "${each_python[@]}" "$pythons" "$BATS_TEST_TMPDIR/deep.py" >"$BATS_TEST_TMPDIR/output"
  cat "$BATS_TEST_TMPDIR/output" "$trace"
  [ "$(grep -cx 100000 "$BATS_TEST_TMPDIR/output")" = "$(wc -w <<<"$pythons")" ]
  [ "$(sed -n 's/^@entries: //p' "$trace")" -gt 9000 ]
  [ "$(sed -n 's/^@entries: //p' "$trace")" = "$(sed -n 's/^@returns: //p' "$trace")" ]
}

@test "an exception that ends a frame, or is thrown into one, arrives, also where the marker meets the code first" {
  local pythons probed
  # each with code of its own, and globals without __name__
  cat >"$BATS_TEST_TMPDIR/raising.py" <<'PY'
import collections

arrived = collections.Counter()
for _ in range(50):
    names = {}
    exec("def raises():\n raise ValueError\ndef generates():\n yield\n yield", names)
    try:
        names["raises"]()
    except Exception as exception:
        arrived[type(exception).__name__] += 1
    generator = names["generates"]()
    next(generator)
    try:
        generator.throw(KeyError("on purpose"))
    except Exception as exception:
        arrived[type(exception).__name__] += 1
print(sorted(arrived.items()))
PY
  pythons=$(pythons)
  for probed in 1,2 3,4; do # entries, returns
    LD_PRELOAD=$shim bpftrace_while "$(function_markers | sed -n "${probed}p")" "${each_python[@]}" "$pythons" "$BATS_TEST_TMPDIR/raising.py" \
      >"$BATS_TEST_TMPDIR/output" 2>&1
    cat "$BATS_TEST_TMPDIR/output"
    [ "$(grep -cFx "[('KeyError', 50), ('ValueError', 50)]" "$BATS_TEST_TMPDIR/output")" = "$(wc -l <<<"$pythons")" ]
    [ "$(grep -c ' <string> raises ' "$trace")" -ge $((50 * $(wc -l <<<"$pythons"))) ]
  done
}

@test "a child that the C library doesn't know of runs on, traced" {
  [ "$(uname -m)" = x86_64 ] || skip "needs x86_64: it makes a system call by its number"
  local python
  cat >"$BATS_TEST_TMPDIR/child.py" <<'PY'
import ctypes
import os


def called():
    pass


called()
called()
child = ctypes.CDLL(None).syscall(57)  # fork
if child == 0:
    called()
    os._exit(7)
print(os.waitpid(child, 0)[1])
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/child.py" >"$BATS_TEST_TMPDIR/traced"
    grep -qx 1792 "$BATS_TEST_TMPDIR/traced"
    [ "$(grep -c '^> .*child.py called ' "$trace")" = 3 ]
  done
}

@test "the module of a function is that of its globals now, whoever has changed it" {
  local python
  cat >"$BATS_TEST_TMPDIR/modules.py" <<'PY'
import types


class Namespace:
    pass


def called():
    pass


namespace = Namespace()
namespace.__name__ = "first"
vars(namespace)["__builtins__"] = __builtins__
other = types.FunctionType(called.__code__, vars(namespace))
called()
other()
other()
namespace.__name__ = "second"
other()
called()
vars(namespace)["__name__"] = "third"
other()
del namespace.__name__
other()
namespace.__name__ = 4
other()
__name__ = "fifth"
called()
PY
  for python in $(few_pythons); do
    echo "$python"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/modules.py"
    diff <(awk '/^> .*modules.py called / { printf "%s ", $6 }' "$trace") <(printf '__main__ first first second __main__ third   fifth ')
    diff <(awk '/^< .*modules.py called / { printf "%s ", $6 }' "$trace") <(printf '__main__ first first second __main__ third   fifth ')
  done
}

@test "a program begins and ends CPython again and again, whenever a tracer comes" {
  need gcc
  local library traced
  raise_semaphores "$BATS_TEST_TMPDIR"
  for library in $(libpythons); do
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    for traced in 3 17 40; do
      echo "$library, SEMAPHORES_TOGGLE=$traced"
      PYTHONHOME=${library%/lib/*} SEMAPHORES_TOGGLE=$traced LD_PRELOAD=$shim \
        timeout -k 1 $((60 * SLOW)) "$BATS_TEST_TMPDIR/embed" 20 >"$BATS_TEST_TMPDIR/output"
      [ "$(sort "$BATS_TEST_TMPDIR/output" | uniq -c | tr -s ' ')" = " 20 0 0" ]
    done
  done
}

# The shim must read no memory of an interpreter that has ended; with this threshold it is unmapped then.
@test "nor does a program crash that has had subinterpreters when it begins CPython again" {
  need gcc
  local library code='
import sys, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, "(lambda: None)()")
interpreters.destroy(other)
end = time.monotonic() + 0.3
while time.monotonic() < end:
    (lambda: None)()
'
  raise_semaphores "$BATS_TEST_TMPDIR"
  for library in $(libpythons); do
    [[ $library != *libpython3.[67]* ]] || continue # have no such module
    echo "$library"
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    MALLOC_MMAP_THRESHOLD_=65536 PYTHONHOME=${library%/lib/*} PYTHONWARNINGS=ignore SEMAPHORES_TOGGLE=40 LD_PRELOAD=$shim \
      timeout -k 1 $((60 * SLOW)) "$BATS_TEST_TMPDIR/embed" 3 "$code" >"$BATS_TEST_TMPDIR/output"
    [ "$(sort "$BATS_TEST_TMPDIR/output" | uniq -c | tr -s ' ')" = " 3 0 0" ]
  done
}

# As a .pth file does it; the tracer is there all the time.
@test "an imported shim serves each CPython that a program begins" {
  need gcc
  local library n
  ln -s "$shim" "$BATS_TEST_TMPDIR/python_stap.so"
  for library in $(libpythons); do
    echo "$library"
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    PYTHONHOME=${library%/lib/*} PYTHONPATH=$BATS_TEST_TMPDIR bpftrace_while "
      usdt:$shim:python:function__entry /strncmp(str(arg1), \"of_life\", 7) == 0/ { @calls[str(arg1)] = count(); }
      usdt:$shim:python:gc__start { @collections[arg0] = count(); }" "$BATS_TEST_TMPDIR/embed" 3 "
import gc, os, python_stap, time
life = int(os.environ.get('LIFE', '0'))
os.environ['LIFE'] = str(life + 1)
exec('def of_life%d(): pass' % life)
end = time.monotonic() + 1
while time.monotonic() < end:
    globals()['of_life%d' % life]()
    time.sleep(0.002)
for _ in range(30):
    gc.collect(life)
" >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output" "$trace"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = $'0 0\n0 0\n0 0' ]
    for n in 0 1 2; do
      [ "$(sed -n "s/^@calls\[of_life$n\]: //p" "$trace")" -gt 10 ]
      [ "$(sed -n "s/^@collections\[$n\]: //p" "$trace")" -ge 30 ]
    done
  done
}

# The tracer leaves in a finalizer, when the shim's thread has ended.
@test "what a tracer left that went between two CPythons of a program is not there in the second" {
  need gcc readelf
  local library
  raise_semaphores "$BATS_TEST_TMPDIR" function__count
  for library in $(libpythons); do
    echo "$library"
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    PYTHONHOME=${library%/lib/*} LD_PRELOAD=$shim timeout -k 1 $((60 * SLOW)) "$BATS_TEST_TMPDIR/embed" 2 "
import ctypes, os, sys

class Leaves:
    def __del__(self, set_semaphores=ctypes.CDLL(None).semaphores_set):
        set_semaphores(0)

sys.leaves = Leaves()
# struct PyCFunctionObject: m_ml; struct PyMethodDef: ml_meth
definition = ctypes.c_void_p.from_address(id(os._exit) + object.__basicsize__).value
function = ctypes.c_void_p.from_address(definition + ctypes.sizeof(ctypes.c_void_p)).value
with open('/proc/self/maps') as maps:
    for line in maps:
        start, end = (int(address, 16) for address in line.split()[0].split('-'))
        if start <= function < end:
            print('os._exit() is in', 'the shim' if 'libpython-stap' in line else 'CPython', flush=True)
" >"$BATS_TEST_TMPDIR/output"
    cat "$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = $'os._exit() is in the shim\n0 0\nos._exit() is in CPython\n0 0' ]
  done
}

@test "a tracer that comes while the functions of atexit run has nothing printed" {
  need gcc
  local python
  raise_semaphores "$BATS_TEST_TMPDIR"
  cat >"$BATS_TEST_TMPDIR/late.py" <<'PY'
import atexit
import time


def late():
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        pass


atexit.register(late)
PY
  for python in $(few_pythons); do
    echo "$python"
    run env SEMAPHORES_TOGGLE=100 LD_PRELOAD="$shim" timeout -k 1 $((60 * SLOW)) "$python" "$BATS_TEST_TMPDIR/late.py"
    echo "$output"
    [ "$status" = 0 ]
    [ -z "$output" ]
  done
}

@test "in the children of programs with threads the memory of threads that are not there is used again" {
  need gcc
  local python calls times counts
  make_semaphores "$BATS_TEST_TMPDIR" function__count
  counts=$SEMAPHORES
  raise_semaphores "$BATS_TEST_TMPDIR" function__summary
  # so that what the shim keeps of a thread's open calls has pages of its own
  export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=8192
  # prints by how many kB a process grows with each generation of children, each of which had 30 threads
  cat >"$BATS_TEST_TMPDIR/generations.py" <<'PY'
import os
import sys
import threading
import warnings

warnings.simplefilter("ignore")  # 3.12 and later warn of forks among threads


def size():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * 4


def generation(number):
    end = threading.Event()
    started = threading.Semaphore(0)

    def thread(calls):
        if calls:
            thread(calls - 1)
        else:
            started.release()
            end.wait()

    for _ in range(30):
        threading.Thread(target=thread, args=(900,), daemon=True).start()
    for _ in range(30):
        started.acquire()
    if number == 8:
        first.append(size())
    if number == 0:
        print((size() - first[0]) // 8, flush=True)
        os._exit(0)
    child = os.fork()
    if child == 0:
        generation(number - 1)
    sys.exit(os.waitpid(child, 0)[1])


first = []
generation(8)
PY
  for python in $(pythons_by_hook); do
    # not compared with a run without the shim, nor with a trace function: 3.11 itself uses more memory for a call with an
    # eval frame function, and makes frame objects for a trace function
    calls=$(SEMAPHORES=$counts LD_PRELOAD=$shim timeout -k 1 $((60 * SLOW)) "$python" "$BATS_TEST_TMPDIR/generations.py")
    times=$(LD_PRELOAD=$shim timeout -k 1 $((60 * SLOW)) "$python" "$BATS_TEST_TMPDIR/generations.py")
    echo "$python: where calls are counted $calls kB, where they are measured $times"
    [ "$((times - calls))" -lt 500 ]
  done
}

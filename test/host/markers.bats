# The shim's markers in every installed CPython: which events arrive at bpftrace on this machine's kernel.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

teardown() {
  kill_jobs
}

setup() {
  can_bpftrace
}

# Checks that the trace has the expected events of the file $1 with the marks $2.
same_events() {
  diff <(grep "^[$2]" "$expected") <(awk -v file="$1" '$2 == file { print $1, $3, $4 }' "$trace" | grep "^[$2]")
}

# Copies a workload to a path that is short enough for bpftrace.
workload() {
  cp "$top/test/workloads/$1" "$BATS_TEST_TMPDIR"
  echo "$BATS_TEST_TMPDIR/$1"
}

@test "functions, C functions and lines are those that sys.setprofile() and sys.settrace() see" {
  local python name program
  for name in call_stack.py semantics.py; do
    program=$(workload "$name")
    for python in $(few_pythons); do
      echo "$python $name"
      expect_events "$python" "$program"
      bpftrace_while "$(function_markers && cfunction_markers && line_markers)" \
        env LD_PRELOAD="$shim" "$python" "$program" >"$BATS_TEST_TMPDIR/output"
      diff "$expected.printed" "$BATS_TEST_TMPDIR/output"
      same_events "$program" '<>'
      same_events "$program" '()'
      same_events "$program" '.'
    done
  done
}

@test "each of the markers is the same when it is probed alone" {
  need_time
  local python program markers
  program=$(workload semantics.py)
  for python in $(pythons_by_hook); do
    expect_events "$python" "$program"
    for markers in 'function_markers <>' 'cfunction_markers ()' 'line_markers .'; do
      echo "$python $markers"
      bpftrace_while "$("${markers% *}")" env LD_PRELOAD="$shim" "$python" "$program" >/dev/null
      same_events "$program" "${markers#* }"
      refute grep "^[^${markers#* }]" "$trace"
    done
  done
}

@test "a C function is named with its module" {
  local python program='
import math
math.sqrt(4)
len("x")
"x".upper()'
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "$(cfunction_markers)" env LD_PRELOAD="$shim" "$python" -c "$program"
    grep '<string>' "$trace"
    grep -x '( <string> sqrt 3 math' "$trace"
    grep -x ') <string> sqrt 3 math' "$trace"
    grep -x '( <string> len 4 builtins' "$trace"
    grep -x '( <string> upper 5 ' "$trace"
  done
}

@test "a method made of a C function has as many entries as returns" {
  local python program='
import types
method = types.MethodType(len, "x")
for _ in range(3):
    method()'
  for python in $(pythons); do
    bpftrace_while "$(cfunction_markers)" env LD_PRELOAD="$shim" "$python" -I -S -c "$program"
    echo "$python" && grep ' <string> ' "$trace" || true
    # sys.setprofile() reports none of them up to 3.10, and only the returns from 3.12 on
    case $(version_of "$python") in
      3.[6789] | 3.10) refute grep -F '<string> len 5' "$trace" ;;
      *)
        [ "$(grep -cFx '( <string> len 5 builtins' "$trace")" = 3 ]
        [ "$(grep -cFx ') <string> len 5 builtins' "$trace")" = 3 ]
        ;;
    esac
  done
}

@test "every entry has a frame and a module, and its return the same frame" {
  local python program
  program=$(workload call_stack.py)
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$program"
    awk -v file="$program" '
      $2 != file { next }
      $5 == "0" || $6 != "__main__" { print "no frame or module:", $0; bad = 1 }
      $1 == ">" { stack[++depth] = $3 " " $5 }
      $1 == "<" && stack[depth--] != $3 " " $5 { print "not the frame that was entered:", $0; bad = 1 }
      END { exit bad || depth != 0 || NR == 0 }' "$trace"
  done
}

@test "of very many calls that are open at once each has a frame of its own, the same at its return" {
  local python deep
  cat >"$BATS_TEST_TMPDIR/deep.py" <<'PY'
import sys


def deep(n):
    if n:
        deep(n - 1)


sys.setrecursionlimit(10**6)
deep(int(sys.argv[1]))
PY
  for python in $(pythons); do
    echo "$python"
    deep=40000 # up to 3.11 a call takes C stack while it is traced
    [[ $(version_of "$python") != 3.[6-9] && $(version_of "$python") != 3.1[01] ]] || deep=2000
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$BATS_TEST_TMPDIR/deep.py" "$deep"
    awk -v deep="$deep" '
      $3 != "deep" { next }
      $1 == ">" && open[$5]++ { print "the frame of another call:", $0; bad++ }
      $1 == ">" { stack[++depth] = $5; most = depth > most ? depth : most }
      $1 == "<" && (!open[$5]-- || stack[depth--] != $5) { print "not the frame that was entered:", $0; bad++ }
      bad > 9 { exit }
      END { print most, depth; exit bad || most != deep + 1 || depth != 0 }' "$trace"
  done
}

@test "a program that runs already is traced when a tracer comes, and goes on when it leaves" {
  local python loop='
import os, sys, time
def tick():
    return 1
while not os.path.exists(sys.argv[1]):
    tick()
    time.sleep(0.01)
print("the end")'
  for python in $(pythons); do
    echo "$python"
    rm -f "$BATS_TEST_TMPDIR/end"
    LD_PRELOAD=$shim "$python" -c "$loop" "$BATS_TEST_TMPDIR/end" >"$BATS_TEST_TMPDIR/output" 3>&- &
    local target=$!
    wait_for thread_has "$target" comm python-stap
    # shellcheck disable=SC2016 # sh expands it
    bpftrace_while "$(function_markers)" sh -c 'until grep -q "^< <string> tick " "$1"; do sleep 0.05; done' - "$BATS_TEST_TMPDIR/trace"
    touch "$BATS_TEST_TMPDIR/end"
    wait "$target"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = "the end" ]
    grep -qE '^> <string> tick 3 [0-9a-f]{5,} __main__$' "$trace"
    grep -qE '^< <string> tick 4 [0-9a-f]{5,} __main__$' "$trace"
  done
}

@test "each exception is reported once, where it is raised" {
  local python raises=$top/test/workloads/raises.py
  awk '/  # [0-9]+ [A-Za-z]+$/ { print NR, $NF, $(NF - 1) }' "$raises" | sort >"$BATS_TEST_TMPDIR/expected"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/expected")" -gt 20 ]
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "usdt:$shim:python:exception__raise { printf(\"%s %d %s %d\n\", str(arg0), arg2, str(arg4), arg3 != 0); }" \
      env LD_PRELOAD="$shim" "$python" "$raises" >"$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = fine ]
    awk -v file="$raises" '$1 == file && $4 == 1 { count[$2 " " $3]++ } END { for (i in count) print i, count[i] }' "$trace" |
      sort | diff "$BATS_TEST_TMPDIR/expected" -
  done
}

@test "gc, import and audit come from the shim" {
  local python program='
import gc
gc.disable()
gc.collect(0)  # without the GIL, each collection is of all objects
gc.collect(1)
class Cycle: pass
cycle = Cycle()
cycle.self = cycle
del cycle
gc.collect()
import json.tool
try:
    import no_such_module
except ImportError:
    pass
open("/dev/null").close()'
  for python in $(pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:gc__start { printf(\"gc %d\n\", arg0); }
      usdt:$shim:python:gc__done { printf(\"collected %d\n\", arg0); }
      usdt:$shim:python:import__find__load__start { printf(\"import %s\n\", str(arg0)); }
      usdt:$shim:python:import__find__load__done { printf(\"found %s %d\n\", str(arg0), arg1); }
      usdt:$shim:python:audit { printf(\"audit %s %d\n\", str(arg0), arg1 != 0); }" \
      env LD_PRELOAD="$shim" "$python" -I -S -c "$program"
    grep -A 1 '^gc 1$' "$trace" | grep -x 'collected 0'
    grep -A 1 '^gc 2$' "$trace" | grep -xE 'collected [1-9][0-9]*'
    grep -x 'import json.tool' "$trace"
    grep -x 'found json.tool 1' "$trace"
    grep -x 'import no_such_module' "$trace"
    grep -x 'found no_such_module 0' "$trace"
    case $(version_of "$python") in
      3.6 | 3.7) refute grep audit "$trace" ;;
      *) grep -x 'audit open 1' "$trace" ;;
    esac
  done
}

@test "gc__done counts what is found and can't be collected, as gc.collect() does" {
  local python pythons='' program='
import ctypes, gc, sys

class Left:
    pass

# as a type of C with a finalizer of the old kind: the slot tp_del
finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda left: None)
gc.disable()
gc.collect()
left = [Left() for _ in range(23)]
for one in left:
    one.itself = one
slot = id(Left) + 376 + (16 if "free-threading" in sys.version else 0)
ctypes.c_void_p.from_address(slot).value = ctypes.cast(finalizer, ctypes.c_void_p).value
del left, one
print(gc.collect(1), len(gc.garbage) >= 23)
ctypes.c_void_p.from_address(slot).value = None'
  for python in $(pythons); do
    ! "$python" -c 'import ctypes' 2>/dev/null || pythons+=" $python"
  done
  [ "$pythons" ] || skip "needs a CPython with ctypes"
  LD_PRELOAD=$shim bpftrace_while "usdt:$shim:python:gc__start { printf(\"gc %d\n\", arg0); }
    usdt:$shim:python:gc__done { printf(\"found %d\n\", arg0); }" \
    "${each_python[@]}" "$pythons" -I -S -c "$program" >"$BATS_TEST_TMPDIR/output"
  cat "$BATS_TEST_TMPDIR/output"
  [ "$(grep -cxE '(2[3-9]|[3-9][0-9]) True' "$BATS_TEST_TMPDIR/output")" = "$(wc -w <<<"$pythons")" ]
  diff <(grep -A 1 '^gc 1$' "$trace" | sed -n 's/^found //p') <(cut -d' ' -f1 "$BATS_TEST_TMPDIR/output")
}

@test "audit events are the program's own: none that the shim raises itself, whatever else is probed" {
  local python pythons='' others program='
import threading
def called():
    return len("x")
thread = threading.Thread(target=called)
thread.start()
thread.join()
for _ in range(10):
    called()
open("/dev/null").close()'
  for python in $(pythons); do
    [ "$(version_of "$python")" = 3.6 ] || [ "$(version_of "$python")" = 3.7 ] || pythons+=" $python"
  done
  [ "$pythons" ] || skip "needs a CPython from 3.8 on"
  for others in '' yes; do
    LD_PRELOAD=$shim bpftrace_while "usdt:$shim:python:audit { printf(\"%s\n\", str(arg0)); }
      ${others:+$(markers | grep -vx audit | sed "s|.*|usdt:$shim:python:& { @ = count(); }|")}" \
      "${each_python[@]}" "$pythons" -I -S -c "$program"
    grep -v '^@\|^$' "$trace" >"$BATS_TEST_TMPDIR/events$others"
  done
  [ "$(grep -cx open "$BATS_TEST_TMPDIR/events")" -ge "$(wc -w <<<"$pythons")" ]
  grep -q '^@: [1-9][0-9][0-9]' "$trace"
  diff "$BATS_TEST_TMPDIR/events"{,yes}
}

# How often the marker $1 must fire in the program of the next test.
times() {
  case $1 in
    function__entry | function__return | line) echo 97 ;;
    gc__*) echo 11 ;;
    import__*) echo 13 ;;
    audit) echo 17 ;;
  esac
}

# A bpftrace program that counts, as SOURCE_MARKER, the events of the next test's program at FILE's markers (on stdin,
# one a line).  Without gc__done, whose arguments don't differ from those of other collections.
# usage: counts SOURCE FILE
counts() {
  local marker filter
  while read -r marker; do
    case $marker in
      function__entry | function__return | line) filter='str(arg1) == "counted"' ;;
      gc__start) filter='arg0 == 1 && comm == "counted"' ;; # there may be other Pythons
      import__*) filter='str(arg0) == "no_such_module"' ;;
      audit) filter='str(arg0) == "counted"' ;;
      *) continue ;;
    esac
    echo "usdt:$2:python:$marker /$filter/ { @${1}_$marker = count(); }"
  done
}

# The count of SOURCE_MARKER in the trace.
counted() {
  awk -v map="@$1_$2:" '$1 == map { n = $2 } END { print n + 0 }' "$trace"
}

# Runs a program while all markers are probed in the shim's file, and the markers on stdin in the interpreter's FILE.
# Checks that the right source fires all events, and with PYTHON_STAP=auto the other source none.  The right source of
# an event whose own marker is only partly live is the shim.
# usage: check_sources PYTHON FILE PYTHON_STAP PROGRAM
check_sources() {
  local marker own shims partly
  own=$(cat)
  partly=$(own_markers "$1" "$2" partly)
  case $(version_of "$1") in
    3.[67]) shims=$(markers | grep -vx audit) ;;
    *) shims=$(markers) ;;
  esac
  PYTHON_STAP=$3 LD_PRELOAD=$shim bpftrace_while "$(counts shim "$shim" <<<"$shims") $(counts own "$2" <<<"$own")" \
    "$1" -I -S -c "$4" >/dev/null
  for marker in $(counts shim "$shim" <<<"$shims" | sed 's/.*@shim_\([a-z_]*\).*/\1/'); do
    echo "$3 $marker: $(counted shim "$marker") of the shim, $(counted own "$marker") of its own"
    if grep -qx "$marker" <<<"$own" && ! grep -qx "$marker" <<<"$partly"; then
      [ "$(counted own "$marker")" = "$(times "$marker")" ]
      [ "$3" != auto ] || [ "$(counted shim "$marker")" = 0 ]
      [ "$3" != all ] || [ "$(counted shim "$marker")" = "$(times "$marker")" ]
    else
      [ "$(counted shim "$marker")" = "$(times "$marker")" ]
    fi
  done
}

@test "an event has one source: the interpreter's own marker where somebody probes that, else the shim" {
  need readelf
  local python file own program='
import gc, sys
gc.disable()
with open("/proc/self/comm", "w") as name:
    name.write("counted")
def counted(): pass
for _ in range(97):
    counted()
for _ in range(11):
    gc.collect(1)
for _ in range(13):
    try:
        import no_such_module
    except ImportError:
        pass
for _ in range(17):
    getattr(sys, "audit", print)("counted")'
  for python in $(pythons); do
    unset PYTHONHOME LD_LIBRARY_PATH
    file=$(own_file "$python")
    own=$(own_markers "$python" "$file")
    [ ! "$own" ] || own_copy
    echo "$python, $file:" "${own//$'\n'/ }"
    check_sources "$python" "$file" auto "$program" </dev/null
    [ "$own" ] || continue
    # The hook is installed for line, and silent for functions.  3.11 may crash if its own line is probed.
    grep -vx line <<<"$own" | check_sources "$python" "$file" auto "$program"
    own=$(grep -vx "$([ "$(version_of "$python")" != 3.11 ] || echo line)" <<<"$own")
    check_sources "$python" "$file" auto "$program" <<<"$own"
    check_sources "$python" "$file" all "$program" <<<"$own"
  done
}

@test "a generator that is closed ends with an entry and a return, but in the releases that lose them (gh-140373)" {
  local python events program='
def closed():
    yield
for _ in range(100):
    generator = closed()
    next(generator)
    generator.close()'
  for python in $(pythons); do
    events=200
    ! "$python" -c 'import sys; sys.exit(not ((3, 13) <= sys.version_info < (3, 13, 12) or sys.version_info[:3] == (3, 14, 0)))' || events=100
    LD_PRELOAD=$shim bpftrace_while "usdt:$shim:python:function__entry /str(arg1) == \"closed\"/ { @entries = count(); }
      usdt:$shim:python:function__return /str(arg1) == \"closed\"/ { @returns = count(); }" "$python" -I -S -c "$program"
    echo "$("$python" --version): $((events - 100)) of 100 closes are reported"
    [ "$(grep '^@' "$trace")" = "@entries: $events"$'\n'"@returns: $events" ]
  done
}

@test "a free-threaded Python that the shim refuses is left alone" {
  local python program='
import gc, os, threading
def function():
    return len("x")
function()
gc.collect()
print(os.listdir("/proc/self/task") == [str(os.getpid())], threading.active_count())'
  [ -n "$(refused_pythons)" ] || skip "needs a free-threaded Python before 3.14.4"
  for python in $(refused_pythons); do
    echo "$python"
    bpftrace_while "$(all_markers)" env LD_PRELOAD="$shim" "$python" -c "$program" >"$BATS_TEST_TMPDIR/output"
    [ "$(cat "$BATS_TEST_TMPDIR/output")" = "True 1" ]
    refute grep '^@: ' "$trace"
    [[ $(PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim "$python" -c '' 2>&1) == *"free-threaded"* ]]
  done
}

@test "the page at a fixed address tells the version, and where threads and frames have what, with no marker probed" {
  local python program attached
  program=$(workload page.py)
  # without the C library, so for an older one too
  gcc -shared -fPIC -nostdlib -x c -o "$BATS_TEST_TMPDIR/key.so" - <<'C'
#include <pthread.h>
pthread_key_t other_key;
__attribute__((constructor)) static void make(void)
{
    pthread_key_create(&other_key, 0);
}
C
  for python in $(pythons); do
    echo "$python"
    LD_PRELOAD=$shim "$python" "$program"
    bpftrace_while "$(function_markers)" env LD_PRELOAD="$shim" "$python" "$program"
    refute "$python" "$program"
    attached=$BATS_TEST_TMPDIR/attached-${python//\//-}
    LD_PRELOAD=$BATS_TEST_TMPDIR/key.so "$python" "$program" "$attached" 3>&- &
    until [ -e "$attached.ready" ]; do sleep 0.1; done
    "$top/build/stap-python" attach $!
    touch "$attached"
    wait $!
  done
}

@test "the page tells where threads have their states also after Py_Finalize() and Py_Initialize()" {
  [[ $(uname -m) = x86_64 || $(uname -m) = aarch64 ]] || skip "needs x86-64 or aarch64, for the thread pointer"
  need gcc
  local library
  cat >"$BATS_TEST_TMPDIR/again.c" <<'C'
#include <pthread.h>
#include <stddef.h>
#include "shared/offsets_page.h"
#ifdef __x86_64__ /* of which older compilers have no other */
#define THREAD pthread_self()
#else
#define THREAD __builtin_thread_pointer()
#endif
void Py_Initialize(void);
int Py_FinalizeEx(void);
void *PyThreadState_Get(void);
int PyRun_SimpleString(const char *);
int main(int count, char **arguments)
{
    const struct offsets_page *page = (const struct offsets_page *)OFFSETS_ADDRESS;
    int before = 0;
    for (int i = 0; i < 3; i++) {
        pthread_key_t key; /* from the second time on the one that CPython had before */
        pthread_key_create(&key, NULL);
        Py_Initialize();
        if (count > 1 && PyRun_SimpleString(arguments[1]))
            return 2;
        if (*(void **)((char *)THREAD + page->tstate_tls) != PyThreadState_Get() || page->tstate_tls == before)
            return 1;
        before = page->tstate_tls;
        Py_FinalizeEx();
    }
    return 0;
}
C
  for library in $(libpythons); do
    echo "$library"
    gcc -include stdint.h -I "$top/probes" -o "$BATS_TEST_TMPDIR/again" "$BATS_TEST_TMPDIR/again.c" "$library" \
      -Wl,-rpath,"$(dirname "$library")"
    PYTHONHOME=${library%/lib/*} LD_PRELOAD=$shim "$BATS_TEST_TMPDIR/again"
    ln -sf "$shim" "$BATS_TEST_TMPDIR/python_stap.so"
    PYTHONHOME=${library%/lib/*} PYTHONPATH=$BATS_TEST_TMPDIR "$BATS_TEST_TMPDIR/again" 'import python_stap'
  done
}

@test "the page is at its second address if the program has its own use for the first" {
  local python program
  program=$(workload page.py)
  make_taker "$BATS_TEST_TMPDIR" 0x550070790000
  for python in $(pythons); do
    echo "$python"
    LD_PRELOAD="$shim $BATS_TEST_TMPDIR/taker.so" "$python" "$program" | tee "$BATS_TEST_TMPDIR/printed"
    grep -x 'the page is at 0x2070790000' "$BATS_TEST_TMPDIR/printed"
  done
}

@test "where the program has its own use for both addresses, there is no page, and no harm" {
  local python=/usr/bin/python3
  make_taker "$BATS_TEST_TMPDIR" 0x550070790000 0x2070790000
  bpftrace_while "$(function_markers)" env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim $BATS_TEST_TMPDIR/taker.so" \
    "$python" -c "
with open('/proc/self/mem', 'rb', 0) as mem:
    for address in (0x550070790000, 0x2070790000):
        mem.seek(address)
        print(mem.read(4))" >"$BATS_TEST_TMPDIR/output" 2>&1
  cat "$BATS_TEST_TMPDIR/output"
  grep -F "no stack traces: the program uses the addresses 0x550070790000 and 0x2070790000" "$BATS_TEST_TMPDIR/output"
  [ "$(grep -Fxc "b'x\\x00\\x00\\x00'" "$BATS_TEST_TMPDIR/output")" = 2 ]
  grep -q '^>' "$trace"
}

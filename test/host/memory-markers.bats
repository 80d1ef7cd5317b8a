# memory__sample and memory__free: sampled allocations stand for all of them, and CPython's allocators are its own again
# afterwards.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

teardown() {
  kill_jobs
}

samples() {
  cat <<EOF
usdt:$shim:python:memory__sample { printf("+ %lx %ld %ld %d\n", arg0, arg1, arg2, arg3); }
usdt:$shim:python:memory__free { printf("- %lx\n", arg0); }
usdt:$shim:python:gc__start /arg0 == 2/ { printf("phase\n"); }
EOF
}

otel_samples() {
  cat <<EOF
usdt:$shim:otel_memory:alloc { printf("otel + %lx %ld %ld\n", arg0, arg1, arg2); }
usdt:$shim:otel_memory:free { printf("otel - %lx\n", arg0); }
EOF
}

# Allocates by malloc(), calloc() and realloc(), and frees.  Each collection begins another phase.
program='
import gc, sys
gc.disable()
gc.collect()
blocks = [bytes(1000) for _ in range(20000)]
objects = [object() for _ in range(300000)]
one = bytearray(5000000)
grown = bytearray()
for _ in range(3000):
    grown += b"x" * 1000
gc.collect()
print(sum(map(sys.getsizeof, blocks)) + len(objects) * sys.getsizeof(objects[0])
      + sum(map(sys.getsizeof, (blocks, objects, one, grown))))
del blocks, objects, one, grown
gc.collect()
'

@test "otel_memory:alloc and otel_memory:free are the same samples and frees, and enough to have them" {
  local python both
  printf '%s' "$program" >"$BATS_TEST_TMPDIR/program.py"
  python=$(system_python)
  both=$(samples | sed 's/printf("/&python /' && otel_samples)
  LD_PRELOAD=$shim PYTHON_STAP_MEMORY=8192 bpftrace_while "$both" "$python" "$BATS_TEST_TMPDIR/program.py" >/dev/null
  [ "$(grep -c '^otel +' "$BATS_TEST_TMPDIR/trace")" -gt 1000 ]
  [ "$(grep -c '^otel -' "$BATS_TEST_TMPDIR/trace")" -gt 1000 ]
  # without the domain, which the contract lacks
  diff <(sed -nE 's/^python (\+( [^ ]+){3}|-.*).*/\1/p' "$BATS_TEST_TMPDIR/trace") <(sed -n 's/^otel //p' "$BATS_TEST_TMPDIR/trace")
  LD_PRELOAD=$shim PYTHON_STAP_MEMORY=8192 bpftrace_while "$(otel_samples)" "$python" "$BATS_TEST_TMPDIR/program.py" >/dev/null
  [ "$(grep -c '^otel +' "$BATS_TEST_TMPDIR/trace")" -gt 1000 ]
  [ "$(grep -c '^otel -' "$BATS_TEST_TMPDIR/trace")" -gt 1000 ]
}

@test "the weights of the samples that live are the bytes that live, in each CPython" {
  local python allocated
  printf '%s' "$program" >"$BATS_TEST_TMPDIR/program.py"
  for python in $(pythons); do
    # a mean of 4,500 samples: a deviation of 1.5 percent
    allocated=$(LD_PRELOAD=$shim PYTHON_STAP_MEMORY=8192 bpftrace_while "$(samples)" "$python" "$BATS_TEST_TMPDIR/program.py" && cp "$BATS_TEST_TMPDIR/trace" "$BATS_TEST_TMPDIR/samples")
    awk -v allocated="$allocated" '
      $1 == "phase" { phase++; if (phase == 2) for (block in live) { in_use += live[block]; known[block] = 1 } }
      $1 == "+" && phase == 1 { live[$2] = $4; samples++; domains[$5]++; if ($4 < $3) { print "weight below size:", $0; bad = 1 } }
      $1 == "-" { if (phase == 1) frees++; delete live[$2]; delete known[$2] }
      $1 == "+" && phase == 2 { delete known[$2] }
      END {
        for (block in known) left += live[block]
        printf "%d bytes, estimated %d (%.3f) from %d samples with %d frees; %d left\n", allocated, in_use, in_use / allocated, samples, frees, left
        exit bad || phase != 3 || in_use < allocated * 0.92 || in_use > allocated * 1.08 || left > allocated * 0.02 || !domains[1] || !domains[2]
      }' "$BATS_TEST_TMPDIR/samples"
  done
}

# Prints the allocators of CPython as words, before, while and after a tracer asks for samples, and what it does with
# tracemalloc meanwhile.
watched='
import ctypes, os, sys, time, tracemalloc
before, during, after, folder = sys.argv[1:]
words = (ctypes.c_void_p * 5)
get = ctypes.pythonapi.PyMem_GetAllocator
get.restype = None
def allocators():
    result = []
    for domain in 0, 1, 2:
        allocator = words()
        get(domain, ctypes.byref(allocator))
        result.append(tuple(allocator))
    return result
def act(what):
    if what == "start":
        tracemalloc.start()
    elif what == "stop":
        traced = tracemalloc.get_traced_memory()[0]
        kept = [bytes(i % 100) for i in range(10000)]  # small: what is large is of the raw domain, too
        assert tracemalloc.get_traced_memory()[0] > traced + 900000, "tracemalloc was taken out"
        tracemalloc.stop()
def work():
    kept = [bytearray(i % 3000) for i in range(20000)]
    del kept
    time.sleep(0.01)
def until(condition):
    while not condition():
        work()
act(before)
own = allocators()
open(folder + "/ready", "w").close()
until(lambda: allocators() != own)
assert allocators()[0] == own[0], "the raw domain"
act(during)
open(folder + "/seen", "w").close()
until(lambda: os.path.exists(folder + "/ended"))
# Those that tracemalloc calls stay where they are: in two seconds they would be gone.
deadline = time.monotonic() + (2 if during == "start" else 60)
while allocators() != own and time.monotonic() < deadline:
    work()
act(after)
for _ in range(10):
    work()
print("own again" if allocators() == own else "others")
'

@test "the allocators are CPython's own before and after, byte for byte, also beside tracemalloc" {
  local python case expected program before during after malloc
  printf '%s' "$watched" >"$BATS_TEST_TMPDIR/watched.py"
  for python in $(pythons_by_hook); do
    while read -r case expected; do
      echo "$python ${case//,/ }"
      rm -f "$BATS_TEST_TMPDIR"/{ready,seen,ended,printed}
      IFS=, read -r before during after malloc <<<"$case"
      LD_PRELOAD=$shim PYTHONMALLOC=$malloc "$python" "$BATS_TEST_TMPDIR/watched.py" "$before" "$during" "$after" \
        "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/printed" 3>&- &
      program=$!
      wait_for test -e "$BATS_TEST_TMPDIR/ready"
      # shellcheck disable=SC2016 # bash expands it
      bpftrace_while "$(samples)" bash -c 'until [ -e "$1/seen" ]; do sleep 0.05; done' - "$BATS_TEST_TMPDIR"
      touch "$BATS_TEST_TMPDIR/ended"
      wait "$program"
      [ "$(cat "$BATS_TEST_TMPDIR/printed")" = "$expected" ]
    done <<'CASES'
-,-,-, own again
-,-,-,debug own again
start,-,-, own again
-,start,stop,debug others
CASES
  done
}

@test "allocators that come and go as others do, in threads and forks, change nothing" {
  local python malloc
  make_semaphores "$BATS_TEST_TMPDIR" 'memory__.*'
  cat >"$BATS_TEST_TMPDIR/hostile.py" <<'PY'
import os, random, sys, threading, time, tracemalloc
end = time.monotonic() + 3
wrong = []
def work(seed):
    chosen = random.Random(seed)
    kept = {}
    while time.monotonic() < end:
        for i in range(300):
            key = chosen.randrange(500)
            text = str(key) * chosen.randrange(1, 400)
            if kept.setdefault(key, (text, text[:]))[0] != kept[key][1]:
                wrong.append(key)
            if chosen.random() < 0.5:
                kept.pop(key)
            grown = bytearray(text, "ascii")
            grown += bytes(grown)
            if bytes(grown) != (text * 2).encode():
                wrong.append(key)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    if random.random() < 0.5:
        tracemalloc.start()
    else:
        tracemalloc.stop()
    time.sleep(0.03)
    child = os.fork()
    if not child:
        end = time.monotonic() + 0.05
        work(7)
        os._exit(bool(wrong))
    if os.waitpid(child, 0)[1]:
        wrong.append("child")
for thread in threads:
    thread.join()
print("wrong" if wrong else "fine")
PY
  for python in $(pythons_by_hook); do
    for malloc in '' debug; do
      echo "$python $malloc"
      run env SEMAPHORES_TOGGLE=40 PYTHON_STAP_MEMORY=500 PYTHONMALLOC=$malloc LD_PRELOAD="$BATS_TEST_TMPDIR/semaphores.so $shim" \
        timeout -k 1 $((120 * SLOW)) "$python" -W ignore "$BATS_TEST_TMPDIR/hostile.py"
      [ "$status" = 0 ]
      [ "$output" = fine ]
    done
  done
}

@test "allocations that fail are no samples, also when memory runs out again and again" {
  local python plainly printed
  cat >"$BATS_TEST_TMPDIR/fails.py" <<'PY'
import resource, sys
def failure(function, *arguments):
    try:
        function(*arguments)
    except MemoryError:
        return 1
    return 0
block = bytearray(1 << 20)
failures = sum(failure(bytearray, 1 << 47) + failure(block.__imul__, 1 << 28) for _ in range(100))
with open("/proc/self/statm") as statm:
    now = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (32 << 20), resource.RLIM_INFINITY))
kept = []
def fill(size):
    while True:
        kept.append(bytearray(size))
for size in 300, 5000, 300000, 1 << 22:
    for _ in range(5):
        failures += failure(fill, size)
        del kept[:]
print(failures, len(block))
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    # 220 1048576; 3.15's bytearray is empty after an allocation that fails
    plainly=$("$python" "$BATS_TEST_TMPDIR/fails.py")
    printed=$(LD_PRELOAD=$shim PYTHON_STAP_MEMORY=8192 bpftrace_while "$(samples)" "$python" "$BATS_TEST_TMPDIR/fails.py")
    [ "$printed" = "$plainly" ]
    awk '$1 == "+" { samples++ } $1 == "+" && $3 > 2 ^ 40 { print; bad = 1 } END { exit bad || samples < 1000 }' "$BATS_TEST_TMPDIR/trace"
  done
}

# The value of a free slot among the sampled blocks, in whose bucket 0 a block is.
@test "free(NULL) is the end of no block" {
  local python
  cat >"$BATS_TEST_TMPDIR/null.py" <<'PY'
import ctypes

malloc, free = ctypes.pythonapi.PyMem_Malloc, ctypes.pythonapi.PyMem_Free
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
free.argtypes = [ctypes.c_void_p]
while malloc(32) * 0x9E3779B97F4A7C15 >> 48 & 0xFFFF:
    pass
for _ in range(5):
    free(None)
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    LD_PRELOAD=$shim PYTHON_STAP_MEMORY=1 bpftrace_while "
      usdt:$shim:python:memory__sample { @samples = count(); } usdt:$shim:python:memory__free /arg0 == 0/ { @null = count(); }" \
      "$python" "$BATS_TEST_TMPDIR/null.py"
    cat "$trace"
    [ "$(sed -n 's/^@samples: //p' "$trace")" -gt 1000 ]
    refute grep '^@null: [1-9]' "$trace"
  done
}

# A first tracer leaves the shim's allocators behind tracemalloc's, where they are called without a tracer, too.  The
# program allocates without giving the GIL away as the next one comes: the shim's hook is not set then.
@test "each block that the next tracer has as a sample has its end, also behind tracemalloc" {
  local python program
  make_semaphores "$BATS_TEST_TMPDIR" 'memory__.*'
  cat >"$BATS_TEST_TMPDIR/behind.py" <<'PY'
import ctypes, functools, itertools, os, sys, time, tracemalloc

def turn(on):
    ctypes.CDLL(None).semaphores_set(on)
    for _ in range(100):
        time.sleep(0.01)
        len(str(on))

malloc, free = ctypes.pythonapi.PyMem_Malloc, ctypes.pythonapi.PyMem_Free
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
free.argtypes = [ctypes.c_void_p]
turn(1)
tracemalloc.start()
turn(0)
c = ctypes.PyDLL(None)
comes = iter(functools.partial(c.access, (sys.argv[1] + "/comes").encode(), os.F_OK), 0)  # ends when there is that file
open(sys.argv[1] + "/ready", "w").close()
blocks = list(map(malloc, itertools.repeat(77777), map(c.usleep, itertools.repeat(1000)), comes))  # in C alone
while not os.path.exists(sys.argv[1] + "/ends"):
    blocks.append(malloc(77777))
    time.sleep(0.001)
while blocks:
    free(blocks.pop())
PY
  for python in $(pythons_by_hook); do
    echo "$python"
    rm -f "$BATS_TEST_TMPDIR"/{ready,comes,ends}
    LD_PRELOAD="$BATS_TEST_TMPDIR/semaphores.so $shim" PYTHON_STAP_MEMORY=1024 "$python" "$BATS_TEST_TMPDIR/behind.py" \
      "$BATS_TEST_TMPDIR" 3>&- &
    program=$!
    wait_for test -e "$BATS_TEST_TMPDIR/ready"
    # shellcheck disable=SC2016 # bash expands it
    bpftrace_while "
      usdt:$shim:python:memory__sample /arg1 == 77777/ { @live[arg0] = 1; @samples = count(); }
      usdt:$shim:python:memory__free /@live[arg0]/ { delete(@live[arg0]); }" \
      bash -c 'sleep 0.5; touch "$1/comes"; sleep 2; touch "$1/ends"; tail -s 0.1 --pid="$2" -f /dev/null' - "$BATS_TEST_TMPDIR" "$program"
    wait "$program"
    cat "$trace"
    [ "$(sed -n 's/^@samples: //p' "$trace")" -gt 100 ]
    refute grep '^@live' "$trace"
  done
}

# CPython's native markers and the shim's: the shim doesn't fire a marker exactly while the native one is probed, unless
# that is only partly live.
# test/host/markers.bats tests in every interpreter that each event then has one source.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

# Each test sets its own $python and $file.
# shellcheck disable=SC2030,SC2031

load ../lib/helper

setup() {
  need readelf
  can_bpftrace
  # The first interpreter with native markers.
  for python in $(pythons); do
    file=$(own_file "$python")
    own=$(own_markers "$python" "$file" 'live|fires')
    [[ $own != *gc__start* ]] || return 0
  done
  skip "needs a CPython with markers of its own"
}

# A bpftrace program that prints the millisecond of each collection, and of each return of tick(), at the markers of the
# file $1.
timed() {
  cat <<EOF
usdt:$1:python:gc__start /arg0 == 1/ { printf("gc %d\n", elapsed / 1000000); }
usdt:$1:python:function__return /str(arg1) == "tick"/ { printf("tick %d\n", elapsed / 1000000); }
EOF
}

# Whether the shim was silent between the own markers' first and last event, and before and after it not.  Its longest time
# without an event is theirs, plus or minus the 50 ms between the watcher's reads of the semaphores, and more on a machine
# under load.
is_silent_meanwhile() {
  local name
  for name in gc tick; do
    awk -v name="$name" '
      $1 != name { next }
      FILENAME == ARGV[1] { first = own++ ? first : $2; last = $2; next }
      shim++ && $2 - at > silent { silent = $2 - at; before = shim - 1 }
      { at = $2 }
      END {
        print name ": of its own", own, "events, for", last - first, "ms"
        print name ": of the shim", before, "events, for", silent, "ms none,", shim - before, "events"
        late = silent - (last - first)
        exit !(own > 100 && last - first > 1000 && late > -600 && late < 600 && before > 50 && shim - before > 50)
      }' "$1" "$2" || return
  done
}

@test "when a tracer of its own markers comes the shim is silent, and speaks again when it goes" {
  [[ $own == *function__return* ]] || skip "needs a CPython with a function__return that fires"
  local target try silent='' folder=$BATS_TEST_TMPDIR program='
import gc, time
gc.disable()
def tick(): pass
end = time.time() + 600
while time.time() < end:
    tick()
    gc.collect(1)
    time.sleep(0.003)'
  own_copy
  export timed_own
  timed_own=$(timed "$file")
  # Each begins when what is before it has been seen.
  cat >"$folder/comes" <<'SH'
set -euo pipefail
# usage: has COUNT FILE
has() { [ "$(grep -c tick "$2")" -ge "$1" ] && [ "$(grep -c gc "$2")" -ge "$1" ]; }
# usage: wait_until COMMAND...
wait_until() { until "$@"; do sleep 0.05; done; }
lasts() { awk '/^tick/ { first = n++ ? first : $2; last = $2 } END { exit !(n > 200 && last - first > 2000) }' "$1"; }
wait_until has 100 "$1/trace"
bpftrace -q -e "$timed_own" >"$1/own" &
wait_until lasts "$1/own"
end_bpftrace $!
count=$(grep -c tick "$1/trace")
wait_until has $((count + 100)) "$1/trace"
SH
  export -f end_bpftrace waits_for_events attachments_of descriptors_of
  # once in three: a busy machine may stop the watcher, or a tracer as it ends
  for try in 1 2 3; do
    echo "try $try"
    LD_PRELOAD=$shim "$python" -c "$program" &
    target=$!
    # The frame hook stays, for line; that of the collections is removed and installed again.
    bpftrace_while "$(timed "$shim") usdt:$shim:python:line { @=count(); }" bash "$folder/comes" "$folder"
    kill "$target"
    wait "$target" || true
    is_silent_meanwhile "$folder/own" "$trace" && silent=1 && break
  done
  [ "$silent" ]
}

@test "a tracer that has raised one of its semaphores yet, and not the other, sets no hook" {
  # Does what a tracer does, over and over: raises the shim's semaphore, and a millisecond later CPython's.
  "$python" -c 'import ctypes' || skip "needs a CPython with ctypes"
  local late
  PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim "$python" - "$shim" "$(semaphore "$shim" gc__start)" \
    "$file" "$(semaphore "$file" gc__start)" 2>"$BATS_TEST_TMPDIR/log" >"$BATS_TEST_TMPDIR/late" <<'PY'
import ctypes, sys, time

def semaphore(file, address):
    with open(file, "rb") as elf:
        is_relocated = elf.read(17)[16] != 2
    start = [line.split("-")[0] for line in open("/proc/self/maps") if line.rstrip().endswith(file)][0]
    return ctypes.c_ushort.from_address(int(address, 16) + is_relocated * int(start, 16))

shims, own = semaphore(*sys.argv[1:3]), semaphore(*sys.argv[3:])
end = time.time() + 6
late = 0  # how often this process slept for longer than the shim waits
while time.time() < end:
    begin = time.monotonic()
    shims.value = 1
    time.sleep(0.001)
    own.value = 1
    late += time.monotonic() - begin > 0.0018
    time.sleep(0.01)
    shims.value = own.value = 0
    time.sleep(0.003)
print(late)
PY
  late=$(cat "$BATS_TEST_TMPDIR/late")
  sort "$BATS_TEST_TMPDIR/log" | uniq -c | sort -rn | head
  # the watcher has read the semaphores while both were raised
  grep -q "left to CPython's own" "$BATS_TEST_TMPDIR/log"
  # some 8 of 120 reads find one semaphore alone raised; a hook that is set and removed again makes two lines
  [ "$(grep -c 'gc hook: ' "$BATS_TEST_TMPDIR/log")" -le $((2 * late)) ]
}

# Copies the interpreter's file, and changes numbers in its ELF notes.
# usage: noted COPY MARKER|'*' BASE SEMAPHORE, where the last two are Python expressions of base and semaphore
noted() {
  "$python" - "$file" "$BATS_TEST_TMPDIR/$1" "${@:2}" <<'PY'
import os, re, struct, sys
old, new, marker, base_now, semaphore_now = sys.argv[1:]
with open(old, "rb") as file:
    elf = bytearray(file.read())
for note in re.finditer(rb"stapsdt\0(.{24})python\0(\w+)\0", bytes(elf), re.DOTALL):
    if marker in (note[2].decode(), "*"):
        location, base, semaphore = struct.unpack("QQQ", note[1])
        elf[note.start(1):note.end(1)] = struct.pack(
            "QQQ", location, eval(base_now), eval(semaphore_now) % 2**64)
with open(new, "wb") as file:
    file.write(elf)
os.chmod(new, 0o755)
PY
}

@test "no semaphore is read that can't be one, and those of a prelinked file are found" {
  [[ $file != *.so* ]] || skip "needs a CPython with markers of its own in the program itself"
  local copy said
  noted prelinked '*' 'base + 0x1000000' 'semaphore + 0x1000000'
  noted none gc__start base 0
  noted odd gc__start base 'semaphore + 1'
  noted code gc__start base 'location & -2'
  noted nowhere gc__start base 'semaphore + 0x1000000'
  noted negative gc__start base -2
  cat >"$BATS_TEST_TMPDIR/all" <<'SH'
cd "$BATS_TEST_TMPDIR" || exit
for copy in prelinked none odd code nowhere negative; do
  "./$copy" -I -S -c 'import gc; gc.disable(); gc.collect(1)' 2>"$copy.log" || echo "status $?" >>"$copy.log"
done
SH
  PYTHONHOME=$("$python" -c 'import sys; print(sys.prefix)') LD_PRELOAD=$shim PYTHON_STAP_DEBUG=1 \
    bpftrace_while "usdt:$shim:python:gc__start /arg0 == 1/ { @=count(); }" bash "$BATS_TEST_TMPDIR/all"
  for copy in prelinked none odd code nowhere negative; do
    echo "$copy: $(cat "$BATS_TEST_TMPDIR/$copy.log")"
    said=" $(sed -n "s|.*/$copy: its own markers that silence the shim's:||p" "$BATS_TEST_TMPDIR/$copy.log") "
    [[ $said = *" gc__done "* ]]
    [ "$copy" = prelinked ] || [[ $said != *" gc__start "* ]]
    [ "$copy" != prelinked ] || [[ $said = *" gc__start "* ]]
    refute grep status "$BATS_TEST_TMPDIR/$copy.log"
  done
  [ "$(sed -n 's/^@: //p' "$trace")" = 6 ]
}

@test "a file in the interpreter's place that becomes shorter while it is read does no harm" {
  need gcc
  local library
  library=$(find /usr/lib /usr/lib64 -name 'libpython3.*.so.1.0' 2>/dev/null | head -n 1)
  [ -n "$library" ] || skip "needs a libpython"
  cp "$library" "$BATS_TEST_TMPDIR"
  cat >"$BATS_TEST_TMPDIR/program.c" <<'C'
int Py_BytesMain(int, char **);
int main(int count, char **words) { return Py_BytesMain(count, words); }
C
  gcc -o "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/program.c" "$BATS_TEST_TMPDIR/${library##*/}" || skip "needs a libpython of 3.8 or later"
  # a library that makes the file shorter when its size is requested
  cat >"$BATS_TEST_TMPDIR/shorter.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
off_t lseek(int fd, off_t offset, int from)
{
    char link[64], path[4096] = "";
    off_t (*asked)(int, off_t, int) = (off_t(*)(int, off_t, int))dlsym(RTLD_NEXT, "lseek");
    off_t result = asked(fd, offset, from);
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/libpython3") && truncate(path, 4096) == 0)
        fprintf(stderr, "shorter: %s\n", path);
    return result;
}
C
  gcc -D_GNU_SOURCE -shared -fPIC -o "$BATS_TEST_TMPDIR/shorter.so" "$BATS_TEST_TMPDIR/shorter.c"
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
import ctypes, os, shutil, sys, time

library, shim, address = sys.argv[1:]
# another file has its path, with the same headers
os.rename(library, library + ".loaded")
with open(library + ".loaded", "rb") as loaded, open(library, "wb") as other:
    other.write(loaded.read())
start = [line.split("-")[0] for line in open("/proc/self/maps") if line.rstrip().endswith(shim)][0]
# as a tracer of the shim's
ctypes.c_ushort.from_address(int(address, 16) + int(start, 16)).value = 1
time.sleep(1)
print("unharmed")
PY
  LD_LIBRARY_PATH=$BATS_TEST_TMPDIR run timeout -k 5 $((30 * SLOW)) env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$BATS_TEST_TMPDIR/shorter.so:$shim" \
    "$BATS_TEST_TMPDIR/program" -I "$BATS_TEST_TMPDIR/program.py" "$BATS_TEST_TMPDIR/${library##*/}" "$shim" "$(semaphore "$shim" gc__start)"
  echo "$output"
  [ "$status" = 0 ]
  grep -q "^shorter: .*/${library##*/}$" <<<"$output"
  grep -q unharmed <<<"$output"
}

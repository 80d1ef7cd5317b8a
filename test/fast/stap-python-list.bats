# stap-python: list.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031

load ../lib/helper
load ../lib/launcher

@test "list shows which of its own markers fire in each Python, as readelf and native.list do" {
  local python version
  need readelf
  for python in $(pythons); do
    run launcher list "$python"
    echo "$output"
    [ "$status" = 0 ]
    version=$(version_of "$python")
    [ "$(abi_of "$python")" = "$version" ] || version+=', free-threaded'
    [ "${lines[0]}" = "$python: CPython $version" ]
    diff <(own_markers "$python" "$(own_file "$python")" | sort) \
      <(awk '$2 ~ /^(live|partly|unusable)$/ { print $1 }' <<<"$output" | sort)
    diff <(markers | sort) <(awk '$3 == "yes" { print $1 }' <<<"$output" | sort)
  done
}

@test "list without an argument has a line for every Python that is found" {
  local python live abi folder=$BATS_TEST_TMPDIR/bin
  # list does not search build/freethreaded
  mkdir "$folder"
  for python in $(pythons); do
    abi=$(abi_of "$python")
    [[ $abi != *t ]] || ln -s "$python" "$folder/python$abi"
  done
  PATH=$PATH:$folder run launcher list
  echo "$output"
  [ "$status" = 0 ]
  [[ ${lines[0]} =~ ^PYTHON\ +VERSION\ +ITS\ OWN\ LIVE\ MARKERS\ +SHIM$ ]]
  [ "${lines[-1]}" = "all markers of one, and who provides them: stap-python list PYTHON" ]
  for python in $(pythons); do
    live=$(launcher list "$python" | awk '$2 == "live" { sub(/__.*/, "", $1); print $1 }' | uniq | paste -sd, | sed 's/,/, /g')
    echo "$python has ${live:--}"
    abi=$(abi_of "$python")
    grep -xE "($python|$(readlink -f "$python")|$folder/python$abi) +$abi +${live:--} +(preload|enabled)" <<<"$output"
  done
}

@test "list without an argument says what has the shim: enabled, preloaded, or unsupported and why" {
  make_machine
  export STAP_PYTHON_ROOT=$machine
  shim_of() { awk -v python="$machine/usr/bin/$1" '$1 == python { print }' <<<"$output" | sed 's/.* MARKERS//; s/.*  //'; }
  run launcher list
  echo "$output"
  [ "$(shim_of python3.11)" = preload ]
  # an interpreter of musl's, an enabled one, and then none has the shim
  need gcc
  echo 'const char *Py_GetVersion(void) { return "3.12.0"; } int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/python.c"
  gcc -o "$machine/usr/bin/python3.12" "$BATS_TEST_TMPDIR/python.c"
  mkdir -p "$machine/usr/lib/python3.11/dist-packages"
  : >"$machine/usr/lib/python3.11/dist-packages/python_stap.pth"
  ln -s "$machine$shim" "$machine/usr/lib/python3.11/dist-packages/python_stap.so"
  run launcher list
  echo "$output"
  [ "$(shim_of python3.12)" = "unsupported: it does not export CPython's functions" ]
  [ "$(shim_of python3.11)" = enabled ]
  rm "$machine/usr/lib/python3.11/dist-packages/python_stap."* "$machine$shim"
  run launcher list
  [ "$(shim_of python3.11)" = 'not found' ]
}

@test "list says which free-threaded builds the shim supports, by their exact versions" {
  need gcc
  local version supported
  make_machine
  export STAP_PYTHON_ROOT=$machine
  while read -r version supported; do
    free_threaded "$machine/usr/bin/python3.14t" "$version"
    run launcher list
    echo "$version: $output"
    grep -qE "/usr/bin/python3\.14t +3\.1[345]t +- +$supported$" <<<"$output"
    run launcher list "$machine/usr/bin/python3.14t"
    grep -qx "  the shim$([ "$supported" = preload ] || echo ' does not support it'): .*" <<<"$output"
  done <<'VERSIONS'
0x030d0df0 unsupported: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
0x030e00f0 unsupported: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
0x030e03f0 unsupported: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
0x030e04f0 preload
0x030e0ff0 preload
0x030f00a8 unsupported: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
0x030f00b1 preload
0x030f00c1 preload
0x030f00f0 preload
0x030f01a0 preload
VERSIONS
  # without Py_Version the file's name shows only 3.14
  echo 'const char *Py_GetVersion(void) { return "3.14.7 free-threading build (main)"; } int main(void) { return 0; }' |
    gcc -rdynamic -o "$machine/usr/bin/python3.14t" -x c -
  run launcher list "$machine/usr/bin/python3.14t"
  [ "${lines[1]}" = '  the shim does not support it: it is free-threaded, and its version is unknown' ]
}

# Makes a pyenv in $pyenv with these versions; its shim for python3 makes a file if it is run.
# usage: make_pyenv VERSION...
make_pyenv() {
  local version
  pyenv=$BATS_TEST_TMPDIR/pyenv
  unset PYENV_VERSION
  mkdir -p "$pyenv/shims"
  printf '#!/bin/sh\n: >"%s/ran"\n' "$BATS_TEST_TMPDIR" >"$pyenv/shims/python3"
  chmod +x "$pyenv/shims/python3"
  for version; do
    mkdir -p "$pyenv/versions/$version/bin"
    cp /usr/bin/python3 "$pyenv/versions/$version/bin/python3"
  done
}

# Checks that list prints the interpreter $1 for python3, or for $2.
lists() {
  PATH=$pyenv/shims:/usr/bin:/bin run launcher list "${2:-python3}"
  echo "$output"
  [ "$status" = 0 ]
  [ "${lines[0]}" = "$1: CPython $(version_of /usr/bin/python3)" ]
}

@test "list follows a shim of pyenv's to the interpreter that its files choose, and does not run it" {
  local version
  make_pyenv 3.11.2 3.11.10 3.11.20rc1 3.12.1
  mkdir -p "$BATS_TEST_TMPDIR/project/src"
  cd "$BATS_TEST_TMPDIR/project/src"
  # no file: the next in PATH
  lists /usr/bin/python3
  lists /usr/bin/python3 "$pyenv/shims/python3"
  echo 3.12.1 >"$pyenv/version"
  lists "$pyenv/versions/3.12.1/bin/python3"
  # the project's, by a comment, a part of a version and one that is not there
  printf '# ours\r\n\n  3.9 # not here\n3.11\r\n' >../.python-version
  lists "$pyenv/versions/3.11.10/bin/python3"
  echo python-3.11.2 >.python-version
  lists "$pyenv/versions/3.11.2/bin/python3"
  PYENV_VERSION=3.9:3.11.20rc1 lists "$pyenv/versions/3.11.20rc1/bin/python3"
  PYENV_VERSION=3.9:system lists /usr/bin/python3
  printf '\n# none\n' >.python-version
  lists /usr/bin/python3
  # from elsewhere a version can't be a path, nor a pattern
  for version in ../../pyenv/versions/3.12.1 "$pyenv/versions/3.12.1" .. . 3.9 '3.1?' '3.1[12]' '*'; do
    PYENV_VERSION=$version refuses 1 "python3: pyenv's version .* has no python3 .see pyenv versions" list "$pyenv/shims/python3"
  done
  [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "list knows which markers are live, dead or useless by the version, and where the tapset has them from" {
  local tapset
  need gcc
  tapset=$(tapset_with_native_python)
  [ -d "$tapset" ]
  # the fake python3.10 and 3.11 have all eight
  cd "$BATS_TEST_TMPDIR/native/bin"
  run launcher list ./python3.10
  echo "$output"
  [ "$(awk '$2 == "live"' <<<"$output" | wc -l)" = 8 ]
  run launcher list ./python3.11
  echo "$output"
  grep -qE '^ +function__entry +dead ' <<<"$output"
  grep -qE '^ +function__return +unusable ' <<<"$output"
  grep -qE '^ +line +unusable ' <<<"$output"
  [ "${lines[-1]}" = '  unusable: it fires, but misses events or may crash the program, so python.* never uses it' ]
  grep -qE '^ +audit +live ' <<<"$output"
  grep -qE '^ +cfunction__entry +- ' <<<"$output"
  cp python3.10 python3.15
  run launcher list ./python3.15
  grep -qE '^ +function__entry +partly ' <<<"$output"
  [ "${lines[-1]}" = '  partly: it misses events, so python.* never uses it, and it does not silence the shim' ]
  cp python3.10 python3.5
  run launcher list ./python3.5
  grep -qE '^ +function__entry +dead ' <<<"$output"
  # the system's own, where the tapset searches
  run launcher list /usr/bin/python3
  grep -qE '^ +gc__start +live +yes +CPython$' <<<"$output"
  grep -qE '^ +function__entry .* yes +the shim$' <<<"$output"
}

@test "list refuses what is not a CPython, and never waits for it" {
  cd "$BATS_TEST_TMPDIR"
  mkfifo fifo
  : >empty
  refuses 1 'fifo: not a regular file' list ./fifo
  refuses 1 'not a regular file' list /dev/zero
  refuses 1 'not a regular file' list /dev/tty1
  refuses 1 'not a regular file|be opened' list /
  refuses 1 'empty: not an ELF file' list ./empty
  refuses 1 'not an ELF file' list /etc/passwd
  refuses 1 'not a CPython' list /bin/true
}

@test "list opens regular files only: opening a device may do something" {
  local writer
  mkfifo "$BATS_TEST_TMPDIR/fifo"
  # a writer waits until the other end is opened
  (echo >"$BATS_TEST_TMPDIR/fifo" && : >"$BATS_TEST_TMPDIR/opened") 2>/dev/null &
  writer=$!
  programs+=("$writer")
  wait_for grep -q 'State:.S' "/proc/$writer/status"
  refuses 1 'not a regular file' list "$BATS_TEST_TMPDIR/fifo"
  # nor does doctor open it
  make_machine
  rm "$machine/etc/os-release"
  mv "$BATS_TEST_TMPDIR/fifo" "$machine/etc/os-release"
  launcher doctor >/dev/null || true
  sleep 0.2
  kill -0 "$writer"
  [ ! -e "$BATS_TEST_TMPDIR/opened" ]
}

@test "names and texts from others reach no terminal as commands" {
  need gcc
  local name
  # ESC, and CSI in UTF-8 and as a byte; and a letter in UTF-8, which stays
  name=$BATS_TEST_TMPDIR/$'python3\e[31m\302\2331m\2331m \303\244'
  refuses 1 'python3\\x1b\[31m\\xc2\\x9b1m\\x9b1m .*: No such file' list "$name"
  refuses 1 'two\\x0alines: No such file' list ./$'two\nlines'
  echo 'const char *Py_GetVersion(void) { return "3.11.0"; } int sleep(int); int main(void) { return sleep(600); }' >"$BATS_TEST_TMPDIR/python.c"
  gcc -rdynamic -fno-builtin -o "$name" "$BATS_TEST_TMPDIR/python.c"
  "$name" &
  programs+=($!)
  wait_for runs "$!" "$name"
  launcher list "$name" >"$BATS_TEST_TMPDIR/listed"
  launcher list "$!" >>"$BATS_TEST_TMPDIR/listed"
  PATH=$(dirname "$name"):$PATH launcher doctor >>"$BATS_TEST_TMPDIR/listed" || true
  cat -v "$BATS_TEST_TMPDIR/listed"
  [ "$(grep -cF 'python3\x1b[31m\xc2\x9b1m\x9b1m ' "$BATS_TEST_TMPDIR/listed")" = 3 ]
  refute grep -q "[[:cntrl:]]" "$BATS_TEST_TMPDIR/listed"
  [ "$(tr -dc '\233' <"$BATS_TEST_TMPDIR/listed" | wc -c)" = 0 ]
}

# bats test_tags=slow
@test "list survives a file that is cut off, or has any byte of its headers and notes changed" {
  local size at failed=0 status
  need gcc
  [ -e "$(gcc -print-file-name=libasan.so)" ] || skip "needs libasan"
  cd "$BATS_TEST_TMPDIR"
  tapset_with_native_python >/dev/null
  # with ASan, as reading beyond the file's bytes is an error too
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/asan" CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
    "$BATS_TEST_TMPDIR/asan/stap-python"
  launcher=$BATS_TEST_TMPDIR/asan/stap-python
  export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=exitcode=99
  size=$(stat -c %s native/bin/python3.10)
  for ((at = 0; at < size; at += size / 25)); do
    head -c "$at" native/bin/python3.10 >python3.10
    status=0
    timeout -k 1 $((5 * SLOW)) "$launcher" list ./python3.10 >/dev/null 2>&1 || status=$?
    [ "$status" -le 1 ] || { echo "cut at $at: $status" && failed=1; }
  done
  # section headers, at the end; program headers and the ELF header, at the start; the notes
  cat >change.py <<'PY'
import random, struct, subprocess, sys

whole = open("native/bin/python3.10", "rb").read()
rnd = random.Random(7)
notes = whole.index(b"stapsdt\0") - 12
headers = struct.unpack_from("<Q", whole, 40)[0]
# the section header of the notes
header = next(at for at in range(headers, len(whole) - 63, 64) if struct.unpack_from("<Q", whole, at + 24)[0] == notes)


def files():
    # a note that ends with its section, and with each of its parts
    for size in (0, 1, 23, 24, 25, 30, 31, 0xFFFFFFF0, 0xFFFFFFFF):
        data = bytearray(whole)
        struct.pack_into("<I", data, notes + 4, size)
        yield data
        struct.pack_into("<Q", data, header + 32, 20 + size)
        yield data
        struct.pack_into("<I", data, notes, size)
        yield data
    for field in (24, 32, 40, 48, 56):
        for value in (0, 1, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
            data = bytearray(whole)
            struct.pack_into("<Q", data, header + field, value)
            yield data
    # any bytes of the headers and notes
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(rnd.choice((1, 1, 3))):
            start, size = rnd.choice(((0, 64), (64, 56 * 8), (headers, len(whole) - headers), (notes, 600)))
            data[rnd.randrange(start, start + size)] = rnd.choice((0, 0xFF, 0x80, rnd.randrange(256)))
        yield data


for number, data in enumerate(files()):
    open("python3.10", "wb").write(data)
    status = subprocess.call([sys.argv[1], "list", "./python3.10"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=5)
    if status not in (0, 1):
        print("file", number, "status", status)
PY
  run timeout $((60 * SLOW)) /usr/bin/python3 change.py "$launcher"
  echo "$output"
  [ "$status$output" = 0 ]
  [ "$failed" = 0 ]
}

@test "list reads no more of a file than it has, whatever its headers say" {
  cat >"$BATS_TEST_TMPDIR/hostile.py" <<'PY'
import resource, struct, subprocess, sys, time

COUNT = 65000


# Sections of that type, each the whole file, followed by 4 MB of that filling.
def write(kind, link, filling):
    size = 64 + 64 * COUNT + (4 << 20)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, COUNT, 1)
    first = bytes(64)
    section = struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 0, size, link, 0, 4, 24 if kind != 6 else 16)
    with open("python3", "wb") as file:
        file.write(head + first + section * (COUNT - 1) + filling * ((4 << 20) // len(filling)))


# notes, both symbol tables, the dynamic section; with and without NUL at the end of the strings
for kind in 7, 11, 2, 6:
    for filling in b"\1\0\0\0", b"\1", b"\0":
        write(kind, 2, filling)
        start = time.time()
        status = subprocess.call([sys.argv[1], "list", "./python3"], timeout=8)
        print(kind, filling, "status", status, round(time.time() - start, 1), "s")
        assert status == 1
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000


# A file of 600 MB that takes no room on the disk, with these sections and so many segments.
def write_sparse(sections, section_count, segment_count):
    with open("python3", "wb") as file:
        head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 64, 0, 64, 56, segment_count, 64, section_count, 0)
        file.write(b"\x7fELF\2\1\1" + bytes(9) + head)
        file.write(b"".join(struct.pack("<IIQQQQIIQQ", 0, *section, 4, 0) for section in sections))
        file.truncate(600 << 20)


# four million sections, and ten million segments, whose number is in the first section; notes, and strings of a symbol
# table, in half of the file each
first, part = (0, 0, 0, 0, 1 << 22, 0, 10 << 20), 299 << 20
for sparse in (
    ([first], 0, 0),
    ([first], 1, 0xFFFF),
    ([first, (7, 0, 0, 4096, part, 0, 0), (7, 0, 0, part, part, 0, 0)], 3, 0),
    ([first, (11, 0, 0, 4096, 4096, 2, 0), (3, 0, 0, part, part, 0, 0)], 3, 0),
):
    write_sparse(*sparse)
    assert subprocess.call([sys.argv[1], "list", "./python3"]) == 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000, sparse
# a marker whose arguments are a text of 60 MB
with open("python3", "wb") as file:
    text = bytes(24) + b"python\0function__summary\0" + b"x" * (60 << 20) + b"\0"
    note = struct.pack("<III", 8, len(text), 3) + b"stapsdt\0" + text + bytes(-len(text) % 4)
    file.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 2, 0))
    file.write(bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 7, 0, 0, 192, len(note), 0, 0, 4, 0) + note)
assert subprocess.call([sys.argv[1], "list", "./python3"], stdout=subprocess.DEVNULL) == 0
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000
with open("python3", "r+b") as file:
    file.truncate((1 << 30) + 1)
assert b"larger than 1 GB" in subprocess.run([sys.argv[1], "list", "./python3"], timeout=8, stderr=subprocess.PIPE).stderr
PY
  cd "$BATS_TEST_TMPDIR"
  ulimit -v 1000000
  timeout $((90 * SLOW)) /usr/bin/python3 hostile.py "$launcher"
}

# Limits of processor time stand for hours: without the bound on the files, say, 65,530 of them may have 1 GB each.
@test "a program with very many mappings, or files called libpython, doesn't keep list busy" {
  need gcc
  local proc=$BATS_TEST_TMPDIR/root/proc/4711
  mkdir -p "$proc/root/lib"
  echo 'const char *Py_GetVersion(void) { return "3.9.9 (another)"; }' |
    gcc -shared -fPIC -o "$proc/root/lib/libpython3.9.so" -x c -
  ln -s /usr/bin/odd "$proc/exe"
  export STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/root
  "$(system_python)" - "$proc" <<'PY'
import os
import sys

os.chdir(sys.argv[1])
open("stat", "w").write("4711 (odd) S 1" + 40 * " 5" + "\n")
open("status", "w").write("Name:\todd\nUid:\t0\t0\t0\t0\n")
with open("maps", "w") as maps:
    for i in range(100):
        os.link("root/lib/libpython3.9.so", "root/lib/libpython3.9.so.%d" % i)
        maps.write("%x-%x r--p 00000000 00:2a 7 /lib/libpython3.9.so.%d\n" % (i << 12, i + 1 << 12, i))
    for i in range(320000):
        maps.write("%x-%x rw-p 00000000 00:00 0 \n" % (0x7F0000000000 + (i << 13), 0x7F0000001000 + (i << 13)))
PY
  ulimit -t 20
  run timeout $((60 * SLOW)) "$launcher" list 4711
  echo "$output" | head -n 5
  grep -x "  one of 32 CPythons in it: which one runs can't be told" <<<"$output"
}

# As above: in the square of its length it would take minutes.
@test "a program whose command line is a million slashes doesn't keep attach --name busy" {
  local proc=$BATS_TEST_TMPDIR/root/proc/4711
  mkdir -p "$proc"
  ln -s "$(readlink -f /usr/bin/python3)" "$proc/exe"
  ln -s / "$proc/root"
  echo "4711 (odd) S 1$(printf ' 5%.0s' {1..40})" >"$proc/stat"
  printf 'Name:\todd\nUid:\t0\t0\t0\t0\n' >"$proc/status"
  echo "400000-401000 r-xp 00000000 00:2a 7 $(readlink -f /usr/bin/python3)" >"$proc/maps"
  head -c 1000000 /dev/zero | tr '\0' / >"$proc/cmdline"
  export STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/root
  launcher ps | grep -q '^4711 .*////'
  ulimit -t 20
  refuses 1 'no such Python runs' attach --name '*shop*'
}

@test "list shows whether a process has the shim" {
  local pid
  LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(600)' &
  programs+=($!)
  /usr/bin/python3 -c 'import time; time.sleep(600)' &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  pid=${programs[0]}
  run launcher list "$pid"
  echo "$output"
  [ "${lines[0]}" = "$pid: $(readlink -f /usr/bin/python3), CPython $(version_of /usr/bin/python3)" ]
  grep -qx "  the shim: active, $shim" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = "$(markers | wc -l)" ]
  run launcher list "${programs[1]}"
  echo "$output"
  grep -qx "  the shim: not loaded; load it with stap-python attach ${programs[1]}" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = 0 ]
  refuses 1 'it does not run CPython' list "$$"
}

@test "list and attach tell a shim that is loaded from one that is active" {
  need gcc
  local pid
  PYTHON_STAP=off LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(600)' &
  programs+=($!)
  wait_for runs "$!" /usr/bin/python3
  pid=$!
  run launcher list "$pid"
  echo "$output"
  [ "$status" = 1 ]
  grep -qxF "  the shim: silent, $shim" <<<"$output"
  grep -qxF "    it was started with PYTHON_STAP=off: restart it without" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = 0 ]
  refuses 1 'PYTHON_STAP' attach "$pid"
  # while no Python code runs, and then
  /usr/bin/python3 -c 'import time
time.sleep(4)
while True: time.sleep(0.1)' &
  programs+=($!)
  pid=$!
  # before that, Python code may run while attach checks
  wait_for grep -q nanosleep "/proc/$pid/wchan"
  run launcher attach "$pid"
  echo "$output"
  [ "$status $output" = "0 $pid: loaded: $shim; it becomes active when Python code next runs there" ]
  wait_for thread_has "$pid" comm python-stap
  launcher list "$pid" | grep -qx "  the shim: active, $shim"
  run launcher attach "$pid"
  [ "$status $output" = "0 $pid: already active: $shim" ]
}

# stap-python: every subcommand, without a stap that runs.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031,SC2317

load helper

setup() {
  launcher=$top/build/stap-python
  unset STAP STAP_PYTHON_ROOT SYSTEMTAP_TAPSET SYSTEMTAP_RUNTIME XDG_DATA_DIRS LD_PRELOAD
  programs=()
}

teardown() {
  local pid
  for pid in "${programs[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

launcher() {
  timeout -k 5 60 "$launcher" "$@"
}

# It ends with that status, and prints nothing but one line on stderr, which matches the pattern.
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

# Waits until the command succeeds, for 20 seconds at most.
soon() {
  for _ in {1..400}; do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}

# A process that runs this program, and is past its dynamic linker.
runs() {
  [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$2")" ] && grep -q '/libc\.' "/proc/$1/maps"
}

# ---------------------------------------------------------------- the command line

@test "each command has a help, and --version says which it is" {
  local command
  run launcher --version
  [ "$status $output" = "0 stap-python $(cat "$top/VERSION")" ]
  for command in '' run doctor list attach enable disable; do
    # shellcheck disable=SC2086
    run launcher $command --help
    [ "$status" = 0 ]
    [[ $output == "usage: stap-python "*$command* ]]
  done
}

@test "what nobody can understand is one line and status 2" {
  refuses 2 'which command'
  refuses 2 "'nonsense' is neither a command nor a script" nonsense
  refuses 2 "'--nonsense' is neither" --nonsense
  refuses 2 "'../scripts/pyflow' is neither" ../scripts/pyflow
  refuses 2 'which command' run
  refuses 2 'which command' run --
  refuses 2 "unknown option '-x'" run -x true
  refuses 2 "unexpected argument 'x'" doctor x
  refuses 2 'one interpreter, PID or file' list a b
  refuses 2 'one interpreter, PID or file' list --all
  refuses 2 'one PID' attach
  refuses 2 'one PID' attach python
  refuses 2 'one PID' attach 0
  refuses 2 'one PID' attach 1 2
  refuses 2 'one PID' attach -1
  refuses 2 'one PID' attach 99999999999999999999
  refuses 2 'one interpreter' enable a b
  refuses 2 'one interpreter' disable -x
}

@test "what can't be printed is one line and status 1" {
  local words
  for words in --version --help 'list --help' --list-scripts list 'list /usr/bin/python3' doctor; do
    # shellcheck disable=SC2086
    run timeout 60 sh -c '"$0" "$@" >/dev/full' "$launcher" $words
    echo "$words: $status $output"
    [ "$status $output" = "1 stap-python: stdout: No space left on device" ]
  done
  run timeout 60 sh -c '"$0" --version >&-' "$launcher"
  [ "$status $output" = "1 stap-python: stdout: Bad file descriptor" ]
}

@test "what is not there is one line and status 1" {
  refuses 1 '/nonexistent/python: No such file' list /nonexistent/python
  refuses 1 'no-such-python: no such file, and none of this name in PATH' list no-such-python
  refuses 1 '4194305: there is no such process' list 4194305
  refuses 1 '4194305: there is no such process' attach 4194305
  refuses 1 'no such program' enable /nonexistent/python
  refuses 1 'not a Python' enable /bin/true
  refuses 1 'not a Python' disable /bin/cat
}

# ---------------------------------------------------------------- run

@test "run starts a command with the shim, and ends with its status" {
  run launcher run /usr/bin/python3 -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0]); raise SystemExit(7)'
  [ "$status $output" = "7 2" ]
  run launcher run -- sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim" ]
  run env LD_PRELOAD=libdl.so.2 timeout 20 "$launcher" run sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim:libdl.so.2" ]
  run launcher run "$launcher" run sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim" ]
}

@test "run says why a command can't be started, with the status of env" {
  refuses 127 'no-such-command: No such file' run no-such-command
  refuses 126 '/etc/passwd: Permission denied' run /etc/passwd
  run launcher run sh -c 'kill -9 $$'
  [ "$status" = 137 ]
}

# As it is in packages: another prefix, and ld.so's $LIB in the path of the shim.
@test "installed, it takes the shim and the scripts that make was told of" {
  local prefix=$BATS_TEST_TMPDIR/installed lib
  lib=$(LD_DEBUG=libs /bin/true 2>&1 | sed -n 's|.*file=/\(.*\)/libc.so.6.*|\1|p' | head -n 1)
  lib=${lib:-$(gcc -print-multiarch | sed 's|.|lib/&|')}
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/build" prefix="$prefix" shim_preload="$prefix/\$\$LIB/libpython-stap.so.0" \
    "$BATS_TEST_TMPDIR/build/stap-python"
  mkdir -p "$prefix/bin" "$prefix/$lib" "$prefix/share/systemtap/examples/cpython"
  cp "$BATS_TEST_TMPDIR/build/stap-python" "$prefix/bin"
  launcher=$prefix/bin/stap-python
  refuses 1 "the shim is not there: $prefix/lib.*/libpython-stap.so.0: install systemtap-cpython anew" run true
  refuses 1 "there are no scripts in $prefix/share/systemtap/examples/cpython" --list-scripts
  run launcher doctor
  grep -A 1 '^wrong shim' <<<"$output" | grep -qE 'mend: .*install.* systemtap-cpython systemtap-cpython-tapset'
  cp "$shim" "$prefix/$lib"
  cp "$top"/scripts/pygc.* "$prefix/share/systemtap/examples/cpython"
  run launcher run sh -c 'echo "$LD_PRELOAD"; exec /usr/bin/python3 -c "print([line.split()[-1] for line in open(\"/proc/self/maps\") if \"stap\" in line][0])"'
  echo "$output"
  [ "$output" = "$prefix/\$LIB/libpython-stap.so.0"$'\n'"$prefix/$lib/libpython-stap.so.0" ]
  run launcher --list-scripts
  [[ $output == "pygc "*"Garbage Collections of Python" ]]
  printf '#!/bin/sh\necho "$SYSTEMTAP_TAPSET|$*"\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  run env STAP="$BATS_TEST_TMPDIR/stap" timeout 20 "$launcher" pygc -c true
  [ "$output" = "|$prefix/share/systemtap/examples/cpython/pygc.stp -c env 'LD_PRELOAD=$prefix/\$LIB/libpython-stap.so.0' true" ]
}

@test "the folder of libraries is what the compiler says, else lib64, or lib for 32 bits" {
  local cc=$BATS_TEST_TMPDIR/cc folder
  need gcc
  # gcc of other distributions, or of another machine
  printf '#!/bin/sh\ncase $* in -print-multiarch) echo $MULTIARCH ;; *-dM*) echo "#define ${WIDE:-__ILP32__} 1" ;; esac\n' >"$cc"
  chmod +x "$cc"
  folder_of() {
    env "$@" make -s -C "$top" CC="$cc" BUILD="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/probes/installed.h"
    sed -n 's/^#define MULTIARCH //p' "$BATS_TEST_TMPDIR/probes/installed.h"
  }
  [ "$(folder_of MULTIARCH=lib-x WIDE=__LP64__)" = '"lib/lib-x"' ]
  [ "$(folder_of WIDE=__LP64__)" = '"lib64"' ]
  [ "$(folder_of WIDE=__ILP32__)" = '"lib"' ]
}

# ---------------------------------------------------------------- scripts

# A stap that prints its arguments, a line each, and its tapset.
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

@test "a script's name runs stap on it, with the tapset and the arguments, and ends with its status" {
  fake_stap
  run launcher pycalls -v cfunctions 3
  [ "$status" = 5 ]
  [ "$output" = "tapset $top/build/tapset"$'\n'"<$top/scripts/pycalls.stp>"$'\n<-v>\n<cfunctions>\n<3>' ]
  run launcher pycalls.stp
  [ "$output" = "tapset $top/build/tapset"$'\n'"<$top/scripts/pycalls.stp>" ]
  run env SYSTEMTAP_TAPSET=/mine timeout 20 "$launcher" pygc
  [ "${lines[0]}" = "tapset /mine" ]
  STAP=$BATS_TEST_TMPDIR/none refuses 127 'none is not there: see stap-python doctor' pygc
}

@test "what -c of a script starts has the shim, however it is written" {
  local line given got with="env 'LD_PRELOAD=$shim'"
  fake_stap
  # each line: the arguments, and what stap gets
  while read -r line; do
    given=${line%% => *} got=${line#* => }
    eval "run launcher pygc $given"
    echo "$given: ${lines[*]:2}"
    [ "${lines[*]:2}" = "$got" ]
  done <<LINES
-c 'python3 x.py' => <-c> <$with python3 x.py>
-c'python3 x.py' => <-c$with python3 x.py>
-vc 'A=1 python3 x.py' => <-vc> <$with A=1 python3 x.py>
-c 'a; b' => <-c> <$with sh -c 'a; b'>
-c "a 'b c' | d" => <-c> <$with sh -c 'a '\\''b c'\\'' | d'>
-G top=3 -c 'x' y => <-G> <top=3> <-c> <$with x> <y>
-o -c x => <-o> <-c> <x>
-e -c -c x => <-e> <-c> <-c> <$with x>
-- -c x => <--> <-c> <x>
--compatible -c x => <--compatible> <-c> <$with x>
-c => <-c>
LINES
}

@test "--list-scripts has each script and its title" {
  local script
  run launcher --list-scripts
  [ "$status" = 0 ]
  [ "${#lines[@]}" = "$(find "$top/scripts" -maxdepth 1 -name '*.stp' | wc -l)" ]
  for script in "$top"/scripts/*.stp; do
    script=${script##*/}
    grep -qE "^${script%.stp} +$(sed -n 's/^title: //p' "$top/scripts/${script%.stp}.meta")$" <<<"$output"
  done
}

# ---------------------------------------------------------------- list

@test "list tells of each Python which of its own markers fire, as readelf and native.list do" {
  local python minor
  need readelf
  for python in $(pythons); do
    run launcher list "$python"
    echo "$output"
    [ "$status" = 0 ]
    minor=$(version_of "$python")
    [[ ${lines[0]} == "$python: CPython $minor" ]]
    diff <(own_markers "$python" "$(own_file "$python")" | sort) \
      <(awk '$2 ~ /^(live|partly|fires)$/ { print $1 }' <<<"$output" | sort)
    diff <(markers | sort) <(awk '$3 == "yes" { print $1 }' <<<"$output" | sort)
  done
}

@test "list without an argument has every Python that is found" {
  local python
  run launcher list
  [ "$status" = 0 ]
  for python in $(pythons); do
    grep -qE "^($python|$(readlink -f "$python")): CPython $(version_of "$python")$" <<<"$output"
  done
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
  grep -qE '^ +function__return +fires ' <<<"$output"
  grep -qE '^ +line +fires ' <<<"$output"
  grep -qE '^ +audit +live ' <<<"$output"
  grep -qE '^ +cfunction__entry +- ' <<<"$output"
  cp python3.10 python3.15
  run launcher list ./python3.15
  grep -qE '^ +function__entry +partly ' <<<"$output"
  cp python3.10 python3.5
  run launcher list ./python3.5
  grep -qE '^ +function__entry +dead ' <<<"$output"
  # the system's own, in the place where the tapset looks
  run launcher list /usr/bin/python3
  grep -qE '^ +gc__start +live +yes +CPython$' <<<"$output"
  grep -qE '^ +function__entry .* yes +the shim$' <<<"$output"
}

@test "list refuses what is no CPython, and never waits for it" {
  cd "$BATS_TEST_TMPDIR"
  mkfifo fifo
  : >empty
  refuses 1 'fifo: not a regular file' list ./fifo
  refuses 1 'not a regular file' list /dev/zero
  refuses 1 'not a regular file' list /dev/tty1
  refuses 1 'not a regular file|be opened' list /
  refuses 1 'empty: not an ELF file' list ./empty
  refuses 1 'not an ELF file' list /etc/passwd
  refuses 1 'no CPython' list /bin/true
}

@test "list opens nothing but regular files: of a device that alone may do something" {
  local writer
  mkfifo "$BATS_TEST_TMPDIR/fifo"
  # a writer waits until somebody opens the other end
  (echo >"$BATS_TEST_TMPDIR/fifo" && : >"$BATS_TEST_TMPDIR/opened") 2>/dev/null &
  writer=$!
  programs+=("$writer")
  soon grep -q 'State:.S' "/proc/$writer/status"
  refuses 1 'not a regular file' list "$BATS_TEST_TMPDIR/fifo"
  # in a file that doctor reads, too
  make_machine
  rm "$machine/etc/os-release"
  mv "$BATS_TEST_TMPDIR/fifo" "$machine/etc/os-release"
  launcher doctor >/dev/null || true
  sleep 0.2
  kill -0 "$writer"
  [ ! -e "$BATS_TEST_TMPDIR/opened" ]
}

@test "what others have named or written reaches no terminal as a command" {
  need gcc
  local name
  # ESC, CSI in UTF-8 and alone; and what is none
  name=$BATS_TEST_TMPDIR/$'python3\e[31m\302\2331m\2331m \303\244'
  refuses 1 'python3\\x1b\[31m\\xc2\\x9b1m\\x9b1m .*: No such file' list "$name"
  refuses 1 'two\\x0alines: No such file' list ./$'two\nlines'
  echo 'const char *Py_GetVersion(void) { return "3.11.0"; } int sleep(int); int main(void) { return sleep(60); }' >"$BATS_TEST_TMPDIR/python.c"
  gcc -rdynamic -fno-builtin -o "$name" "$BATS_TEST_TMPDIR/python.c"
  "$name" &
  programs+=($!)
  soon runs "$!" "$name"
  launcher list "$name" >"$BATS_TEST_TMPDIR/listed"
  launcher list "$!" >>"$BATS_TEST_TMPDIR/listed"
  PATH=$(dirname "$name"):$PATH launcher doctor >>"$BATS_TEST_TMPDIR/listed" || true
  cat -v "$BATS_TEST_TMPDIR/listed"
  [ "$(grep -cF 'python3\x1b[31m\xc2\x9b1m\x9b1m ' "$BATS_TEST_TMPDIR/listed")" = 3 ]
  refute grep -q "[[:cntrl:]]" "$BATS_TEST_TMPDIR/listed"
  [ "$(tr -dc '\233' <"$BATS_TEST_TMPDIR/listed" | wc -c)" = 0 ]
}

@test "list survives a file that is cut off, or has any byte of its headers and notes changed" {
  local size at failed=0 status
  need gcc
  [ -e "$(gcc -print-file-name=libasan.so)" ] || skip "needs libasan"
  cd "$BATS_TEST_TMPDIR"
  tapset_with_native_python >/dev/null
  # what is read beyond the file's bytes is an error, too
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/asan" CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
    "$BATS_TEST_TMPDIR/asan/stap-python"
  launcher=$BATS_TEST_TMPDIR/asan/stap-python
  export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=exitcode=99
  size=$(stat -c %s native/bin/python3.10)
  for ((at = 0; at < size; at += size / 25)); do
    head -c "$at" native/bin/python3.10 >python3.10
    status=0
    timeout -k 1 5 "$launcher" list ./python3.10 >/dev/null 2>&1 || status=$?
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
  run timeout 60 /usr/bin/python3 change.py "$launcher"
  echo "$output"
  [ "$status$output" = 0 ]
  [ "$failed" = 0 ]
}

@test "list reads no more of a file than it has, whatever its headers say" {
  cat >"$BATS_TEST_TMPDIR/hostile.py" <<'PY'
import resource, struct, subprocess, sys, time

COUNT = 100000


# Sections of that type, each the whole file, and behind them 4 MB of any words.
def write(kind, link, filling):
    size = 64 + 64 * COUNT + (4 << 20)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 0, 1)
    first = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, COUNT, 0, 0, 0, 0)
    section = struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 0, size, link, 0, 4, 24 if kind != 6 else 16)
    with open("python3", "wb") as file:
        file.write(head + first + section * (COUNT - 1) + filling * ((4 << 20) // len(filling)))


# notes, both symbol tables, what is linked; the last strings end or do not
for kind in 7, 11, 2, 6:
    for filling in b"\1\0\0\0", b"\1", b"\0":
        write(kind, 2, filling)
        start = time.time()
        status = subprocess.call([sys.argv[1], "list", "./python3"], timeout=8)
        print(kind, filling, "status", status, round(time.time() - start, 1), "s")
        assert status == 1
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000
with open("python3", "r+b") as file:
    file.truncate((1 << 30) + 1)
assert b"bigger than 1 GB" in subprocess.run([sys.argv[1], "list", "./python3"], timeout=8, stderr=subprocess.PIPE).stderr
PY
  cd "$BATS_TEST_TMPDIR"
  ulimit -v 1000000
  timeout 90 /usr/bin/python3 hostile.py "$launcher"
}

@test "list tells of a process whether it has the shim" {
  local pid
  LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(60)' &
  programs+=($!)
  /usr/bin/python3 -c 'import time; time.sleep(60)' &
  programs+=($!)
  soon runs "$!" /usr/bin/python3
  pid=${programs[0]}
  run launcher list "$pid"
  echo "$output"
  [ "${lines[0]}" = "$pid: $(readlink -f /usr/bin/python3), CPython $(version_of /usr/bin/python3)" ]
  grep -qx "  the shim: active, $shim" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = "$(markers | wc -l)" ]
  run launcher list "${programs[1]}"
  grep -qx "  the shim: not loaded; stap-python attach ${programs[1]} loads it" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = 0 ]
  refuses 1 'no CPython runs in it' list "$$"
}

@test "list and attach tell a shim that is loaded from one that is active" {
  need gcc
  local pid
  PYTHON_STAP=off LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(60)' &
  programs+=($!)
  soon runs "$!" /usr/bin/python3
  pid=$!
  run launcher list "$pid"
  echo "$output"
  grep -qxF "  the shim: loaded and not active: no Python code has run since, or PYTHON_STAP is off: $shim" <<<"$output"
  [ "$(awk '$3 == "yes"' <<<"$output" | wc -l)" = 0 ]
  refuses 1 'PYTHON_STAP' attach "$pid"
  # while nothing of Python runs, and then
  /usr/bin/python3 -c 'import time
time.sleep(4)
while True: time.sleep(0.1)' &
  programs+=($!)
  pid=$!
  soon runs "$pid" /usr/bin/python3
  run launcher attach "$pid"
  [ "$status $output" = "0 $pid: loaded: $shim; it becomes active when Python code next runs there" ]
  soon grep -qx python-stap /proc/"$pid"/task/*/comm
  launcher list "$pid" | grep -qx "  the shim: active, $shim"
  run launcher attach "$pid"
  [ "$status $output" = "0 $pid: already active: $shim" ]
}

# ---------------------------------------------------------------- doctor

# Another machine, $machine: Debian, with all that a probe needs.  Its stap is in $machine/bin.
make_machine() {
  local release=6.1.0-7-amd64
  machine=$BATS_TEST_TMPDIR/machine
  mkdir -p "$machine"/{bin,boot,usr/bin,etc,home,"proc/sys/kernel",proc/self,"sys/kernel/security","usr/share/systemtap/runtime/transport"}
  mkdir -p "$machine/usr/share/systemtap/tapset" "$machine/lib/modules/$release/build/include/linux" "$machine$top/build"
  printf 'NAME="Debian GNU/Linux"\nID=debian\n' >"$machine/etc/os-release"
  printf 'root:x:0:\nstapusr:x:106:\nstapdev:x:105:\n' >"$machine/etc/group"
  echo "$release" >"$machine/proc/sys/kernel/osrelease"
  echo 0 >"$machine/proc/sys/kernel/modules_disabled"
  : >"$machine/proc/modules"
  printf 'CapBnd:\t000001ffffffffff\n' >"$machine/proc/self/status"
  echo '[none] integrity confidentiality' >"$machine/sys/kernel/security/lockdown"
  printf 'CONFIG_MODULES=y\nCONFIG_UPROBES=y\n' >"$machine/boot/config-$release"
  : >"$machine/lib/modules/$release/build/Makefile"
  cp "$top"/tapset/*.stp* "$machine/usr/share/systemtap/tapset"
  awk -v shim="$shim" -f "$top/tapset/paths.awk" "$top/probes/native.list" >"$machine/usr/share/systemtap/tapset/python_paths.stpm"
  cp "$shim" "$machine$top/build"
  cp /usr/bin/python3 "$machine/usr/bin/python3.11"
  printf '#!/bin/sh\necho "Systemtap translator/driver (version 5.6/0.190, Debian version 5.6-1)"\n' >"$machine/bin/stap"
  chmod +x "$machine/bin/stap"
  # stock, without its faults
  echo 'typedef typeof(&task_work_cancel_func) f;' >"$machine/usr/share/systemtap/runtime/stp_task_work.c"
  echo 'int fine;' >"$machine/usr/share/systemtap/runtime/transport/relay_v2.c"
}

doctor() {
  env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 60 "$launcher" doctor
}

# One thing is wrong, and only this: the topic, the text and the mending command match.
# usage: finds TOPIC TEXT COMMAND
finds() {
  run doctor
  echo "$output"
  [ "$status" = 1 ]
  [ "$(grep -c ^wrong <<<"$output")" = 1 ]
  grep -A 1 "^wrong $1 " <<<"$output" >"$BATS_TEST_TMPDIR/found"
  grep -qE "$2" <(head -n 1 "$BATS_TEST_TMPDIR/found")
  grep -qE "^ +mend: .*$3" <(tail -n 1 "$BATS_TEST_TMPDIR/found")
}

@test "doctor finds nothing wrong on a machine that has all, and says what it saw" {
  make_machine
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  refute grep -E '^(wrong|note)|mend:' <<<"$output"
  diff <(printf '%s\n' stap headers modules uprobes runtime rights python shim tapset) <(awk '$1 == "ok" { print $2 }' <<<"$output")
  grep -q 'SystemTap 5.6' <<<"$output"
  grep -q "/usr/bin/python3.11, 3.11: its own live markers: gc__start, .*, audit; dead: function__entry$" <<<"$output"
}

@test "doctor: no stap, one that is too old, or one that doesn't say what it is" {
  make_machine
  sed -i s/5.6/4.7/ "$machine/bin/stap"
  finds stap 'is SystemTap 4.7: 4.8 is needed' 'apt-get install systemtap$'
  echo '#!/bin/sh' >"$machine/bin/stap"
  finds stap 'does not say which it is' 'apt-get install systemtap'
  rm "$machine/bin/stap"
  mkdir "$machine/tools"
  run timeout -k 5 60 env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/tools" "$launcher" doctor
  echo "$output"
  [ "$status" = 1 ]
  grep -A 1 '^wrong stap .*no stap in PATH' <<<"$output" | grep -q 'mend: apt-get install systemtap$'
  run env STAP=/nonexistent/stap STAP_PYTHON_ROOT="$machine" timeout -k 5 60 "$launcher" doctor
  grep -q '^wrong stap .*no /nonexistent/stap in PATH' <<<"$output"
}

@test "doctor: no headers of the running kernel, by the distribution's command" {
  make_machine
  rm -r "$machine"/lib/modules/*/build
  finds headers 'none for the running kernel, 6.1.0-7-amd64$' 'apt-get install linux-headers-6.1.0-7-amd64$'
  printf 'ID=fedora\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'dnf install kernel-devel-6.1.0-7-amd64$'
  printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'dnf install kernel-devel-6.1.0-7-amd64$'
  printf 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'zypper install kernel-default-devel=6.1.0-7$'
  rm "$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 "install kernel-devel-6.1.0-7-amd64 with this system's package manager"
  rm -r "${machine:?}/lib"
  finds headers "none of this system's packages" test/vm/stap
}

@test "doctor: a kernel that loads no modules, now or at all, or only signed ones, or in a container" {
  make_machine
  echo 1 >"$machine/proc/sys/kernel/modules_disabled"
  finds modules 'switched off until the next boot' reboot
  echo 0 >"$machine/proc/sys/kernel/modules_disabled"
  echo 'none [integrity] confidentiality' >"$machine/sys/kernel/security/lockdown"
  finds modules 'signed ones only \(lockdown\)' mokutil
  mkdir -p "$machine/sys/firmware/efi/efivars"
  printf '\6\0\0\0\1' >"$machine/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
  finds modules 'signed ones only \(Secure Boot\)' mokutil
  rm -r "$machine/sys/kernel"
  printf 'CapBnd:\t00000000a80425fb\n' >"$machine/proc/self/status"
  finds modules 'container without CAP_SYS_MODULE' 'on the host'
  rm "$machine/proc/modules"
  finds modules CONFIG_MODULES test/vm/stap
  : >"$machine/proc/modules"
  sed -i 's/CONFIG_MODULES=y/# CONFIG_MODULES is not set/' "$machine"/boot/config-*
  finds modules CONFIG_MODULES test/vm/stap
}

@test "doctor: a kernel without uprobes, by each file that may tell" {
  local config
  make_machine
  config=$(echo "$machine"/boot/config-*)
  sed -i 's/CONFIG_UPROBES=y/# CONFIG_UPROBES is not set/' "$config"
  finds uprobes CONFIG_UPROBES test/vm/stap
  gzip -c "$config" >"$machine/proc/config.gz"
  rm "$config"
  finds uprobes CONFIG_UPROBES test/vm/stap
  rm "$machine/proc/config.gz"
  run doctor
  [ "$status" = 0 ]
  grep -q "^note  uprobes .*can't be told" <<<"$output"
  mkdir -p "$machine/sys/bus/event_source/devices/uprobe"
  run doctor
  grep -q '^ok    uprobes' <<<"$output"
}

@test "doctor knows the faults of SystemTap's runtime, and the commands that it gives mend them" {
  local runtime
  make_machine
  runtime=$machine/usr/share/systemtap/runtime
  # Debian's build tree includes a common one
  mkdir -p "$machine/usr/src/common/include/linux"
  echo 'include /usr/src/common/Makefile' >"$machine/lib/modules/6.1.0-7-amd64/build/Makefile"
  echo 'struct callback_head *task_work_cancel_func(struct task_struct *);' >"$machine/usr/src/common/include/linux/task_work.h"
  cat >"$runtime/stp_task_work.c" <<'C'
typedef typeof(&task_work_cancel) task_work_cancel_fn;
    kallsyms_task_work_cancel = (void*) kallsyms_lookup_name("task_work_cancel");
C
  finds runtime 'has renamed task_work_cancel' 'sed'
  mends() {
    sed -n 's/^ *mend: //p' <<<"$output" | sed -e "s,/usr/share/systemtap,$machine&," -e 's/ && rm -rf .*//' >"$BATS_TEST_TMPDIR/mend"
    cat "$BATS_TEST_TMPDIR/mend"
    sh "$BATS_TEST_TMPDIR/mend"
    run doctor
    [ "$status" = 0 ]
    refute grep -E '^(wrong|note)' <<<"$output"
  }
  mends
  [ "$(grep -c 'task_work_cancel_func' "$runtime/stp_task_work.c")" = 2 ]
  echo '        if (buf->offset >= buf->chan->subbuf_size) {' >"$runtime/transport/relay_v2.c"
  run doctor
  [ "$status" = 0 ]
  grep -q '^note  runtime .*loses output' <<<"$output"
  mends
  grep -q 'buf->offset + sizeof(struct _stp_trace) >= ' "$runtime/transport/relay_v2.c"
  # the copy that SYSTEMTAP_RUNTIME names
  cp -r "$runtime" "$machine/corrected"
  echo '        if (buf->offset >= buf->chan->subbuf_size) {' >"$runtime/transport/relay_v2.c"
  SYSTEMTAP_RUNTIME=/corrected run doctor
  refute grep '^note' <<<"$output"
}

@test "doctor: neither root nor in the groups" {
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  need setpriv
  make_machine
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  doctor() {
    env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 60 setpriv --reuid=65534 --regid=65534 "$@" "$launcher" doctor
  }
  finds_as() {
    run doctor "$1"
    echo "$output"
    grep -q "$2" <<<"$output"
  }
  finds_as --clear-groups '^wrong rights .*nobody is neither root nor in the groups'
  grep -A 1 '^wrong rights' <<<"$output" | grep -q 'mend: sudo usermod -aG stapusr,stapdev nobody'
  [ "$status" = 1 ]
  finds_as --groups=106 '^wrong rights'
  finds_as --groups=106,105 '^ok    rights .*nobody is in the groups'
  [ "$status" = 0 ]
  printf 'stapusr:x:106:nobody\nstapdev:x:105:x,nobody\n' >"$machine/etc/group"
  finds_as --clear-groups '^wrong rights .*but this session began before'
}

@test "doctor: no Python, none for the shim, a free-threaded one" {
  need gcc
  make_machine
  rm "$machine/usr/bin/python3.11"
  finds python 'no CPython 3.6 or later is found' 'apt-get install python3$'
  cat >"$BATS_TEST_TMPDIR/python.c" <<'C'
const char *Py_GetVersion(void) { return "3.13.0 experimental free-threading build (main)"; }
int main(void) { return 0; }
C
  gcc -rdynamic -o "$machine/usr/bin/python3.13t" "$BATS_TEST_TMPDIR/python.c"
  finds python 'none of them has markers, or takes the shim' 'apt-get install python3$'
  grep -q '^note  python .*/usr/bin/python3.13t, 3.13: .*the shim does nothing in it: it is free-threaded' <<<"$output"
  cp /usr/bin/python3 "$machine/usr/bin/python3.11"
  run doctor
  [ "$status" = 0 ]
}

# A shim that needs what nobody has, as that file.
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

@test "doctor: no shim, what is none, and one that can't be loaded" {
  need gcc
  make_machine
  cp /bin/true "$machine$shim"
  finds shim 'is not the shim: it has no markers' "make -C $top"
  echo >"$machine$shim"
  finds shim 'is not the shim: not an ELF file' make
  make_broken_shim "$machine$shim"
  finds shim "can't be loaded: .*undefined symbol: nowhere" make
  rm "$machine$shim"
  run doctor
  echo "$output"
  [ "$status" = 1 ]
  grep -A 1 "^wrong shim .*$shim is not there" <<<"$output" | grep -q "mend: make -C $top"
  # the tapset finds none either
  grep -q "^wrong tapset .*names a shim that is not there: $shim" <<<"$output"
}

@test "doctor: SystemTap's own python.stp in force, with the rest of ours and without" {
  local folder
  make_machine
  folder=$machine/usr/share/systemtap/tapset
  mkdir -p "$machine/data/systemtap"
  cp -r "$folder" "$machine/data/systemtap"
  echo 'probe python.function.entry = process("/usr/lib*/libpython*.so*").mark("function__entry") {}' >"$folder/python.stp"
  finds tapset 'is SystemTap.s own: it knows only /usr/lib\*/libpython' "export SYSTEMTAP_TAPSET=$top/build/tapset"
  mkdir -p "$machine/usr/lib"
  ln "$machine$shim" "$machine/usr/lib/libpython-stap.so.0"
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -q '^note  tapset .*works, in the shim alone' <<<"$output"
  rm "$folder"/python_*
  finds tapset 'neither the shim nor python.line' SYSTEMTAP_TAPSET
  rm "$folder/python.stp"
  finds tapset 'there is no python.stp' SYSTEMTAP_TAPSET
  # ours, by each of the two variables
  SYSTEMTAP_TAPSET=/data/systemtap/tapset run doctor
  [ "$status" = 0 ]
  XDG_DATA_DIRS=/none:/data run doctor
  [ "$status" = 0 ]
  # of two files of one name stap takes the one of its own folder
  echo 'probe python.function.entry = process("/usr/lib*/libpython*.so*").mark("function__entry") {}' >"$folder/python.stp"
  XDG_DATA_DIRS=/none:/data run doctor
  grep -q '^note  tapset .*own' <<<"$output"
  cp "$top/tapset/python.stp" "$folder"
  finds tapset 'is ours, but python_shim.stp is missing beside it' SYSTEMTAP_TAPSET
}

@test "doctor: somebody else's file with python.function.*, as Fedora's python2 brings" {
  local file
  make_machine
  file=/usr/share/systemtap/tapset/libpython2.7-64.stp
  printf '/* Systemtap tapset */\n\nprobe python.function.entry = process("python").library("/usr/lib64/libpython2.7.so.1.0").mark("function__entry")\n{\n}\n' >"$machine$file"
  doctor() {
    "$(type -P env)" STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin" "$(type -P timeout)" -k 5 60 "$launcher" doctor
  }
  finds tapset "$file has python.function.* of its own" "mv $file $file.off$"
  cp /bin/true "$machine/bin/python"
  run doctor
  [ "$status" = 0 ]
  grep -q "^note  tapset .*$file has" <<<"$output"
  rm "$machine/bin/python"
  mkdir "$machine/usr/share/systemtap/tapset/x86_64"
  mv "$machine$file" "$machine/usr/share/systemtap/tapset/x86_64"
  finds tapset tapset/x86_64/libpython2.7-64.stp mv
}

@test "doctor tells of this machine what is so" {
  local line
  run launcher doctor
  echo "$output"
  if type -P stap >/dev/null; then line='ok    stap '; else line='wrong stap '; fi
  grep -q "^$line" <<<"$output"
  if [ -e /proc/modules ]; then line='(ok|wrong) +modules '; else line='wrong modules .*CONFIG_MODULES'; fi
  grep -qE "^$line" <<<"$output"
  if [ -e "/lib/modules/$(uname -r)/build" ]; then line='ok    headers '; else line='wrong headers '; fi
  grep -q "^$line" <<<"$output"
  grep -q "^ok    shim .*$shim$" <<<"$output"
  grep -qE "^ok    python +/usr/bin/python3\.[0-9]+, $(version_of /usr/bin/python3): " <<<"$output"
  [ "$status" = "$(grep -qc '^wrong' <<<"$output" && echo 1 || echo 0)" ]
  # SystemTap's python.stp and ours, where there is a stap
  [ ! -e /usr/share/systemtap/tapset/python.stp ] || grep -q '^wrong tapset .*/usr/share/systemtap/tapset/python.stp is SystemTap' <<<"$output"
  [ ! -d "$tapsets/tapset" ] || SYSTEMTAP_TAPSET=$tapsets/tapset run launcher doctor
  [ ! -d "$tapsets/tapset" ] || grep -q "^ok    tapset .*$tapsets/tapset/python.stp is ours" <<<"$output"
}

@test "doctor has colours on a terminal only, and none with NO_COLOR" {
  need script
  local escape=$'\033['
  run launcher doctor
  [[ $output != *"$escape"* ]]
  TERM=xterm run timeout 20 script -qec "$launcher doctor" /dev/null
  [[ $output == *"${escape}3"* ]]
  TERM=xterm NO_COLOR=1 run timeout 20 script -qec "$launcher doctor" /dev/null
  [[ $output == *"ok    "* ]]
  [[ $output != *"$escape"* ]]
  TERM=dumb run timeout 20 script -qec "$launcher doctor" /dev/null
  [[ $output != *"$escape"* ]]
}

@test "a stap-python with more rights than its caller's ignores STAP_PYTHON_ROOT and STAP" {
  [ "$(id -u)" = 0 ] || skip "needs root, to make a program set-user-ID"
  need setpriv
  make_machine
  mkdir "$BATS_TEST_TMPDIR/bin"
  cp "$launcher" "$BATS_TEST_TMPDIR/bin/stap-python"
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  doctor_of() {
    env STAP=/nonexistent/stap STAP_PYTHON_ROOT="$machine" timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/stap-python" doctor || true
  }
  doctor_of >"$BATS_TEST_TMPDIR/plain"
  grep -q 6.1.0-7-amd64 "$BATS_TEST_TMPDIR/plain"
  grep -q 'no /nonexistent/stap' "$BATS_TEST_TMPDIR/plain"
  chmod u+s "$BATS_TEST_TMPDIR/bin/stap-python"
  doctor_of >"$BATS_TEST_TMPDIR/secure"
  cat "$BATS_TEST_TMPDIR/secure"
  grep -q ' shim ' "$BATS_TEST_TMPDIR/secure"
  refute grep -E '6.1.0-7-amd64|/nonexistent' "$BATS_TEST_TMPDIR/secure"
  # nor is it a checkout, with a shim to load, where its caller has made a link to it
  make_tree
  ln -f "$BATS_TEST_TMPDIR/bin/stap-python" "$BATS_TEST_TMPDIR/tree/build"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  for mode in u+s u-s; do
    chmod "$mode" "$launcher"
    timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" doctor >"$BATS_TEST_TMPDIR/$mode" || true
    grep ' shim ' "$BATS_TEST_TMPDIR/$mode"
  done
  grep -F "$BATS_TEST_TMPDIR/tree/build" "$BATS_TEST_TMPDIR/u-s"
  refute grep -F "$BATS_TEST_TMPDIR/tree/build" "$BATS_TEST_TMPDIR/u+s"
}

# ---------------------------------------------------------------- enable, disable

# A virtual environment of each of these Pythons, one a line: what the module venv makes, in less time.
environments() {
  local python folder number=0
  for python; do
    folder=$BATS_TEST_TMPDIR/env$((++number))
    mkdir -p "$folder/bin" "$folder/lib/python$(version_of "$python")/site-packages"
    ln -s "$python" "$folder/bin/python3"
    echo "home = $(dirname "$python")" >"$folder/pyvenv.cfg"
    echo "$folder/bin/python3"
  done
}

# How many threads a program has from the start: with the shim it is one more.
threads_of() {
  "$@" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])'
}

@test "enable lets every start of an interpreter load the shim, disable ends that, each any number of times" {
  local python site files
  # shellcheck disable=SC2046
  environments $(pythons) >"$BATS_TEST_TMPDIR/environments"
  [ -s "$BATS_TEST_TMPDIR/environments" ]
  while read -r python; do
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    files=$(ls -A "$site")
    [ "$(threads_of "$python")" = 1 ]
    run launcher disable "$python"
    [ "$status $output" = "0 not enabled: there is no $site/python_stap.pth" ]
    run launcher enable "$python"
    echo "$output"
    [ "$status $output" = "0 enabled: $site/python_stap.pth" ]
    [ "$(threads_of "$python")" = 2 ]
    [ "$(threads_of "$python" -I)" = 2 ]
    [ "$(threads_of "$python" -S)" = 1 ]
    run launcher enable "$python"
    [ "$status $output" = "0 already enabled: $site/python_stap.pth" ]
    run launcher list "$python"
    grep -qx "  the shim: loaded at each start, by $site/python_stap.pth" <<<"$output"
    run launcher disable "$python"
    [ "$status $output" = "0 disabled: $site/python_stap.pth" ]
    [ "$(threads_of "$python")" = 1 ]
    [ "$(ls -A "$site")" = "$files" ]
  done <"$BATS_TEST_TMPDIR/environments"
}

@test "an enabled interpreter starts silently when the shim is gone, broken or somebody else's" {
  local python site broken
  # shellcheck disable=SC2046
  environments $(pythons_by_hook) >"$BATS_TEST_TMPDIR/environments"
  while read -r python; do
    run launcher enable "$python"
    [ "$status" = 0 ]
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    for broken in /nonexistent/libpython-stap.so.0 /etc/passwd /bin/true ''; do
      rm "$site/python_stap.so"
      [ -z "$broken" ] || ln -s "$broken" "$site/python_stap.so"
      run "$python" -X dev -c 'print("started")'
      echo "$python $broken: $output"
      [ "$status $output" = "0 started" ]
      ln -sf "$shim" "$site/python_stap.so"
    done
    # enable mends what is broken
    ln -sf /nonexistent/libpython-stap.so.0 "$site/python_stap.so"
    [ "$(threads_of "$python")" = 1 ]
    run launcher enable "$python"
    [[ $output == enabled:* ]]
    [ "$(threads_of "$python")" = 2 ]
  done <"$BATS_TEST_TMPDIR/environments"
}

@test "enable and disable touch nothing that they haven't made" {
  local python site
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo '# mine' >"$site/python_stap.pth"
  refuses 1 'python_stap.pth is not what stap-python enable makes' enable "$python"
  refuses 1 'python_stap.pth is not what stap-python enable makes' disable "$python"
  [ "$(cat "$site/python_stap.pth")" = '# mine' ]
  rm "$site/python_stap.pth"
  ln -s /etc/passwd "$site/python_stap.so"
  refuses 1 'python_stap.so is not what stap-python enable makes' enable "$python"
  refuses 1 'python_stap.so is not what stap-python enable makes' disable "$python"
  [ "$(readlink "$site/python_stap.so")" = /etc/passwd ]
  [ ! -e "$site/python_stap.pth" ]
}

@test "enable refuses politely without permission, and leaves nothing behind" {
  local python site
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  need setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" enable "$python"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: $site/python_stap.so: Permission denied: try it as the owner of that folder" ]
  [ -z "$(ls "$site")" ]
  launcher enable "$python"
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" disable "$python"
  [ "$status" = 1 ]
  [[ $output == *"python_stap.pth: Permission denied"* ]]
  [ "$(threads_of "$python")" = 2 ]
  # others may use what root has enabled
  [ "$(threads_of setpriv --reuid=65534 --regid=65534 --clear-groups "$python")" = 2 ]
}

@test "enable and disable as root don't start an interpreter that another user can change" {
  local python folder way
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  folder=$BATS_TEST_TMPDIR/others
  python=$folder/bin/python3
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\necho "$0" >"%s/started"\n' "$BATS_TEST_TMPDIR" >"$python"
  chmod 755 "$folder" "$folder/bin" "$python"
  refuses 1 'not a Python' enable "$python"
  rm "$BATS_TEST_TMPDIR/started"
  chown 65534 "$python"
  refuses 1 "$python: it is of another user \(id 65534\): run this as that user" enable "$python"
  refuses 1 "id 65534" disable "$python"
  PATH=$folder/bin:$PATH refuses 1 'id 65534' enable
  ln -s "$python" "$BATS_TEST_TMPDIR/python3"
  (cd "$BATS_TEST_TMPDIR" && refuses 1 'id 65534' enable ./python3)
  (cd "$folder" && refuses 1 'id 65534' enable bin/../bin/python3)
  chown 0 "$python"
  chown 65534 "$folder"
  refuses 1 'id 65534' enable "$python"
  chown 0 "$folder"
  for way in g+w o+w; do
    chmod "$way" "$folder/bin"
    refuses 1 "others than root may change $folder/bin: chmod go-w" enable "$python"
    chmod go-w "$folder/bin"
  done
  chmod 1777 "$folder/bin"
  refuses 1 "$python may be another user's" enable "$python"
  chmod 755 "$folder/bin"
  # what the links of /proc say may be something else here
  need unshare
  mkdir "$BATS_TEST_TMPDIR/mounted"
  unshare -m sh -c 'mount --bind "$1" "$2" && echo >"$1/mounted" && exec sleep 60' sh "$folder" "$BATS_TEST_TMPDIR/mounted" &
  programs+=($!)
  soon test -e "$folder/mounted"
  cp -r "$folder/bin" "$BATS_TEST_TMPDIR/mounted"
  refuses 1 "can't be told whose it is" enable "/proc/$!/root$BATS_TEST_TMPDIR/mounted/bin/python3"
  [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "enable and disable as root run and write nothing where another user may write" {
  local python site library
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  # what is in the folder is not run to ask for its name
  echo "import sys; open('$BATS_TEST_TMPDIR/run', 'w')" >"$site/others.pth"
  launcher enable "$python"
  launcher disable "$python"
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
  rm "$site/others.pth"
  for way in 'chmod o+w' 'chmod g+w' 'chown 65534'; do
    $way "$site"
    refuses 1 "$site: (it is of another user|others than root may change $site)" enable "$python"
    refuses 1 "$site: (it is of another user|others than root may change $site)" disable "$python"
    chown 0 "$site"
    chmod 755 "$site"
  done
  [ -z "$(ls -A "$site")" ]
  # the interpreter is root's, and its library another user's
  mkdir -p "$BATS_TEST_TMPDIR/other/bin" "$BATS_TEST_TMPDIR/other/lib/python$(version_of "$(system_python)")/encodings"
  library=$BATS_TEST_TMPDIR/other/lib/python$(version_of "$(system_python)")
  cp "$(readlink -f "$(system_python)")" "$BATS_TEST_TMPDIR/other/bin/python3"
  # it is imported before there is an open()
  echo "import posix; posix.close(posix.open('$BATS_TEST_TMPDIR/run', 65))" >"$library/encodings/__init__.py"
  : >"$library/os.py"
  chown 65534 "$library"
  refuses 1 'id 65534' enable "$BATS_TEST_TMPDIR/other/bin/python3"
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
  chown 0 "$library"
  refuses 1 'not a Python' enable "$BATS_TEST_TMPDIR/other/bin/python3"
  [ -e "$BATS_TEST_TMPDIR/run" ]
}

@test "enable refuses a Python that is not for the shim" {
  local python version why
  python=$BATS_TEST_TMPDIR/python
  while IFS=: read -r version why; do
    printf '#!/bin/sh\nprintf "\\nsite: %s /tmp\\n"\n' "$version" >"$python"
    chmod +x "$python"
    refuses 1 "$why" enable "$python"
  done <<'VERSIONS'
2 7 False:Python 2.7 is too old for the shim
3 5 False:Python 3.5 is too old for the shim
3 13 True:it is free-threaded
garbage:not a Python 3.6 or later that runs
VERSIONS
}

# ---------------------------------------------------------------- attach

# A program that computes in four threads until the file $end is there, each time the same, and then
# prints whether it ever was not, and its arguments.  Its PID is $program, its output $program_output.
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
  soon grep -qs started "$program_output"
}

# It goes on, unharmed, and ends as it should.
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

@test "attach loads the shim into a busy program with threads, which goes on and computes the same" {
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
    [ "$status $output" = "0 $program: already active: $shim" ]
    [ "$(grep -cx python-stap /proc/"$program"/task/*/comm | grep -c :1)" = 1 ]
    program_ends
  done
}

@test "attach loads the shim into a program that sleeps, waits or gets signals, which notices nothing" {
  local python kind
  cat >"$BATS_TEST_TMPDIR/waits.py" <<'PY'
import os, select, signal, sys, threading, time

start = time.time()
print("started", flush=True)
kind = sys.argv[1]
if kind == "sleep":
    time.sleep(3)
elif kind == "join":
    thread = threading.Thread(target=time.sleep, args=(3,))
    thread.start()
    thread.join()
elif kind == "epoll":
    assert select.epoll().poll(3) == []
elif kind == "select":
    assert select.select([], [], [], 3) == ([], [], [])
elif kind == "read":
    assert sys.stdin.readline() == "line\n"
elif kind == "wait":
    assert os.system("sleep 3; exit 3") >> 8 == 3
elif kind == "alarm":
    calls = []
    signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while time.time() < start + 3:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(calls) > 10
print("took", kind == "read" or 2.9 < time.time() - start < 15)
PY
  # shellcheck disable=SC2046
  for python in $(pythons_by_hook); do
    rm -f "$BATS_TEST_TMPDIR"/{sleep,join,epoll,select,read,wait,alarm}
    for kind in sleep join epoll select read wait alarm; do
      (sleep 3 && echo line) | "$python" "$BATS_TEST_TMPDIR/waits.py" "$kind" >"$BATS_TEST_TMPDIR/$kind" 2>&1 &
      programs+=($!)
    done
    for kind in sleep join epoll select read wait alarm; do
      soon grep -qs started "$BATS_TEST_TMPDIR/$kind"
      launcher attach "$(pgrep -f "^$python $BATS_TEST_TMPDIR/waits.py $kind")" >"$BATS_TEST_TMPDIR/$kind.attached" 2>&1 &
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
    # enough events in a moment; more than that would be lost
    bpftrace_while "$(function_markers)" sh -c '"$1" attach "$2" && sleep 0.3; touch "$3"' - "$launcher" "$program" "$end"
    echo "$python: $(wc -l <"$trace") events"
    grep -qE "^> $BATS_TEST_TMPDIR/program.py fib [0-9]+ [0-9a-f]+ __main__" "$trace"
    grep -qE "^< $BATS_TEST_TMPDIR/program.py fib [0-9]+ [0-9a-f]+ __main__" "$trace"
    program_has_ended
  done
}

# The program isn't touched.
# usage: attach_refuses PATTERN
attach_refuses() {
  refuses 1 "attach: $program: .*($1)" attach "$program"
  refute grep -q libpython-stap "/proc/$program/maps"
}

@test "attach refuses a program that is stopped, traced or filtered, and that goes on unharmed" {
  need gcc
  start_program /usr/bin/python3
  kill -STOP "$program"
  soon grep -q 'State:.T' "/proc/$program/status"
  attach_refuses "it is stopped: kill -CONT $program"
  kill -CONT "$program"
  cat >"$BATS_TEST_TMPDIR/tracer.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int count, char **words)
{
    if (ptrace(PTRACE_SEIZE, atoi(words[count - 1]), 0, 0) != 0)
        return 1;
    puts("seized");
    fflush(stdout);
    sleep(60);
    return 0;
}
C
  gcc -o "$BATS_TEST_TMPDIR/tracer" "$BATS_TEST_TMPDIR/tracer.c"
  "$BATS_TEST_TMPDIR/tracer" "$program" >"$BATS_TEST_TMPDIR/traced" &
  programs+=($!)
  soon grep -q seized "$BATS_TEST_TMPDIR/traced"
  attach_refuses "the process ${programs[1]} traces it already"
  kill "${programs[1]}"
  wait "${programs[1]}" || true
  program_ends
  # a filter that lets everything pass
  cat >"$BATS_TEST_TMPDIR/filtered.c" <<'C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &all};
    (void)count;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 1;
    execv(words[1], words + 1);
    return 1;
}
C
  gcc -o "$BATS_TEST_TMPDIR/filtered" "$BATS_TEST_TMPDIR/filtered.c"
  start_program "$BATS_TEST_TMPDIR/filtered" /usr/bin/python3
  attach_refuses 'seccomp filters its system calls'
  program_ends
}

@test "attach refuses where PYTHON_STAP is off, and where Yama says no" {
  local yama
  start_program env PYTHON_STAP=off /usr/bin/python3
  attach_refuses 'PYTHON_STAP=off'
  program_ends
  start_program /usr/bin/python3
  yama=$BATS_TEST_TMPDIR/root/proc/sys/kernel/yama
  mkdir -p "$yama"
  ln -s "/proc/$program" "$BATS_TEST_TMPDIR/root/proc"
  export STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/root
  echo 1 >"$yama/ptrace_scope"
  attach_refuses 'Yama forbids it to all but root .kernel.yama.ptrace_scope is 1.: use sudo'
  echo 3 >"$yama/ptrace_scope"
  attach_refuses 'Yama forbids all tracing until the next boot'
  unset STAP_PYTHON_ROOT
  program_ends
}

@test "attach asks a CPython 3.14 or later by sys.remote_exec(), unless that has remote debugging off" {
  local python newest=
  for python in $(pythons); do
    [ "$("$python" -c 'import sys; print(sys.version_info >= (3, 14))')" != True ] || newest=$python
  done
  [ -n "$newest" ] || skip "needs CPython 3.14 or later"
  start_program env PYTHON_DISABLE_REMOTE_DEBUG=1 "$newest"
  attach_refuses 'remote debugging off'
  program_ends
  start_program "$newest" -X disable-remote-debug
  attach_refuses 'remote debugging off'
  program_ends
  start_program "$newest"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
  refute compgen -G '/tmp/stap-python-*.py'
}

# A program that is taken for a CPython 3.14.  Started again by attach, it writes the mode, user and
# group of its script, and the script's path, to the file $started, and does no more.
make_fake_python() {
  started=$BATS_TEST_TMPDIR/started
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  cat >"$BATS_TEST_TMPDIR/python.c" <<'C'
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
const char *Py_GetVersion(void) { return "3.14.0"; }
const unsigned long Py_Version = 0x030e00f0;
int main(int count, char **words)
{
    struct stat script;
    if (count == 6 && stat(words[5], &script) == 0) {
        FILE *file = fopen(STARTED, "w");
        if (!file)
            return 1;
        fprintf(file, "%o %u %u %s\n", script.st_mode & 07777, script.st_uid, script.st_gid, words[5]);
        return fclose(file);
    }
    /* its files in /proc are root's */
    prctl(PR_SET_DUMPABLE, 0);
    for (int i = 0; i < 60; i++)
        sleep(1);
    return 0;
}
C
  gcc -rdynamic -DSTARTED="\"$started\"" -o "$BATS_TEST_TMPDIR/bin/python3" "$BATS_TEST_TMPDIR/python.c"
}

@test "attach as root doesn't start an interpreter that another user can change" {
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  need gcc setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  make_fake_python
  chown 65534 "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/bin/python3"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  soon runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[0]}"
  echo "$output"
  [ ! -e "$started" ]
  [ "$(uname -m)" != x86_64 ] || [ "$status $output" = "0 ${programs[0]}: loaded: $shim; it becomes active when Python code next runs there" ]
  [ "$(uname -m)" = x86_64 ] || [[ $output == *"run this as its user" ]]
  # nor one whose library is another user's
  chown 0 "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/bin/python3"
  mkdir -p "$BATS_TEST_TMPDIR/lib/python3.14/encodings"
  chown 65534 "$BATS_TEST_TMPDIR/lib/python3.14"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  soon runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[1]}"
  echo "$output"
  [ ! -e "$started" ]
  # root's own is
  chown 0 "$BATS_TEST_TMPDIR/lib/python3.14"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  soon runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[2]}"
  cat "$started"
  rm "$(cut -d' ' -f4 "$started")"
  [[ $(cat "$started") == "1600 65534 65534 /tmp/stap-python-"*.py ]]
}

@test "attach asks no program by sys.remote_exec() that doesn't see our /tmp, nor leaves a script behind" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need gcc unshare
  make_fake_python
  unshare -m sh -c "mount -t tmpfs none /mnt && exec '$BATS_TEST_TMPDIR/bin/python3'" &
  programs+=($!)
  soon runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[0]}"
  echo "$output"
  [ ! -e "$started" ] || rm "$(cut -d' ' -f4 "$started")"
  [ ! -e "$started" ]
  [ "$(uname -m)" != x86_64 ] || [ "$status $output" = "0 ${programs[0]}: loaded: $shim; it becomes active when Python code next runs there" ]
  [ "$(uname -m)" = x86_64 ] || [[ $output == *"has other mounts"* ]]
  # a script that its sys.remote_exec() doesn't take
  "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  soon runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  mkdir "$started"
  run launcher attach "${programs[1]}"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"sys.remote_exec() fails"* ]]
  refute compgen -G '/tmp/stap-python-*.py'
}

@test "attach refuses another user's program" {
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  need setpriv
  start_program /usr/bin/python3
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" attach "$program"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: attach: $program: it is of the user with the id 0: be that one, or root" ]
  refute grep -q libpython-stap "/proc/$program/maps"
  program_ends
}

@test "attach by its user, without root" {
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  need setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  start_program setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

@test "attach refuses a program in another root or mount namespace that has no shim" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need unshare
  start_program unshare -m sh -c "mount -t tmpfs none $top/build && exec /usr/bin/python3 \"\$@\"" sh
  [[ $(readlink "/proc/$program/exe") == */python3* ]]
  attach_refuses "in a container or another root, without the shim: copy $shim there"
  program_ends
  # with the shim there, in another file
  start_program unshare -m sh -c "cp $shim $BATS_TEST_TMPDIR/copy && mount -t tmpfs -o mode=755 none $top/build && cp $BATS_TEST_TMPDIR/copy $shim && exec /usr/bin/python3 \"\$@\"" sh
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

# A program that sees a folder of its own in the place of build, made by the commands: in a mount
# namespace, and there a copy of the shim is $copy.
# usage: start_with_own_build COMMANDS [COMMAND THAT RUNS IT...]
start_with_own_build() {
  local commands=$1
  shift
  copy=$BATS_TEST_TMPDIR/copy
  cp "$shim" "$copy"
  export copy shim build=$top/build folder=$BATS_TEST_TMPDIR
  start_program "$@" sh -c "mount -t tmpfs -o mode=755 none \$build && cp \$copy \$shim && $commands && exec \"\$@\"" sh \
    "${as_user[@]}" /usr/bin/python3
}

@test "attach loads no shim that somebody else has put into the program's root" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need unshare setpriv
  local as_user=() nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  for commands in 'chown 65534 $shim' 'chown 65534 $build' 'chmod 777 $build' 'chmod g+w $shim' \
    'rm $shim && cp $copy $folder/theirs && chown 65534 $folder/theirs && ln -s $folder/theirs $shim'; do
    echo "$commands"
    start_with_own_build "$commands" unshare -m
    attach_refuses 'another root, whose shim others may change: .*(is of another user \(id 65534\)|others than root may change)'
    program_ends
  done
  # nor what a link of its root leads to in ours
  start_with_own_build 'mkdir -p /var/tmp/s && mount -t tmpfs none /var/tmp/s && rm $shim && ln -s /var/tmp/s/shim $shim' unshare -m
  mkdir -p /var/tmp/s
  cp "$shim" /var/tmp/s/shim
  attach_refuses 'another root, without the shim'
  rm -r /var/tmp/s
  program_ends
  # a shim of its own user's is that one's business
  as_user=("${nobody[@]}")
  start_with_own_build 'chown 65534 $shim' unshare -m
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
  # but not where the program has more rights than that user: capabilities, or those of another one
  as_user=("${nobody[@]}" --ambient-caps=+net_raw --inh-caps=+net_raw)
  start_with_own_build 'chown 65534 $shim' unshare -m
  attach_refuses 'whose shim others may change'
  program_ends
  as_user=(setpriv --ruid=65533 --euid=65534 --clear-groups)
  start_with_own_build 'chown 65534 $shim' unshare -m
  attach_refuses 'whose shim others may change'
  program_ends
}

@test "attach looks at the program's shim again when it has waited for a safe point" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need gcc
  mkdir "$BATS_TEST_TMPDIR/theirs"
  cp "$shim" "$BATS_TEST_TMPDIR/theirs"
  chown -R 65534 "$BATS_TEST_TMPDIR/theirs"
  # it has our mounts, and then its own, and comes to no safe point before
  cat >"$BATS_TEST_TMPDIR/mounts.c" <<'C'
#include <sched.h>
#include <sys/mount.h>
#include <time.h>
static void spin(int seconds) { for (time_t end = time(0) + seconds; time(0) < end; ) ; }
int change(const char *from, const char *to)
{
    spin(3);
    int failed = unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) || mount(from, to, 0, MS_BIND, 0);
    spin(1);
    return failed;
}
C
  gcc -O2 -D_GNU_SOURCE -shared -fPIC -o "$BATS_TEST_TMPDIR/mounts.so" "$BATS_TEST_TMPDIR/mounts.c"
  /usr/bin/python3 -c "
import ctypes, time
change = ctypes.PyDLL('$BATS_TEST_TMPDIR/mounts.so').change
print('started', flush=True)
assert change(b'$BATS_TEST_TMPDIR/theirs', b'$top/build') == 0
time.sleep(60)" >"$BATS_TEST_TMPDIR/output" &
  program=$!
  programs+=("$program")
  soon grep -q started "$BATS_TEST_TMPDIR/output"
  # it is on its way there
  sleep 0.2
  attach_refuses 'whose shim others may change'
  kill -0 "$program"
}

@test "attach loads what the root of the program's user namespace has put there" {
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  need unshare setpriv
  local as_user=()
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm true || skip "needs user namespaces for everybody"
  start_with_own_build true setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
}

@test "attach and list tell its user of a program that has more rights than that one" {
  [ "$(id -u)" = 0 ] || skip "needs root, to give a program capabilities"
  need setpriv setcap
  local command
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  cp "$(readlink -f /usr/bin/python3)" "$BATS_TEST_TMPDIR/python3"
  setcap cap_net_raw+ep "$BATS_TEST_TMPDIR/python3" || skip "needs a file system with capabilities"
  start_program setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/python3"
  for command in attach list; do
    run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" "$command" "$program"
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"$program: the kernel keeps you out of it: it has more rights than its user"* ]]
  done
  program_ends
}

@test "attach refuses what is no CPython for the shim: a shell, too old, free-threaded, musl, static" {
  need gcc
  local version why
  sleep 60 &
  program=$!
  programs+=("$program")
  attach_refuses 'no CPython runs in it'
  while IFS=: read -r version why; do
    cat >"$BATS_TEST_TMPDIR/python.c" <<C
const char *Py_GetVersion(void) { return "$version"; }
const unsigned long Py_Version = 0x03000000 + (MINOR << 16);
int sleep(int);
int main(void) { return sleep(60); }
C
    # shellcheck disable=SC2046
    gcc -rdynamic -fno-builtin -DMINOR="$(cut -d. -f2 <<<"$version")" -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
    "$BATS_TEST_TMPDIR/python3" &
    program=$!
    programs+=("$program")
    soon runs "$program" "$BATS_TEST_TMPDIR/python3"
    attach_refuses "the shim does nothing in it: $why"
    kill -0 "$program"
    rm "$BATS_TEST_TMPDIR/python3"
  done <<'VERSIONS'
3.5.2:it is older than CPython 3.6
3.17.0:it is newer than CPython 3.16
3.13.0 experimental free-threading build (main):it is free-threaded
VERSIONS
  gcc -static -fno-builtin -DMINOR=11 -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
  "$BATS_TEST_TMPDIR/python3" &
  program=$!
  programs+=("$program")
  sleep 0.3
  attach_refuses 'it does not export CPython.s functions|it is static'
  need musl-gcc
  sed -i 's/"3.13.*build (main)"/"3.11.0"/' "$BATS_TEST_TMPDIR/python.c"
  rm "$BATS_TEST_TMPDIR/python3"
  musl-gcc -rdynamic -fno-builtin -DMINOR=11 -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
  "$BATS_TEST_TMPDIR/python3" &
  program=$!
  programs+=("$program")
  sleep 0.3
  attach_refuses 'its C library is musl'
}

# A checkout of its own, $BATS_TEST_TMPDIR/tree, that lacks the shim.
make_tree() {
  mkdir -p "$BATS_TEST_TMPDIR/tree"/{build,probes}
  cp "$launcher" "$BATS_TEST_TMPDIR/tree/build"
  cp "$top/probes/python.d" "$BATS_TEST_TMPDIR/tree/probes"
}

@test "attach says so where dlopen() fails in the program, which goes on" {
  need gcc
  make_tree
  make_broken_shim "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0"
  start_program /usr/bin/python3
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  attach_refuses 'dlopen.. refuses it there: .*undefined symbol: nowhere'
  program_ends
}

# A shim in that checkout which takes 2 s to load.
make_slow_shim() {
  cat >"$BATS_TEST_TMPDIR/shim.c" <<'C'
#include <sys/sdt.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void)
{
    STAP_PROBE(python, line);
    sleep(2);
}
C
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" "$BATS_TEST_TMPDIR/shim.c"
}

@test "attach that is told to end at any time leaves the program unharmed" {
  local i attach
  start_program /usr/bin/python3
  for i in {1..30}; do
    timeout -s TERM "0.0$((i % 10))" "$launcher" attach "$program" >/dev/null 2>&1 || true
  done
  program_ends
  # while dlopen() runs in it: a shim that takes its time
  need gcc
  make_tree
  make_slow_shim
  start_program /usr/bin/python3
  "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program" >"$BATS_TEST_TMPDIR/attached" 2>&1 &
  attach=$!
  soon grep -q "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" "/proc/$program/maps"
  kill -INT "$attach"
  kill -TERM "$attach"
  wait "$attach" || true
  program_ends
}

@test "attach never leaves a dlopen() that takes long, which would kill the program" {
  [ "$(uname -m)" = x86_64 ] || skip "needs x86-64, for ptrace"
  need gcc
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/hasty" CFLAGS='-O1 -DCALL_MS=500' "$BATS_TEST_TMPDIR/hasty/stap-python"
  launcher=$BATS_TEST_TMPDIR/hasty/stap-python
  make_tree
  make_slow_shim
  start_program /usr/bin/python3
  run timeout 20 "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program"
  echo "$output"
  [ "$status" = 0 ]
  [ "${lines[0]}" = "stap-python: attach: $program: dlopen() takes long in it: waiting for that, since the program would die without us" ]
  # this stand-in never watches
  [ "${lines[1]}" = "$program: loaded: $BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0; it becomes active when Python code next runs there" ]
  program_ends
}

@test "no signal handler runs within attach's dlopen(), and none is lost" {
  [ "$(uname -m)" = x86_64 ] || skip "needs x86-64, for ptrace"
  need gcc
  make_tree
  # a handler in C: one of Python's would only be noted
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
  soon grep -q started "$BATS_TEST_TMPDIR/output"
  "$BATS_TEST_TMPDIR/tree/build/stap-python" attach "$program" &
  soon grep -q "tree/build/libpython-stap.so.0" "/proc/$program/maps"
  sleep 0.5
  kill -USR1 "$program"
  wait "$!"
  sleep 0.2
  : >"$BATS_TEST_TMPDIR/end"
  wait "$program"
  cat "$BATS_TEST_TMPDIR/output"
  [ "$(tail -n 1 "$BATS_TEST_TMPDIR/output")" = 'calls 1 within 0' ]
}

@test "attach gives up after a while on a program that comes to no safe point, which goes on" {
  need gcc
  cat >"$BATS_TEST_TMPDIR/spin.c" <<'C'
void spin(volatile int *until) { while (!*until) ; }
C
  gcc -O2 -shared -fPIC -o "$BATS_TEST_TMPDIR/spin.so" "$BATS_TEST_TMPDIR/spin.c"
  /usr/bin/python3 -c "
import ctypes, signal
until = ctypes.c_int(0)
print('started', flush=True)
ctypes.CDLL('$BATS_TEST_TMPDIR/spin.so').spin(ctypes.byref(until))" >"$BATS_TEST_TMPDIR/output" &
  program=$!
  programs+=("$program")
  soon grep -q started "$BATS_TEST_TMPDIR/output"
  sleep 0.2
  (sleep 3 && grep VmPeak "/proc/$(pgrep -xf "$launcher attach $program")/status" >"$BATS_TEST_TMPDIR/peak") &
  attach_refuses 'none of its threads came to a safe point within 5 s'
  wait "$!"
  cat "$BATS_TEST_TMPDIR/peak"
  # each try gives back what it took
  [ "$(awk '{ print $2 }' "$BATS_TEST_TMPDIR/peak")" -lt 200000 ]
  grep -q 'State:.R' "/proc/$program/status"
}

@test "attach notices that the program became another by exec, and calls nothing there" {
  need gcc
  cat >"$BATS_TEST_TMPDIR/spin.c" <<'C'
#include <time.h>
void spin(int seconds) { for (time_t end = time(0) + seconds; time(0) < end; ) ; }
C
  gcc -O2 -shared -fPIC -o "$BATS_TEST_TMPDIR/spin.so" "$BATS_TEST_TMPDIR/spin.c"
  start_program sh -c 'exec /usr/bin/python3 -c "
import ctypes, os, sys
print(\"spins\", flush=True)
ctypes.PyDLL(sys.argv[1]).spin(3)
os.execv(\"/usr/bin/python3\", [\"python3\"] + sys.argv[2:])" "$@"' sh "$BATS_TEST_TMPDIR/spin.so" &
  end=$BATS_TEST_TMPDIR/end
  soon grep -qs spins "$BATS_TEST_TMPDIR/output"
  program=$(pgrep -f "^/usr/bin/python3 -c .*$BATS_TEST_TMPDIR/spin.so" | head -n 1)
  programs+=("$program")
  attach_refuses 'it has begun to run another program: try it again'
  soon grep -qs started "$BATS_TEST_TMPDIR/output"
  run launcher attach "$program"
  [ "$status" = 0 ]
  : >"$end"
  soon grep -qx 'ended, wrong: 0' "$BATS_TEST_TMPDIR/output"
}

# ---------------------------------------------------------------- man page, completion

@test "the man page has no fault, and each command and variable of --help" {
  local word
  need mandoc groff
  SOURCE_DATE_EPOCH=1700000000 make -s -C "$top" BUILD="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/stap-python.8"
  mandoc -T lint -W warning "$BATS_TEST_TMPDIR/stap-python.8"
  [ -z "$(groff -man -ww -z "$BATS_TEST_TMPDIR/stap-python.8" 2>&1)" ]
  mandoc -T ascii "$BATS_TEST_TMPDIR/stap-python.8" | col -bx >"$BATS_TEST_TMPDIR/page"
  grep -q "systemtap-cpython $(cat "$top/VERSION") *2023-11-14" "$BATS_TEST_TMPDIR/page"
  for word in run doctor list attach enable disable SCRIPT --list-scripts --help --version STAP NO_COLOR STAP_PYTHON_ROOT; do
    grep -qF -- "$word" "$BATS_TEST_TMPDIR/page"
  done
}

# What bash would offer for this line.
completions() {
  bash -c '
    source "$1/probes/stap-python.bash"
    compopt() { echo "compopt $*"; }
    PATH=$1/build:$PATH
    read -ra COMP_WORDS <<<"$2"
    [[ $2 != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _stap_python
    printf "%s\n" "${COMPREPLY[@]}"' - "$top" "$1"
}

@test "bash completes commands, scripts, interpreters and the PIDs of Pythons" {
  local script
  /usr/bin/python3 -c 'import time; time.sleep(60)' &
  programs+=($!)
  soon runs "$!" /usr/bin/python3
  [ "$(completions 'stap-python att')" = attach ]
  completions 'stap-python ' >"$BATS_TEST_TMPDIR/all"
  for script in "$top"/scripts/*.stp; do
    grep -qx "$(basename "$script" .stp)" "$BATS_TEST_TMPDIR/all"
  done
  grep -qx disable "$BATS_TEST_TMPDIR/all"
  completions 'stap-python attach ' | grep -qx "${programs[0]}"
  completions "stap-python list ${programs[0]}" | grep -qx "${programs[0]}"
  refute grep -qx "$$" <(completions 'stap-python attach ')
  completions 'stap-python enable pyth' | grep -qx python3
  refute grep -x python3-config <(completions 'stap-python enable pyth')
  completions 'stap-python list /usr/bin/python' | grep -qx /usr/bin/python3
  completions 'stap-python run tru' | grep -qx true
  [ "$(completions 'stap-python doctor ')" = --help ]
  # bash is to quote these, and to end folders with a slash
  mkdir "$BATS_TEST_TMPDIR/a folder"
  completions "stap-python enable $BATS_TEST_TMPDIR/a" | grep -qx 'compopt -o filenames'
  completions "stap-python enable $BATS_TEST_TMPDIR/a" | grep -qx "$BATS_TEST_TMPDIR/a folder"
  completions "stap-python run cat $BATS_TEST_TMPDIR/a" | grep -qx 'compopt -o filenames'
  refute grep -qx 'compopt -o filenames' <(completions 'stap-python enable pyth')
  # what a script's name says is a word, never run
  printf '#!/bin/sh\necho "pygood  good"\necho "\$(touch %s/run)  bad"\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/stap-python"
  chmod +x "$BATS_TEST_TMPDIR/stap-python"
  completions "$BATS_TEST_TMPDIR/stap-python py" | grep -qx pygood
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
}

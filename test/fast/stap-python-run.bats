# stap-python: run, and the paths in an installed stap-python.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2034

load ../lib/helper
load ../lib/launcher

@test "run starts a command with the shim, and ends with its status" {
  run launcher run /usr/bin/python3 -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0]); raise SystemExit(7)'
  [ "$status $output" = "7 2" ]
  run launcher run -- sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim" ]
  run env LD_PRELOAD=libdl.so.2 timeout $((20 * SLOW)) "$launcher" run sh -c 'echo "$LD_PRELOAD"'
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

# As in packages: another prefix, and $LIB, which ld.so expands, in the shim's path.
@test "installed, it uses the shim and the scripts in the directories of make's variables" {
  local prefix=$BATS_TEST_TMPDIR/installed lib
  lib=$(LD_DEBUG=libs /bin/true 2>&1 | sed -n 's|.*file=/\(.*\)/libc.so.6.*|\1|p' | head -n 1)
  lib=${lib:-$(gcc -print-multiarch | sed 's|.|lib/&|')}
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/build" prefix="$prefix" shim_preload="$prefix/\$\$LIB/libpython-stap.so.0" \
    "$BATS_TEST_TMPDIR/build/stap-python"
  mkdir -p "$prefix/bin" "$prefix/$lib" "$prefix/share/systemtap/examples/cpython"
  cp "$BATS_TEST_TMPDIR/build/stap-python" "$prefix/bin"
  launcher=$prefix/bin/stap-python
  refuses 1 "shim not found: $prefix/lib.*/libpython-stap.so.0: reinstall systemtap-cpython" run true
  refuses 1 "no scripts in $prefix/share/systemtap/examples/cpython" --list-scripts
  run launcher doctor
  grep -A 1 '^wrong shim' <<<"$output" | grep -qE 'fix: .*install.* systemtap-cpython systemtap-cpython-tapset'
  cp "$shim" "$prefix/$lib"
  cp "$top"/scripts/pygc.* "$prefix/share/systemtap/examples/cpython"
  run launcher run sh -c 'echo "$LD_PRELOAD"; exec /usr/bin/python3 -c "print([line.split()[-1] for line in open(\"/proc/self/maps\") if \"stap\" in line][0])"'
  echo "$output"
  [ "$output" = "$prefix/\$LIB/libpython-stap.so.0"$'\n'"$prefix/$lib/libpython-stap.so.0" ]
  run launcher --list-scripts
  [[ $output == "pygc "*"Garbage Collections of Python" ]]
  printf '#!/bin/sh\necho "$SYSTEMTAP_TAPSET|$*"\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  run env STAP="$BATS_TEST_TMPDIR/stap" timeout $((20 * SLOW)) "$launcher" pygc -c true
  [ "$output" = "|$prefix/share/systemtap/examples/cpython/pygc.stp -c $env_program 'LD_PRELOAD=$prefix/\$LIB/libpython-stap.so.0' true" ]
}

@test "the folder of libraries is what the compiler says, else lib64, or lib for 32 bits" {
  local cc=$BATS_TEST_TMPDIR/cc folder
  need gcc
  # like the gcc of other distributions and architectures
  printf '#!/bin/sh\ncase $* in -print-multiarch) echo $MULTIARCH ;; *-dM*) echo "#define ${WIDE:-__ILP32__} 1" ;; esac\n' >"$cc"
  chmod +x "$cc"
  folder_of() {
    env "$@" make -s -C "$top" CC="$cc" BUILD="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/generated/installed.h"
    sed -n 's/^#define MULTIARCH //p' "$BATS_TEST_TMPDIR/generated/installed.h"
  }
  [ "$(folder_of MULTIARCH=lib-x WIDE=__LP64__)" = '"lib/lib-x"' ]
  [ "$(folder_of WIDE=__LP64__)" = '"lib64"' ]
  [ "$(folder_of WIDE=__ILP32__)" = '"lib"' ]
}

# Makes a 32-bit program, which prints, and an empty 32-bit library in $BATS_TEST_TMPDIR.
make_32_bit() {
  [ "$(uname -m)" = x86_64 ] || skip "needs x86-64"
  need as ld
  cd "$BATS_TEST_TMPDIR" || return
  as --32 -o empty.o /dev/null && ld -m elf_i386 -shared -o empty.so empty.o
  as --32 -o program.o - <<'ASM'
.globl _start
_start:
        movl $4, %eax
        movl $1, %ebx
        call 1f
1:      popl %ecx
        addl $text - 1b, %ecx
        movl $8, %edx
        int $0x80
        movl $1, %eax
        movl $0, %ebx
        int $0x80
text:   .ascii "printed\n"
ASM
  ld -m elf_i386 -pie --dynamic-linker /lib/ld-linux.so.2 -o program program.o
  [ "$(./program)" = printed ] || skip "needs the C library for 32 bits (Debian: libc6-i386)"
}

@test "a 32-bit program that a Python starts prints what it does without the shim, if ld.so's \$LIB has a library for it" {
  make_32_bit
  local starts='import os, subprocess
ran = subprocess.run(["./program"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
print(len(os.listdir("/proc/self/task")), ran.stdout, ran.stderr)'
  # as run does in a checkout: LD_PRELOAD has one path, which is a limit
  run launcher run /usr/bin/python3 -c "$starts"
  echo "$output"
  [[ $output == "2 b'printed\\n' b\"ERROR: ld.so: object '$shim' from LD_PRELOAD cannot be preloaded (wrong ELF class"* ]]
  # as run does in packages: LD_PRELOAD has $LIB, which ld.so expands to these folders
  mkdir -p lib64 lib/x86_64-linux-gnu lib32 lib/i386-linux-gnu
  cp "$shim" lib64
  cp "$shim" lib/x86_64-linux-gnu
  export LD_PRELOAD=$PWD/\$LIB/libpython-stap.so.0
  run /usr/bin/python3 -c "$starts"
  echo "$output"
  [[ $output == "2 b'printed\\n' b\"ERROR: ld.so: object "* ]]
  for folder in lib lib32 lib/i386-linux-gnu; do
    cp empty.so "$folder/libpython-stap.so.0"
  done
  run /usr/bin/python3 -c "$starts"
  [ "$output" = "2 b'printed\\n' b''" ]
}

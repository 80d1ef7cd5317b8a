# Which glibc the shim needs: 2.17, or the oldest that the architecture has (probes/shim/os/glibc.c).
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2089,SC2090

load ../lib/helper

@test "the shim needs nothing that glibc 2.17, or the first one for this architecture, lacks" {
  need readelf
  # what is newer is found: stap-python needs what it was linked with
  [ "$(needs_newer_glibc "$top/build/stap-python" 1.0 | grep -cx 'GLIBC_2\..*')" -ge 1 ]
  needs_newer_glibc "$top/build/stap-python" 1.0 | grep -q '^[a-z_]* GLIBC_2\.'
  run needs_newer_glibc "$shim" "$(newest_glibc "$(uname -m)")"
  echo "$output"
  [ "$status" = 0 ]
  [ -z "$output" ]
}

@test "the shim calls nothing that glibc 2.38 gives programs built with it another version of" {
  need readelf
  # of <stdlib.h>, <stdio.h>, <wchar.h> and <inttypes.h>: what is in libc.so as __isoc23_NAME from there on
  refute grep -E ' UND (strto(l|ll|ul|ull|q|uq|imax|umax)|v?[fs]?w?scanf|wcsto[a-z]+)(_l)?(@|$)' \
    <(readelf --wide --dyn-syms "$shim" | sed 's/ *$//')
  # the pattern finds them
  readelf --wide --dyn-syms "$top/build/stap-python" | grep -qE ' UND (__isoc23_)?strto(l|ll|ul|ull)@'
}

@test "optimised as a whole by the linker it needs no more, and works" {
  need_time
  need readelf gcc make
  local built=$BATS_TEST_TMPDIR/build/libpython-stap.so.0
  # each function by itself, which separates it from asm statements
  make -C "$top" BUILD="$BATS_TEST_TMPDIR/build" CC=gcc CFLAGS='-O1 -flto -flto-partition=max' "$built" >"$BATS_TEST_TMPDIR/log" 2>&1 ||
    { cat "$BATS_TEST_TMPDIR/log" && false; }
  run needs_newer_glibc "$built" "$(newest_glibc "$(uname -m)")"
  echo "$output"
  [ -z "$output" ]
  [ "$(LD_PRELOAD=$built /usr/bin/python3 -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])')" = 2 ]
}

# Libraries that are loaded later share the static TLS that the dynamic linker reserves: 1,664 bytes.
@test "the shim's thread-local words take 152 bytes at most" {
  need readelf
  local bytes
  bytes=$(readelf --wide --segments "$shim" | awk '$1 == "TLS" { print $6 }')
  echo "$bytes"
  [ "$((bytes))" -gt 0 ]
  [ "$((bytes))" -le 152 ]
}

# $old: Debian 11's root, whose glibc 2.31 has threads and dlopen() in separate libraries.
need_old_root() {
  export old=$top/build/distros/bullseye
  [ -x "$old/usr/bin/python3.9" ] || skip "needs Debian 11's root: make check-distros"
  [ "$(id -u)" = 0 ] || skip "needs root, for chroot"
  need chroot unshare
}

# Runs a shell command in that root, with the shim at its own path, and this test's folder at /mnt.
in_old_root() {
  export shim folder=$BATS_TEST_TMPDIR
  unshare -m sh -ec '
    mount -t proc none "$old/proc"
    mount -t tmpfs none "$old/mnt"
    mount --bind "$folder" "$old/mnt"
    mkdir -p "$old${shim%/*}"
    mount --bind "${shim%/*}" "$old${shim%/*}"
    exec chroot "$old" sh -c "$@"' sh "$@" 2>&1
}

# A Python program that prints the names of its threads.
threads='import os; print(*sorted(open("/proc/self/task/%s/comm" % t).read().strip().replace("-new", "") for t in os.listdir("/proc/self/task")))'

@test "on an older glibc a program without libpthread runs with the shim as without" {
  need_old_root
  run in_old_root 'ldd /bin/echo | grep -c pthread; PYTHON_STAP_DEBUG=1 LD_PRELOAD=$shim /bin/echo printed'
  echo "$output"
  [ "$output" = $'0\nprinted' ]
}

@test "on an older glibc Python has the shim, by LD_PRELOAD and by import" {
  need_old_root
  export threads
  run in_old_root 'LD_PRELOAD=$shim python3.9 -c "$threads"
    ln -s "$shim" /mnt/python_stap.so
    cd /mnt && python3.9 -c "import python_stap; $threads"'
  echo "$output"
  [ "$output" = $'python-stap python3.9\npython-stap python3.9' ]
}

@test "on an older glibc a libpython is found that a program without libpthread loads for itself alone" {
  need_old_root
  need gcc
  local library libraries
  libraries=$old/lib/$(gcc -print-multiarch)
  library=$(cd "$old/usr/lib" && echo */libpython3.9*.so.1.0)
  [ -e "$old/usr/lib/$library" ] || skip "needs a libpython3.9 in Debian 11's root"
  # linked with that root's C library, whose start files are not there
  gcc -nostdlib -fno-stack-protector -o "$BATS_TEST_TMPDIR/late" -x c - -x none "$libraries"/{libdl.so.2,libc.so.6} <<'C'
#include <dlfcn.h>
#include <stdlib.h>
static int run(void)
{
    void *python = dlopen(getenv("library"), RTLD_NOW | RTLD_LOCAL);
    if (!python)
        return 1;
    ((void (*)(void))dlsym(python, "Py_Initialize"))();
    return ((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))(getenv("threads"));
}
__attribute__((force_align_arg_pointer)) void _start(void)
{
    exit(run());
}
C
  export threads library=/usr/lib/$library
  run in_old_root 'PYTHONHOME=/usr PYTHONWARNINGS=ignore LD_PRELOAD=$shim /mnt/late'
  echo "$output"
  [ "$output" = $'late python-stap' ]
}

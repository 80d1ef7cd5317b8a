# stap-python: the programs that attach refuses, and shims that another user could have replaced.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helper
load ../lib/launcher

@test "attach refuses a program that is stopped or traced, which runs on unharmed" {
  need gcc
  start_program /usr/bin/python3
  kill -STOP "$program"
  wait_for grep -q 'State:.T' "/proc/$program/status"
  attach_refuses "it is stopped: resume it with kill -CONT $program"
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
    sleep(600);
    return 0;
}
C
  gcc -o "$BATS_TEST_TMPDIR/tracer" "$BATS_TEST_TMPDIR/tracer.c"
  "$BATS_TEST_TMPDIR/tracer" "$program" >"$BATS_TEST_TMPDIR/traced" &
  programs+=($!)
  wait_for grep -q seized "$BATS_TEST_TMPDIR/traced"
  attach_refuses "process ${programs[1]} already traces it"
  kill "${programs[1]}"
  wait "${programs[1]}" || true
  program_ends
}

@test "attach refuses a program with PYTHON_STAP=off, and one that Yama protects" {
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
  attach_refuses 'Yama lets only root trace it .kernel.yama.ptrace_scope is 1.: use sudo'
  echo 3 >"$yama/ptrace_scope"
  attach_refuses 'Yama forbids all tracing until the next boot'
  unset STAP_PYTHON_ROOT
  program_ends
}

@test "attach refuses another user's program" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  start_program /usr/bin/python3
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" attach "$program"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: attach: $program: it belongs to another user (uid 0): run this as that user or root" ]
  refute grep -q libpython-stap "/proc/$program/maps"
  program_ends
}

# Checks that attach loads the copy of the shim in the program's root.
loads_its_copy() {
  run launcher attach "$program"
  echo "$output"
  [ "$status $output" = "0 $program: active: $shim
$program: that is a copy in its root: bpftrace and perf find it as /proc/$program/root$shim, stap if it is of the same build and not on overlayfs" ]
}

# Starts the program in a mount namespace with its own build directory, which has a copy of the shim.  There the shell
# commands change the directory; $copy is another copy of the shim.  The words that follow start the namespace,
# ${as_user[@]} starts the program in it.
# usage: start_with_own_build COMMANDS [WORD...]
start_with_own_build() {
  local commands=$1
  shift
  copy=$BATS_TEST_TMPDIR/copy
  cp "$shim" "$copy"
  export copy shim build=$top/build folder=$BATS_TEST_TMPDIR
  start_program "$@" sh -c "mount -t tmpfs -o mode=755 none \$build && cp \$copy \$shim && $commands && exec \"\$@\"" sh \
    "${as_user[@]}" /usr/bin/python3
}

@test "attach loads no shim that another user has put into the program's root" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need unshare setpriv
  local as_user=() nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  for commands in 'chown 65534 $shim' 'chown 65534 $build' 'chmod 777 $build' 'chmod g+w $shim' \
    'rm $shim && cp $copy $folder/theirs && chown 65534 $folder/theirs && ln -s $folder/theirs $shim'; do
    echo "$commands"
    start_with_own_build "$commands" unshare -m
    attach_refuses 'another root, whose shim others can change: .*(is owned by another user \(uid 65534\)|is writable by others)'
    program_ends
  done
  # a copy of root's is loaded
  start_with_own_build true unshare -m
  loads_its_copy
  program_ends
  # and one that its own user put there
  as_user=("${nobody[@]}")
  start_with_own_build 'chown 65534 $shim' unshare -m
  loads_its_copy
  program_ends
  # but not if the program has more rights than that user: capabilities, or those of another user
  as_user=("${nobody[@]}" --ambient-caps=+net_raw --inh-caps=+net_raw)
  start_with_own_build 'chown 65534 $shim' unshare -m
  attach_refuses 'whose shim others can change'
  program_ends
  as_user=(setpriv --ruid=65533 --euid=65534 --clear-groups)
  start_with_own_build 'chown 65534 $shim' unshare -m
  attach_refuses 'whose shim others can change'
  program_ends
}

@test "attach looks at the program's shim again when it has waited for a safe point" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need gcc
  mkdir "$BATS_TEST_TMPDIR/theirs"
  cp "$shim" "$BATS_TEST_TMPDIR/theirs"
  chown -R 65534 "$BATS_TEST_TMPDIR/theirs"
  # it has our mounts, then its own, and reaches no safe point before
  cat >"$BATS_TEST_TMPDIR/mounts.c" <<'C'
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>
static void spin(int seconds) { for (time_t end = time(0) + seconds; time(0) < end; ) ; }
int change(const char *from, const char *to, const char *spins)
{
    creat(spins, 0600);
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
assert change(b'$BATS_TEST_TMPDIR/theirs', b'$top/build', b'$BATS_TEST_TMPDIR/spins') == 0
time.sleep(600)" &
  program=$!
  programs+=("$program")
  wait_for test -e "$BATS_TEST_TMPDIR/spins"
  attach_refuses 'whose shim others can change'
  kill -0 "$program"
}

@test "attach loads what the root of the program's user namespace has put there" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need unshare setpriv
  local as_user=()
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm true || skip "needs user namespaces for everybody"
  start_with_own_build true setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm
  loads_its_copy
  program_ends
}

@test "attach and list say that a program has more rights than its user" {
  [ "$(id -u)" = 0 ] || skip "needs root, to give a program capabilities"
  need setpriv setcap
  local command
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  cp "$(readlink -f /usr/bin/python3)" "$BATS_TEST_TMPDIR/python3"
  setcap cap_net_raw+ep "$BATS_TEST_TMPDIR/python3" || skip "needs a file system with capabilities"
  start_program setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/python3"
  for command in attach list; do
    run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" "$command" "$program"
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"$program: the kernel denies access: it has more rights than its user"* ]]
  done
  program_ends
}

# The launcher of this test is compiled for an architecture on which it can't call functions in other processes.
@test "where attach is not written for the architecture, it and doctor say how to start the program instead" {
  need gcc
  local python
  python=$(which_pythons '(3, 6) <= sys.version_info < (3, 14)' | head -n 1)
  [ "$python" ] || skip "needs a CPython below 3.14, which has no sys.remote_exec()"
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/other" CFLAGS='-O1 -DHAS_REMOTE_CALLS=0' "$BATS_TEST_TMPDIR/other/stap-python"
  launcher=$BATS_TEST_TMPDIR/other/stap-python
  make_tree
  cp "$shim" "$BATS_TEST_TMPDIR/tree/build"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  start_program "$python"
  attach_refuses "on this architecture attach works from CPython 3.14 on, and this is $(version_of "$python"): start it with stap-python run"
  program_ends
  launcher doctor >"$BATS_TEST_TMPDIR/doctor" 2>&1 || true
  cat "$BATS_TEST_TMPDIR/doctor"
  grep -qE '^note +attach +on this architecture stap-python attach works from CPython 3.14 on: start a program of an earlier one with stap-python run$' "$BATS_TEST_TMPDIR/doctor"
}

@test "attach refuses what the shim does not support: a shell, too old, free-threaded, musl, static" {
  need gcc
  local version level why
  sleep 600 &
  program=$!
  programs+=("$program")
  attach_refuses 'it does not run CPython'
  while IFS=: read -r version level why; do
    cat >"$BATS_TEST_TMPDIR/python.c" <<C
const char *Py_GetVersion(void) { return "$version"; }
const unsigned long Py_Version = 0x03000000 + (MINOR << 16) + 0x$level;
int sleep(int);
int main(void) { return sleep(600); }
C
    # shellcheck disable=SC2046
    gcc -rdynamic -fno-builtin -DMINOR="$(cut -d. -f2 <<<"$version")" -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
    "$BATS_TEST_TMPDIR/python3" &
    program=$!
    programs+=("$program")
    wait_for runs "$program" "$BATS_TEST_TMPDIR/python3"
    attach_refuses "the shim does not support it: $why"
    kill -0 "$program"
    rm "$BATS_TEST_TMPDIR/python3"
  done <<VERSIONS
3.5.2:02f0:it is older than CPython 3.6
3.$(($(untried_minor) + 1)).0:00f0:it is newer than CPython 3.$(untried_minor)
3.15.0a4 free-threading build (main):00a4:it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
3.14.3 free-threading build (main):03f0:it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
3.13.0 experimental free-threading build (main):00f0:it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
VERSIONS
  gcc -static -fno-builtin -DMINOR=11 -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
  "$BATS_TEST_TMPDIR/python3" &
  program=$!
  programs+=("$program")
  wait_for grep -q nanosleep "/proc/$program/wchan"
  attach_refuses 'it does not export CPython.s functions|it is statically linked'
  need musl-gcc
  sed -i 's/"3.13.*build (main)"/"3.11.0"/' "$BATS_TEST_TMPDIR/python.c"
  rm "$BATS_TEST_TMPDIR/python3"
  musl-gcc -rdynamic -fno-builtin -DMINOR=11 -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c"
  "$BATS_TEST_TMPDIR/python3" &
  program=$!
  programs+=("$program")
  wait_for grep -q nanosleep "/proc/$program/wchan"
  attach_refuses 'its C library is musl'
}

@test "attach says what to do where a library has used up the room for thread-local words; with run there is room" {
  need gcc
  # all that the linker has to spare, for libraries that are loaded later
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/big.so" -x c - <<'C'
__thread char big[1600] __attribute__((tls_model("initial-exec")));
char *touch(void) { return big; }
C
  cat >"$BATS_TEST_TMPDIR/taken.py" <<PY
import ctypes, sys
ctypes.CDLL("$BATS_TEST_TMPDIR/big.so")
sys.argv.pop(0)
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
PY
  start_program /usr/bin/python3 "$BATS_TEST_TMPDIR/taken.py"
  attach_refuses 'dlopen\(\) failed in it: .*static TLS block: libraries that it has loaded take all of that; start it with stap-python run CMD$'
  program_ends
  start_program "$launcher" run /usr/bin/python3 "$BATS_TEST_TMPDIR/taken.py"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: already active: $shim" ]
  program_ends
}

@test "attach calls nothing on a stack that is a file's: whoever serves it might never answer" {
  need gcc
  gcc -shared -fPIC -O1 -o "$BATS_TEST_TMPDIR/stacks.so" -x c - <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

int pthread_create(pthread_t *thread, const pthread_attr_t *theirs, void *(*start)(void *), void *argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    char name[] = "stackXXXXXX";
    int fd = mkstemp(name);
    pthread_attr_t attributes;
    void *stack;
    (void)theirs;
    if (fd < 0 || ftruncate(fd, SIZE) != 0)
        abort();
    stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (stack == MAP_FAILED || pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, stack, SIZE) != 0)
        abort();
    return next(thread, &attributes, start, argument);
}

/* Not in CPython's code, and in no system call. */
void spin(void)
{
    close(creat("spins", 0600));
    for (;;)
        __asm__ volatile("");
}
C
  cat >"$BATS_TEST_TMPDIR/spins.py" <<'PY'
import ctypes, sys, threading, time
sys.argv.pop(0)
threading.Thread(target=lambda: exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), {"__name__": "__main__"})).start()
ctypes.CDLL("./stacks.so").spin()
PY
  cd "$BATS_TEST_TMPDIR"
  start_program env LD_PRELOAD="$BATS_TEST_TMPDIR/stacks.so" /usr/bin/python3 "$BATS_TEST_TMPDIR/spins.py"
  grep -q ' rw-s .*/stack[^ /]*$' "/proc/$program/maps"
  wait_for test -e spins
  attach_refuses 'no thread reached a safe point within 5 s: try again'
}

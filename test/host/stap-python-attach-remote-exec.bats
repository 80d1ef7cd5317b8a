# stap-python: attach by sys.remote_exec().  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031,SC2034

load ../lib/helper
load ../lib/launcher

# The newest CPython from 3.14 on, in $newest.
find_newest() {
  local python
  newest=
  for python in $(pythons); do
    [ "$("$python" -c 'import sys; print(sys.version_info >= (3, 14))')" != True ] || newest=$python
  done
  [ -n "$newest" ] || skip "needs CPython 3.14 or later"
}

@test "attach asks a CPython 3.14 or later by sys.remote_exec()" {
  find_newest
  start_program "$newest"
  run launcher attach "$program"
  [ "$status $output" = "0 $program: active: $shim" ]
  program_ends
  refute compgen -G '/tmp/stap-python-*.py'
}

# Checks that attach loads the shim by ptrace(), or where it can't, says why sys.remote_exec() failed.
attaches_by_ptrace() {
  if has_remote_calls; then
    run launcher attach "$program"
    echo "$output"
    [ "$status $output" = "0 $program: active: $shim" ]
  else
    attach_refuses 'sys.remote_exec\(\) failed: .*'
  fi
  program_ends
  refute compgen -G '/tmp/stap-python-*.py'
}

@test "attach loads the shim where PYTHON_DISABLE_REMOTE_DEBUG has turned remote debugging off" {
  find_newest
  start_program env PYTHON_DISABLE_REMOTE_DEBUG=1 "$newest"
  attaches_by_ptrace
}

@test "attach loads the shim where -X disable-remote-debug has turned remote debugging off" {
  find_newest
  start_program "$newest" -X disable-remote-debug
  attaches_by_ptrace
}

@test "attach loads the shim into a CPython without sys.remote_exec(), and says why that failed if it can't" {
  find_newest
  need gcc
  # in one configured --without-remote-debug it raises at once, too
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/without.so" -x c - <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long count, const struct iovec *to,
                          unsigned long parts, unsigned long flags)
{
    if (strncmp(program_invocation_short_name, "python", 6) != 0)
        return syscall(SYS_process_vm_writev, pid, from, count, to, parts, flags);
    errno = EPERM;
    return -1;
}
C
  start_program "$newest"
  export LD_PRELOAD=$BATS_TEST_TMPDIR/without.so
  attaches_by_ptrace
  unset LD_PRELOAD
  # ptrace() fails, too
  make_tree
  make_broken_shim "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  start_program "$newest"
  export LD_PRELOAD=$BATS_TEST_TMPDIR/without.so
  ! has_remote_calls || attach_refuses 'undefined symbol: nowhere.*; before that, sys.remote_exec\(\) failed: PermissionError: .*'
  unset LD_PRELOAD
  program_ends
}

# Compiles a fake CPython 3.14.  Started by attach, it only writes mode, user, group and path of the script in its
# arguments to the file $started.
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
  local left
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  need gcc setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  make_fake_python
  chown 65534 "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/bin/python3"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[0]}"
  echo "$output"
  [ ! -e "$started" ]
  ! has_remote_calls || [ "$status $output" = "1 $(does_nothing "${programs[0]}")" ]
  has_remote_calls || [[ $output == *"run this as its user" ]]
  # nor one whose library another user can change
  chown 0 "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/bin/python3"
  mkdir -p "$BATS_TEST_TMPDIR/lib/python3.14"
  : >"$BATS_TEST_TMPDIR/lib/python3.14/os.py"
  chown 65534 "$BATS_TEST_TMPDIR/lib/python3.14"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[1]}"
  echo "$output"
  [ ! -e "$started" ]
  # it does start root's own
  chown 0 "$BATS_TEST_TMPDIR/lib/python3.14"
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[2]}"
  cat "$started"
  # its user can't change what the process runs: the PID may be another one's by then, with more rights
  [[ $(cat "$started") == "1644 0 0 /tmp/stap-python-${programs[2]}-"*.py ]]
  # what was not run is removed after the program's end
  left=$(cut -d' ' -f4 "$started")
  [ -e "$left" ]
  kill -KILL "${programs[2]}"
  wait "${programs[2]}" || true
  "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  launcher attach "$!" || true
  [ ! -e "$left" ]
  rm "$(cut -d' ' -f4 "$started")"
}

@test "attach asks no program by sys.remote_exec() that doesn't see our /tmp, nor leaves a script behind" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need gcc unshare
  local before
  before=$(compgen -G '/tmp/stap-python-*.py' || true)
  make_fake_python
  unshare -m sh -c "mount -t tmpfs none /mnt && exec '$BATS_TEST_TMPDIR/bin/python3'" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  run launcher attach "${programs[0]}"
  echo "$output"
  [ ! -e "$started" ] || rm "$(cut -d' ' -f4 "$started")"
  [ ! -e "$started" ]
  ! has_remote_calls || [ "$status $output" = "1 $(does_nothing "${programs[0]}")" ]
  has_remote_calls || [[ $output == *"has its own mounts"* ]]
  # its sys.remote_exec() fails
  "$BATS_TEST_TMPDIR/bin/python3" &
  programs+=($!)
  wait_for runs "$!" "$BATS_TEST_TMPDIR/bin/python3"
  mkdir "$started"
  run launcher attach "${programs[1]}"
  echo "$output"
  ! has_remote_calls || [ "$status $output" = "1 $(does_nothing "${programs[1]}")" ]
  has_remote_calls || [[ $output == *"sys.remote_exec() failed"* ]]
  [ "$(compgen -G '/tmp/stap-python-*.py')" = "$before" ]
}

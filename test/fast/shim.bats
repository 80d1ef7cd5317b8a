# The shim as a file, and in programs that are not traced.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

@test "the markers are those of the ABI, with these arguments" {
  need readelf
  local snapshot
  snapshot=$top/test/markers.$(uname -m)
  [ -e "$snapshot" ] || skip "needs a machine for which there is a snapshot: $(cd "$top/test" && echo markers.*)"
  # on x86-64 each has two sites
  if [ "$(uname -m)" = x86_64 ]; then
    diff <(sed p "$snapshot") <(marker_notes "$shim")
  else
    diff <(sort "$snapshot") <(marker_notes "$shim" | sort -u)
  fi
}

@test "every marker has a semaphore of its own, and OpenTelemetry's those of the same events" {
  local semaphores=$BATS_TEST_TMPDIR/of_names
  need readelf
  semaphore_notes "$shim" | sort -u >"$semaphores"
  grep '^python ' "$semaphores" | cut -d' ' -f3 >"$BATS_TEST_TMPDIR/semaphores"
  [ "$(grep ' memory__sample ' "$semaphores" | cut -d' ' -f3)" = "$(grep '^otel_memory alloc ' "$semaphores" | cut -d' ' -f3)" ]
  [ "$(grep ' memory__free ' "$semaphores" | cut -d' ' -f3)" = "$(grep '^otel_memory free ' "$semaphores" | cut -d' ' -f3)" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/semaphores")" = "$(grep -c ' probe ' "$top/probes/python.d")" ]
  [ -z "$(sort "$BATS_TEST_TMPDIR/semaphores" | uniq -d)" ]
  refute grep -x 0x0000000000000000 "$BATS_TEST_TMPDIR/semaphores"
}

@test "the shim exports what makes it importable and what tells it of a library that comes later, and needs libc alone" {
  need readelf
  run readelf --wide --dyn-syms "$shim"
  [ "$status" = 0 ]
  [ "$(awk '$5 ~ /GLOBAL|WEAK/ && $7 != "UND" { print $8 }' <<<"$output" | sort)" = $'PyInit_python_stap\nPyInit_python_stap_attach\n__gmon_start__' ]
  run readelf --wide --dynamic "$shim"
  [ "$status" = 0 ]
  [ -z "$(awk '/NEEDED/ && !/\[(lib(c|dl|pthread)|ld-linux.*)\.so/' <<<"$output")" ]
}

@test "a program that is no Python runs with the shim as without" {
  run env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" ls /
  [ "$status" = 0 ]
  [ "$output" = "$(ls /)" ]
  run env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" bash -c '(exit 4); echo $?; grep Threads /proc/self/status'
  [ "$output" = $'4\nThreads:\t1' ]
}

@test "a program that is static, has set-user-ID or another C library runs with the shim as without" {
  need gcc
  cd "$BATS_TEST_TMPDIR"
  cat >program.c <<'C'
#include <stdio.h>
int main(void)
{
    puts("printed");
    return 3;
}
C
  gcc -static -o static program.c
  gcc -o setuid program.c
  [ "$(id -u)" = 0 ] && chown 65534 setuid # another user, so that the dynamic linker is wary
  chmod u+s setuid
  type -P musl-gcc >/dev/null && musl-gcc -o musl program.c
  chmod 755 . program.c
  for program in static setuid musl; do
    [ -e "$program" ] || skip "needs musl-gcc, for the last of three programs"
    run env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" "./$program"
    echo "$program: $output"
    [ "$status" = 3 ]
    [ "$output" = printed ]
  done
}

@test "a CPython that is not for the shim is left alone, and PYTHON_STAP_DEBUG says why" {
  need gcc
  local version why
  cat >"$BATS_TEST_TMPDIR/python.c" <<'C'
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
const char *Py_GetVersion(void)
{
    return VERSION;
}
int main(void)
{
    struct stat threads;
    usleep(50000);
    stat("/proc/self/task", &threads);
    printf("threads: %d\n", (int)threads.st_nlink - 2);
    return 3;
}
C
  while IFS=: read -r version why; do
    gcc -rdynamic -DVERSION="\"$version\"" -o "$BATS_TEST_TMPDIR/python" "$BATS_TEST_TMPDIR/python.c"
    run env PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" "$BATS_TEST_TMPDIR/python"
    echo "$version: $output"
    [ "$status" = 3 ]
    [[ $output == *"]: $why"*$'\nthreads: 1' ]]
    run env LD_PRELOAD="$shim" "$BATS_TEST_TMPDIR/python"
    [ "$status $output" = "3 threads: 1" ]
  done <<'VERSIONS'
2.7.18 (default):not CPython 3.6 or later
3.5.2 (default):not CPython 3.6 or later
3.13.0 experimental free-threading build (main):free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported
3.14.0 free-threading build (main):free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported
3.14.3 free-threading build (main):free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported
3.15.0a4 free-threading build (main):free-threaded builds before CPython 3.14.4 and 3.15.0b1 are not supported
3.14.4 free-threading build (main):CPython does not export Py_IsInitialized
3.15.0rc1 free-threading build (main):CPython does not export Py_IsInitialized
3.12.1 (main):CPython does not export Py_IsInitialized
VERSIONS
}

@test "a Python that nobody traces prints, warns and ends with the shim as without" {
  local python program='
import os, subprocess, sys, threading, warnings
warnings.simplefilter("error")
thread = threading.Thread(target=print, args=("thread", threading.active_count()))
thread.start()
thread.join()
import logging, random  # they have at-fork handlers in Python
pid = os.fork()
if pid == 0:
    print("child")
    sys.stdout.flush()
    os._exit(3)
print("parent", os.waitpid(pid, 0)[1] >> 8)
sys.stdout.flush()
subprocess.check_call([sys.executable, "-c", "print(1)"])
sys.exit(4)'
  for python in $(pythons) $(refused_pythons); do
    run "$python" -X dev -c "$program"
    local plain_status=$status plain_output=$output
    run env LD_PRELOAD="$shim" "$python" -X dev -c "$program"
    echo "$python: $output"
    [ "$status" = "$plain_status" ]
    [ "$output" = "$plain_output" ]
  done
}

# 3.12 and later warn at a fork if the process has several threads.  The filters above make this warning an error, which
# os.fork() drops.
@test "a program of one thread forks without a warning of threads, again and again" {
  local python program='
import os
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
print("ended")'
  for python in $(pythons) $(refused_pythons); do
    run env LD_PRELOAD="$shim" "$python" -W always -c "$program"
    echo "$python: $output"
    [ "$status $output" = "0 ended" ]
  done
}

# The kernel counts an ended thread until it is reaped, which a ptracer of the thread can delay.
@test "a program forks without a warning of threads where the shim's thread ends slowly" {
  local python tracer='
import ctypes, os, subprocess, sys, time
SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
program = """if True:
    import os
    print(flush=True)
    input()
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    print("ended")"""
child = subprocess.Popen([sys.argv[1], "-W", "always", "-c", program], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=dict(os.environ, LD_PRELOAD=sys.argv[2]))
child.stdout.readline()
[thread] = set(map(int, os.listdir(f"/proc/{child.pid}/task"))) - {child.pid}
assert libc.ptrace(SEIZE, thread, 0, 0) == 0, os.strerror(ctypes.get_errno())
child.stdin.write("\n")
child.stdin.flush()
while ") Z" not in open(f"/proc/{child.pid}/task/{thread}/stat").read():
    time.sleep(0.001)
time.sleep(0.03)
os.waitpid(thread, 0x40000000)  # __WALL
print(child.stdout.read(), end="")'
  for python in $(pythons) $(refused_pythons); do
    run /usr/bin/python3 -c "$tracer" "$python" "$shim"
    echo "$python: $output"
    [ "$status $output" = "0 ended" ]
  done
}

@test "a process that a thread forked ends when that thread does, with the shim as without" {
  local python program='
import os, threading
def worker():
    pid = os.fork()
    if pid == 0:
        print("child", flush=True)
    else:
        print("child ended", os.waitpid(pid, 0)[1])
thread = threading.Thread(target=worker)
thread.start()
thread.join()'
  for python in $(pythons) $(refused_pythons); do
    # 3.12 and later warn of the fork, with the shim and without, in the middle of the rest
    run timeout -k 5 $((20 * SLOW)) env LD_PRELOAD="$shim" "$python" -W ignore -c "$program"
    echo "$python: $status $output"
    [ "$status" = 0 ]
    [ "$output" = $'child\nchild ended 0' ]
  done
}

@test "PYTHON_STAP=off keeps the shim out: there is no thread of it" {
  local count='print(open("/proc/self/status").read().split("Threads:")[1].split()[0])'
  [ "$(LD_PRELOAD=$shim /usr/bin/python3 -c "$count")" = 2 ]
  [ "$(PYTHON_STAP=off LD_PRELOAD=$shim /usr/bin/python3 -c "$count")" = 1 ]
}

@test "where ld.so.preload loads it into a program with more rights than its caller's, no variable of the caller's counts" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a mount namespace"
  need setpriv setcap unshare
  echo 'import os; print(len(os.listdir("/proc/self/task")))' >"$BATS_TEST_TMPDIR/threads.py"
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  for program in plain capable setuid; do
    cp "$(readlink -f /usr/bin/python3)" "$BATS_TEST_TMPDIR/$program"
  done
  setcap cap_net_raw+ep "$BATS_TEST_TMPDIR/capable" || skip "needs a file system with capabilities"
  chmod u+s "$BATS_TEST_TMPDIR/setuid"
  export shim threads=$BATS_TEST_TMPDIR/threads.py
  # shellcheck disable=SC2016
  as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups env PYTHON_STAP_DEBUG=1 "$@" "$threads" 2>&1'
  # LD_PRELOAD does not load it there
  [ "$(LD_PRELOAD=$shim sh -c "$as_nobody" sh "$BATS_TEST_TMPDIR/plain" | tail -n 1)" = 2 ]
  [ "$(LD_PRELOAD=$shim sh -c "$as_nobody" sh "$BATS_TEST_TMPDIR/capable")" = 1 ]
  [ "$(LD_PRELOAD=$shim sh -c "$as_nobody" sh "$BATS_TEST_TMPDIR/setuid")" = 1 ]
  preloaded() {
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs none /etc && echo "$shim" >/etc/ld.so.preload && '"$as_nobody" sh "$@"
  }
  # the variables' effect, where they count
  run preloaded PYTHON_STAP=on "$BATS_TEST_TMPDIR/plain"
  [[ $output == *"PYTHON_STAP=on is none of"*$'\n1' ]]
  for program in capable setuid; do
    run preloaded PYTHON_STAP=on "$BATS_TEST_TMPDIR/$program"
    echo "$program: $output"
    [ "$status $output" = "0 2" ]
  done
}

@test "a program that gives up root gives it up in the shim's thread too" {
  [ "$(id -u)" = 0 ] || skip "needs root, to give it up"
  local python
  for python in $(pythons_by_hook); do
    run timeout -k 5 $((20 * SLOW)) env LD_PRELOAD="$shim" "$python" -c '
import os
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for task in os.listdir("/proc/self/task"):
    for line in open("/proc/self/task/%s/status" % task):
        if line.startswith(("Uid", "Gid", "CapEff", "Groups")):
            print(*line.split())'
    echo "$python: $output"
    [ "$(sort <<<"$output" | uniq -c | sed 's/^ *//')" = "2 CapEff: 0000000000000000
2 Gid: 65534 65534 65534 65534
2 Groups:
2 Uid: 65534 65534 65534 65534" ]
  done
}

@test "what a program gives up in one thread alone the shim's thread keeps, which isn't there with PYTHON_STAP=off" {
  cat >"$BATS_TEST_TMPDIR/filtered.py" <<'PY'
import ctypes, os, struct

libc = ctypes.CDLL(None)
# a filter that lets everything pass; without SECCOMP_FILTER_FLAG_TSYNC
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
for task in os.listdir("/proc/self/task"):
    text = open("/proc/self/task/%s/status" % task).read()
    print(text.split()[1], text.split("Seccomp:")[1].split()[0])
PY
  run env LD_PRELOAD="$shim" /usr/bin/python3 "$BATS_TEST_TMPDIR/filtered.py"
  [ "$(sort <<<"$output")" = $'python-stap 0\npython3 2' ]
  run env PYTHON_STAP=off LD_PRELOAD="$shim" /usr/bin/python3 "$BATS_TEST_TMPDIR/filtered.py"
  [ "$output" = 'python3 2' ]
}

@test "a word that PYTHON_STAP doesn't know is named, with PYTHON_STAP_DEBUG, and means off" {
  run env PYTHON_STAP=on PYTHON_STAP_DEBUG=1 LD_PRELOAD="$shim" /usr/bin/python3 -c 'print(1)'
  [ "$status" = 0 ]
  [[ $output == *"PYTHON_STAP=on is none of auto, all, off"* ]]
}

@test "PYTHON_STAP_MEMORY is a number of bytes; what isn't one, or is too large, is not taken" {
  local value
  make_semaphores "$BATS_TEST_TMPDIR" memory__sample
  for value in =524288 1=1 8192=8192 1073741824=1073741824 0=524288 64k=524288 -1=524288 1073741825=524288 \
    18446744073709551617=524288; do
    echo "$value"
    env PYTHON_STAP_MEMORY="${value%=*}" PYTHON_STAP_DEBUG=1 LD_PRELOAD="$BATS_TEST_TMPDIR/semaphores.so $shim" \
      /usr/bin/python3 -c '' 2>"$BATS_TEST_TMPDIR/log"
    grep "memory hook: a sample each ${value#*=} bytes$" "$BATS_TEST_TMPDIR/log"
  done
}

@test "the shim has a row for each of its sites, which tells whether a tracer probes it" {
  local size
  size=$(readelf --wide --sections "$shim" | sed -nE 's/.* \.python_sites +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) .*/\1/p')
  [ $((16#$size / 16)) = "$(readelf --wide --notes "$shim" | grep -c 'Location: ')" ]
}

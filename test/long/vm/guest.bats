#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# test/vm: stap behaves as stap also if it needs the guest. Its runs are compared
# with plain stap inside of the guest. One guest serves the whole suite, in a state
# folder of its own; tests that break or stop it start it again.
#
# shellcheck disable=SC2009 # pgrep shows no arguments
# shellcheck disable=SC2016 # what is in single quotes is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and its settings are its own

bats_require_minimum_version 1.5.0

setup_file() {
  top=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
  export top vm=$top/test/vm STAP_VM=always STAP_VM_DIR=$top/build/vm-100
  export ENDS='probe begin { println("begins") } probe end { println("ends") }'
  PATH=$vm:$PATH
  unset SYSTEMTAP_DIR SYSTEMTAP_RUNTIME SYSTEMTAP_TAPSET
  timeout -k 5 200 guest start
  # The first one tries the kernel's headers, which takes longer than run_stap waits.
  timeout -k 5 300 stap -p4 -e "$ENDS" >/dev/null
}

teardown_file() { timeout -k 5 60 guest stop; }

setup() {
  job=
  cd "$BATS_TEST_TMPDIR" || exit
}

teardown() { [ -z "$job" ] || kill -KILL "$job" $(pgrep -P "$job") 2>/dev/null || true; }

# run_stap ARGS...: as `run --separate-stderr`, within 40 seconds. A test that
# fails shows what it printed here.
run_stap() {
  run --separate-stderr timeout -k 5 40 stap "$@"
  printf "%s\n" "status $status" "$output" "$stderr"
}

# in_guest CMD...: in the guest of these tests.
in_guest() { timeout -k 5 60 guest exec -- "$@"; }

# plain ARGS...: runs stap itself in the guest, after compiling the script here. Sets
# plain_status, plain_out and plain_err.
plain() {
  local kver settings=(SYSTEMTAP_DIR="$top/build/systemtap")
  kver=$(in_guest uname -r)
  settings+=(SYSTEMTAP_RUNTIME="$("$vm/runtime")")
  env "${settings[@]}" timeout -k 5 300 /usr/bin/stap -r "$kver" -p4 "$@" </dev/null &>/dev/null || true
  plain_status=0
  timeout -k 5 180 guest exec -- env "${settings[@]}" /usr/bin/stap "$@" </dev/null >plain.out 2>plain.err || plain_status=$?
  plain_out=$(<plain.out) plain_err=$(<plain.err)
}

# same_as_plain ARGS...: run_stap gives just what plain gives.
same_as_plain() {
  plain "$@"
  run_stap "$@" </dev/null
  diff <(echo "$plain_out") <(echo "$output")
  diff <(echo "$plain_err") <(echo "$stderr")
  [ "$status" = "$plain_status" ]
}

# The probing processes and the modules in the guest.
leftovers() { in_guest sh -c 'for name in stapsh staprun stapio; do pgrep -lx $name; done; pgrep -af ^marker-; grep ^stap_ /proc/modules; true'; }
marked() { [[ $(leftovers) == *marker-100* ]]; }

# Our processes on the host, except the guest's own.
host_processes() { ps -eo args= | grep -e "$STAP_VM_DIR" -e 'println("begins")' | grep -v -e ^qemu -e virtiofsd -e 'guest guard' -e grep || true; }

# await SECONDS CMD...: until CMD succeeds.
await() {
  local deadline=$((SECONDS + $1))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

pid_of() { cut -d' ' -f1 "$STAP_VM_DIR/$1.pid"; }

@test "a script prints, exits with 0, and says what plain stap says" {
  same_as_plain -e 'probe begin { println("hello"); exit() }'
  [ "$output" = hello ]
  [ "$status" = 0 ]
}

@test "an error in the script at run time is reported as by plain stap" {
  same_as_plain -e 'probe begin { println("out"); warn("careful"); error("broken") }'
  [ "$output" = out ]
  [[ $stderr == *careful*broken* ]]
  [ "$status" = 1 ]
}

@test "a syntax error is reported as by plain stap" {
  same_as_plain -e 'probe begin {'
  [[ $stderr == *"parse error"* ]]
  [ "$status" = 1 ]
}

@test "an unknown probe point is reported as by plain stap" {
  same_as_plain -e 'probe no.such.probe { println("never") }'
  [[ $stderr == *"no"* ]]
  [ "$status" = 1 ]
}

@test "a -c command that does not exist fails as with plain stap" {
  # stap itself loses what an end probe prints there, in one of twenty runs
  same_as_plain -e 'probe begin { println("begins") }' -c /no/such/command
  [ "$status" = 1 ]
}

@test "a -c command that fails makes the run fail as with plain stap" {
  same_as_plain -e "$ENDS" -c 'sh -c "exit 3"'
  [[ $stderr == *"status 3"* ]]
  [ "$status" = 1 ]
}

@test "a -c command that a signal kills makes the run fail as with plain stap" {
  same_as_plain -e "$ENDS" -c 'sh -c "kill -KILL \$\$"'
  [ "$status" = 1 ]
}

@test "-w silences the warnings as with plain stap" {
  same_as_plain -w -e "$ENDS" -c 'sh -c "exit 3"'
  [[ $stderr != *"staprun exited"* ]]
}

@test "-V, -p4 and a script that does not compile start no guest" {
  export STAP_VM_DIR=$BATS_TEST_TMPDIR/none
  run_stap -V
  [ "$status" = 0 ]
  [[ $output$stderr == *"version "* ]]
  run_stap -p4 -e 'probe begin { println("hello"); exit() }'
  [ "$status" = 0 ]
  [[ $output == *.ko ]]
  run_stap -e 'probe begin {'
  [ "$status" = 1 ]
  run ! test -e "$STAP_VM_DIR/qemu.pid"
}

@test "a -c command has the caller's working directory, environment and stdin" {
  mkdir "a folder"
  cd "a folder"
  export ODD=$'two  spaces, a "quote"\nand a new line'
  printf 'line %d\n' 1 2 3 >input
  run_stap -w -e "$ENDS" -c 'sh -c "pwd; printenv ODD; tail -n 1"' <input
  [ "$status" = 0 ]
  [[ $output == *"$PWD"$'\n'"$ODD"$'\n'"line 3"* ]]
  [ "$(in_guest printenv HOME)" = "$HOME" ]
  run ! in_guest printenv STAP_VM_RUN
}

@test "a -c command gets the caller's PATH, not our stand-in's" {
  run_stap -w -e "$ENDS" -c 'printenv PATH' </dev/null
  [ "$output" = "begins"$'\n'"$PATH"$'\n'"ends" ]
}

# A caller that ignores SIGPIPE (many CI systems): what writes on to a reader that has gone says so.
@test "where SIGPIPE is ignored stap says no more than plain stap" {
  local many
  many=$(printf '/usr/bin:%.0s' {1..9000})
  (trap '' PIPE && PATH="$PATH:$many" stap -V >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/said")
  cat "$BATS_TEST_TMPDIR/said"
  grep -F 'Systemtap translator' "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/said"
  run ! grep -F 'Broken pipe' "$BATS_TEST_TMPDIR/said"
}

@test "arguments of a -c command keep their spaces and quotes" {
  cat >args <<<'printf "[%s]" "$@"; echo'
  run_stap -w -e "$ENDS" -c "sh args 'a  b' \"it's\" \\\"q\\\" '' end" </dev/null
  [[ $output == *"[a  b][it's][\"q\"][][end]"* ]]
}

@test "a folder outside of the project and /tmp is visible too" {
  folder=$(mktemp -d /var/tmp/stap-vm.XXXXXX)
  cd "$folder"
  run_stap -w -e "$ENDS" -c pwd </dev/null
  cd / && rmdir "$folder"
  [[ $output == *"$folder"* ]]
}

@test "a run without -c leaves stdin alone" {
  printf '%s\n' first second >list
  while read -r line; do
    timeout -k 5 40 stap -w -e 'probe begin { println(@1); exit() }' "$line"
  done <list >out
  diff list out
}

@test "a script can come from stdin, and takes arguments" {
  run_stap -w - 'one  argument' 7 <<<'probe begin { printf("<%s> %d\n", @1, $2 * 6); exit() }'
  [ "$output" = "<one  argument> 42" ]
  [ "$status" = 0 ]
}

@test "-o writes a file here" {
  run_stap -w -o out.txt -e 'probe begin { println("to a file"); exit() }'
  [ "$(<out.txt)" = "to a file" ]
  [ "$output" = "" ]
}

@test "a large output arrives complete, on stdout and in a file" {
  script='global n probe timer.ms(1) { for (i = 0; i < 100; i++) printf("line %d of the large output\n", n++); if (n >= 20000) exit() }'
  timeout -k 5 60 stap -w -s 8 -e "$script" >out
  diff <(seq -f 'line %g of the large output' 0 19999) out
  timeout -k 5 60 stap -w -s 8 -o out2 -e "$script"
  diff out out2
}

@test "3,000 lines of 2 KB from an end probe arrive complete, on stdout and in a file" {
  script='probe timer.ms(100) { exit() }
    probe end { for (i = 0; i < 199; i++) line .= "0123456789"
      for (i = 1; i <= 3000; i++) printf("%09d %s\n", i, line) }'
  for n in 1 2; do
    out=()
    [ $n = 1 ] || out=(-o out2)
    timeout -k 5 120 stap -w -DMAXSTRINGLEN=2000 -DMAXACTION=10000 "${out[@]}" -e "$script" >out1
    awk '$1 == NR && length == 2000 { whole++ } END { print whole + 0, NR; exit whole != 3000 || NR != 3000 }' "out$n"
  done
}

@test "-x sees only the process with that PID in the guest" {
  [ -x /usr/bin/python3.11 ] || skip "needs /usr/bin/python3.11, whose gc__start marker is probed"
  for n in 1 2; do
    in_guest /usr/bin/python3.11 -c "import gc, os, time
print(os.getpid(), file=open('pid$n', 'w'))
while True: gc.collect(); time.sleep(0.2)" 3>&- &
  done
  await 30 test -s pid1 -a -s pid2
  script='global pids
    probe process("/usr/bin/python3.11").mark("gc__start") { pids[pid()]++ }
    probe timer.s(3) { foreach (p+ in pids) println(p); exit() }'
  timeout -k 5 40 stap -w -e "$script" >all
  run_stap -w -x "$(<pid2)" -e "$script"
  in_guest sh -c 'kill $(cat pid1 pid2)'
  wait
  diff <(sort -n pid1 pid2) all
  [ "$output" = "$(<pid2)" ]
}

# begin_run ARGS...: stap in the background, until its begin probe has printed.
begin_run() {
  rm -f out err
  timeout -k 15 "${lives_for:-60}" stap -w -e "$ENDS" "$@" >out 2>err </dev/null 3>&- &
  job=$!
  await 30 grep -q begins out
}

# end_run SIGNAL: sends it to the run's process group, as a terminal or timeout does.
end_run() {
  kill -"$1" "$job"
  status=0
  wait "$job" || status=$?
}

@test "SIGINT ends the probing, and the end probe prints" {
  begin_run
  end_run INT
  diff <(printf '%s\n' begins ends) out
  [ ! -s err ]
  [ "$status" = 0 ]
  [ "$(leftovers)" = "" ]
}

@test "SIGINT to stap alone does the same" {
  begin_run
  kill -INT "$(pgrep -P "$job")"
  wait "$job"
  diff <(printf '%s\n' begins ends) out
  [ ! -s err ]
}

@test "SIGTERM, as from timeout, leaves no process here, and none of the run in the guest" {
  begin_run -c 'bash -c "exec -a marker-100 sleep 1000"'
  await 10 marked
  SECONDS=0
  end_run TERM
  [ "$SECONDS" -lt 15 ]
  diff <(printf '%s\n' begins ends) out
  [ "$(host_processes)" = "" ]
  [ "$(leftovers)" = "" ]
}

@test "a run that is killed outright leaves nothing behind either" {
  begin_run -c 'bash -c "exec -a marker-100 sleep 1000"'
  await 10 marked
  kill -KILL -- $(pgrep -P "$job") "$job"
  sleep 6
  [ "$(host_processes)" = "" ]
  [ "$(leftovers)" = "" ]
}

@test "two runs at the same time don't mix" {
  for n in 1 2; do
    timeout -k 5 40 stap -w -e 'probe timer.s(2) { println("run ", @1); exit() }' $n -c 'sleep 20' >out$n </dev/null &
  done
  wait
  [ "$(cat out1 out2)" = "run 1"$'\n'"run 2" ]
}

@test "guest exec gives the command's output and exit status" {
  run --separate-stderr in_guest sh -c 'cat; echo err >&2; exit 7' <<<"from stdin"
  [ "$output" = "from stdin" ]
  [ "$stderr" = err ]
  [ "$status" = 7 ]
}

@test "guest exec that is interrupted leaves nothing in the guest" {
  timeout 3 guest exec -- bash -c 'exec -a marker-100 sleep 1000' </dev/null || true
  sleep 3
  [ "$(leftovers)" = "" ]
}

@test "the kernel's code is changed under programs that run it, as each run of stap does, and the guest lives" {
  cat >toggle.sh <<'SH'
cd /sys/kernel/tracing/events/raw_syscalls/sys_enter || exit
for i in 1 2; do while :; do read -r _ </proc/uptime; done & done
for ((i = 0; i < 500 && SECONDS < 20; i++)); do echo 1 >enable && echo 0 >enable || exit; done
kill %1 %2
SH
  in_guest bash "$PWD/toggle.sh"
}

# lose_guest PART SIGNAL SECONDS WHY: a run where the guest's QEMU, or a server of its
# files, gets the signal ends in that time and says why, and the next one works.
lose_guest() {
  begin_run
  kill -"$2" "$(pid_of "$1")"
  SECONDS=0
  wait "$job" && status=0 || status=$?
  cat err
  [ "$status" = 1 ]
  [ "$SECONDS" -lt "$3" ]
  grep -qx "test/vm/stap: the guest died during this run$4;.*" err
  run_stap -w -e 'probe begin { println("again"); exit() }'
  [ "$output" = again ]
  [ "$status" = 0 ]
}

@test "a guest that is killed in mid-run ends the run, and the next run works" {
  lose_guest qemu KILL 10 ''
}

@test "a guest that hangs in mid-run ends the run, and the next run works" {
  lose_guest qemu STOP 25 ''
}

@test "a guest whose server of files is killed in mid-run ends the run, and the next run works" {
  [ "$(id -u)" = 0 ] || skip "needs root, whose virtiofsd needs no sudo"
  lose_guest share KILL 10 ' (its virtiofsd of share ended)'
  lose_guest root KILL 10 ' (its virtiofsd of root ended)'
}

@test "the next run works, too, if the server of files was killed just before it" {
  [ "$(id -u)" = 0 ] || skip "needs root, whose virtiofsd needs no sudo"
  in_guest true
  kill -KILL "$(pid_of share)"
  run_stap -w -e 'probe begin { println("again"); exit() }'
  [ "$output" = again ]
  [ "$status" = 0 ]
}

@test "a guest whose server of files hangs in mid-run ends the run, and the next run works" {
  [ "$(id -u)" = 0 ] || skip "needs root, whose virtiofsd needs no sudo"
  timeout -k 5 60 guest stop
  STAP_VM_WAIT=5 timeout -k 5 200 guest start
  lives_for=200
  lose_guest share STOP 150 ' (it has written to no file for 10[0-9] seconds)'
}

@test "a server of files that is killed while the guest boots costs one try" {
  [ "$(id -u)" = 0 ] || skip "needs root, whose virtiofsd needs no sudo"
  timeout -k 5 60 guest stop
  timeout -k 5 100 guest start 3>&- &
  job=$!
  await 20 test -s "$STAP_VM_DIR/qemu.pid"
  # it is connected then, and lives on without it
  sleep 2
  kill -KILL "$(pid_of share)"
  wait "$job"
  guest check
}

@test "start begins the guard that an interrupted start did not, and status knows of the files" {
  [ "$(id -u)" = 0 ] || skip "needs root, whose virtiofsd needs no sudo"
  timeout -k 5 60 guest start
  first=$(pid_of guard)
  kill -KILL -- "-$first"
  timeout -k 5 60 guest start
  [ "$(pid_of guard)" != "$first" ]
  kill -0 "$(pid_of guard)"
  kill -KILL -- "-$(pid_of guard)"
  kill -KILL "$(pid_of share)"
  run guest status
  [ "$status" = 1 ]
  [ "$output" = "not running" ]
}

@test "a guest that answers late when a run has lost its connection lives on, with STAP_VM_WAIT" {
  export STAP_VM_WAIT=40
  begin_run
  guest=$(pid_of qemu)
  kill -STOP "$guest"
  kill -KILL "$(pgrep -f "^[^ ]*ssh -F $STAP_VM_DIR/ssh_config vm exec .* stapsh")"
  (sleep 8 && kill -CONT "$guest") 3>&- &
  wait "$job" || true
  grep -qx 'test/vm/stap: the connection to the guest was lost.*' err
  [ "$(pid_of qemu)" = "$guest" ]
  guest check 40
}

@test "guest stop leaves no process behind, and status says so" {
  run timeout -k 5 60 guest start
  [ "$status" = 0 ]
  run guest status
  [ "$status" = 0 ]
  [[ $output == running* ]]
  timeout -k 5 20 guest stop
  run ! pgrep -f "$STAP_VM_DIR"
  run guest status
  [ "$status" = 1 ]
  timeout -k 5 20 guest stop
}

@test "starting twice at the same time gives one guest" {
  timeout -k 5 20 guest stop
  for n in 1 2 3; do timeout -k 5 60 guest start & done
  wait
  [ "$(pgrep -c -f "^qemu.*$STAP_VM_DIR/")" = 1 ]
}

@test "an idle guest goes away by itself" {
  export STAP_VM_DIR=$BATS_TEST_TMPDIR/idle STAP_VM_IDLE=2
  timeout -k 5 60 guest start
  await 20 bash -c '! pgrep -f "$STAP_VM_DIR"'
  run guest status
  [ "$status" = 1 ]
}

@test "bad usage is one line on stderr and exit status 2" {
  for args in bogus "exec" "start now" "exec --"; do
    # shellcheck disable=SC2086
    run --separate-stderr timeout 10 guest $args
    [ "$status" = 2 ]
    [ "${#stderr_lines[@]}" = 1 ]
  done
  STAP_VM=perhaps run --separate-stderr timeout 10 stap -V
  [ "$status" = 2 ]
  run guest --help
  [ "$status" = 0 ]
  [[ $output == *STAP_VM_IDLE* ]]
}

@test "where modules can be loaded a command of exec runs here" {
  export STAP_VM_DIR=$PWD/none
  run env STAP_VM=never timeout 10 "$vm/guest" exec -- readlink /proc/self/ns/pid
  [ "$output" = "$(readlink /proc/self/ns/pid)" ]
  [ ! -e none/qemu.pid ]
}

@test "where modules can be loaded stap is called directly" {
  mkdir bin
  printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit 5\n' >bin/stap
  chmod +x bin/stap
  export PATH=$PWD/bin:$PATH STAP_VM_DIR=$PWD/none
  # without headers for this machine's kernel stderr says so
  run --separate-stderr env STAP_VM=never timeout 10 "$vm/stap" -e 'a  script' -x 1
  [ "$output" = "<-e><a  script><-x><1>" ]
  [ "$status" = 5 ]
  run --separate-stderr env STAP_VM=always timeout 10 "$vm/stap" -x 1
  [ "$output" = "<--remote=vm><-x><1>" ]
  [ ! -e none/qemu.pid ]
}

@test "the guest's clocks go by this machine's time stamp counter, however busy it is as the guest boots" {
  [ "$(uname -m)" = x86_64 ] || skip "needs a machine of x86-64"
  local khz
  khz=$("$top/build/vm-image/$(in_guest uname -r)/tsc_khz")
  # two measurements of it differ by a few millionths
  in_guest cat /proc/cmdline | awk -v khz="$khz" 'match($0, /tsc_early_khz=[0-9]+/) { found = substr($0, RSTART + 14, RLENGTH - 14) + 0 }
    { print khz, found } END { exit found < khz * 0.999 || found > khz * 1.001 }'
  [ "$(in_guest cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = tsc ]
  [ "$(in_guest dmesg | grep -ci unstable)" = 0 ]
}

@test "a program runs its own code where another's was in memory before" {
  local number
  # 256 pages of code, which differ in a number
  {
    printf '__attribute__((noinline, aligned(4096))) int f%d(void) { return NUMBER + %d; }\n' {1..256}{,}
    echo 'int main(void) { return !(1'
    printf '&& f%d() == NUMBER + %d\n' {1..256}{,}
    echo '); }'
  } >program.c
  for number in {1..12}; do cc -O0 -DNUMBER="${number}000" -o "program$number" program.c; done
  in_guest sh -c 'cd "$1"
    for number in $(seq 48 | sort -R); do
      "./program$((number % 12 + 1))" || echo "program$((number % 12 + 1)): $?"
      echo 3 >/proc/sys/vm/drop_caches
    done' - "$PWD" | diff - /dev/null
}

@test "a guest that counts instructions: each is a nanosecond, addresses are the same in each process" {
  [ "$(uname -m)" = x86_64 ] || skip "its loop is x86-64's"
  cat >loop.c <<'END'
#include <stdio.h>
#include <time.h>

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(void)
{
    long best = 1000000000, start, i;
    for (int round = 0; round < 9; round++) {
        i = 100000;
        start = now();
        __asm__ volatile("1: nop; nop; nop; nop; nop; nop; nop; nop; dec %0; jnz 1b" : "+r"(i));
        start = now() - start;
        if (start < best)
            best = start;
    }
    printf("%ld %p\n", best, (void *)&best);
}
END
  gcc -O1 -o loop loop.c
  local here took
  here=$(readlink -f loop)
  (
    export STAP_VM_CLOCK=instructions
    timeout -k 5 200 guest start
    timeout -k 5 60 guest exec -- "$here" >first
    timeout -k 5 60 guest exec -- "$here" >second
    [ -e "$STAP_VM_DIR-instructions/qemu.pid" ]
    timeout -k 5 60 guest stop
  )
  took=$(cut -d' ' -f1 first)
  echo "$took"
  [ "$took" -ge 1000000 ]
  [ "$took" -le 1002000 ]
  diff <(cut -d' ' -f2 first) <(cut -d' ' -f2 second)
}

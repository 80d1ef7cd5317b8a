# stap-python: doctor, on this machine, and on fake ones in a directory.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031,SC2317

load ../lib/helper
load ../lib/launcher

# Prefix of the commands that doctor prints for a user other than root.
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo '

doctor() {
  env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) "$launcher" doctor
}

# Checks that doctor reports exactly one problem, with this topic, text and command that fixes it.
# usage: finds TOPIC TEXT COMMAND
finds() {
  run doctor
  echo "$output"
  [ "$status" = 1 ]
  [ "$(grep -c ^wrong <<<"$output")" = 1 ]
  grep -A 1 "^wrong $1 " <<<"$output" >"$BATS_TEST_TMPDIR/found"
  grep -qE "$2" <(head -n 1 "$BATS_TEST_TMPDIR/found")
  grep -qE "^ +fix: .*$3" <(tail -n 1 "$BATS_TEST_TMPDIR/found")
}

@test "doctor finds nothing wrong on a machine that has everything, and says what it saw" {
  make_machine
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  refute grep -E '^(wrong|note)|fix:' <<<"$output"
  diff <(printf '%s\n' stap headers modules uprobes runtime cache rights python shim tapset compile scripts) <(awk '$1 == "ok" { print $2 }' <<<"$output")
  grep -q 'SystemTap 5.6' <<<"$output"
  grep -q "/usr/bin/python3.11, 3.11: its own live markers: gc__start, .*, audit; dead: function__entry$" <<<"$output"
}

@test "doctor: no stap, one that is too old, or one that doesn't say what it is" {
  make_machine
  sed -i s/5.6/4.7/ "$machine/bin/stap"
  finds stap 'is SystemTap 4.7: 4.8 or later is needed' 'apt-get install systemtap$'
  echo '#!/bin/sh' >"$machine/bin/stap"
  finds stap 'does not print a version' 'apt-get install systemtap'
  rm "$machine/bin/stap"
  mkdir "$machine/tools"
  run timeout -k 5 $((60 * SLOW)) env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/tools" "$launcher" doctor
  echo "$output"
  [ "$status" = 1 ]
  grep -A 1 '^wrong stap .*no stap in PATH' <<<"$output" | grep -q "fix: ${sudo}apt-get install systemtap$"
  run env STAP=/nonexistent/stap STAP_PYTHON_ROOT="$machine" timeout -k 5 $((60 * SLOW)) "$launcher" doctor
  grep -q '^wrong stap .*no /nonexistent/stap in PATH' <<<"$output"
}

@test "doctor: no headers of the running kernel, by the distribution's command" {
  make_machine
  rm -r "$machine"/lib/modules/*/build
  finds headers 'no headers for the running kernel, 6.1.0-7-amd64$' 'apt-get install linux-headers-6.1.0-7-amd64$'
  printf 'ID=fedora\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'dnf install kernel-devel-6.1.0-7-amd64$'
  printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'dnf install kernel-devel-6.1.0-7-amd64$'
  printf 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n' >"$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 'zypper install kernel-default-devel=6.1.0-7$'
  rm "$machine/etc/os-release"
  finds headers 6.1.0-7-amd64 "install kernel-devel-6.1.0-7-amd64 with this system's package manager"
  rm -r "${machine:?}/lib"
  finds headers "not from this distribution's packages" test/vm/stap
}

@test "doctor: a kernel that loads no modules, now or at all, or only signed ones, or in a container" {
  make_machine
  echo 1 >"$machine/proc/sys/kernel/modules_disabled"
  finds modules 'disabled until the next boot' reboot
  echo 0 >"$machine/proc/sys/kernel/modules_disabled"
  echo 'none [integrity] confidentiality' >"$machine/sys/kernel/security/lockdown"
  finds modules 'only signed modules \(lockdown\)' mokutil
  mkdir -p "$machine/sys/firmware/efi/efivars"
  printf '\6\0\0\0\1' >"$machine/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
  finds modules 'only signed modules \(Secure Boot\)' mokutil
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
  grep -q "^note  uprobes .*cannot tell" <<<"$output"
  mkdir -p "$machine/sys/bus/event_source/devices/uprobe"
  run doctor
  grep -q '^ok    uprobes' <<<"$output"
}

@test "doctor says which faults of SystemTap's runtime stap-python corrects, and when it can't" {
  local runtime=$BATS_TEST_TMPDIR/machine/usr/share/systemtap/runtime corrects="stap-python corrects a copy of /usr/share/systemtap/runtime, which "
  make_machine
  mkdir "$machine/dir"
  export SYSTEMTAP_DIR=/dir
  echo '        if (buf->offset >= buf->chan->subbuf_size) {' >"$runtime/transport/relay_v2.c"
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -qF "ok    runtime   ${corrects}loses output after the first few KB (sourceware PR31117); for plain stap: export SYSTEMTAP_RUNTIME=\$(stap-python runtime)" <<<"$output"
  # Debian's build tree includes a common one
  mkdir -p "$machine/usr/src/common/include/linux"
  echo 'include /usr/src/common/Makefile' >"$machine/lib/modules/6.1.0-7-amd64/build/Makefile"
  echo 'struct callback_head *task_work_cancel_func(struct task_struct *);' >"$machine/usr/src/common/include/linux/task_work.h"
  cat >"$runtime/stp_task_work.c" <<'C'
typedef typeof(&task_work_cancel) task_work_cancel_fn;
    kallsyms_task_work_cancel = (void*) kallsyms_lookup_name("task_work_cancel");
C
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -qF "ok    runtime   ${corrects}does not know that task_work_cancel() was renamed (Linux 6.1.103, 6.6.44, 6.11), and loses output" <<<"$output"
  # a runtime of the user's is used as it is
  cp -r "$runtime" "$machine/own"
  export SYSTEMTAP_RUNTIME=/own
  finds runtime '/own, which SYSTEMTAP_RUNTIME names, is used as it is, but does not know' 'unset SYSTEMTAP_RUNTIME'
  echo 'typedef typeof(&task_work_cancel_func) f;' >"$machine/own/stp_task_work.c"
  run doctor
  [ "$status" = 0 ]
  grep -q '^note  runtime   /own, .* but loses output' <<<"$output"
  unset SYSTEMTAP_RUNTIME
  # no place for the copy
  rm -r "$machine/dir"
  echo file >"$machine/dir"
  finds runtime "task_work_cancel.* stap-python can't make a corrected copy: .*/dir" 'export SYSTEMTAP_DIR=FOLDER'
}

# Makes a fake stap for the machine, which runs these lines of shell when it is to compile.
stap_compiles_by() {
  {
    printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "SystemTap translator/driver (version 5.1/0.190)"\n'
    printf '%s\n' "$@"
  } >"$machine/bin/stap"
}

@test "doctor has stap compile a probe of the shim, and says why that fails, and what does without stap" {
  local asked=$BATS_TEST_TMPDIR/asked
  make_machine
  stap_compiles_by "echo \"\$LC_ALL|\$*\" >$asked"
  run doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -q '^ok    compile ' <<<"$output"
  [ "$(cat "$asked")" = "C|-p4 -e probe process(\"$machine$shim\").mark(\"function__entry\") { println(\$arg3) }" ]
  # Debian 13's
  stap_compiles_by 'cat >&2 <<C' 'In file included from stap_src.c:9:' \
    "/usr/share/systemtap/runtime/linux/uprobes-inode.c:50:17: error: 'uprobe_unregister' undeclared here (not in a function)" 'make[1]: *** [x.o] Error 1' \
    'Pass 4: compilation failed.  [man error::pass4]' C 'exit 1'
  finds compile 'cannot compile a probe of a program for this kernel: .*uprobes-inode.c:50:17: error: .uprobe_unregister. undeclared here' \
    'install a newer SystemTap, or do without: .*stap-python pyflow --backend bpftrace'
  stap_compiles_by 'echo "semantic error: no match" >&2; exit 1'
  finds compile ': semantic error: no match$' bpftrace
  stap_compiles_by 'printf "one \033[2J\ntwo\n"; exit 1'
  finds compile ': one \\x1b\[2J$' bpftrace
  stap_compiles_by 'exit 1'
  finds compile ': stap says nothing$' bpftrace
}

@test "doctor compiles nothing where another line says why that would fail" {
  local asked=$BATS_TEST_TMPDIR/asked uprobes
  make_machine
  stap_compiles_by ": >$asked; exit 1"
  uprobes=$machine/lib/modules/6.1.0-7-amd64/build/include/linux/uprobes.h
  mv "$machine$shim" "$machine/shim"
  run doctor
  mv "$machine/shim" "$machine$shim"
  refute grep '^[a-z]* *compile ' <<<"$output"
  # Linux 6.13's
  echo '	int (*handler)(struct uprobe_consumer *self, struct pt_regs *regs, __u64 *data);' >"$uprobes"
  run doctor
  rm "$uprobes"
  grep -q '^wrong runtime' <<<"$output"
  refute grep '^[a-z]* *compile ' <<<"$output"
  rm -r "$machine"/lib/modules/*/build
  finds headers 'no headers' linux-headers
  # nor what faults there are
  refute grep '^[a-z]* *runtime ' <<<"$output"
  [ ! -e "$asked" ]
}

# bats test_tags=slow
@test "doctor ends a stap that compiles for more than three minutes, and what it has started" {
  need_time
  make_machine
  stap_compiles_by "trap 'echo removed >$BATS_TEST_TMPDIR/ended; exit 1' TERM" 'sleep 1234.5 & wait'
  run env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:$PATH" timeout -k 5 $((210 * SLOW)) "$launcher" doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -q '^note  compile .*more than 180 s to compile a probe: bpftrace runs' <<<"$output"
  grep -qx removed "$BATS_TEST_TMPDIR/ended"
  refute pgrep -f '^sleep 1234.5$'
}

@test "doctor says on a terminal that it compiles" {
  need script
  make_machine
  stap_compiles_by 'sleep 2'
  doctor_on_terminal() {
    STAP_PYTHON_ROOT=$machine HOME=/home PATH=$machine/bin:$PATH TERM=dumb timeout $((20 * SLOW)) script -qec "$launcher doctor" /dev/null
  }
  run doctor_on_terminal
  [[ $output == *"compiling a probe, which may take a minute"* ]]
  [[ $output == *$'\r'"ok    compile "* ]]
  run doctor
  [[ $output != *compiling* ]]
}

@test "doctor says to root which groups let others probe, if they exist" {
  [ "$(id -u)" = 0 ] || skip "needs root"
  make_machine
  run doctor
  echo "$output"
  grep -qxE 'ok    rights +you are root; others need the groups stapusr and stapdev' <<<"$output"
  sed -i /stapdev/d "$machine/etc/group"
  run doctor
  grep -qxE 'ok    rights +you are root' <<<"$output"
}

@test "doctor: neither root nor in the groups" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  make_machine
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  doctor() {
    env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) setpriv --reuid=65534 --regid=65534 "$@" "$launcher" doctor
  }
  finds_as() {
    run doctor "$1"
    echo "$output"
    grep -q "$2" <<<"$output"
  }
  finds_as --clear-groups '^wrong rights .*nobody is neither root nor in the groups'
  grep -A 1 '^wrong rights' <<<"$output" | grep -q 'fix: sudo usermod -aG stapusr,stapdev nobody'
  [ "$status" = 1 ]
  finds_as --groups=106 '^wrong rights'
  finds_as --groups=106,105 '^ok    rights .*nobody is in the groups'
  [ "$status" = 0 ]
  printf 'stapusr:x:106:nobody\nstapdev:x:105:x,nobody\n' >"$machine/etc/group"
  finds_as --clear-groups '^wrong rights .*but this session started before that'
}

@test "doctor: what root has enabled is enabled again by root" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  make_machine
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  mkdir -p "$machine/var/lib/systemtap-cpython"
  echo /nonexistent/lib/python3/site-packages/python_stap.pth >"$machine/var/lib/systemtap-cpython/enabled"
  run doctor
  grep -qxE ' +fix: stap-python disable /nonexistent/lib/python3/site-packages/python_stap.pth' <<<"$output"
  run env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" doctor
  echo "$output"
  grep -qxE ' +fix: sudo stap-python disable /nonexistent/lib/python3/site-packages/python_stap.pth' <<<"$output"
}

@test "doctor: no Python, none for the shim, a free-threaded one" {
  need gcc
  local version
  make_machine
  rm "$machine/usr/bin/python3.11"
  finds python 'no CPython 3.6 or later found' 'apt-get install python3$'
  free_threaded "$machine/usr/bin/python3.13t" 0x030d00f0
  free_threaded "$machine/usr/bin/python3.14t" 0x030e03f0
  finds python 'no interpreter has live markers or can load the shim' 'apt-get install python3$'
  for version in 3.13t 3.14t; do
    grep -q "^note  python .*/usr/bin/python$version, $version: .*the shim does not support it: it is free-threaded, and older than CPython 3.14.4" <<<"$output"
  done
  free_threaded "$machine/usr/bin/python3.14t" 0x030e04f0
  run doctor
  grep -q '^ok    python .*/usr/bin/python3.14t, 3.14t: its own live markers: none$' <<<"$output"
  refute grep -q 'no interpreter has live markers' <<<"$output"
  cp /usr/bin/python3 "$machine/usr/bin/python3.11"
  run doctor
  [ "$status" = 0 ]
}

@test "doctor: no shim, a file that is not one, and a shim that can't be loaded" {
  need gcc
  make_machine
  cp /bin/true "$machine$shim"
  finds shim 'is not the shim: it has no markers' "make -C $top"
  echo >"$machine$shim"
  finds shim 'is not the shim: not an ELF file' make
  make_broken_shim "$machine$shim"
  finds shim "cannot be loaded: .*undefined symbol: nowhere" make
  rm "$machine$shim"
  run doctor
  echo "$output"
  [ "$status" = 1 ]
  grep -A 1 "^wrong shim .*$shim does not exist" <<<"$output" | grep -q "fix: make -C $top"
  # nor does the tapset find one
  grep -q "^wrong tapset .*names a shim that does not exist: $shim" <<<"$output"
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
  grep -q '^note  tapset .*works, but only with the shim' <<<"$output"
  rm "$folder"/python_*
  finds tapset 'neither the shim nor python.line' SYSTEMTAP_TAPSET
  rm "$folder/python.stp"
  finds tapset 'no python.stp in' SYSTEMTAP_TAPSET
  # ours, by each of two variables
  SYSTEMTAP_TAPSET=/data/systemtap/tapset run doctor
  [ "$status" = 0 ]
  XDG_DATA_DIRS=/none:/data run doctor
  [ "$status" = 0 ]
  # of two files of one name stap reads the one in its own directory
  echo 'probe python.function.entry = process("/usr/lib*/libpython*.so*").mark("function__entry") {}' >"$folder/python.stp"
  XDG_DATA_DIRS=/none:/data run doctor
  grep -q '^note  tapset .*own' <<<"$output"
  cp "$top/tapset/python.stp" "$folder"
  finds tapset 'is ours, but python_shim.stp is missing beside it' SYSTEMTAP_TAPSET
}

@test "doctor: another package's file with python.function.*, as Fedora's python2 has" {
  local file
  make_machine
  file=/usr/share/systemtap/tapset/libpython2.7-64.stp
  printf '/* Systemtap tapset */\n\nprobe python.function.entry = process("python").library("/usr/lib64/libpython2.7.so.1.0").mark("function__entry")\n{\n}\n' >"$machine$file"
  doctor() {
    "$(type -P env)" STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin" "$(type -P timeout)" -k 5 60 "$launcher" doctor
  }
  finds tapset "$file also defines python.function.*" "mv $file $file.off$"
  cp /bin/true "$machine/bin/python"
  run doctor
  [ "$status" = 0 ]
  grep -q "^note  tapset .*$file also defines" <<<"$output"
  rm "$machine/bin/python"
  mkdir "$machine/usr/share/systemtap/tapset/x86_64"
  mv "$machine$file" "$machine/usr/share/systemtap/tapset/x86_64"
  finds tapset tapset/x86_64/libpython2.7-64.stp mv
}

@test "doctor agrees with what this machine has" {
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
  # SystemTap's python.stp and ours, if there is a stap
  [ ! -e /usr/share/systemtap/tapset/python.stp ] || grep -q '^wrong tapset .*/usr/share/systemtap/tapset/python.stp is SystemTap' <<<"$output"
  [ ! -d "$tapsets/tapset" ] || SYSTEMTAP_TAPSET=$tapsets/tapset run launcher doctor
  [ ! -d "$tapsets/tapset" ] || grep -q "^ok    tapset .*$tapsets/tapset/python.stp is ours" <<<"$output"
}

@test "doctor has colours on a terminal only, and none with NO_COLOR" {
  need script
  local escape=$'\033['
  run launcher doctor
  [[ $output != *"$escape"* ]]
  TERM=xterm run timeout $((20 * SLOW)) script -qec "$launcher doctor" /dev/null
  [[ $output == *"${escape}3"* ]]
  TERM=xterm NO_COLOR=1 run timeout $((20 * SLOW)) script -qec "$launcher doctor" /dev/null
  [[ $output == *"ok    "* ]]
  [[ $output != *"$escape"* ]]
  TERM=dumb run timeout $((20 * SLOW)) script -qec "$launcher doctor" /dev/null
  [[ $output != *"$escape"* ]]
}

# usage: limited PROCESSES COMMAND...: as a user who may have so many
limited() {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as a user with a limit"
  need setpriv prlimit
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  # another user for each test: what another one runs, or has left behind, would count
  run setpriv --reuid=$((1000000 + BASHPID)) --regid=54321 --clear-groups prlimit --nproc="$1" "${@:2}"
}

@test "where no process can be started, doctor does not know whether the shim can be loaded" {
  make_machine
  limited 1 env STAP_PYTHON_ROOT="$machine" "$launcher" doctor
  echo "$output"
  grep -qxE "note  shim  +whether $shim can be loaded is not known: Resource temporarily unavailable" <<<"$output"
}

@test "a bpftrace that can't be started is said, and the command does not run" {
  need bpftrace
  limited 2 "$launcher" pygc --backend bpftrace -c 'echo runs'
  echo "$output"
  [ "$status $output" = "1 stap-python: cannot start bpftrace: Resource temporarily unavailable" ]
}

@test "a stap-python with more rights than its caller's ignores STAP_PYTHON_ROOT and STAP" {
  [ "$(id -u)" = 0 ] || skip "needs root, to make a program set-user-ID"
  need setpriv
  make_machine
  mkdir "$BATS_TEST_TMPDIR/bin"
  cp "$launcher" "$BATS_TEST_TMPDIR/bin/stap-python"
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  doctor_of() {
    env STAP=/nonexistent/stap STAP_PYTHON_ROOT="$machine" timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/stap-python" doctor || true
  }
  doctor_of >"$BATS_TEST_TMPDIR/plain"
  grep -q 6.1.0-7-amd64 "$BATS_TEST_TMPDIR/plain"
  grep -q 'no /nonexistent/stap' "$BATS_TEST_TMPDIR/plain"
  chmod u+s "$BATS_TEST_TMPDIR/bin/stap-python"
  doctor_of >"$BATS_TEST_TMPDIR/secure"
  cat "$BATS_TEST_TMPDIR/secure"
  grep -q ' shim ' "$BATS_TEST_TMPDIR/secure"
  refute grep -E '6.1.0-7-amd64|/nonexistent' "$BATS_TEST_TMPDIR/secure"
  # a directory in which the caller has made a link to stap-python is no checkout either
  make_tree
  ln -f "$BATS_TEST_TMPDIR/bin/stap-python" "$BATS_TEST_TMPDIR/tree/build"
  launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  for mode in u+s u-s; do
    chmod "$mode" "$launcher"
    timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" doctor >"$BATS_TEST_TMPDIR/$mode" || true
    grep ' shim ' "$BATS_TEST_TMPDIR/$mode"
  done
  grep -F "$BATS_TEST_TMPDIR/tree/build" "$BATS_TEST_TMPDIR/u-s"
  refute grep -F "$BATS_TEST_TMPDIR/tree/build" "$BATS_TEST_TMPDIR/u+s"
}

@test "doctor: stap's cache, whose modules root loads, or a file in it that others can write to" {
  make_machine
  local dir
  for dir in /home/.systemtap /srv/stap; do
    [ "$dir" = /home/.systemtap ] || export SYSTEMTAP_DIR=$dir
    mkdir -p "$machine$dir/cache/7f"
    : >"$machine$dir/cache/7f/stap_1.ko"
    chmod -R 755 "$machine$dir"
    run doctor
    echo "$output"
    [ "$status" = 0 ]
    grep -qxE "ok    cache +$dir: only its owner can write to it" <<<"$output"
    for file in "" /cache /cache/7f /cache/7f/stap_1.ko; do
      chmod o+w "$machine$dir$file"
      run doctor
      echo "$output"
      # a probe works
      [ "$status" = 0 ]
      grep -A 1 "^note  cache .*$dir$file can be written to by others" <<<"$output" | grep -qxE " +fix: chmod go-w $dir && rm -rf $dir/cache"
      # it is not closed unasked
      [ "$(stat -c %A "$machine$dir$file" | cut -c9)" = w ]
      chmod o-w "$machine$dir$file"
    done
    # a group: not the owner's own, of the same number
    chmod g+w "$machine$dir/cache"
    run doctor
    grep -q "^ok    cache " <<<"$output"
    if [ "$(id -u)" = 0 ]; then
      chgrp 65534 "$machine$dir/cache"
      run doctor
      grep -q "^note  cache .*$dir/cache can be written to by others" <<<"$output"
      chgrp 0 "$machine$dir/cache"
      chown 65534 "$machine$dir/cache/7f/stap_1.ko"
      run doctor
      grep -q "^note  cache .*$dir/cache/7f/stap_1.ko can be written to by another user (uid 65534)" <<<"$output"
    fi
  done
}

@test "doctor: SystemTap 5.1, which runs with umask 0, makes no cache for everybody" {
  make_machine
  cat >"$machine/bin/stap" <<'SH'
#!/bin/sh
echo "Systemtap translator/driver (version 5.1/0.191, Debian version 5.1-5)"
umask 0
cd "$STAP_PYTHON_ROOT$HOME" && mkdir -p .systemtap/cache && : >.systemtap/cache/stap_1.ko
SH
  run doctor
  [ "$status" = 0 ]
  [ "$(stat -c %a "$machine/home/.systemtap" "$machine/home/.systemtap/cache")" = $'755\n700' ]
}

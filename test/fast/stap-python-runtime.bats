# stap-python: the corrected copy of SystemTap's runtime, for kernels with which it has known faults.  The runtimes and
# the kernels are made up, with the lines that tell.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helper
load ../lib/launcher

setup() {
  launcher_setup
  make_machine
  export STAP_PYTHON_ROOT=$machine SYSTEMTAP_DIR=/dir
  PATH=$machine/bin:$PATH
  mkdir "$machine/dir"
  runtime=$machine/usr/share/systemtap/runtime headers=$machine/lib/modules/6.1.0-7-amd64/build
  mkdir -p "$runtime/linux" "$headers/scripts"
}

# Gives the runtime and the kernel what Debian 12's have.
renamed() {
  echo 'struct callback_head *task_work_cancel_func(struct task_struct *);' >"$headers/include/linux/task_work.h"
  cat >"$runtime/stp_task_work.c" <<'C'
typedef typeof(&task_work_cancel) task_work_cancel_fn;
    kallsyms_task_work_cancel = (void*) kallsyms_lookup_name("task_work_cancel");
C
}

loses_output() {
  echo '        if (buf->offset >= buf->chan->subbuf_size) {' >"$runtime/transport/relay_v2.c"
}

# What Debian 13's have.
returns_handle() {
  cat >"$headers/include/linux/uprobes.h" <<'C'
	int (*handler)(struct uprobe_consumer *self, struct pt_regs *regs);
extern void uprobe_unregister_nosync(struct uprobe *uprobe, struct uprobe_consumer *uc);
C
  echo 'static void *kallsyms_uprobe_unregister;' >"$runtime/linux/runtime.h"
  cat >"$runtime/linux/uprobes-inode.c" <<'C'
  struct uprobe_consumer kconsumer; // the kernel-side struct
    ret = uprobe_register (inst->inode, c->offset, &inst->kconsumer);
  (void) uprobe_unregister (inst->inode, c->offset, &inst->kconsumer);
    ; // already unlocked
C
}

# What Ubuntu 24.04's have.
wants_prototypes() {
  printf '%s\n' 'KBUILD_CFLAGS += -Wmissing-prototypes' 'ifneq ($(findstring 1, $(KBUILD_EXTRA_WARN)),)' >"$headers/scripts/Makefile.extrawarn"
  echo 'void foo(void) {}' >"$runtime/linux/autoconf-alloc-percpu-align.c"
  echo '#include <linux/tracepoint.h>' >"$runtime/linux/autoconf-utrace-via-tracepoints.c"
  echo '#define RUNTIME' >"$runtime/runtime_defines.h"
  echo '#define SYM' >"$runtime/sym.h"
  echo 'ssize_t strscpy(char *, const char *, size_t);' >"$headers/include/linux/string.h"
}

# Runs `stap-python runtime`; the copy is in $copy.
corrected() {
  run launcher runtime "$@"
  echo "$output"
  [ "$status" = 0 ]
  copy=$output
}

@test "a runtime without known faults is used as it is" {
  corrected
  [ "$copy" = /usr/share/systemtap/runtime ]
  [ "$(ls "$machine/dir")" = '' ]
}

@test "each known fault is corrected in a copy, for its owner alone, and SystemTap's files stay as they are" {
  renamed
  loses_output
  cp -r "$runtime" "$BATS_TEST_TMPDIR/before"
  corrected
  [[ $copy == "$machine/dir/python-runtime/6.1.0-7-amd64-"* ]]
  [ "$(stat -c '%a %u' "$copy" "$machine/dir/python-runtime")" = "$(printf '700 %s\n700 %s' "$(id -u)" "$(id -u)")" ]
  diff -r "$BATS_TEST_TMPDIR/before" "$runtime"
  diff "$copy/stp_task_work.c" - <<'C'
typedef typeof(&task_work_cancel_func) task_work_cancel_fn;
    kallsyms_task_work_cancel = (void*) kallsyms_lookup_name("task_work_cancel_func");
C
  grep -qx '        if (buf->offset + sizeof(struct _stp_trace) >= buf->chan->subbuf_size) {' "$copy/transport/relay_v2.c"

  returns_handle
  corrected
  grep -qx '#define STAPCONF_UPROBE_UNREGISTER_EXPORTED 1' "$copy/linux/runtime.h"
  diff "$copy/linux/uprobes-inode.c" - <<'C'
  struct uprobe *kuprobe; struct uprobe_consumer kconsumer; // the kernel-side struct
    { inst->kuprobe = uprobe_register (inst->inode, c->offset, 0, &inst->kconsumer); ret = PTR_ERR_OR_ZERO(inst->kuprobe); }
  uprobe_unregister_nosync (inst->kuprobe, &inst->kconsumer); uprobe_unregister_sync ();
    {} // already unlocked
C

  wants_prototypes
  corrected
  head -n 2 "$copy/linux/autoconf-alloc-percpu-align.c" | grep -c '^#pragma GCC diagnostic ignored "-Wmissing-' | grep -x 2
  grep -qx 'struct folio;' "$copy/linux/autoconf-utrace-via-tracepoints.c"
  grep -q '^#define strlcpy' "$copy/runtime_defines.h"
  grep -qx '#define RUNTIME' "$copy/runtime_defines.h"
  # what was made before is gone
  [ "$(ls "$machine/dir/python-runtime")" = "${copy##*/}" ]
}

@test "the copy is made once, and anew when a file of SystemTap changes; a kernel that is gone takes its copies along" {
  local first other tree
  renamed
  corrected
  first=$copy
  touch "$copy/still_there"
  corrected
  [ "$copy" = "$first" ]
  [ -e "$copy/still_there" ]
  echo 'int new;' >"$runtime/new.c"
  corrected
  [ "$copy" != "$first" ]
  [ -e "$copy/new.c" ]
  [ ! -e "$first" ]
  # another kernel has a copy of its own
  cp -r "$machine"/lib/modules/6.1.0-{7,8}-amd64
  first=$copy
  corrected -r 6.1.0-8-amd64
  other=$copy
  [ -e "$first" ]
  [ -e "$other" ]
  # so has a build tree
  corrected -r /lib/modules/6.1.0-7-amd64/build
  tree=$copy
  rm -r "$machine/lib/modules/6.1.0-8-amd64"
  echo 'int newer;' >"$runtime/new.c"
  corrected
  [ ! -e "$other" ]
  [ ! -e "$first" ]
  [ -e "$tree" ]
  corrected -r/lib/modules/6.1.0-7-amd64/build
  [ ! -e "$tree" ]
}

@test "stap runs with the copy, unless SYSTEMTAP_RUNTIME names another, and scripts don't run without a copy that they need" {
  local words
  renamed
  printf '#!/bin/sh\necho "runtime $SYSTEMTAP_RUNTIME"\n' >"$machine/bin/stap"
  corrected
  run launcher pycalls -p4
  [ "$output" = "runtime $copy" ]
  run env SYSTEMTAP_RUNTIME=/usr/share/systemtap/runtime timeout $((20 * SLOW)) "$launcher" pycalls -p4
  [ "$output" = "runtime /usr/share/systemtap/runtime" ]
  rm -r "$machine/dir"
  echo file >"$machine/dir"
  refuses 1 'task_work_cancel\(\) was renamed .*, and no corrected copy can be made: .*/dir' pycalls -p4
  # a run for which stap compiles no module, or with another runtime, needs none
  run launcher pycalls -l '*'
  [ "$output" = "runtime " ]
  for words in '-p4 -R /mine' '-p4 --runtime=bpf' '-p2'; do
    # shellcheck disable=SC2086
    run launcher pycalls $words
    [ "$output" = "runtime " ]
  done
  refuses 1 'no corrected copy' pycalls -p4 --runtime=kernel
  # without fault in what it compiles, it runs
  echo 'typedef typeof(&task_work_cancel_func) f;' >"$runtime/stp_task_work.c"
  loses_output
  run launcher pycalls -p4
  echo "$output"
  [ "$status" = 0 ]
  [[ ${lines[0]} == *"loses output after the first few KB (sourceware PR31117), as no corrected copy can be made: "* ]]
  [ "${lines[1]}" = "runtime " ]
}

@test "a copy in a folder that others can write to is not used, and not one with unexpected text" {
  renamed
  corrected
  chmod 777 "$machine/dir/python-runtime"
  refuses 1 'can be written to by others' runtime
  chmod 700 "$machine/dir/python-runtime"
  chmod 707 "$copy"
  refuses 1 'can be written to by others' runtime
  rm -r "$copy"
  ln -s /tmp "$copy"
  refuses 1 'is not a folder' runtime
  rm "$copy"
  echo 'kallsyms_lookup_name("task_work_cancel") typeof( &task_work_cancel)' >"$runtime/stp_task_work.c"
  refuses 1 'stp_task_work.c is not as expected: it lacks .typeof\(&task_work_cancel\)' runtime
  [ "$(ls -A "$machine/dir/python-runtime")" = '' ]
}

@test "stap's folder may belong to the owner's own group, and is below the home of the password file if HOME is unset" {
  local home
  [ "$(id -u)" != 0 ] || need setpriv
  renamed
  chmod 770 "$machine/dir"
  if [ "$(id -u)" = 0 ]; then
    # root has paths of its own to be sure of
    refuses 1 '/dir is writable by others: run chmod go-w ' runtime
    chgrp 65534 "$machine/dir"
    refuses 1 '/dir can be written to by others: run chmod go-w ' runtime
    chmod 700 "$machine/dir"
    chmod 711 "$BATS_RUN_TMPDIR"
    chown 65533:65533 "$machine/dir"
    chmod 770 "$machine/dir"
    refuses 1 '/dir belongs to another user \(uid 65533\): SYSTEMTAP_DIR may name another folder' runtime
    run setpriv --reuid=65533 --regid=65533 --clear-groups timeout $((20 * SLOW)) "$launcher" runtime
    echo "$output"
    [ "$status" = 0 ]
    chown 65533:65534 "$machine/dir"
    run setpriv --reuid=65533 --regid=65534 --clear-groups timeout $((20 * SLOW)) "$launcher" runtime
    [ "$status" = 1 ]
  fi
  home=$machine$(getent passwd "$(id -u)" | cut -d: -f6)
  mkdir -p "$home"
  run env -u HOME -u SYSTEMTAP_DIR timeout $((20 * SLOW)) "$launcher" runtime
  echo "$output"
  [[ $output == "$home/.systemtap/python-runtime/6.1.0-7-amd64-"* ]]
  # a user without an entry there
  if [ "$(id -u)" = 0 ]; then
    run env -u HOME -u SYSTEMTAP_DIR setpriv --reuid=65531 --regid=65531 --clear-groups timeout $((20 * SLOW)) "$launcher" runtime
    [[ $output == *"neither HOME nor SYSTEMTAP_DIR is set" ]]
  fi
}

@test "a copy is made by one stap-python at a time, and what one left that was killed is removed" {
  local place=$machine/dir/python-runtime lock pid
  need flock
  renamed
  mkdir -p "$place/.new.abcdef/linux"
  exec {lock}<"$place"
  flock "$lock"
  "$launcher" runtime >"$BATS_TEST_TMPDIR/copy" 3>&- {lock}<&- &
  pid=$!
  programs+=("$pid")
  wait_for grep -qE -- "-> FLOCK +ADVISORY +WRITE $pid " /proc/locks
  [ "$(ls -A "$place")" = .new.abcdef ]
  exec {lock}<&-
  wait "$pid"
  copy=$(<"$BATS_TEST_TMPDIR/copy")
  [ "$(ls -A "$place")" = "${copy##*/}" ]
  # whoever finds the copy does not wait
  exec {lock}<"$place"
  flock "$lock"
  corrected
  exec {lock}<&-
}

@test "on a full disk no copy is left, and that is what is said" {
  [ "$(id -u)" = 0 ] || skip "needs root, for a small file system"
  need unshare
  unshare -m true || skip "needs the right to mount"
  renamed
  head -c 200000 /dev/zero | tr '\0' ' ' >"$runtime/large.c"
  cat >"$BATS_TEST_TMPDIR/script" <<SH
mount -t tmpfs -o size=100k,mode=700 none "$machine/dir" && "$launcher" runtime
echo "\$?"
find "$machine/dir/python-runtime" -mindepth 1
SH
  run unshare -m timeout $((20 * SLOW)) sh "$BATS_TEST_TMPDIR/script"
  echo "$output"
  [[ ${lines[0]} == *"/large.c: No space left on device" ]]
  [ "${lines[1]} ${#lines[@]}" = "1 2" ]
}

@test "a SystemTap that is too old for the kernel is told from one with faults" {
  returns_handle
  echo '	int (*handler)(struct uprobe_consumer *self, struct pt_regs *regs, __u64 *data);' >>"$headers/include/linux/uprobes.h"
  refuses 1 'this SystemTap is too old for Linux 6.13 and later' runtime
  refuses 1 'this SystemTap is too old for Linux 6.13 and later: run stap-python doctor' pycalls -p4
  run launcher doctor
  grep -q '^wrong runtime   this SystemTap is too old for Linux 6.13 and later' <<<"$output"
  rm "$headers/include/linux/uprobes.h"
  echo 'ccflags-y += $(KBUILD_CFLAGS_MODULE)' >"$headers/scripts/Makefile.lib"
  # a program; the machine's stap is a script
  gcc -o "$machine/bin/stap" -x c - <<<'int main(void) { return 0; }'
  refuses 1 'this SystemTap is too old for Linux 6.15 and later' runtime
  gcc -o "$machine/bin/stap" -x c - <<<'const char *text = "ccflags-y"; int main(void) { return 0; }'
  corrected
}

@test "stap gets -B KCFLAGS=-w where it makes an error of a macro that the kernel has, too" {
  local version wanted
  echo '#define COUNT_ARGS(X...)' >"$headers/include/linux/args.h"
  while read -r version wanted; do
    printf '#!/bin/sh\n[ "$1" != --version ] || exec echo "Systemtap translator/driver (version %s/0.191)"\necho "$*" | tee -a "%s/words"\n' "$version" "$BATS_TEST_TMPDIR" >"$machine/bin/stap"
    run launcher pycalls -p4
    echo "$version: $output"
    [ "$(grep -c ' -B KCFLAGS=-w ' <<<"$output")" = "$wanted" ]
    run launcher doctor
    [ "$(tail -n 1 "$BATS_TEST_TMPDIR/words" | grep -c -e '^-p4 .* -B KCFLAGS=-w$')" = "$wanted" ]
  done <<<$'4.8 1\n5.1 1\n5.2 0\n5.6 0'
  # once, also where SystemTap's umask must be known
  printf '#!/bin/sh\n[ "$1" != --version ] || { echo >>"%s/asked"; exec echo "(version 5.1/0.191)"; }\necho "$*"\n' "$BATS_TEST_TMPDIR" >"$machine/bin/stap"
  (umask 002 && launcher pycalls --backend stap -c true)
  [ "$(wc -l <"$BATS_TEST_TMPDIR/asked")" = 1 ]
  rm "$headers/include/linux/args.h" "$BATS_TEST_TMPDIR/asked"
  printf '#!/bin/sh\n[ "$1" != --version ] || { : >"%s/asked"; exec echo "(version 5.1/0.191)"; }\necho "$*"\n' "$BATS_TEST_TMPDIR" >"$machine/bin/stap"
  run launcher pycalls -p4
  refute grep KCFLAGS <<<"$output"
  # nor is it asked for its version
  [ ! -e "$BATS_TEST_TMPDIR/asked" ]
}

@test "the command runtime says what is missing, and refuses what it doesn't know" {
  refuses 2 'runtime: -r needs a kernel' runtime -r
  refuses 2 "runtime: unexpected argument 'x'" runtime x
  refuses 1 'no headers for the kernel 1.2.3: run stap-python doctor' runtime -r 1.2.3
  corrected -r /lib/modules/6.1.0-7-amd64/build
  SYSTEMTAP_RUNTIME=/none refuses 1 'SYSTEMTAP_RUNTIME names /none, which does not exist' runtime
  rm -r "$runtime"
  refuses 1 "SystemTap's runtime is not installed: run stap-python doctor" runtime
  run launcher runtime --help
  [[ ${lines[0]} == "usage: stap-python runtime [-r KERNEL]" ]]
}

# What scripts print at their end arrives whole, or they say how much is missing and exit with 1.  This is with
# SystemTap's runtime without the lines by which test/vm/runtime has every script wait for stapio.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup_file() {
  need_live_stap
  local corrected file
  corrected=$("$top/test/vm/runtime")
  export SYSTEMTAP_RUNTIME=$BATS_FILE_TMPDIR/runtime SYSTEMTAP_DIR=$BATS_FILE_TMPDIR/systemtap STAP_TIMEOUT=300
  cp -r "$corrected" "$SYSTEMTAP_RUNTIME"
  for file in transport.c control.c; do
    sed -i '/test\/vm\/runtime/d' "$SYSTEMTAP_RUNTIME/transport/$file"
    refute cmp -s {"$corrected","$SYSTEMTAP_RUNTIME"}/"transport/$file"
  done
}

setup() {
  need_live_stap
  printed=$BATS_TEST_TMPDIR/printed
}

# Any probe of the tapset will do, and needs no event.
lines_of_2_kb='
  probe python.line { next }
  probe timer.ms(100) { exit() }
  probe end {
    ten = "0123456789"
    for (i = 0; i < 199; i++) line .= ten
    for (i = 1; i <= 3000; i++) printf("%09d %s\n", i, line)
  }'
print_lines() { stap -w -DMAXSTRINGLEN=2000 -DMAXACTION=10000 "$@" -e "$lines_of_2_kb"; }

are_whole() {
  awk '$1 == NR && length($2) == 1990 && length == 2000 { whole++ } END { print whole + 0, NR; exit whole != 3000 || NR != 3000 }' "$1"
}

@test "3,000 lines of 2 KB from an end probe arrive whole, in a file and on stdout" {
  need_time
  print_lines -o "$printed"
  are_whole "$printed"
  [ -n "${EVERY:-}" ] || return 0
  print_lines >"$printed"
  are_whole "$printed"
}

@test "what has no room in the buffer is an error that says how much it is" {
  need_time
  run print_lines -s 1 -o "$printed"
  echo "$output"
  [ "$status" = 1 ]
  refute are_whole "$printed"
  [[ $output =~ "ERROR: output is missing: "([0-9]+)" pieces, of up to 8 KB each, that found no room in buffers of 1 MB: use stap -s MB" ]]
  pieces=${BASH_REMATCH[1]}
  # 6 MB in all, and one of them arrives
  [ "$pieces" -gt 400 ]
  [ "$pieces" -le 733 ]
}

@test "what stapio does not come to read is an error that says how much it is" {
  need_time
  # A pipe that is open, but not read until the end, like that to a pager which waits for a key.
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  # shellcheck disable=SC2016 # it is for the guest's shell
  timeout $((300 * SLOW)) "$top/test/vm/guest" exec -- sh -c 'exec <"$1/pipe"; until [ -e "$1/seen" ]; do sleep 0.5; done; cat >"$1/read"' - "$BATS_TEST_TMPDIR" 3>&- &
  print_lines -o "$BATS_TEST_TMPDIR/pipe" 2>"$printed.said" 3>&- &
  for ((i = 0; i < 250; i++)); do
    grep -q ERROR "$printed.said" && break
    sleep 1
  done
  : >"$BATS_TEST_TMPDIR/seen"
  status=0
  wait %2 || status=$?
  cat "$printed.said"
  wait %1
  # SystemTap 5.1 waits for ever
  if [ "$status" = 0 ]; then
    are_whole "$BATS_TEST_TMPDIR/read"
    return
  fi
  [ "$status" = 1 ]
  [[ $(<"$printed.said") =~ "ERROR: output is missing: its last "([0-9]+)" bytes, which stapio doesn't read" ]]
  # of 6 MB, all but what there is room for in a pipe
  [ "${BASH_REMATCH[1]}" -gt 5800000 ]
}

@test "pystacks prints 3,000 stacks of 2 KB whole" {
  need_time
  cat >"$BATS_TEST_TMPDIR/stacks.py" <<'PY'
# 3,100 functions that take their time, each called from the innermost of 20 with long names.
names = ["n%02d_" % i + "x" * 96 for i in range(20)]
source = "".join("def %s(f): %s(f)\n" % pair for pair in zip(names, names[1:]))
source += "def %s(f): f()\n" % names[-1]
source += "".join("def leaf_%04d(): sum(range(2000))\n" % i for i in range(3100))
space = {}
exec(source, space)
for i in range(3100):
    space[names[0]](space["leaf_%04d" % i])
PY
  stap -w -o "$printed" "$top/scripts/pystacks.stp" \
    -c "env LD_PRELOAD=$shim $(system_python) -IS $BATS_TEST_TMPDIR/stacks.py" 2>"$printed.said" || { cat "$printed.said" && false; }
  cat "$printed.said"
  head -n 1 "$printed"
  tail -n 1 "$printed"
  [ "$(wc -l <"$printed")" = 3000 ]
  # the rest are those of Python's own start
  [ "$(grep -cE '^python3[^;]*;<module>;(n[0-9]{2}_x{96};){20}leaf_[0-9]{4} [0-9]+$' "$printed")" -gt 2500 ]
  refute grep -vE '^python3[^;]*(;[^;]+)* [0-9]+$' "$printed"
}

@test "what is printed as the program of -c ends arrives, although a reading thread of stapio could take SIGCHLD" {
  # A tick that wakes the reader comes as the program's exit can't be interrupted any more: reader and main thread are
  # both ready to run when the signal comes.
  cat >"$BATS_TEST_TMPDIR/late.stp" <<'STP'
%{
#include <linux/kprobes.h>
#include <linux/delay.h>
static int late_print(struct kprobe *probe, struct pt_regs *registers)
{
    struct { struct _stp_trace head; char text[5]; } __attribute__((packed)) message = { .text = "late\n" };
    unsigned long flags;
    void *entry;
    if (current->tgid != _stp_target)
        return 0;
    local_irq_save(flags);
    mdelay(8);
    message.head.sequence = _stp_seq_inc();
    message.head.pdu_len = sizeof message.text;
#ifdef STAP_TRACE_MAGIC
    memcpy(&message.head.magic, STAP_TRACE_MAGIC, sizeof message.head.magic);
#endif
    if (_stp_data_write_reserve(sizeof message, &entry) == sizeof message) {
        memcpy(entry, &message, sizeof message);
        _stp_data_write_commit(entry);
    }
    local_irq_restore(flags);
    return 0;
}
static struct kprobe late = { .symbol_name = "exit_tasks_rcu_start", .pre_handler = late_print };
%}
function begin_late:long() %{ STAP_RETURN(register_kprobe(&late)); %}
function end_late() %{ unregister_kprobe(&late); %}
global failed
probe begin { failed = begin_late(); if (failed) printf("kprobe: %d\n", failed) }
probe end { if (!failed) end_late() }
probe python.line { next }
STP
  stap -g -w -o "$printed" -c /bin/true "$BATS_TEST_TMPDIR/late.stp"
  diff "$printed" - <<<late
}

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Works around faults of the installed SystemTap: if its runtime has them, sets
# SYSTEMTAP_RUNTIME to a corrected copy, build/stap-runtime. test/vm/stap sources it.

runtime=$root/usr/share/systemtap/runtime
fixed=$made/stap-runtime

# Since Linux 6.1.113 and its like the function is called task_work_cancel_func,
# and SystemTap before 5.2 doesn't compile with process probes.
misses_rename() {
  local tree headers
  tree=$root/lib/modules/$(kernel_version)/build
  [ -z "$root" ] || tree=$root$(readlink "$tree")
  # Debian's build tree leads to a common one.
  headers=$(sed -n 's|^include \(.*\)/Makefile$|\1|p' "$tree/Makefile" 2>/dev/null)
  headers=${headers:+$root$headers}
  grep -qs task_work_cancel_func {"$tree","$tree/source",${headers:+"$headers"}}/include/linux/task_work.h &&
    ! grep -rqs task_work_cancel_func "$runtime/stp_task_work.c"
}

# A message whose header does not fit in a sub-buffer is lost, with all that
# follows (sourceware PR31117); versions with a magic number in the header recover.
loses_output() {
  grep -qs 'if (buf->offset >= buf->chan->subbuf_size) {' "$runtime/transport/relay_v2.c" &&
    ! grep -qs magic "$runtime/transport/transport_msgs.h"
}

# At the script's end stapio, from 4.5 on, drops what it has not read within a
# fraction of a second. A script with our tapset waits until it has read all
# (tapset/python_output.stp, which says more); here every script does.
leaves_output() { grep -qs "$before_end" "$runtime/transport/transport.c"; }
before_end='failures = atomic_read(&_stp_transport_failures);'
# One line, which test/guest/output.bats removes.
wait_for_stapio='{ int i, cpu; struct rchan_buf *b; for_each_possible_cpu(cpu) for (i = 0; i < 12000 \&\& atomic_read(\&_stp_ctl_attached) \&\& (b = _stp_get_rchan_subbuf(_stp_relay_data.rchan->buf, cpu)) \&\& !__stp_relay_buf_empty(b); i++) msleep(10); } /* runtime.sh */'

fix_runtime() {
  local faults stamp
  faults=$(
    ! misses_rename || echo rename
    ! loses_output || echo output
    ! leaves_output || echo end
  )
  [ -n "$faults" ] || return 0
  # The cache's key doesn't include the runtime, so the copy has a cache of its own.
  export SYSTEMTAP_RUNTIME=$fixed SYSTEMTAP_DIR=${SYSTEMTAP_DIR:-$made/systemtap}
  stamp="$faults $(stat -c '%Y %s' "$runtime" "$runtime/stp_task_work.c" "$runtime/transport/"{relay_v2,transport}.c "$vm/runtime.sh")"
  [ "$(cat "$fixed/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  mkdir -p "$made/systemtap"
  (
    flock 9
    [ "$(cat "$fixed/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
    rm -rf "$fixed" "$made/systemtap/cache"
    cp -r "$runtime" "$fixed"
    [[ $faults != *rename* ]] || sed -i -E 's/typeof\(&task_work_cancel\)/typeof(\&task_work_cancel_func)/; s/kallsyms_lookup_name\("task_work_cancel"\)/kallsyms_lookup_name("task_work_cancel_func")/' "$fixed/stp_task_work.c"
    [[ $faults != *output* ]] || sed -i 's/if (buf->offset >= buf->chan->subbuf_size) {/if (buf->offset + sizeof(struct _stp_trace) >= buf->chan->subbuf_size) {/' "$fixed/transport/relay_v2.c"
    [[ $faults != *end* ]] || sed -i "s|^.*$before_end|\t\t$wait_for_stapio\n&|" "$fixed/transport/transport.c"
    echo "$stamp" >"$fixed/stamp"
  ) 9>"$made/systemtap/lock"
}

[ -n "${SYSTEMTAP_RUNTIME:-}" ] || fix_runtime

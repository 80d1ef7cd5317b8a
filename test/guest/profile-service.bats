# The unit stap-python-profile, as systemd runs it: in a guest of its own, whose first process is systemd.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  need qemu-system-x86_64 ssh
  [ -z "${STAP_VM_ROOT:-}" ] || skip "needs a guest with this machine's root folder: test/long/distros/run makes others"
  [ -x /lib/systemd/systemd ] || skip "needs systemd"
  # the guest shares no other folder that can be written to with this machine
  folder=$top/build/profile-service
  export STAP_VM=always STAP_VM_DIR=$top/build/vm-systemd STAP_VM_INIT=systemd
  rm -rf "$folder"
  mkdir -p "$folder"
}

teardown() {
  [ -z "${STAP_VM_INIT:-}" ] || "$top/test/vm/guest" stop
  rm -rf "$top/build/profile-service" "$top/build/vm-systemd"
}

@test "the unit sends profiles of this machine's Pythons as systemd runs it, and ends in order" {
  need_time
  # this machine's SystemTap stays as it is
  cp -as /usr/share/systemtap/tapset "$folder/tapset"
  make -s -C "$top" install prefix="$folder/usr" tapsetdir="$folder/tapset"
  echo takes >"$folder/mode"
  cat >"$folder/works.py" <<'PY'
import time


def works():
    end = time.time() + 0.5
    while time.time() < end:
        sum(range(1000))


while True:
    works()
    time.sleep(0.1)
PY
  cat >"$folder/begins" <<'SH'
set -e
cd "$1"
setsid /usr/bin/python3 "$2/test/workloads/pyroscope.py" . >server.log 2>&1 </dev/null &
# what compiles has the CPU first
setsid nice -n 19 usr/bin/stap-python run /usr/bin/python3 works.py >works.log 2>&1 </dev/null &
until [ -s port ]; do sleep 0.1; done
unit=/run/systemd/system/stap-python-profile.service
cp usr/lib/systemd/system/stap-python-profile.service /run/systemd/system/
mkdir "$unit.d"
printf '[Service]\nEnvironment=URL=http://127.0.0.1:%s SYSTEMTAP_TAPSET=%s\n' "$(cat port)" "$1/tapset" >"$unit.d/url.conf"
systemctl daemon-reload
systemctl start stap-python-profile
SH
  in_guest sh "$folder/begins" "$folder" "$top"
  # SystemTap compiles in the guest, which took 26 minutes beside three other runs: an hour at most
  SLOW=$((180 * SLOW)) wait_for test -e "$folder/2.body" || {
    in_guest journalctl --no-pager -u stap-python-profile | tail -n 20
    false
  }
  run in_guest sh -c '
    systemctl show stap-python-profile -p SubState -p NRestarts
    systemctl stop stap-python-profile
    systemctl show stap-python-profile -p Result -p SubState -p ExecMainStatus
    journalctl --no-pager -o cat -u stap-python-profile
    ls -d /sys/module/stap_* 2>/dev/null'
  echo "$output"
  [ "$(grep -cxE 'SubState=running|NRestarts=0|Result=success|SubState=dead|ExecMainStatus=0' <<<"$output")" = 5 ]
  grep -E '^stap-python: record: profiles sent to http://127\.0\.0\.1:[0-9]+/ingest: [1-9][0-9]*$' <<<"$output"
  refute grep -E 'ERROR|/sys/module/stap_' <<<"$output"
  grep -E 'name=python3%7Bhost%3D.*&format=pprof&sampleRate=19&' "$folder/2.path"
  # its strings are as they are in the packed file
  grep -aF works <(gzip -dc "$folder/2.body")
}

# The script for stap-exporter, live: what Prometheus gets of known collections, imports and calls.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  scripts_setup
}

# The value of the sample $1 with the labels $2, name=value in the order of the names, of the last scrape.
sample() {
  awk -F'\t' -v name="$1" -v labels="$2" '$1 == name && $2 == labels { print $3; found++ } END { exit found != 1 }' "$printed.samples"
}

@test "the exporter's script counts collections, pauses, imports and calls, in text that Prometheus reads" {
  local client bucket
  client=$("$system" -c 'import prometheus_client' 2>&1) || skip "needs python3-prometheus-client: ${client##*$'\n'}"
  cat >"$BATS_TEST_TMPDIR/known.py" <<'PY'
import _thread
import gc
import os
import sys
import threading
import time

gc.disable()
comm = open("/proc/self/comm", "wb", 0)
with open(sys.argv[1]) as file:
    counted = compile(file.read(), sys.argv[1], "exec")


def called():
    pass


def in_thread(lock):  # under another name than the process
    thread = os.open("/proc/self/task/%d/comm" % _thread.get_native_id(), os.O_WRONLY)
    os.write(thread, b"thread")
    for _ in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        called()
    lock.release()


class Slow:
    def __del__(self):
        time.sleep(0.15)


def collects(name):
    comm.write(name)
    for generation in 0, 1, 2:
        gc.collect(generation)


gc.collect()
comm.write(b"counted")
exec(counted, {"__name__": "counted"})
lock = _thread.allocate_lock()
lock.acquire()
comm.write(b"known")
for _ in range(127):
    called()
_thread.start_new_thread(in_thread, (lock,))
lock.acquire()
comm.write(b"known_c")
for _ in range(31):
    abs(-1)
comm.write(b"slow")
slow = Slow()
slow.slow = slow
del slow
gc.collect()
collects(b'q"b\\s\nz')
for number in range(25):
    collects(b"n%02d" % number)
comm.write(b"python3")
PY
  cat >"$BATS_TEST_TMPDIR/command" <<SH
cat /proc/systemtap/*/__prometheus
echo =====
LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/known.py $counted
cat /proc/systemtap/*/__prometheus
SH
  script exporter/python -c "sh $BATS_TEST_TMPDIR/command" calls >"$BATS_TEST_TMPDIR/all"
  cat "$BATS_TEST_TMPDIR/all"
  # each line of the format, strictly; and what Prometheus's own client makes of it
  refute grep -vE '^(# (HELP python_[a-z_]+ .*|TYPE python_[a-z_]+ (counter|histogram))|=====|WARNING: Kernel function.*|python_[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? [0-9.]+)$' "$BATS_TEST_TMPDIR/all"
  grep -v ^WARNING "$BATS_TEST_TMPDIR/all" | "$system" -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
for scrape in sys.stdin.read().split("=====\n"):
    print("scrape")
    for family in text_string_to_metric_families(scrape):
        print(family.name, family.type)
        assert family.documentation, family
        for sample in family.samples:
            print(sample.name, ",".join("%s=%s" % pair for pair in sorted(sample.labels.items())), repr(sample.value), sep="\t")
' >"$BATS_TEST_TMPDIR/parsed"
  # before the first Python there are the metrics, and no sample but of what was lost
  [ "$(grep -cx scrape "$BATS_TEST_TMPDIR/parsed")" = 2 ]
  diff - <(sed '1d; /^scrape$/,$d; s/\t\t/ /' "$BATS_TEST_TMPDIR/parsed") <<'METRICS'
python_gc_collections counter
python_gc_collected_objects counter
python_gc_pause_seconds histogram
python_imports counter
python_calls counter
python_c_calls counter
python_collections_lost counter
python_collections_lost_total 0.0
METRICS
  sed '1d; 1,/^scrape$/d' "$BATS_TEST_TMPDIR/parsed" >"$printed.samples"

  [ "$(sample python_gc_collections_total generation=0,program=counted)" = 3.0 ]
  [ "$(sample python_gc_collections_total generation=1,program=counted)" = 5.0 ]
  [ "$(sample python_gc_collections_total generation=2,program=counted)" = 8.0 ]
  [ "$(sample python_gc_collected_objects_total generation=0,program=counted)" = 3.0 ]
  [ "$(sample python_gc_collected_objects_total generation=1,program=counted)" = 5.0 ]
  [ "$(sample python_gc_pause_seconds_count generation=1,program=counted)" = 5.0 ]
  [ "$(sample python_gc_pause_seconds_bucket generation=1,le=+Inf,program=counted)" = 5.0 ]
  [ "$(sample python_imports_total found=false,program=counted)" = 2.0 ]
  [ "$(sample python_imports_total found=true,program=counted)" = 1.0 ]
  [ "$(sample python_calls_total program=known)" = 141.0 ]
  [ "$(sample python_c_calls_total program=known_c)" = 32.0 ]
  refute grep 'program=thread' "$printed.samples"
  for bucket in 0.0001 0.001 0.01 0.1; do
    [ "$(sample python_gc_pause_seconds_bucket "generation=2,le=$bucket,program=slow")" = 0.0 ]
  done
  [ "$(sample python_gc_pause_seconds_bucket generation=2,le=+Inf,program=slow)" = 1.0 ]
  sample python_gc_pause_seconds_sum generation=2,program=slow | awk '{ exit !($1 >= 0.15 && $1 < 10) }'
  # a pause is in each bucket from its own upwards
  awk -F'\t' '/_bucket/ { split($2, label, ","); key = label[1] label[3]
    if (key == last && $3 < before) { print; bad = 1 }
    last = key; before = $3; n++ } END { exit bad || n < 300 }' "$printed.samples"
  [ "$(sample python_gc_collections_total 'generation=0,program=q?b?s?z')" = 1.0 ]
  # python3, counted, known, known_c, slow, q?b?s?z and 14 more are 20
  [ "$(sample python_gc_collections_total generation=2,program=n13)" = 1.0 ]
  [ "$(sample python_gc_collections_total 'generation=2,program=(other)')" = 11.0 ]
  [ "$(sample python_collections_lost_total '')" = 0.0 ]
}

@test "the exporter's script refuses other words than calls" {
  refuses 'usage: python.stp [calls]' exporter/python cals
}

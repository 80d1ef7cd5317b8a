# The script for stap-exporter: what Prometheus gets from known collections, imports and calls.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# The value of the sample $1 in the last scrape, with the labels $2: name=value, sorted by name.
sample() {
  awk -F'\t' -v name="$1" -v labels="$2" '$1 == name && $2 == labels { print $3; found++ } END { exit found != 1 }' "$printed.samples"
}

# The scrapes on stdin as Prometheus's own client reads them: each metric with its type, each sample with tabs
# between its name, its labels and its value.
parse() {
  "$system" -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
for scrape in sys.stdin.read().split("=====\n"):
    print("scrape")
    for family in text_string_to_metric_families(scrape):
        print(family.name, family.type)
        assert family.documentation, family
        for sample in family.samples:
            print(sample.name, ",".join("%s=%s" % pair for pair in sorted(sample.labels.items())), repr(sample.value), sep="\t")
'
}

@test "the exporter's script counts collections, pauses, imports and calls, in text that Prometheus reads" {
  local client bucket
  client=$("$system" -c 'import prometheus_client' 2>&1) || skip "needs python3-prometheus-client: ${client##*$'\n'}"
  cat >"$BATS_TEST_TMPDIR/command" <<SH
cat /proc/systemtap/*/__prometheus
echo =====
LD_PRELOAD=$shim $system $top/test/workloads/metrics.py $counted
cat /proc/systemtap/*/__prometheus
SH
  script exporter/python -c "sh $BATS_TEST_TMPDIR/command" calls >"$BATS_TEST_TMPDIR/all"
  cat "$BATS_TEST_TMPDIR/all"
  # each line has the format
  refute grep -vE '^(# (HELP python_[a-z_]+ .*|TYPE python_[a-z_]+ (counter|histogram))|=====|WARNING: Kernel function.*|python_[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? [0-9.]+)$' "$BATS_TEST_TMPDIR/all"
  grep -v ^WARNING "$BATS_TEST_TMPDIR/all" | parse >"$BATS_TEST_TMPDIR/parsed"
  # before the first Python there are the metrics, with the sample of lost collections alone
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

# Else a program could make series without end, and evict those of others: a marker passes what the program says.
@test "the exporter's script has series for the generations that there are, and no others" {
  local events=$BATS_TEST_TMPDIR/events
  printf 'gc__start %s\ngc__done 1\n' 0 -1 {3..70} 2 >"$events"
  printf '%s\n' "$driver $events" 'cat /proc/systemtap/*/__prometheus' >"$BATS_TEST_TMPDIR/command"
  SYSTEMTAP_TAPSET=$top/build/test/tapset script exporter/python -c "sh $BATS_TEST_TMPDIR/command" >"$BATS_TEST_TMPDIR/all"
  cat "$BATS_TEST_TMPDIR/all"
  diff - <(grep -E '^python_(gc_collections|collections_lost)_total' "$BATS_TEST_TMPDIR/all" | sort) <<'SAMPLES'
python_collections_lost_total 69
python_gc_collections_total{program="driver",generation="0"} 1
python_gc_collections_total{program="driver",generation="2"} 1
SAMPLES
}

# Prints a scrape of the script as SystemTap 5.6 runs it for stap@pymetrics.service: compiled as its stap-service-prepare does,
# with STAP_OPTIONS of pymetrics.options, then by staprun.
# usage: as_a_service STAP_OPTIONS
as_a_service() {
  local folder=$BATS_TEST_TMPDIR/script.d
  mkdir -p "$folder"
  ln -sf "$top/scripts/exporter/python.stp" "$folder/pymetrics.stp"
  rm -f "$folder/pymetrics.ko"
  # shellcheck disable=SC2086 # as it has them
  (cd "$folder" && stap -p4 -m pymetrics $1 "$folder/pymetrics.stp") >&2
  # shellcheck disable=SC2016
  in_guest sh -c 'staprun "$1" & i=0
    until [ -e /proc/systemtap/pymetrics/__prometheus ] || [ $((i += 1)) -gt 300 ]; do sleep 0.1; done
    LD_PRELOAD=$2 "$3" -c "import gc; gc.collect(1)"
    cat /proc/systemtap/pymetrics/__prometheus
    kill $! && wait $!' sh "$folder/pymetrics.ko" "$shim" "$system"
}

@test "stap@.service of SystemTap 5.6 serves the exporter's script, with calls if its options have that" {
  need_time
  as_a_service "" >"$BATS_TEST_TMPDIR/scrape"
  cat "$BATS_TEST_TMPDIR/scrape"
  grep -qx 'python_gc_collections_total{program="python3[0-9.]*",generation="1"} 1' "$BATS_TEST_TMPDIR/scrape"
  refute grep calls "$BATS_TEST_TMPDIR/scrape"
  as_a_service "$top/scripts/exporter/python.stp calls" >"$BATS_TEST_TMPDIR/scrape"
  cat "$BATS_TEST_TMPDIR/scrape"
  grep -qE '^python_calls_total\{program="python3[0-9.]*"\} [0-9]+$' "$BATS_TEST_TMPDIR/scrape"
}

@test "the exporter's script refuses other words than calls" {
  need_time
  refuses 'usage: python.stp [calls]' exporter/python cals
}

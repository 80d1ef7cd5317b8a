# shellcheck shell=bash
# Runs bpftrace beside programs, and has bpftrace programs that print or count the markers.
#
# SPDX-License-Identifier: MIT

# Skips the test unless bpftrace can attach to markers.  Tries it once in a run of bats, because it takes a second.
can_bpftrace() {
  local tried=${BATS_RUN_TMPDIR:+$BATS_RUN_TMPDIR/bpftrace-attaches}
  need bpftrace
  [ "$(id -u)" = 0 ] || skip "needs root, for bpftrace"
  [ ! -e "$tried" ] || return 0
  bpftrace -q -e "usdt:$shim:python:gc__start { } interval:ms:1 { exit(); }" >/dev/null 2>&1 ||
    skip "needs a kernel in which bpftrace attaches to markers"
  [ ! "$tried" ] || : >"$tried"
}

# Waits until the bpftrace $1 waits for events, at most two seconds.
waits_for_events() {
  local i
  for ((i = 0; i < 40 * SLOW; i++)); do
    [[ $(cat "/proc/$1/wchan" 2>/dev/null) != *poll* ]] || break
    sleep 0.05
  done
}

# How many file descriptors the bpftrace $1 has that match the pattern $2.
descriptors_of() {
  find "/proc/$1/fd" -lname "$2" 2>/dev/null | wc -l
}

# Whether the bpftrace $1 is attached to its $2 probes, which have $3 sites.  It then holds a link for each probe
# (bpftrace 0.27), or a perf event for each CPU and for each site (0.17).
is_attached() {
  [ "$(descriptors_of "$1" '*bpf_link*')" -ge "$2" ] || [ "$(descriptors_of "$1" '*perf_event*')" -ge $(($3 + $(nproc))) ]
}

# How many links and perf events the bpftrace $1 holds.
attachments_of() {
  echo $(($(descriptors_of "$1" '*bpf_link*') + $(descriptors_of "$1" '*perf_event*')))
}

# Ends the bpftrace $1, which then prints its maps.  bpftrace reacts to an interrupt only while it waits for
# events, and drops events that it has not printed yet.  An interrupt while it detaches or prints would end it
# without its maps: it gets none once it holds fewer links and perf events.
end_bpftrace() {
  local attached
  attached=$(attachments_of "$1")
  while kill -0 "$1" 2>/dev/null; do
    waits_for_events "$1"
    [ "$(attachments_of "$1")" -lt "$attached" ] || kill -INT "$1" 2>/dev/null || true
    for _ in {1..40}; do
      kill -0 "$1" 2>/dev/null || break
      sleep 0.05
    done
  done
}

# Starts a bpftrace with this program, and waits until it is attached: $stays, until end_bpftrace.
bpftrace_beside() {
  bpftrace -q -e "$1" >/dev/null 2>&1 3>&- &
  stays=$!
  until is_attached "$stays" 1 1; do
    kill -0 "$stays" || return
    sleep 0.1
  done
}

# For teardown(): ends the programs that a failed test leaves in the background.
kill_jobs() {
  local pids
  pids=$(jobs -p)
  # shellcheck disable=SC2086
  [ ! "$pids" ] || kill -KILL $pids 2>/dev/null || true
}

# Runs bpftrace with PROGRAM, and the words of $PROGRAM_ARGUMENTS as arguments, while COMMAND runs; bpftrace's
# output is in $trace.  Fails if bpftrace lost an event.
# usage: bpftrace_while PROGRAM COMMAND...
bpftrace_while() {
  local program=$1 tracer probes sites status=0
  shift
  trace=$BATS_TEST_TMPDIR/trace
  # shellcheck disable=SC2086
  BPFTRACE_STRLEN=${BPFTRACE_STRLEN:-96} BPFTRACE_PERF_RB_PAGES=4096 bpftrace -q -e "$program" ${PROGRAM_ARGUMENTS:-} >"$trace" 2>"$trace.log" &
  tracer=$!
  probes=$(grep -o 'usdt:' <<<"$program" | wc -l)
  sites=$((probes + $(grep -o "usdt:\($shim\|$driver\):" <<<"$program" | wc -l) * ($(sites_of_each) - 1)))
  until is_attached "$tracer" "$probes" "$sites"; do
    kill -0 "$tracer" || { cat "$trace.log" && return 1; }
    sleep 0.05
  done
  # When bpftrace waits for events, it has enabled the last probe.
  waits_for_events "$tracer"
  timeout -k 5 "$((${TRACE_TIMEOUT:-60} * SLOW))" "$@" || status=$?
  end_bpftrace "$tracer"
  wait "$tracer" || true
  refute grep -h 'Lost .* events' "$trace" "$trace.log"
  return "$status"
}

# Runs bpftrace until a marker has fired that passes FILTER, an expression of bpftrace's; what fires meanwhile is
# counted by KEY in @calls.  Fails if none fires within $TRACE_TIMEOUT.
# usage: bpftrace_until MARKER FILTER KEY [MORE_PROBES]
bpftrace_until() {
  # shellcheck disable=SC2016 # sh expands it
  bpftrace_while "usdt:$shim:python:$1 /$2/ { @calls[$3] = count(); if (!@fired) { @fired = 1; printf(\"fired\\n\"); } } ${4:-}" \
    sh -c 'until grep -q fired "$1"; do sleep 0.05; done' - "$BATS_TEST_TMPDIR/trace"
}

# bpftrace programs that print the markers as expect.py does, with the file before the function's name,
# and the marker's other arguments behind the line.
function_markers() {
  cat <<EOF
usdt:$shim:python:function__entry
{ printf("> %s %s %d %lx %s\n", str(arg0), str(arg1), arg2, arg3, str(arg4)); }
usdt:$shim:python:function__return
{ printf("< %s %s %d %lx %s\n", str(arg0), str(arg1), arg2, arg3, str(arg4)); }
EOF
}

cfunction_markers() {
  cat <<EOF
usdt:$shim:python:cfunction__entry
{ printf("( %s %s %d %s\n", str(arg0), str(arg1), arg2, str(arg3)); }
usdt:$shim:python:cfunction__return
{ printf(") %s %s %d %s\n", str(arg0), str(arg1), arg2, str(arg3)); }
EOF
}

line_markers() {
  cat <<EOF
usdt:$shim:python:line
{ printf(". %s %s %d\n", str(arg0), str(arg1), arg2); }
EOF
}

# A bpftrace program that counts all markers together.
all_markers() {
  markers | sed "s|.*|usdt:$shim:python:& { @ = count(); }|"
}

# A bpftrace program that counts each marker.
each_marker() {
  markers | sed "s|.*|usdt:$shim:python:& { @[\"&\"] = count(); }|"
}

# Runs each case of a workload without the shim, with it, and with it while bpftrace runs PROGRAM; the three must
# print the same and have the same exit status.  The cases are the workload's top-level functions without
# parameters, except marked() and executed(), which they call.  Each runs as a file of its own, $folder/CASE.py,
# which identifies its events in $trace.
# usage: run_cases PYTHON WORKLOAD PROGRAM
run_cases() {
  local name
  export cases python=$1 folder=$BATS_TEST_TMPDIR
  cases=$(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$top/test/workloads/$2" | grep -vx -e marked -e executed)
  [ "$(wc -w <<<"$cases")" -ge 12 ]
  for name in $cases; do
    cp "$top/test/workloads/$2" "$folder/$name.py"
  done
  cat >"$folder/all" <<'SH'
for name in $cases; do
  timeout -k 1 $((30 * SLOW)) "$python" -W ignore "$folder/$name.py" "$name" >"$folder/$name$1" 2>&1 || echo "status $?" >>"$folder/$name$1"
done
SH
  bash "$folder/all" .plain
  LD_PRELOAD=$shim bash "$folder/all" .loaded
  LD_PRELOAD=$shim TRACE_TIMEOUT=120 bpftrace_while "$3" bash "$folder/all" .traced
  for name in $cases; do
    echo "$python $name: $(cat "$folder/$name.plain")"
    diff "$folder/$name".{plain,loaded}
    diff "$folder/$name".{plain,traced}
  done
}

# How often a case of run_cases called marked(): its last line of output, but for the line with its exit status.
marked_by() {
  grep -v status "$folder/$1.plain" | tail -n 1
}

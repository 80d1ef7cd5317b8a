# Several processes: one or all of those that run, and those that fork, exec and are killed meanwhile.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  system=$(system_python)
}

@test "pyflow -x follows one running process and no other" {
  local output=$BATS_TEST_TMPDIR/output pids
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.02)


while True:
    step()
PY
  # two of them in the guest, or here
  pids=$(in_guest sh -c "for i in 1 2; do
    LD_PRELOAD=$shim timeout --foreground $((300 * SLOW)) $system $BATS_TEST_TMPDIR/loop.py >/dev/null 2>&1 & done
    for i in \$(seq 300); do
      pids=\$(pgrep -f '^[^ ]*python[^ ]* $BATS_TEST_TMPDIR/loop.py')
      [ \$(echo \$pids | wc -w) != 2 ] || break
      sleep 0.1
    done
    echo \$pids")
  # shellcheck disable=SC2086
  set -- $pids
  stap -o "$output" -x "$1" -E 'probe timer.s(2) { exit() }' "$top/scripts/pyflow.stp"
  in_guest kill "$1" "$2"
  head "$output"
  # the module's frame is entered when the tracer attaches
  [ "$(grep -c "python3[.0-9t]*($1): => <module> in $BATS_TEST_TMPDIR/loop.py:" "$output")" = 1 ]
  [ "$(grep -c "python3[.0-9t]*($1):  => step in $BATS_TEST_TMPDIR/loop.py:4$" "$output")" -ge 5 ]
  [ "$(grep -c "python3[.0-9t]*($1):  <= step in $BATS_TEST_TMPDIR/loop.py:5$" "$output")" -ge 5 ]
  refute grep -v "python3[.0-9t]*($1)" "$output"
}

@test "without -c and -x every Python that runs is seen, whichever its version" {
  local output=$BATS_TEST_TMPDIR/output all pids
  all=$(pythons_by_hook | tr '\n' ' ')
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.02)


while True:
    step()
PY
  pids=$(in_guest sh -c "for python in $all; do
    LD_PRELOAD=$shim timeout $((300 * SLOW)) \$python $BATS_TEST_TMPDIR/loop.py >/dev/null 2>&1 & done
    for i in \$(seq 300); do
      pids=\$(pgrep -f '^[^ ]*python[^ ]* $BATS_TEST_TMPDIR/loop.py')
      [ \$(echo \$pids | wc -w) != $(wc -w <<<"$all") ] || break
      sleep 0.1
    done
    echo \$pids")
  [ "$(wc -w <<<"$pids")" = "$(wc -w <<<"$all")" ]
  stap -o "$output" -e '
    global entries, returns
    probe python.function.entry { if (funcname == "step") entries[pid(), python_version()]++ }
    probe python.function.return { if (funcname == "step") returns[pid()]++ }
    probe timer.s(4) { exit() }
    probe end { foreach ([p+, v] in entries) if (entries[p, v] >= 5 && returns[p] >= 5) println(p, " ", v) }'
  # shellcheck disable=SC2086
  in_guest kill $pids
  cat "$output"
  diff <(tr ' ' '\n' <<<"$pids" | sort) <(cut -d' ' -f1 "$output" | sort)
  diff <(for python in $all; do "$python" -c 'import sys; print(sys.version.split()[0])'; done | sort) \
    <(cut -d' ' -f2 "$output" | sort)
}

@test "processes that fork, exec and end in the middle of it are seen, no event more or less" {
  local output=$BATS_TEST_TMPDIR/output python name cases folder=$BATS_TEST_TMPDIR
  cases="fork fork_that_ends_in_order fork_in_a_thread multiprocessing_spawn execute leaves_at_once threads"
  for python in "$system" ${EVERY:+"$(pythons_by_hook | tail -n 1)"}; do
    echo "$python"
    for name in $cases; do
      cp "$top/test/workloads/processes.py" "$folder/$name.py"
    done
    stap -o "$output" -e '
      global entries, returns
      probe python.function.entry { if (funcname == "marked") entries[filename]++ }
      probe python.function.return { if (funcname == "marked") returns[filename]++ }
      probe end { foreach (f in entries) println(f, " ", entries[f], " ", returns[f]) }' \
      -c "env LD_PRELOAD=$shim sh -c 'for name in $cases; do $python -W ignore $folder/\$name.py \$name >$folder/\$name.plain 2>&1; done; true'"
    cat "$output"
    for name in $cases; do
      grep -xF "$folder/$name.py $(marked_by "$name") $(marked_by "$name")" "$output"
    done
  done
}

@test "a process that is killed in the middle of a probed call takes nothing with it" {
  local output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/last.py" <<'PY'
import os
import signal


def call(left):
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)


for left in range(2000, -1, -1):
    call(left)
PY
  stap -o "$output" -e '
    global entries, returns
    probe python.function.entry { if (funcname == "call") entries[pid()] <<< lineno }
    probe python.function.return { if (funcname == "call") returns[pid()] <<< lineno }
    probe end { foreach (p in entries) println(@count(entries[p]), " ", @count(returns[p])) }' \
    -c "sh -c 'for i in 1 2 3; do LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/last.py; done; true'"
  cat "$output"
  [ "$(grep -cx '2001 2000' "$output")" = 3 ]
}

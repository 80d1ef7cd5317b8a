# stap-python with the real stap, which traces what it starts and what it attaches to.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  launcher=$top/build/stap-python
  system=$(system_python)
  export STAP=$top/test/vm/stap
  folder=$BATS_TEST_TMPDIR
  cat >"$folder/x.py" <<'PY'
import os
import sys
import time


def called():
    pass


def works():
    for _ in range(17):
        called()


while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
works()
PY
}

# Runs a script by its name, with this machine's stap; a busy machine is not an error.
script() {
  timeout -k 5 $((300 * SLOW)) "$launcher" "$@" -G top=2000 -DSTP_NO_OVERLOAD -DMAXTRYLOCK=10000
}

@test "stap-python SCRIPT -c COMMAND traces the command, with the shim in it" {
  run script pycalls -c "$system $folder/x.py"
  echo "$output"
  [ "$status" = 0 ]
  [ "$(awk '$3 == "called" { print $1 }' <<<"$output")" = 17 ]
  [ "$(awk '$3 == "works" { print $1 }' <<<"$output")" = 1 ]
  # through a shell, with a variable that the command sets
  run script pycalls -c "cd $folder && N=1 $system x.py"
  echo "$output"
  [ "$(awk '$3 == "called" { print $1 }' <<<"$output")" = 17 ]
}

@test "a running program is traced after stap-python attach, by a stap that was there before" {
  # all of it runs where stap's probes are: in the guest, if there is one
  cat >"$folder/attach.sh" <<'SH'
unset LD_PRELOAD
"$1" "$2/x.py" "$2/go" &
program=$!
tries=0
until "$3" list "$program" | grep -q 'the shim: not loaded'; do
  [ $((tries += 1)) -lt $((60 * ${SLOW:-1})) ] || exit 8
  sleep 0.5
done
"$3" attach "$program" || exit 9
tries=0
until "$3" list "$program" | grep -q 'the shim: active'; do
  [ $((tries += 1)) -lt $((60 * ${SLOW:-1})) ] || exit 7
  sleep 0.5
done
sleep "${SLOW:-1}"
: >"$2/go"
wait "$program"
SH
  run script pycalls -o "$folder/output" -c "sh $folder/attach.sh $system $folder $launcher"
  echo "$output"
  cat "$folder/output"
  [ "$status" = 0 ]
  [ "$(awk '$3 == "called" { print $1 }' "$folder/output")" = 17 ]
  [ "$(awk '$3 == "works" { print $1 }' "$folder/output")" = 1 ]
}

@test "on a terminal stap-python SCRIPT says on stderr when it begins" {
  # shellcheck disable=SC2016
  run timeout -k 5 $((300 * SLOW)) /usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' \
    sh -c '"$0" pygc -E "probe timer.s(1) { exit() }" >"$1"' "$launcher" "$folder/output"
  echo "$output"
  cat "$folder/output"
  [ "$(grep -cx 'Tracing\.\.\. Ctrl-C to end\.' <(tr -d '\r' <<<"$output"))" = 1 ]
  refute grep -q Tracing "$folder/output"
  grep -q PAUSE "$folder/output"
}

# All with EVERY=1, else those that the others are made like.
@test "stap-python record samples a program into each format" {
  local suffix
  cat >"$folder/named.py" <<'PY'
import ctypes
import runpy
import sys

ctypes.CDLL(None).prctl(15, b"odd\n;name")
runpy.run_path(sys.argv.pop(1), run_name="__main__")
PY
  for suffix in pb.gz svg ${EVERY:+html json folded txt}; do
    timeout -k 5 $((300 * SLOW)) "$launcher" record -r 49 -n -o "$folder/x.$suffix" -- "$system" "$folder/named.py" "$top/test/workloads/inner.py" 3
    "$system" - "$top" "$folder/x.$suffix" <<'PY'
import json
import os
import sys

top, path = sys.argv[1:]
sys.path.insert(0, top + "/test/lib")
import profiles

program = top + "/test/workloads/inner.py"
if path.endswith(".pb.gz"):
    samples, types, rest = profiles.from_pprof(path)
    assert types[1] == ("cpu", "nanoseconds") and rest[12] == 10**9 // 49, (types, rest)
    assert rest[10] >= 3 * 10**9 and abs(rest[9] / 1e9 - os.stat(path).st_mtime) < 86400, rest
    assert "odd\\n:name" in {labels["program"] for stack, values, labels in samples}, samples
    # the shim has a thread, too
    assert all(1 < labels["pid"] <= labels["tid"] and labels["program"] for stack, values, labels in samples), samples
    lines = open(program).read().splitlines()
    placed = [place for stack, *_ in samples for place in stack if place[1] == program]
    assert any("range(20000)" in lines[line - 1] for name, file, line, mapping in placed if name == "spins"), placed
    stacks = {tuple(place[0] for place in stack): values[0] for stack, values, labels in samples}
elif path.endswith((".svg", ".html")):
    text = open(path, encoding="utf-8").read()
    graph = profiles.Page(text).graph if path.endswith(".html") else text.encode()
    stacks = profiles.stacks_of_frames(profiles.from_svg(graph))
    assert "49 Hz, %d samples" % sum(stacks.values()) in text and program + " 3</text>" in text
elif path.endswith(".json"):
    frames = [frame["name"] for frame in json.load(open(path))["shared"]["frames"]]
    stacks = {tuple(frames): 300}
else:
    stacks = profiles.folded(path, bytes.decode)
names = {name.split(" (")[0] for stack in stacks for name in stack}
assert {"<module>", "spins", "sums"} <= names and any("crc32" in name for name in names), names
assert sum(stacks.values()) > 30, stacks
PY
  done
}

@test "record --memory has the bytes and blocks that functions keep, and what they allocated, for pprof" {
  # 98 percent of the blocks of 1,000 bytes are samples: a deviation of half a percent
  printf '#!/bin/sh\nexec "%s" "$@" -DSTP_NO_OVERLOAD -DMAXTRYLOCK=10000\n' "$STAP" >"$folder/stap"
  chmod +x "$folder/stap"
  STAP=$folder/stap timeout -k 5 $((300 * SLOW)) "$launcher" record --memory --bytes 256 -o "$folder/x.pb.gz" -- \
    "$system" "$top/test/workloads/keeps.py" 1000 >"$folder/kept"
  "$system" - "$top" "$folder/x.pb.gz" "$folder/kept" <<'PY'
import collections
import sys

top, path, kept = sys.argv[1:]
sys.path.insert(0, top + "/test/lib")
import profiles

program = top + "/test/workloads/keeps.py"
lines = open(program).read().splitlines()
samples, types, rest = profiles.from_pprof(path)
assert [name for name, unit in types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], types
assert rest[12] == 256 and rest[14] == "inuse_space" and rest[10] > 0, rest
found = collections.defaultdict(lambda: [0] * 4)
for stack, values, labels in samples:
    assert labels["pid"] > 1 and "tid" not in labels, labels
    name, file, line, mapping = stack[-1]
    if file == program:
        name = "bursts" if name == "<listcomp>" else name
        found[name] = [sum(pair) for pair in zip(found[name], values)]
        assert name != "later" or "bytes(2000)" in lines[line - 1], line
print(dict(found))


def near(value, wanted, most=1.05):
    assert wanted * 0.95 <= value <= wanted * most, (value, wanted)


for name, size in map(str.split, open(kept)):
    near(found[name][3], int(size))
near(found["remembers"][2], 1000)
near(found["later"][2], 250)
# freed; its lists grow, which are some blocks more
assert found["bursts"][2:] == [0, 0]
near(found["bursts"][1], 30 * 1000 * sys.getsizeof(bytes(500)), 1.15)
near(found["bursts"][0], 30 * 1000, 1.3)
PY
}

@test "record takes all workers of a service, those that it had before included, and what they start, and no other Python" {
  local words workers other
  cat >"$folder/prefork.py" <<'PY'
import os
import sys
import time


def spin(name):
    while not os.path.exists(__file__ + ".go"):
        time.sleep(0.1)
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    open(__file__ + "." + name, "w").close()
    time.sleep(3000)


def first():
    if os.fork() == 0:
        grandchild()
    spin("first")


def grandchild():
    spin("grandchild")


def second():
    spin("second")


for work in [first, second] if len(sys.argv) == 1 else []:
    if os.fork() == 0:
        work()
spin("parent" if len(sys.argv) == 1 else "other")
PY
  cat >"$folder/go.sh" <<'SH'
: >"$1.go"
for name in first second grandchild parent other; do
  until [ -e "$1.$name" ]; do sleep 0.2; done
done
SH
  # what stap would be given
  # shellcheck disable=SC2016
  printf '#!/bin/sh\n[ "$1" != --version ] || echo "Systemtap translator/driver (version 4.8/0.188)"\nprintf "<%%s>\\n" "$@"\n' >"$folder/stap"
  chmod +x "$folder/stap"
  # shellcheck disable=SC2016
  run in_guest sh -c 'exec 2>"$2/said"
    LD_PRELOAD=$4 setsid timeout --foreground 3000 "$1" "$2/prefork.py" other >/dev/null 2>&1 &
    echo "other $!"
    setsid timeout --foreground 3000 "$1" "$2/prefork.py" >/dev/null 2>&1 &
    until parent=$(pgrep -o -fx "[^ ]*python[^ ]* $2/prefork.py") && [ "$(pgrep -fxc "[^ ]*python[^ ]* $2/prefork.py")" = 4 ]; do sleep 1; done
    echo "parent $parent"
    for worker in $(pgrep -P "$parent"); do echo "worker $worker"; done
    # on a busy machine a thread may reach no safe point in time; the guest can write to no home
    for i in $(seq 60); do
      ! STAP=$2/stap SYSTEMTAP_DIR=$2/systemtap "$3" record -p "$parent" --children -d 5 >"$2/words" ||
        ! grep -q "^<__python_targets1=.*_.*_.*_" "$2/words" || break
      sleep 1
    done
    cat "$2/words"' sh "$system" "$folder" "$launcher" "$top/build/libpython-stap.so.0"
  echo "$output"
  cat "$folder/said"
  words=$(sed -nE 's/^<__python_targets1=(.*)>$/\1/p' <<<"$output")
  workers=$(sed -n 's/^worker //p' <<<"$output" | paste -sd_)
  other=$(sed -n 's/^other //p' <<<"$output")
  [ "$(tr _ '\n' <<<"$words" | wc -l)" = 4 ]
  [[ _${words}_ == *"_$(sed -n 's/^parent //p' <<<"$output")_"* ]]
  grep -qx '<by_process=1>' <<<"$output"
  # the workers alone are targets enough: what they have started belongs to them
  run stap -o "$folder/profile" "$top/scripts/pyprof.stp" 199 \
    -G "__python_targets1=$workers" -G by_process=1 -c "sh $folder/go.sh $folder/prefork.py"
  # shellcheck disable=SC2086
  in_guest kill "$other" ${words//_/ }
  echo "$output"
  cat "$folder/profile"
  [ "$(grep -cE ';first \([^;]*;spin \([^;]* [0-9]+$' "$folder/profile")" = 1 ]
  [ "$(grep -cE ';second \([^;]*;spin \([^;]* [0-9]+$' "$folder/profile")" = 1 ]
  [ "$(grep -cE ';first \([^;]*;grandchild \([^;]*;spin \([^;]* [0-9]+$' "$folder/profile")" = 1 ]
  [ "$(grep -E ';spin \(' "$folder/profile" | sed -E 's/^[^(]*\(([0-9]+)\).*/\1/' | sort -u | wc -l)" = 3 ]
  refute grep -E '<module> \([^;]*;spin' "$folder/profile"
}

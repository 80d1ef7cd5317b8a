# The scripts that report events, from pygc to pytrace, on programs with known numbers.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

@test "pygc prints each collection with its generation and what it found, and sums them up" {
  local own
  script pygc -c "env LD_PRELOAD=$shim $system $counted"
  # the program's own, of one object each
  own=000111112222222
  [[ $(awk 'NF == 6 && $6 >= 1 { printf "%d", $4 }' "$printed") == *$own* ]]
  # a free-threaded build frees code by collections alone: the first one has that of a module, which has run
  ! is_free_threaded "$system" || own=${own:1}
  [ "$(awk 'NF == 6 && $6 == 1 { printf "%d", $4 }' "$printed")" = "$own" ]
  sed '/^$/,$d' "$printed" | tail -n +2 | awk '{ n[$4]++; us[$4] += $5; objects[$4] += $6 }
    $5 > longest[$4] { longest[$4] = $5 }
    END { for (g = 0; g < 3; g++) print g, n[g], us[g], int(us[g] / n[g]), longest[g], objects[g] }' >"$BATS_TEST_TMPDIR/sums"
  diff "$BATS_TEST_TMPDIR/sums" <(sed '1,/^GENERATION /d; /^$/,$d' "$printed" | awk '{ $1 = $1; print }')
  # the histograms have them all
  diff <(cut -d' ' -f1,2 "$BATS_TEST_TMPDIR/sums") \
    <(awk '/^pauses of generation/ { g = $4 + 0 } $2 ~ /^[|]/ && NF > 1 && $NF ~ /^[0-9]+$/ { n[g] += $NF }
      END { for (g = 0; g < 3; g++) print g, n[g] }' "$printed")
}

@test "pygc has rows for the generations that there are, and none for those that a program invents" {
  printf 'gc__start %s\ngc__done 1\n' 0 -1 {3..70} 2 >"$BATS_TEST_TMPDIR/events"
  SYSTEMTAP_TAPSET=$top/build/test/tapset script_says pygc -c "$driver $BATS_TEST_TMPDIR/events" 999999999
  [ "$(sed '1,/GENERATION/d; /^$/,$d' "$printed" | awk '{ print $1, $2 }' | xargs)" = "0 1 2 1" ]
  grep -qx 'WARNING: left out: 69 collections that .*' "$printed.said"
}

@test "pygc tells the pause, with the finalizers in it, and leaves out the short ones" {
  cat >"$BATS_TEST_TMPDIR/slow.py" <<'PY'
import gc
import time


class Slow:
    def __del__(self):
        time.sleep(0.7)


gc.disable()
gc.collect()
slow = Slow()
slow.own = slow
del slow
gc.collect(1)
PY
  script pygc -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/slow.py" 700000
  sed '/^$/,$d' "$printed" | tail -n +2 >"$BATS_TEST_TMPDIR/lines"
  awk '$4 != 1 || $5 < 700000 || $5 > 7000000 || $6 < 1 { exit 1 } END { exit NR != 1 }' "$BATS_TEST_TMPDIR/lines"
  # the table counts the others too
  [ "$(sed '1,/^GENERATION /d; /^$/,$d' "$printed" | awk '{ n += $2 } END { print n }')" -gt 2 ]
}

@test "pyimport prints the tree that -X importtime prints, and the misses" {
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
import package.slow
for _ in range(2):
    try:
        import no_such_module
    except ImportError:
        pass
PY
  mkdir "$BATS_TEST_TMPDIR/package"
  cat >"$BATS_TEST_TMPDIR/package/__init__.py" <<'PY'
import colorsys
try:
    import package.raises
except ValueError:
    pass
PY
  cat >"$BATS_TEST_TMPDIR/package/slow.py" <<'PY'
import time
import package.slower
time.sleep(0.2)
PY
  echo 'import time; time.sleep(0.5)' >"$BATS_TEST_TMPDIR/package/slower.py"
  echo 'raise ValueError' >"$BATS_TEST_TMPDIR/package/raises.py"
  script pyimport -c "env LD_PRELOAD=$shim sh -c '$system -X importtime $BATS_TEST_TMPDIR/program.py 2>$BATS_TEST_TMPDIR/importtime'"
  # from the first one after site on, what is imported and by whom
  sed '/^$/,$d' "$printed" | sed '1,/  site$/d' >"$BATS_TEST_TMPDIR/tree"
  diff <(sed 's/^.\{50\}//; s/ (miss)$//' "$BATS_TEST_TMPDIR/tree") \
    <(sed '1,/| site$/d; s/^.* | //' "$BATS_TEST_TMPDIR/importtime")
  diff <(awk '{ print $5, $6, $7 }' "$BATS_TEST_TMPDIR/tree" | grep miss) - <<'MISSES'
package.raises (miss) 
no_such_module (miss) 
no_such_module (miss) 
MISSES
}

@test "pyimport shows a lazy import when its name is first used, with the line that does so" {
  local python
  python=$(which_pythons 'sys.version_info >= (3, 15)' | head -n 1)
  [ "$python" ] || skip "needs CPython 3.15"
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
lazy import colorsys
lazy import no_such_module
lazy import wave
import package.eager


def uses():
    return colorsys


uses()
try:
    no_such_module
except ImportError:
    pass
PY
  mkdir "$BATS_TEST_TMPDIR/package"
  : >"$BATS_TEST_TMPDIR/package/__init__.py"
  : >"$BATS_TEST_TMPDIR/package/eager.py"
  script pyimport -c "env LD_PRELOAD=$shim $python -S $BATS_TEST_TMPDIR/program.py"
  diff <(sed '/^$/,$d' "$printed" | sed -n 's/^.\{48\} *\(\(colorsys\|no_such\|wave\|package\)\)/\1/p') - <<LINES
package
package.eager
colorsys (lazy, $BATS_TEST_TMPDIR/program.py:8)
no_such_module (miss) (lazy, $BATS_TEST_TMPDIR/program.py:13)
LINES
  script pyimport -G json=1 -c "env LD_PRELOAD=$shim $python -S $BATS_TEST_TMPDIR/program.py"
  grep -qF "\"module\":\"colorsys\",\"miss\":false,\"lazy\":\"$BATS_TEST_TMPDIR/program.py:8\"}" "$printed"
  grep -qF '"module":"package","miss":false,"lazy":null}' "$printed"
}

@test "pyimport's times are those of the sleeps, inclusive is self and what is in it, and the table adds them up" {
  mkdir "$BATS_TEST_TMPDIR/package"
  printf 'import time\ntime.sleep(0.3)\nimport package.inner\n' >"$BATS_TEST_TMPDIR/package/__init__.py"
  printf 'import time\ntime.sleep(1.5)\n' >"$BATS_TEST_TMPDIR/package/inner.py"
  printf 'import package\n' >"$BATS_TEST_TMPDIR/program.py"
  script pyimport -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/program.py"
  sed '/^$/,$d' "$printed" | tail -n +2 >"$BATS_TEST_TMPDIR/tree"
  awk '$5 == "package" { self = $3; all = $4 } $5 == "package.inner" { inner = $4; if ($3 != $4) exit 1 }
    END { exit !(inner >= 1500000 && self >= 300000 && self < 30000000 && all - self - inner >= -2 && all - self - inner <= 2) }' \
    "$BATS_TEST_TMPDIR/tree"
  # the sum of self is the sum of the outermost ones, up to what is rounded
  awk '/all modules$/ { n = $1; sum = $3 } FILENAME ~ /tree$/ { lines++; self += $3 }
    END { exit !(n == lines && sum >= self && sum <= self + lines) }' "$BATS_TEST_TMPDIR/tree" "$printed"
}

@test "pyaudit prints the events that match, with flags and families by name, and counts them" {
  local program
  cat >"$BATS_TEST_TMPDIR/program.py" <<PY
import os
import socket
import subprocess
import sys
folder = "$BATS_TEST_TMPDIR"
sys.audit("own.begin")
open(folder + "/a", "w").close()
os.close(os.open(folder + "/a", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK))
os.close(os.open("/dev/null", os.O_RDONLY | os.O_SYNC))
os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
socket.socket().close()
both = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
both.bind(("::1", 0))
both.close()
one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
try:
    one.connect("/no such\tsocket")
except OSError:
    pass
one.close()
subprocess.call(["/bin/true", "it's"])
exec("1")
sys.audit("opener.not", 1)
for _ in range(3):
    sys.audit("own.event", None, b"x")
os.execv("/bin/true", ["true", "-x"])
PY
  program=$("$system" -c 'print(open("/proc/self/comm").read().strip())')
  cat >"$BATS_TEST_TMPDIR/expected" <<EXPECTED
$program own.begin()
$program open('$BATS_TEST_TMPDIR/a', 'w', O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC)
$program open('$BATS_TEST_TMPDIR/a', None, O_RDWR|O_CREAT|O_APPEND|O_NONBLOCK|O_CLOEXEC)
$program open('/dev/null', None, O_RDONLY|O_DSYNC|O_CLOEXEC|04000000)
$program open('/', None, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC)
$program socket.__new__(<socket>, AF_INET, SOCK_STREAM, 0)
$program socket.__new__(<socket>, AF_INET6, SOCK_DGRAM, 0)
$program socket.bind(<socket>, ('::1', 0))
$program socket.__new__(<socket>, AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0)
$program socket.connect(<socket>, '/no such\tsocket')
$program subprocess.Popen('/bin/true', ['/bin/true', "it's"], None, None)
$program exec(<code>,)
$program own.event(None, b'x')
$program own.event(None, b'x')
$program own.event(None, b'x')
$program os.exec('/bin/true', ['true', '-x'], None)
EXPECTED
  script pyaudit -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/program.py" '^(open$|socket[.]|subprocess|exec$|own[.]|os[.]exec)'
  sed '/^$/,$d' "$printed" | tail -n +2 >"$BATS_TEST_TMPDIR/events"
  sed '1,/ own\.begin()$/{/own\.begin/!d}' "$BATS_TEST_TMPDIR/events" | sed -E 's/^ *[0-9]+\.[0-9]+ +[0-9]+ ([^ ]+) +/\1 /' |
    diff "$BATS_TEST_TMPDIR/expected" -
  # the table is the count of the lines, sorted
  sed -E 's/^ *[0-9]+\.[0-9]+ +[0-9]+ +[^ ]+ +//; s/\(.*//' "$BATS_TEST_TMPDIR/events" | sort | uniq -c |
    awk '{ print $1, $2 }' | sort >"$BATS_TEST_TMPDIR/counts"
  sed '1,/^ *COUNT  EVENT$/d' "$printed" | awk '{ print $1, $2 }' >"$BATS_TEST_TMPDIR/table"
  diff "$BATS_TEST_TMPDIR/counts" <(sort "$BATS_TEST_TMPDIR/table")
  sort -s -c -k1,1nr "$BATS_TEST_TMPDIR/table"
}

@test "pyline counts the lines of the files that match as a trace function does, sorted" {
  LINES=1 EXPECT=$BATS_TEST_TMPDIR/all "$system" "$top/test/lib/expect.py" "$counted"
  script pyline -c "env LD_PRELOAD=$shim $system $counted" '*/workloads/counted.py:*'
  # sys.settrace() sees no other thread
  {
    awk '/^[.]/ { print $NF }' "$BATS_TEST_TMPDIR/all"
    printf '49\n%.0s' {1..13}
    printf '53\n%.0s' {1..14}
    printf '54\n%.0s' {1..13}
  } | sort -n | uniq -c |
    awk -v file="$counted" '{ printf "%10d  %s:%d\n", $1, file, $2 }' >"$BATS_TEST_TMPDIR/expected"
  grep -qx " *127  $counted:20" "$BATS_TEST_TMPDIR/expected"
  diff "$BATS_TEST_TMPDIR/expected" <(sed '1,/^ *HITS  FILE:LINE$/d' "$printed")
}

@test "pyline prints the 4000 lines with the most hits, and says how many more there are" {
  need_time
  seq 4000 -1 1 | sed 's/.*/filtered__line "\/srv\/&.py" "f" & "m"/' >"$BATS_TEST_TMPDIR/lines"
  printf '%s\n' '7 * filtered__line "/srv/1.py" "f" 4001 "m"' '3 * filtered__line "/srv/1.py" "f" 1 "m"' >>"$BATS_TEST_TMPDIR/lines"
  SYSTEMTAP_TAPSET=$top/build/test/tapset script_says pyline -c "$driver $BATS_TEST_TMPDIR/lines" '/srv/*:*'
  grep -qx 'WARNING: 1 lines with fewer hits are not in the table' "$printed.said"
  sed '1,/^ *HITS  FILE:LINE$/d' "$printed" | awk '{ print $2, $1 }' >"$printed.rows"
  sort -c "$printed.rows"
  diff <({
    seq 4000 | sed '2d; s,.*,/srv/&.py:& 1,; s,^/srv/1.py:1 1$,/srv/1.py:1 4,'
    echo /srv/1.py:4001 7
  } | sort) "$printed.rows"
}

@test "pyline without an argument prints the lines of a running process, in their order, and no other's" {
  need_time
  local pids
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.1)
    return 1


while True:
    step()
PY
  cp "$BATS_TEST_TMPDIR"/{loop,other}.py
  pids=$(start_in_guest "$BATS_TEST_TMPDIR"/{loop,other}.py)
  # shellcheck disable=SC2086
  set -- $pids
  script pyline -x "$1" -E 'probe timer.s(3) { exit() }'
  end_in_guest "$@"
  tail -n +2 "$printed" | awk -v pid="$1" -v file="$BATS_TEST_TMPDIR/loop.py" '
    BEGIN { after[5] = 6; after[6] = 10; after[9] = 10; after[10] = 5; of[5] = of[6] = "step"; of[9] = of[10] = "<module>" }
    { line = $5; sub(/.*:/, "", line) }
    NF != 5 || $2 != pid || $4 != of[line] || $5 != file ":" line || $1 < time { print "wrong:", $0; bad = 1 }
    last && line != after[last] && !(last == 10 && line == 9) && !(last == 6 && line == 9) { print "not next:", $0; bad = 1 }
    { last = line; time = $1; n++ }
    END { exit bad || n < 12 }'
}

# Checks that each thread's calls in a Chrome trace are nested and in order, and prints how often each function
# begins, with its file and line.
cat_trace() {
  /usr/bin/python3 - "$1" <<'PY'
import collections
import json
import sys

with open(sys.argv[1], encoding="utf-8") as trace:
    events = json.load(trace)
stacks = collections.defaultdict(list)
time = collections.defaultdict(int)
counts = collections.Counter()
threads = collections.defaultdict(set)
for event in events:
    thread = event["pid"], event["tid"]
    if event["ph"] == "M":
        assert event["name"] in ("pytrace", "process_name"), event
        continue
    assert event["ts"] >= time[thread], event
    time[thread] = event["ts"]
    if event["ph"] == "B":
        stacks[thread].append((event["name"], event["cat"]))
        counts[event["name"], event["cat"], event["args"]["line"]] += 1
        threads[event["name"]].add(thread)
    else:
        assert event["ph"] == "E", event
        begun = stacks[thread].pop()
        assert "name" not in event or begun == (event["name"], event["cat"]), event
assert not any(stacks.values()), stacks
for (name, file, line), count in sorted(counts.items(), key=lambda item: item[0][2]):
    print(count, name, "%s:%d" % (file, line), len(threads[name]))
print(len(threads["main"] & threads["in_thread_13"]), len(threads["thread_main"] ^ threads["in_thread_13"]))
PY
}

@test "pytrace is a Chrome trace with every call, nested in each thread" {
  script pytrace -c "env LD_PRELOAD=$shim $system $counted" '*/workloads/counted.py:*'
  cat_trace "$printed" >"$BATS_TEST_TMPDIR/trace"
  diff - <(sed "s,$counted,counted.py," "$BATS_TEST_TMPDIR/trace") <<'EXPECTED'
1 <module> counted.py:1 1
2 called_2 counted.py:11 1
31 called_31 counted.py:15 1
127 called_127 counted.py:19 1
5 outer_5 counted.py:23 1
15 inner_15 counted.py:28 1
1 generated counted.py:32 1
7 generated counted.py:34 1
11 raises_11 counted.py:37 1
1 lines_23 counted.py:41 1
13 in_thread_13 counted.py:48 1
1 thread_main counted.py:52 1
1 collects counted.py:57 1
1 main counted.py:66 1
0 0
EXPECTED
}

@test "pytrace of a process that is left in the middle is whole, and ends what runs" {
  cat >"$BATS_TEST_TMPDIR/loop.py" <<'PY'
import time


def step():
    time.sleep(0.1)


while True:
    step()
PY
  local pid
  pid=$(start_in_guest "$BATS_TEST_TMPDIR/loop.py")
  script pytrace -x "$pid" -E 'probe timer.s(3) { exit() }'
  end_in_guest "$pid"
  cat_trace "$printed" >"$BATS_TEST_TMPDIR/trace"
  cat "$BATS_TEST_TMPDIR/trace"
  grep -qxE "1 <module> $BATS_TEST_TMPDIR/loop.py:[0-9]+ 1" "$BATS_TEST_TMPDIR/trace"
  [ "$(awk '$2 == "step" { n += $1 } END { print n }' "$BATS_TEST_TMPDIR/trace")" -ge 5 ]
}

@test "pytrace escapes what JSON wants escaped, however long and odd the names" {
  cat >"$BATS_TEST_TMPDIR/odd" <<'ODD'
function__entry "\x01" * 600 "\x02\"\\" * 600 1 NULL NULL
function__entry "/srv/\xc3\xa4\\\"q\".py" "tab\tnl\n\x01\x1f\x7f" 2 NULL NULL
function__entry "/srv/a.py" "bad\xff\xc3" 3 NULL NULL
function__entry NULL "\xf0\x9f\x90\x8d\xe4\xb8\xad" 4 NULL NULL
function__entry "/x\xe4\xb8\xad" * 600 "abcde\xc3\xa4" * 600 5 NULL NULL
function__return "/x\xe4\xb8\xad" * 600 "abcde\xc3\xa4" * 600 5 NULL NULL NULL NULL
ODD
  # fewer statements than a probe may have
  SYSTEMTAP_TAPSET=$top/build/test/tapset script pytrace -DMAXACTION=950 -c "$driver $BATS_TEST_TMPDIR/odd"
  cat_trace "$printed" >"$BATS_TEST_TMPDIR/trace"
  /usr/bin/python3 - "$printed" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as trace:
    events = [event for event in json.load(trace) if event["ph"] == "B"]
names = [(event["name"], event["cat"]) for event in events]
name, file = names[0]
assert name == ("\2\"\\" * 600)[:len(name)] and file == "\1" * len(file) and len(name) == len(file) > 500, names[0]
assert names[1] == ("tab\tnl\n\1\x1f\x7f", "/srv/\xe4\\\"q\".py"), names[1]
assert names[2] == (r"bad\377\303", "/srv/a.py"), names[2]
assert names[3] == ("\U0001f40d\u4e2d", ""), names[3]
name, file = names[4]
assert name == ("abcde\xe4" * 600)[:len(name)] and len(name.encode()) > 500, name
assert file == ("/x\u4e2d" * 600)[:len(file)] and len(file.encode()) > 500, file
assert len(names) == 5
PY
}

@test "pytrace ends a thousand functions that still run" {
  echo '1000 * function__entry "/srv/a.py" "f" 1 NULL NULL' >"$BATS_TEST_TMPDIR/deep"
  SYSTEMTAP_TAPSET=$top/build/test/tapset script pytrace -c "$driver $BATS_TEST_TMPDIR/deep"
  [ "$(grep -c '"ph":"B"' "$printed")" = 1000 ]
  [ "$(grep -c '"ph":"E"' "$printed")" = 1000 ]
  /usr/bin/python3 -m json.tool "$printed" >/dev/null
}

# Whether test/lib/timeline.py has counted so many slices.
# usage: has_slices COUNT CATEGORY NAME WHICH FUNCTION
has_slices() {
  local count
  count=$(awk -F'\t' -v c="$2" -v n="$3" -v w="$4" -v f="$5" \
    '$1 == c && $2 == n && (w == "*" || $3 == w) && $4 == f { all += $5 } END { print all + 0 }' "$BATS_TEST_TMPDIR/slices")
  echo "$*: $count"
  [ "$count" = "$1" ]
}

# Writes what pytrace system has of programs to the file "slices", if Perfetto would have nothing to object.
# usage: timeline STAP'S ARGUMENTS...
timeline() {
  script pytrace "$@" >"$BATS_TEST_TMPDIR/said" || { cat "$printed.said" && false; }
  /usr/bin/python3 "$top/test/lib/timeline.py" "$printed" >"$BATS_TEST_TMPDIR/slices"
}

@test "pytrace system is one timeline: calls, system calls, sleeps, collections and exceptions as often as they are" {
  # without site.py, of which each system call would be in the trace; and without the warning of 3.12 and later that a
  # program with threads forks: a thread that was joined may still be there
  timeline -c "env LD_PRELOAD=$shim $system -S -E -W ignore $top/test/workloads/timeline.py" system '*/timeline.py:*'
  cat "$BATS_TEST_TMPDIR/slices"
  has_slices 7 function called_7 - main
  has_slices 11 exception KeyError - raises_11
  has_slices 5 gc 'garbage collection' - collects_5
  has_slices 13 'system call' getppid - asks_13
  has_slices 3 state timer - naps_3
  has_slices 2 state lock - locks_2
  has_slices 1 state pipe '*' reads_a_pipe
  has_slices 1 state child - waits_for_a_child
  # the GIL's waits and handovers
  if ! is_free_threaded "$system"; then
    grep -qE '^arrow	[^	]+	[^	]+$' "$BATS_TEST_TMPDIR/slices"
    awk -F'\t' '$1 == "gil" && $4 == "computes" { waits += $5 } $1 == "arrow" { arrows++ }
      END { print waits, arrows; exit !(waits > 3 && arrows > 3) }' "$BATS_TEST_TMPDIR/slices"
  fi
  # what ends in the middle
  local name
  for name in is_killed executes exits outlives; do
    has_slices 1 function "$name" - -
  done
  has_slices 1 state timer - outlives
}

@test "pytrace system has each sleep with the cause and the file or socket that waits.py knows, and its tasks" {
  need_time
  local least most said=$BATS_TEST_TMPDIR/said function kind which own
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
  timeline -G tasks=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/waits.py" system '*/waits.py:*'
  grep '^{"function"' "$said" | jq -r '[.function, .kind, (.which | select(. > "")) // "-", .least_us, .most_us] | @tsv' >"$said.rows"
  [ "$(wc -l <"$said.rows")" -ge 37 ]
  while IFS=$'\t' read -r function kind which least most; do
    own=$(awk -F'\t' -v n="$kind" -v w="$which" -v f="$function" '$1 == "state" && $2 == n && $3 == w && $4 == f { us += $6 } END { print us + 0 }' "$BATS_TEST_TMPDIR/slices")
    echo "$function $kind $which: $own of $least to $most"
    [ "$own" -ge 50000 ]
  done < <(grep -vE '^(is_stopped|competes_for_a_cpu)	' "$said.rows")
}

# The scripts that count calls: they print the programs' own numbers.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# A program of this test.
program() {
  cat >"$BATS_TEST_TMPDIR/$1.py"
}

# The calls of each function of counted.py.
counted_calls() {
  cat <<'EOF'
called_127 127
called_2 2
called_31 31
collects 1
generated 8
in_thread_13 13
inner_15 15
lines_23 1
main 1
outer_5 5
raises_11 11
thread_main 1
EOF
}

@test "pycalls counts each call of Python and C functions, and the time of the outermost" {
  local timed=$top/test/workloads/timed.py times=$BATS_TEST_TMPDIR/times.py
  program times <<'PY'
import os
import time


def recursive(depth):
    if depth:
        recursive(depth - 1)
    else:
        time.sleep(0.5)


def generator():
    yield 1
    yield 2


def never_returns():
    os._exit(0)


recursive(6)
for _ in generator():
    time.sleep(0.5)
never_returns()
PY
  script pycalls -c "env LD_PRELOAD=$shim sh -c '$system $counted; $system $timed; $system $times'" -G top=2000 cfunctions
  diff <(counted_calls) <(awk -v file="$counted" '$4 == file && $3 != "<module>" { print $3, $1 }' "$printed" | sort)
  grep -qE "^ +19 +[1-9][0-9]*  posix\.getppid +\(C\)$" "$printed"
  grep -qE "^ +17 +[1-9][0-9]*  builtins\.abs +\(C\)$" "$printed"
  # times in ms, and a generous bound
  awk -v timed="$timed" -v times="$times" '
    $4 == timed || $4 == times { calls[$3] = $1; ms[$3] = $2 / 1000 }
    function is(name, n, least, most) {
      if (calls[name] != n || ms[name] < least || ms[name] > most) { print name, calls[name], ms[name]; bad = 1 }
    }
    END {
      is("sleeps_200_ms", 4, 800, 3000)
      is("computes_100_ms", 3, 300, 3000)
      is("both", 3, 900, 6000)
      is("quick", 1010, 0.1, 3000)
      is("recursive", 7, 500, 1500)
      is("generator", 3, 0.001, 400)
      is("never_returns", 1, 0, 0)
      exit bad
    }' "$printed"
  # sorted, and nothing but rows
  head -n 1 "$printed" | grep -qx ' *CALLS *TIME(us)  FUNCTION *FILE'
  tail -n +2 "$printed" | cut -c1-10 | sort -c -nr
  refute grep -vE '^ *[0-9]+ +[0-9]+  .+ +(/.*|<.*>|\(C\))$' <(tail -n +2 "$printed")
}

@test "pycalls with SECONDS has a long call when it starts, and its time when it returns" {
  need_time
  program long <<'PY'
import time


def waits():
    time.sleep(3)


waits()
PY
  script pycalls -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/long.py" 1
  awk -v file="$BATS_TEST_TMPDIR/long.py" '$4 == file && $3 == "waits" { rows++; calls += $1; time += $2 }
    END { exit !(rows && calls <= 1 && time >= 3000000) }' "$printed"
}

@test "pytop's seconds add up to the calls of the program" {
  script pytop -c "env LD_PRELOAD=$shim $system $counted" -G top=200
  diff <(counted_calls | awk '$2 > 1') <(awk -v file="$counted" '$3 == file { n[$2] += $1 }
    END { for (f in n) if (n[f] > 1) print f, n[f] }' "$printed" | sort)
  # where a second has all its rows, they are all of its calls
  awk '
    function check() { if (functions && functions <= 200 && (sum != calls || rows != functions)) bad = 1 }
    / calls of / { check(); blocks++; calls = $(NF - 4); functions = $(NF - 1); sum = rows = 0; next }
    /^ *[0-9]+  / { sum += $1; rows++ }
    END { check(); exit bad || !blocks }' "$printed"
  refute grep $'\033' "$printed"
}

@test "pytop -x shows one process, 20 functions at most, each interval" {
  need_time
  local pids
  program loop <<'PY'
import time

for i in range(30):
    exec("def f%02d():\n    pass" % i)
functions = [globals()["f%02d" % i] for i in range(30)]
end = time.time() + 600
while time.time() < end:
    for i, function in enumerate(functions):
        for _ in range(i + 1):
            function()
    time.sleep(0.1)
PY
  cp "$BATS_TEST_TMPDIR/loop.py" "$BATS_TEST_TMPDIR/other.py"
  pids=$(start_in_guest "$BATS_TEST_TMPDIR"/{loop,other}.py)
  # shellcheck disable=SC2086
  set -- $pids
  script pytop -x "$1" -G by_process=1 -G clear=1 -E 'probe timer.s(5) { exit() }' 2
  end_in_guest "$@"
  # 2 s, 4 s, and the rest; more where the guest was slow to end it
  [ "$(grep -c $'^\033.* calls of [0-9]* functions$' "$printed")" -ge 3 ]
  awk -v pid="$1" '
    / calls of / { blocks++; rows = 0; next }
    NF == 4 && $1 + 0 {
      if ($1 != pid || ++rows > 20) { print; bad = 1 }
      # sorted, the 20 that are called most; a turn of the loop that is cut may have two change places
      if (rows > 1 && $2 > before) { print "not sorted"; bad = 1 }
      before = $2
      if (blocks == 1 && substr($3, 2) + 0 < 8) { print "too seldom"; bad = 1 }
      if (blocks == 1) { calls[$3] = $2; n = rows }
    }
    # a turn calls f29 30 times and f12 13 times; the first and last one may be cut
    END {
      most = calls["f29"] * 13; least = calls["f12"] * 30
      exit bad || n != 20 || !least || most - least > 780 || least - most > 780
    }' "$printed"
}

@test "pystat counts a process's calls, C calls, lines, collections, imports and threads" {
  local pids
  script pystat -c "env LD_PRELOAD=$shim $system $top/test/workloads/three_children.py" lines 600 >"$BATS_TEST_TMPDIR/all"
  cat "$BATS_TEST_TMPDIR/all"
  pids=$(grep -xE '[0-9]+' "$BATS_TEST_TMPDIR/all")
  # shellcheck disable=SC2086
  set -- $pids
  head -n 1 "$printed" | grep -qE '^TIME +PID +CALLS +CCALLS +LINES +GC +IMPORTS +THREADS +PROGRAM$'
  row() { awk -v pid="$1" '$2 == pid' "$printed"; }
  row "$1" | grep -qE "^..:..:.. +$1 +10 +25 +[0-9]+ +3 +0 +3 python3"
  row "$2" | grep -qE "^..:..:.. +$2 +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +0 +2 +1 python3"
  row "$3" | grep -qE "^..:..:.. +$3 +2 +1 +7 +0 +0 +1 python3"
  # the parent's too, and no other
  [ "$(wc -l <"$printed")" = 5 ]
}

@test "pywho tells one user's calls from another's" {
  program who <<'PY'
import os


def called():
    pass


for _ in range(7):
    called()
os.setuid(4321)
for _ in range(11):
    called()
PY
  script pywho -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/who.py" -G top=2000
  diff - <(awk -v file="$BATS_TEST_TMPDIR/who.py" '$4 == file && $3 == "called" { print $1, $2 }' "$printed") <<'EXPECTED'
4321 11
0 7
EXPECTED
  head -n 1 "$printed" | grep -qxE ' +UID +CALLS  FUNCTION +FILE'
  script pywho -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/who.py" -G by_process=1 -G by_file=1
  # the module's own frame is the eighth
  diff - <(awk -v file="$BATS_TEST_TMPDIR/who.py" '$4 == file { print $1, $3 }' "$printed") <<'EXPECTED'
4321 11
0 8
EXPECTED
  [ "$(awk 'NR > 1 && NF == 4 { print $2 }' "$printed" | sort -u | wc -l)" = 1 ]
}

@test "pywho names the machine's user, not the one that a user namespace calls so" {
  need setpriv unshare
  program who <<'PY'
def called():
    pass


for _ in range(7):
    called()
PY
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
  chmod a+r "$BATS_TEST_TMPDIR/who.py"
  # any user may be root of a namespace of their own
  script pywho -c "setpriv --reuid=4321 --clear-groups unshare --map-root-user env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/who.py" -G top=2000
  [ "$(awk -v file="$BATS_TEST_TMPDIR/who.py" '$4 == file && $3 == "called" { print $1, $2 }' "$printed")" = "4321 7" ]
}

@test "pywho has no user for the rows that were evicted" {
  need_time
  local json
  program users <<'PY'
import os


def called():
    pass


for uid in range(1000, 1200):
    if not os.fork():
        os.setuid(uid)
        called()
        os._exit(0)
    os.wait()
PY
  for json in 0 1; do
    script_says pywho -DPYTHON_STACKS=64 -G top=2000 -G json="$json" -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/users.py"
    grep -qE 'more than 64 functions, files and processes: .* "\(other\)"' "$printed.said"
    mv "$printed" "$printed.$json"
  done
  grep -qE '^   \(other\) +[0-9]+  ' "$printed.0"
  grep -qE '^[{]"calls":[0-9]+,"function":"[^"]*","file":"[^"]*"[}]$' "$printed.1"
  refute grep -vE '^[{]("uid":[0-9]+,)?"calls":[0-9]+,"function":"[^"]*","file":"[^"]*"[}]$' "$printed.1"
}

@test "pyflow has the time since the last line, the process and the CPU in front, colours, arguments and results" {
  local file=$BATS_TEST_TMPDIR/flow.py
  program flow <<'PY'
import time


def sleeps(seconds, *more):
    time.sleep(seconds)
    return seconds,


def calls():
    sleeps(0.3, "more")
    raise KeyError("none")


try:
    calls()
except KeyError:
    pass
PY
  script pyflow -G args=1 -G delta=1 -G pid=1 -G cpu=1 -G color=1 -c "env LD_PRELOAD=$shim $system $file" "$file:*"
  head -n 1 "$printed" | grep -qx 'DELTA(us)     PID CPU TIME(us)'
  diff - <(sed -E "s,^ *[0-9]+ +([0-9]+) +[0-9] +[0-9]+ python3[.0-9t]*\(\1\):( *) ,\2,; s,\x1b,E,g; s, in $file,," <(tail -n +2 "$printed")) <<'EXPECTED'
E[32m=> <module>E[0m():1
 E[32m=> callsE[0m():9
  E[32m=> sleepsE[0m(seconds=0.3, *('more',)):4
  E[33m<= sleepsE[0m = (0.3,):6
 E[33m<= callsE[0m ! KeyError('none'):11
E[33m<= <module>E[0m = None:17
EXPECTED
  # the sleep is in one line, and the deltas add up to the time
  awk '
    NR > 1 { sum += $1; if (sum != $4 || (/<= sleeps/ && $1 < 300000)) { print; bad = 1 } }
    END { exit bad }' "$printed"
}

# Those of pytime and its kin are in test/guest/times.bats.
@test "an argument that is none, and a number of rows that doesn't fit, are refused in one line" {
  local name arguments message
  while IFS='|' read -r name arguments message <&9; do
    # shellcheck disable=SC2086
    refuses "$message" "$name" $arguments
    # before a target is started or anything is printed
    refute [ -s "$printed" ]
    rm -f "$printed"
  done 9< <(
    some 11 <<'REFUSED'
pycalls|some|ERROR: pycalls: SECONDS, alone or after "cfunctions", must be a number from 1 on, not "some"
pytop|0|ERROR: pytop: SECONDS must be a number from 1 on, not "0"
pytop|-G top=0|ERROR: pytop: top must be 1 to 200, not 0
pystat|lines 0|ERROR: pystat: SECONDS, alone or after "lines", must be a number from 1 on, not "0"
pywho|-G top=2001|ERROR: pywho: top must be 1 to 2000, not 2001
pywho|root|ERROR: pywho takes no arguments, but was given "root"
pygc|7x|ERROR: pygc: MIN_US is a number of microseconds, not "7x"
pytasks|-G top=0|ERROR: pytasks: top must be 1 to 1000, not 0
pytasks|5|ERROR: pytasks takes no arguments, but was given "5"
pyimport|5000000000|ERROR: pyimport: MIN_US is a number of microseconds, not "5000000000"
pysyscalls|-G top=2001|ERROR: pysyscalls: top must be 1 to 2000, not 2001
pysyscalls|trace -G qualified=1|ERROR: pysyscalls: qualified=1 is for the summary: leave out trace
pyflow|x y|ERROR: pyflow: "cfunctions" must be before PATTERN; unknown argument "y"
pysyscalls|openat|ERROR: pysyscalls: the argument may be trace, not "openat"
pymalloc|-G top=1001|ERROR: pymalloc: top must be 1 to 1000, not 1001
pyfaults|-G top=1001|ERROR: pyfaults: top must be 1 to 1000, not 1001
pyfaults|8|ERROR: pyfaults takes no arguments, but was given "8"
pyrequest||ERROR: pyrequest: PATTERN is missing, for the functions that are a request: 'app.views.*'
pyrequest|-G __python_argument1=20 -|ERROR: pyrequest: PATTERN is missing, for the functions that are a request: 'app.views.*'
pyrequest|-G each=1 handle|ERROR: pyrequest: each=1 is for json=1: add -G json=1
pyrequest|-G top=0 handle|ERROR: pyrequest: top must be 1 to 1000, not 0
pyrequest|-G slowest=101 handle|ERROR: pyrequest: slowest must be 0 to 100, not 101
pyrequest|handle path x|ERROR: pyrequest takes waker, PATTERN and EXPRESSION in this order, but was given "x" too
pyrequest|waker|ERROR: pyrequest: PATTERN is missing, for the functions that are a request: 'app.views.*'
pyprof|200|ERROR: pyprof: HZ must be 10, 19, 49, 99, 100, 199, 499, 997 or 1000, not "200"
pyprof|-G live=1 -G speedscope=1|ERROR: pyprof: either live=1 or speedscope=1
pyprof|-G record=1 -G live=1|ERROR: pyprof: record=1 is for lines of stacks, without live=1 and speedscope=1
pyprof|-G every=5 -G live=1|ERROR: pyprof: every is not for live=1, speedscope=1 and record=1
pyprof|-G every=-1|ERROR: pyprof: every must be 0 or more, not -1
pyprof|-G top=3001|ERROR: pyprof: top must be 1 to 3000, not 3001
pywall|200|ERROR: pywall: HZ must be 10, 19, 49, 99, 100, 199, 499, 997 or 1000, not "200"
pyexc|-G live=1 -G folded=1|ERROR: pyexc: either live=1 or folded=1
pymalloc|-G json=1 -G speedscope=1|ERROR: pymalloc: either speedscope=1 or json=1
pygil|4711|ERROR: pygil takes no arguments, but was given "4711"
pygil|-G top=201|ERROR: pygil: top must be 1 to 200, not 201
pygil|-G json=1 -G folded=1|ERROR: pygil: either folded=1 or json=1
pyheap|-G bytes=0|ERROR: python_memory_period(): the distance must be 1 to 1073741824 bytes, not 0
pyheap|-G folded=1 -G every=1|ERROR: pyheap: every is not for folded=1, speedscope=1 and record
pyheap|-G record=1 -G json=1|ERROR: pyheap: record is for lines of stacks, without json=1 and speedscope=1
pymalloc|8|ERROR: pymalloc takes no arguments, but was given "8"
pyaudit|-p2 (|regex compilation error
REFUSED
  )
}

@test "no name that a program chooses gives a terminal a command, or makes a row" {
  cat >"$BATS_TEST_TMPDIR/odd.py" <<'PY'
import ctypes

ODD = "f\x1b]0;title\x07\r\nFORGED;\x9b31m\u202e"
ctypes.CDLL(None).prctl(15, b"\x1b[31m\nFORGED\xff")  # PR_SET_NAME
scope = {"__name__": "module" + ODD}
exec(compile("def f(g):\n    try:\n        g()\n    except Exception: pass", "/srv/" + ODD + ".py", "exec"), scope)


def g():
    raise type("Error" + ODD, (Exception,), {})(ODD)


for function in scope["f"], g:
    function.__code__ = function.__code__.replace(co_name="f" + ODD)
scope["f"](g)
PY
  local name options argument all
  all='pyflow|-G args=1|
pyexc|-G live=1|
pystacks||'
  all+=${EVERY:+'
pycalls||
pydist||*FORGED*
pyimport||
pyline||
pyprof||
pyslow|-G args=1|1
pysyscalls||trace
pytime||exact
pywatch||*FORGED*
pywho||'}
  while IFS='|' read -r name options argument; do
    # shellcheck disable=SC2086 # options are words
    script_says "$name" $options -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/odd.py" ${argument:+"$argument"}
    "$system" - "$printed" <<'PY'
import re
import sys

text = open(sys.argv[1], "rb").read().decode("utf-8", "replace")
assert "FORGED" in text and not re.search("(?m)^FORGED|[^\n -~\xa0-\u2029\u202f-\u2065\u206a-\ufffc]", text), ascii(text[:3000])
PY
  done <<<"$all"
}

@test "a script prints as many rows as its top may say" {
  need_time
  local name what rows header options
  cat >"$BATS_TEST_TMPDIR/many.py" <<'PY'
# So many functions more than so many, each of which does it once.
import os
import sys
import time

does = {
    "calls": "os.getppid()",
    "sleeps": "time.sleep(0.001)",
    "raises": "try: raise KeyError\n    except KeyError: pass",
}
functions = {}
for number in range(int(sys.argv[2]) + 100):
    exec("def many_%04d():\n    %s\n" % (number, does[sys.argv[1]]), globals(), functions)
for function in functions.values():
    function()
PY
  while read -r name what rows header options; do
    echo "$name $options"
    # shellcheck disable=SC2086
    script "$name" -G top="$rows" $options -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/many.py $what $rows"
    # without the sums, and the number of the rows that are left out
    [ "$(grep -cvE '"kind":[^,]*}$|^(and [0-9]+ more rows|[{]"rest_.*)$' "$printed")" = $((header + rows)) ]
  done < <(
    cat <<'TEXT'
pytime calls 2000 1 -G by_process=1
pyexc raises 1000 1 -G by_process=1
pyblocked sleeps 3000 0 -G json=1
TEXT
    [ -z "${EVERY:-}" ] || cat <<'TEXT'
pytime calls 2000 0 -G json=1
pyexc raises 1000 0 -G json=1 -G stacks=1
pycalls calls 2000 0 -G json=1 -G by_process=1
pysyscalls calls 2000 0 -G json=1 -G by_process=1
pywho calls 2000 0 -G json=1
TEXT
  )
}

@test "pydist and pywatch have each call of a gevent service, whatever greenlets it switches to" {
  need_time
  local greenlets=$top/test/workloads/greenlets.py answers=$BATS_TEST_TMPDIR/answers
  "$system" -c 'import gevent, gunicorn' 2>/dev/null || skip "needs python3-gevent and gunicorn"
  script pydist "$greenlets:*" -c "env LD_PRELOAD=$shim $system $greenlets" >"$answers" || { cat "$answers" && return 1; }
  [ "$(grep -xE '0|10' "$answers" | tr '\n' ' ')" = '0 10 10 10 10 10 ' ]
  diff <(sed -nE 's/^(app|requested|step|leaf) in [^ ]+: ([0-9]+) calls, .*/\1 \2/p' "$printed" | sort) <(printf '%s\n' 'app 6' 'leaf 100' 'requested 6' 'step 50')
  script pywatch "$greenlets:step $greenlets:app" -c "env LD_PRELOAD=$shim $system $greenlets" >"$answers" || { cat "$answers" && return 1; }
  [ "$(grep -c ': step() = 1 <' "$printed")" = 50 ]
  [ "$(grep -c ': app(.*) = \[' "$printed")" = 6 ]
}

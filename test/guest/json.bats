# The scripts with json=1: each row a line of JSON, with the numbers of the table.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# Checks rows of JSON with the Python code on stdin: "rows" has them, "of_file" has those of the functions of
# the file $1.
rows() {
  cat >"$BATS_TEST_TMPDIR/check.py"
  /usr/bin/python3 - "$printed" "${1:-}" "$BATS_TEST_TMPDIR/check.py" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    text = lines.read()
assert text.endswith("}\n") and not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], text
rows = [json.loads(line) for line in text.split("\n")[:-1]]
of_file = {row["function"]: row for row in rows if row.get("file") == sys.argv[2] and "function" in row}
names = {
    "called_127": 127, "called_2": 2, "called_31": 31, "collects": 1, "generated": 8, "in_thread_13": 13, "inner_15": 15,
    "lines_23": 1, "main": 1, "outer_5": 5, "raises_11": 11, "thread_main": 1, "<module>": 1,
}


def keys(wanted, chosen=rows):
    assert chosen
    for row in chosen:
        assert " ".join(row) == wanted, row


with open(sys.argv[3]) as check:
    exec(check.read())
PY
}

counted() {
  script "$@" -c "env LD_PRELOAD=$shim $system $counted"
}

timed() {
  script "$@" -c "env LD_PRELOAD=$shim $system $timed"
}

@test "pycalls with json=1 escapes what JSON wants escaped, and counts the calls without a row" {
  cat >"$BATS_TEST_TMPDIR/odd" <<'ODD'
9 * function__count "/srv/\xc3\xa4\\\"q\".py" "tab\tnl\n\x01\x1f\x7f" 2 NULL 1
8 * function__count "/srv/a.py" "bad\xff\xc3" 3 NULL 1
7 * function__count NULL "\xf0\x9f\x90\x8d\xe4\xb8\xad" 4 NULL 1
6 * function__count "/x\xe4\xb8\xad" * 600 "abcde\xc3\xa4" * 600 5 NULL 1
5 * function__count "\x01" * 600 "\x02\"\\" * 600 1 NULL 1
4 * function__count "/srv/a.py" "below the top" 3 NULL 1
ODD
  SYSTEMTAP_TAPSET=$tapsets/test/tapset script pycalls -G json=1 -G top=5 -c "$driver $BATS_TEST_TMPDIR/odd"
  rows <<'PY'
assert rows.pop() == {"rest_calls": 4}
keys("calls time_us function file")
assert [row["calls"] for row in rows] == [9, 8, 7, 6, 5], rows
got = [(row["function"], row["file"]) for row in rows]
assert got[0] == ("tab\tnl\n\1\x1f\x7f", "/srv/\xe4\\\"q\".py"), got[0]
assert got[1] == (r"bad\377\303", "/srv/a.py"), got[1]
assert got[2] == ("\U0001f40d\u4e2d", ""), got[2]
# what is too long is cut between two characters
name, file = got[3]
assert name == ("abcde\xe4" * 600)[:len(name)] and len(name.encode()) > 500, name
assert file == ("/x\u4e2d" * 600)[:len(file)] and len(file.encode()) > 500, file
name, file = got[4]
assert name == ("\2\"\\" * 600)[:len(name)] and len(name) > 150, name
assert file == "\1" * len(file) and len(file) > 80, file
PY
}

@test "a table is text or JSON, from one description" {
  cat >"$BATS_TEST_TMPDIR/table.stp" <<'STP'
global json = 0

function cells(pid:string, us:long, calls:long, name:string)
{
    __python_table_digits("pid", pid)
    __python_table_seconds("time_s", us)
    __python_table_number("calls", calls)
    __python_table_text("function", name)
    __python_table_text("file", "x.py")
    __python_table_number("line", 3)
    __python_table_cell("miss", "true")
}

probe begin
{
    __python_table_head(json, "%7pid %12time_s %10calls  %-12function %file:%line%0miss")
    cells("123", 1234567, 17, "f \"g\"")
    __python_table_end()
    cells("(other)", 99999999999999, -17, "a_longer_name")
    __python_table_end_stack(__python_stack_open(0, "main", "f \"g\""))
    __python_table_rest(0)
    __python_table_rest(7)
    __python_table_head(json, "\n%7pid")
    cells("9", 0, 0, "")
    __python_table_end()
    exit()
}
STP
  stap "$BATS_TEST_TMPDIR/table.stp" >"$printed"
  diff - "$printed" <<'TEXT'
    PID      TIME(s)      CALLS  FUNCTION     FILE:LINE
    123     1.234567         17  f "g"        x.py:3
(other) 99999999.999999        -17  a_longer_name x.py:3
f "g"
main

and 7 more rows

    PID
      9
TEXT
  stap "$BATS_TEST_TMPDIR/table.stp" -G json=1 >"$printed"
  diff - "$printed" <<'JSON'
{"pid":123,"time_s":1.234567,"calls":17,"function":"f \"g\"","file":"x.py","line":3,"miss":true}
{"pid":0,"time_s":99999999.999999,"calls":-17,"function":"a_longer_name","file":"x.py","line":3,"miss":true,"stack":["f \"g\"","main"]}
{"rest_rows":7}
{"pid":9}
JSON
}

@test "with json=1 each script prints a line of JSON a row, with the numbers of its table" {
  local name
  while read -r name <&9; do
    echo "$name"
    "json_of_$name"
  done 9< <(
    some 20 <<'SCRIPTS'
pygc
pyimport
pyaudit
pycalls
pytop
pystat
pywho
pysyscalls
pymalloc
pyline
pyline_trace
pytime
pydist
pyblocked
pygil
pyslow
pytasks
SCRIPTS
  )
}

json_of_pycalls() {
  counted pycalls -G json=1 -G top=2000 cfunctions
  rows "$counted" <<'PY'
keys("calls time_us function file")
assert {name: row["calls"] for name, row in of_file.items()} == names, of_file
assert [row["calls"] for row in rows if row["function"] == "posix.getppid" and row["file"] == "(C)"] == [19]
assert of_file["main"]["time_us"] >= of_file["collects"]["time_us"] > 0
PY
  counted pycalls -G json=1 -G top=200 1
  rows "$counted" <<'PY'
import collections, time
keys("time calls time_us function file", [row for row in rows if "rest_calls" not in row])
assert all(0 <= row["time"] - rows[0]["time"] < 300 for row in rows), rows
sums = collections.Counter()
for row in rows:
    if row.get("file") == sys.argv[2]:
        sums[row["function"]] += row["calls"]
assert {name: count for name, count in sums.items() if count > 1} == {name: count for name, count in names.items() if count > 1}, sums
PY
}

json_of_pytop() {
  counted pytop -G json=1 -G clear=1 -G by_process=1 -G top=200
  rows "$counted" <<'PY'
keys("time pid calls function file")
assert len({row["pid"] for row in rows}) == 1 and rows[0]["pid"] > 1 and rows[0]["time"] > 1e9
for name, count in names.items():
    assert sum(row["calls"] for row in rows if (row["function"], row["file"]) == (name, sys.argv[2])) == count or count == 1, name
PY
}

json_of_pystat() {
  counted pystat -G json=1 lines 600
  rows <<'PY'
keys("time pid calls ccalls lines gc imports threads program")
row, = rows
assert row["time"] > 1e9 and row["calls"] > sum(names.values()) and row["ccalls"] > 36 and row["lines"] > 500, row
assert row["gc"] >= 16 and row["imports"] >= 3 and row["threads"] == 2 and row["program"].startswith("python3"), row
PY
}

json_of_pywho() {
  counted pywho -G json=1 -G by_process=1 -G top=40
  rows "$counted" <<'PY'
rest = rows.pop()
assert list(rest) == ["rest_calls"] and rest["rest_calls"] > 0, rest
keys("uid pid calls function file")
assert len(rows) == 40 and {row["uid"] for row in rows} == {0} and len({row["pid"] for row in rows}) == 1, rows
assert of_file["called_127"]["calls"] == 127, of_file
PY
  counted pywho -G json=1 -G by_file=1
  rows <<'PY'
keys("uid calls file")
assert [row["calls"] for row in rows if row["file"] == sys.argv[2]] in ([], [sum(names.values())])
PY
}

json_of_pysyscalls() {
  counted pysyscalls -G json=1 -G top=30
  rows "$counted" <<'PY'
rest = rows.pop()
assert list(rest) == ["rest_rows"] and rest["rest_rows"] > 0, rest
keys("calls total_us avg_us max_us syscall function file")
assert len(rows) == 30 and all(row["avg_us"] <= row["max_us"] <= row["total_us"] for row in rows), rows
assert [row["total_us"] for row in rows] == sorted((row["total_us"] for row in rows), reverse=True)
PY
}

# Not in a free-threaded build, which has an allocator of its own for all objects.
json_of_pymalloc() {
  local most
  ! is_free_threaded "$system" || return 0
  for most in 0 1; do
    timed pymalloc -G json=1 -G stacks="$most" -G top=20
    rows "$timed" <<'PY'
rest = rows.pop()
assert list(rest) == ["rest_rows"] and rest["rest_rows"] > 0, rest
place = "stack" if "stack" in rows[0] else "function file"
keys("count bytes max kind " + place)
row = rows[0]
# a byte more than the program has asked for
assert (row["count"], row["bytes"], row["max"], row["kind"]) == (5, 41943045, 8388609, "malloc"), row
if "stack" in row:
    expected = [(30, "allocates_8_mb"), (51, "main"), (60, "<module>")]
    assert row["stack"] == ['File "%s", line %d, in %s' % ((sys.argv[2],) + frame) for frame in expected], row
else:
    assert (row["function"], row["file"]) == ("allocates_8_mb", sys.argv[2]), row
PY
  done
}

json_of_pyline() {
  counted pyline -G json=1 '*/workloads/counted.py:*'
  rows <<'PY'
keys("hits file line")
assert {row["file"] for row in rows} == {sys.argv[2] or rows[0]["file"]}, rows
hits = {row["line"]: row["hits"] for row in rows}
assert (hits[12], hits[16], hits[20], hits[29], hits[38]) == (2, 31, 127, 15, 11), hits
assert list(hits) == sorted(hits), hits
PY
}

json_of_pytime() {
  timed pytime exact -G json=1 -G cpu=1 -G top=1000
  rows "$timed" <<'PY'
keys("calls incl_us excl_us cpu_incl_us cpu_excl_us function file")
assert {name: of_file[name]["calls"] for name in ("both", "quick", "sleeps_200_ms")} == {"both": 3, "quick": 1010, "sleeps_200_ms": 4}
assert 900000 <= of_file["both"]["incl_us"] and of_file["both"]["excl_us"] < 300000, of_file["both"]
assert of_file["sleeps_200_ms"]["excl_us"] >= 800000 > 200000 > of_file["sleeps_200_ms"]["cpu_excl_us"], of_file
PY
}

json_of_pydist() {
  timed pydist -G json=1 'quick sleeps_200_ms'
  rows "$timed" <<'PY'
keys("function file calls total_us average_us histogram")
assert {name: row["calls"] for name, row in of_file.items()} == {"quick": 1010, "sleeps_200_ms": 4}, rows
for row in rows:
    assert row["average_us"] == row["total_us"] // row["calls"], row
    assert sum(count for _, count in row["histogram"]) == row["calls"] and all(count for _, count in row["histogram"]), row
    assert all(value == 0 or value & (value - 1) == 0 for value, _ in row["histogram"]), row
assert of_file["sleeps_200_ms"]["histogram"][0][0] >= 131072, rows
PY
}

json_of_pyblocked() {
  timed pyblocked -G json=1 -G min=100000
  rows "$timed" <<'PY'
kinds = [row for row in rows if "stack" not in row]
keys("total_us sleeps longest_us kind", kinds)
assert [row for row in kinds if row["kind"] == "timer" and row["total_us"] > 1000000], kinds
rows = [row for row in rows if "stack" in row]
keys("total_us sleeps longest_us kind which stack", rows)
row, = [row for row in rows if row["kind"] == "timer" and [frame.split()[-1] for frame in row["stack"]] == ["sleeps_200_ms", "both", "main", "<module>"]]
assert row["stack"][0] == 'File "%s", line 11, in sleeps_200_ms' % sys.argv[2], row
assert row["sleeps"] == 3 and 450000 <= row["total_us"] and row["total_us"] // 3 <= row["longest_us"] <= row["total_us"], row
PY
}

json_of_pygil() {
  script pygil -G json=1 -G user=1 -G by_process=1 \
    -c "env LD_PRELOAD=$shim sh -c '$system $top/test/workloads/gil.py computes 3 2>/dev/null'"
  rows <<'PY'
keys("waited_us waits stack holder")
pairs = {}
for row in rows:
    assert row["stack"][-1].startswith("python3") and row["stack"][-1].endswith(")"), row
    pair = row["stack"][0].split()[0], row["holder"][0].split()[0]
    pairs[pair] = pairs.get(pair, 0) + row["waited_us"]
computing = {"computes_much", "computes_little"}
assert sum(waited for pair, waited in pairs.items() if set(pair) <= computing) > 1000000, pairs
assert pairs["computes_much", "computes_much"] > pairs.get(("computes_little", "computes_little"), 0), pairs
row = max(rows, key=lambda row: row["waited_us"])
assert row["stack"][1:-1] == row["holder"][1:] and len(row["holder"]) == 2 and row["waits"] > 3, row
PY
}

json_of_pyslow() {
  timed pyslow -G json=1 190
  rows <<'PY'
keys("time_ms program tid function stack")
rows = [row for row in rows if row["function"] == "sleeps_200_ms"]
assert len(rows) == 4 and all(200 <= row["time_ms"] < 60000 and row["tid"] > 1 and row["program"].startswith("python3") for row in rows), rows
functions = [[frame.split()[-1] for frame in row["stack"]] for row in rows]
assert functions == 3 * [["sleeps_200_ms", "both", "main", "<module>"]] + [["sleeps_200_ms", "main", "<module>"]], functions
assert rows[0]["stack"][0].endswith('timed.py", line 11, in sleeps_200_ms'), rows[0]
PY
}

json_of_pytasks() {
  script pytasks -G json=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/stretches.py $BATS_TEST_TMPDIR/own"
  rows <<'PY'
slowest = rows.pop()
assert " ".join(slowest) == "slowest_us name coroutine stack", slowest
assert (slowest["name"], slowest["stack"][0].split()[0]) == ("blocks", "slow_step") and slowest["slowest_us"] >= 399000, slowest
keys("tasks steps run_us loop_us others_us slowest_us name coroutine")
found = {row["name"]: row for row in rows if row["coroutine"] in ("computes", "blocks", "late", "waits")}
assert {name: (row["tasks"], row["steps"]) for name, row in found.items()} == {"computes": (2, 6), "Task-N": (2, 4), "blocks": (1, 3), "late": (1, 3)}, rows
assert found["computes"]["run_us"] >= 298000 and found["late"]["loop_us"] >= 399000 and found["Task-N"]["others_us"] >= 590000, rows
PY
}

json_of_pygc() {
  counted pygc -G json=1
  rows <<'PY'
events = [row for row in rows if "collections" not in row]
tables = [row for row in rows if "collections" in row]
keys("time_s pid program gen pause_us collected", events)
keys("generation collections sum_us average_us longest_us collected histogram", tables)
assert rows == events + tables
own = "000111112222222"
assert own in "".join(str(event["gen"]) for event in events if event["collected"] >= 1), events
# a free-threaded build frees code by collections alone: the first one has that of a module, which has run
own = own[events[0]["program"].endswith("t"):]
assert "".join(str(event["gen"]) for event in events if event["collected"] == 1) == own, events
assert [event["time_s"] for event in events] == sorted(event["time_s"] for event in events), events
for table in tables:
    own = [event for event in events if event["gen"] == table["generation"]]
    pauses = [event["pause_us"] for event in own]
    assert (table["collections"], table["sum_us"], table["longest_us"]) == (len(own), sum(pauses), max(pauses)), table
    assert table["collected"] == sum(event["collected"] for event in own), table
    assert sum(count for _, count in table["histogram"]) == len(own) and all(count for _, count in table["histogram"]), table
PY
}

json_of_pyimport() {
  counted pyimport -G json=1
  rows <<'PY'
events = [row for row in rows if "imports" not in row]
tables = [row for row in rows if "imports" in row]
keys("pid program self_us inclusive_us depth module miss", events)
keys("imports misses self_us inclusive_us module", tables)
assert rows == events + tables
assert [event["miss"] for event in events if event["module"] == "no_such_module"] == [True, True], events
assert [event["miss"] for event in events if event["module"] == "colorsys"] == [False], events
assert max(event["depth"] for event in events) > 0 and min(event["depth"] for event in events) == 0, events
assert tables[-1]["module"] is None and tables[-1]["imports"] == len(events), tables
PY
}

json_of_pyaudit() {
  counted pyaudit -G json=1 '^open$'
  rows <<'PY'
events = [row for row in rows if "count" not in row]
tables = [row for row in rows if "count" in row]
keys("time_s pid program event arguments", events)
assert tables == [{"count": len(events), "event": "open"}], tables
assert [event["arguments"] for event in events if "/dev/null" in event["arguments"]] == ["('/dev/null', 'r', O_RDONLY|O_CLOEXEC)"] * 3, events
PY
}

json_of_pyline_trace() {
  counted pyline -G json=1
  rows "$counted" <<'PY'
keys("time_us tid program function file line")
hits = [row["line"] for row in rows if row["file"] == sys.argv[2] and row["function"] == "called_31"]
assert hits == [16] * 31, hits
PY
}

@test "json=1 is refused where there is no table" {
  need_time
  refuses 'pysyscalls: json=1 is for the summary: leave out trace' pysyscalls trace -G json=1
}

# site executes lines of the .pth files in site-packages, as "<string>".
@test "with user=1 the scripts show the program's own functions alone, and count what others do for them as theirs" {
  local name
  script pycalls -G user=1 -G by_process=1 -G json=1 -G top=2000 -c "env LD_PRELOAD=$shim sh -c '$system $counted; $system $counted'"
  rows "$counted" <<'PY'
pids = {row["pid"] for row in rows}
assert len(pids) == 2, pids
for pid in pids:
    own = {row["function"]: row["calls"] for row in rows if row["pid"] == pid and row["file"] == sys.argv[2]}
    assert own == names, own
assert {row["file"] for row in rows} <= {sys.argv[2], "<string>"}, rows
PY
  [ -n "${EVERY:-}" ] || return 0
  for name in pytop pywho 'pytime exact' pysyscalls 'pydist *:*' 'pyline *:*'; do
    echo "$name"
    # shellcheck disable=SC2086
    counted $name -G user=1 -G json=1
    rows "$counted" <<'PY'
assert {row["file"] for row in rows} - {"<string>"} == {sys.argv[2]}, rows
if "syscall" in rows[0]:
    # those of an import that fails, and of a thread that starts
    calls = {row["syscall"] for row in rows if row["function"] == "main"}
    assert calls >= {"newfstatat", "getppid"} and calls & {"clone", "clone3"}, calls
PY
  done
  for name in 'pymalloc -G stacks=1' pyblocked 'pyslow 190'; do
    echo "$name"
    # shellcheck disable=SC2086
    timed $name -G user=1 -G json=1 -DMAXSTRINGLEN=4096
    rows <<'PY'
# stacks begin with a function of the program, and are whole from there on
rows = [row for row in rows if "stack" in row]
assert all("/timed.py" in row["stack"][0] or '"<string>"' in row["stack"][0] for row in rows), rows
functions = [[frame.split()[-1] for frame in row["stack"]] for row in rows]
assert ["main", "<module>"] in functions, functions
if "bytes" not in rows[0]:
    assert [stack for stack in functions if stack[:3] == ["holder", "run", "_bootstrap_inner"]], functions
PY
  done
  timed pystacks -G user=1
  refute grep -vE '^python3[.0-9t]*;(<module>|holder)[; ]' "$printed"
  grep -qE '^python3[.0-9t]*;<module>;main;both;sleeps_200_ms [0-9]{6,}$' "$printed"
  refute grep -E 'bootstrap|;run' "$printed"
  counted pyflow -G user=1
  [ "$(grep -c "=> called_127 in $counted:" "$printed")" = 127 ]
  refute grep -vF -e " in $counted:" -e ' in <string>:' "$printed"
  counted pytrace -G user=1
  [ "$(grep -c '"ph":"B".*"name":"called_127"' "$printed")" = 127 ]
  refute grep '"cat":' <(grep -vF -e "\"cat\":\"$counted\"" -e '"cat":"<string>"' "$printed")
}

# Two processes, one after the other.
twice() {
  script "$@" -c "env LD_PRELOAD=$shim sh -c '$system $timed; $system $timed'"
}

@test "with by_process=1 the scripts have rows and stacks of each process" {
  need_time
  local name file=$top/test/workloads/child.py
  for name in 'pytime -G top=1000' 'pymalloc -G stacks=1' 'pyline */timed.py:*' 'pydist both'; do
    echo "$name"
    # shellcheck disable=SC2086
    twice $name -G by_process=1 -G json=1
    rows <<'PY'
pids = sorted({row["pid"] for row in rows if "rest_rows" not in row})
assert len(pids) == 2 and pids[0] > 1, pids
for own in [[row for row in rows if row.get("pid") == pid] for pid in pids]:
    if "hits" in own[0]:
        assert [row["hits"] for row in own if row["line"] == 11] == [4], own
    elif "kind" in own[0]:
        assert [row["stack"][0] for row in own if row["bytes"] == 41943045 and row["stack"][0].endswith("in allocates_8_mb")], own
    else:
        assert [row["calls"] for row in own if row["function"] == "both"] == [3], own
PY
  done
  twice pydist -G by_process=1 both
  [ "$(grep -cE "^both in $timed \([0-9]+\): 3 calls, total " "$printed")" = 2 ]
  twice pyline -G by_process=1 '*/workloads/timed.py:*'
  [ "$(awk '$2 == 4 && $3 ~ /:11$/ { print $1 }' "$printed" | sort -u | wc -l)" = 2 ]
  sed -n 2p "$printed" | grep -qx '    PID       HITS  FILE:LINE'
  twice pymalloc -G by_process=1 -G top=1000
  head -n 1 "$printed" | grep -q '^    PID     COUNT '
  [ "$(awk '$2 == 5 && $3 == 41943045 && $6 == "allocates_8_mb" { print $1 }' "$printed" | sort -u | wc -l)" = 2 ]
  twice pystacks -G by_process=1
  [ "$(grep -cE '^python3[.0-9t]* \([0-9]+\);<module>;main;both;sleeps_200_ms [0-9]{6,}$' "$printed")" = 2 ]
  refute grep -vE '^python3[.0-9t]* \([0-9]+\);' "$printed"
  twice pyblocked -G by_process=1 -G min=100000
  [ "$(grep -cE '^python3[.0-9t]* \([0-9]+\)$' "$printed")" -ge 8 ]
  [ "$(grep -E '^python3[.0-9t]* \([0-9]+\)$' "$printed" | sort -u | wc -l)" = 2 ]
  # a child's system calls are its own, though it begins in a function of its parent
  script pysyscalls -G by_process=1 -G user=1 -G json=1 -c "env LD_PRELOAD=$shim $system $file"
  rows "$file" <<'PY'
calls = {row["calls"]: row["pid"] for row in rows if row["syscall"] == "getppid" and row["function"] == "forks"}
assert sorted(calls) == [7, 13] and calls[7] != calls[13], rows
assert {row["pid"] for row in rows if row["syscall"] in ("clone", "wait4")} == {calls[13]}, rows
PY
  script pysyscalls -G by_process=1 -G user=1 -c "env LD_PRELOAD=$shim $system $file"
  [ "$(head -n 1 "$printed")" = "    PID    CALLS   TOTAL(us)   AVG(us)   MAX(us)  SYSCALL          FUNCTION                 FILE" ]
  [ "$(awk '$6 == "getppid" && $7 == "forks" { print $2 }' "$printed" | sort -n | xargs)" = "7 13" ]
}

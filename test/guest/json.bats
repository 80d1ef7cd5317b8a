# The scripts with json=1: each row a line of JSON, with the numbers of the table.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
}

# Checks rows of JSON with the Python code on stdin: "rows" has them, "of_file" has those of the functions of
# the file $1, and "calls" their calls.
rows() {
  cat >"$BATS_TEST_TMPDIR/check.py"
  /usr/bin/python3 - "$printed" "${1:-}" "$BATS_TEST_TMPDIR/check.py" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    text = lines.read()
assert text.endswith("}\n") and not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], text
rows = [json.loads(line) for line in text.split("\n")[:-1]]
path = sys.argv[2]
of_file = {row["function"]: row for row in rows if row.get("file") == path and "function" in row}
calls = {name: sum(row.get("calls", 0) for row in rows if (row.get("function"), row.get("file")) == (name, path)) for name in of_file}
names = {
    "called_127": 127, "called_2": 2, "called_31": 31, "collects": 1, "generated": 8, "in_thread_13": 13, "inner_15": 15,
    "lines_23": 1, "main": 1, "outer_5": 5, "raises_11": 11, "thread_main": 1, "<module>": 1,
}


# The first and the last kind of rows, which have these keys, of one kind or, with a comma between, of two.  There are
# some of each kind, one kind after the other, and there is no other.
def kinds(wanted):
    found = [[row for row in rows if " ".join(row) == keys] for keys in wanted.split(", ")]
    assert all(found) and sum(found, []) == rows, [list(row) for row in rows]
    return found[0], found[-1]


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
rows, rest = kinds("calls time_us function file, rest_calls")
assert rest == [{"rest_calls": 4}]
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

# Of each script: its arguments, the program, the keys of its rows and, behind a comma, those of its last rows; then what
# is true of "rows", of which "first" and "last" are those of the first and of the last kind.
@test "with json=1 each script prints a line of JSON a row, with the numbers of its table" {
  local number arguments program keys words
  awk -v checks="$BATS_TEST_TMPDIR/check." 'sub(/^    /, "") { print >(checks number); next } { print ++number "|" $0 }' \
    >"$BATS_TEST_TMPDIR/scripts" <<'SCRIPTS'
pygc|counted.py|time_s pid program gen pause_us collected, generation collections sum_us average_us longest_us collected histogram
    own = "000111112222222"
    assert own in "".join(str(event["gen"]) for event in first if event["collected"] >= 1), first
    # a free-threaded build frees code by collections alone: the first one has that of a module, which has run
    own = own[first[0]["program"].endswith("t"):]
    assert "".join(str(event["gen"]) for event in first if event["collected"] == 1) == own, first
    assert [event["time_s"] for event in first] == sorted(event["time_s"] for event in first), first
    for table in last:
        own = [event for event in first if event["gen"] == table["generation"]]
        pauses = [event["pause_us"] for event in own]
        assert (table["collections"], table["sum_us"], table["longest_us"]) == (len(own), sum(pauses), max(pauses)), table
        assert table["average_us"] == sum(pauses) // len(own) and table["collected"] == sum(event["collected"] for event in own), table
        assert sum(count for _, count in table["histogram"]) == len(own) and all(count for _, count in table["histogram"]), table
pyimport|counted.py|pid program self_us inclusive_us depth module miss lazy, imports misses self_us inclusive_us module
    misses = [(event["module"], event["miss"]) for event in first if event["module"] in ("no_such_module", "colorsys")]
    assert sorted(misses) == [("colorsys", False)] + [("no_such_module", True)] * 2, first
    assert max(event["depth"] for event in first) > 0 and min(event["depth"] for event in first) == 0, first
    assert last[-1]["module"] is None and last[-1]["imports"] == len(first), last
pyaudit '^open$'|counted.py|time_s pid program event arguments, count event
    assert last == [{"count": len(first), "event": "open"}], last
    opened = [event["arguments"] for event in first if "/dev/null" in event["arguments"]]
    assert opened == ["('/dev/null', 'r', O_RDONLY|O_CLOEXEC)"] * 3, first
pycalls -G top=2000 cfunctions|counted.py|calls time_us function file
    assert calls == names, calls
    assert [row["calls"] for row in rows if row["function"] == "posix.getppid" and row["file"] == "(C)"] == [19]
    assert of_file["main"]["time_us"] >= of_file["collects"]["time_us"] > 0
pycalls -G user=1 1|counted.py|time calls time_us function file
    assert calls == names, calls
    assert rows[0]["time"] > 1e9 and all(0 <= row["time"] - rows[0]["time"] < 300 for row in rows), rows
pytop -G by_process=1 -G clear=1 -G user=1|counted.py|time pid calls function file
    assert calls == names, calls
    assert len({row["pid"] for row in rows}) == 1 and rows[0]["pid"] > 1 and rows[0]["time"] > 1e9
pystat lines 600|counted.py|time pid calls ccalls lines gc imports threads program
    row, = rows
    assert row["time"] > 1e9 and row["calls"] > sum(names.values()) and row["ccalls"] > 36 and row["lines"] > 500, row
    assert row["gc"] >= 16 and row["imports"] >= 3 and row["threads"] == 2 and row["program"].startswith("python3"), row
pywho -G by_process=1 -G top=40|counted.py|uid pid calls function file, rest_calls
    assert len(first) == 40 and {row["uid"] for row in first} == {0} and len({row["pid"] for row in first}) == 1, first
    assert of_file["called_127"]["calls"] == 127 and len(last) == 1 and last[0]["rest_calls"] > 0, rows
pywho -G by_file=1|counted.py|uid calls file
    assert [row["calls"] for row in rows if row["file"] == path] == [sum(names.values())]
pysyscalls -G top=30|counted.py|calls total_us avg_us max_us syscall function file, rest_rows
    assert len(first) == 30 and all(row["avg_us"] <= row["max_us"] <= row["total_us"] for row in first), first
    assert [row["total_us"] for row in first] == sorted((row["total_us"] for row in first), reverse=True)
    assert len(last) == 1 and last[0]["rest_rows"] > 0, last
pymalloc -G top=20|timed.py|count bytes max kind function file, rest_rows
    # a byte more than the program has asked for
    assert list(first[0].values()) == [5, 41943045, 8388609, "malloc", "allocates_8_mb", path], first
    assert len(last) == 1 and last[0]["rest_rows"] > 0, last
pymalloc -G top=20 -G stacks=1|timed.py|count bytes max kind stack, rest_rows
    stack = ['File "%s", line %d, in %s' % (path, line, name) for line, name in ((30, "allocates_8_mb"), (51, "main"), (60, "<module>"))]
    assert list(first[0].values()) == [5, 41943045, 8388609, "malloc", stack], first
    assert len(last) == 1 and last[0]["rest_rows"] > 0, last
pyfaults -G top=20|faults.py touches|faults kb share kind what function file, rest_rows, faults kb copied_kb gc_copied_kb gc_unknown_kb faults_for_nothing resident_kb
    row, = [row for row in first if row["function"] == "touches"]
    assert list(row.values())[:2] + list(row.values())[3:] == [1500, 6000, "new", "[anonymous]", "touches", path], row
    totals, = last
    assert len(first) == 20 and rows[-2]["rest_rows"] > 0 and totals["kb"] > sum(row["kb"] for row in first) > 6000, last
    assert abs(row["share"] - 100 * row["kb"] / totals["kb"]) < 0.1, rows
pyheap -G bytes=4096 -G top=3|keeps.py 2000|live blocks samples allocated stack, live samples error resident
    assert len(first) == 3 and first[0]["stack"][0].endswith("in remembers") and len(last) == 1, rows
    assert sum(row["live"] for row in first) <= last[0]["live"] and last[0]["error"] < last[0]["live"], rows
pyline '*/workloads/counted.py:*'|counted.py|hits file line
    assert {row["file"] for row in rows} == {path}, rows
    hits = {row["line"]: row["hits"] for row in rows}
    assert (hits[12], hits[16], hits[20], hits[29], hits[38]) == (2, 31, 127, 15, 11), hits
    assert list(hits) == sorted(hits), hits
pyline|counted.py|time_us tid program function file line
    assert [row["line"] for row in rows if (row["function"], row["file"]) == ("called_31", path)] == [16] * 31, rows
pyexc|counted.py|count exception function file line
    raised = [row for row in rows if row["file"] == path and row["exception"] == "ValueError"]
    assert [list(row.values()) for row in raised] == [[11, "ValueError", "raises_11", path, 38]], raised
pytime exact -G cpu=1 -G top=1000|timed.py|calls incl_us excl_us cpu_incl_us cpu_excl_us function file
    assert {name: calls[name] for name in ("both", "quick", "sleeps_200_ms")} == {"both": 3, "quick": 1010, "sleeps_200_ms": 4}
    assert 900000 <= of_file["both"]["incl_us"] and of_file["both"]["excl_us"] < 300000, of_file["both"]
    assert of_file["sleeps_200_ms"]["excl_us"] >= 800000 > 200000 > of_file["sleeps_200_ms"]["cpu_excl_us"], of_file
pydist 'quick sleeps_200_ms'|timed.py|function file calls total_us average_us histogram
    assert calls == {"quick": 1010, "sleeps_200_ms": 4}, rows
    for row in rows:
        assert row["average_us"] == row["total_us"] // row["calls"], row
        assert sum(count for _, count in row["histogram"]) == row["calls"] and all(count for _, count in row["histogram"]), row
        assert all(value == 0 or value & (value - 1) == 0 for value, _ in row["histogram"]), row
    assert of_file["sleeps_200_ms"]["histogram"][0][0] >= 131072, rows
pyblocked -G min=100000|timed.py|total_us sleeps longest_us kind which stack, total_us sleeps longest_us kind
    assert [row for row in last if row["kind"] == "timer" and row["total_us"] > 1000000], last
    stack = ["sleeps_200_ms", "both", "main", "<module>"]
    row, = [row for row in first if row["kind"] == "timer" and [frame.split()[-1] for frame in row["stack"]] == stack]
    assert row["stack"][0] == 'File "%s", line 11, in sleeps_200_ms' % path, row
    assert row["sleeps"] == 3 and 450000 <= row["total_us"] and row["total_us"] // 3 <= row["longest_us"] <= row["total_us"], row
pygil -G user=1 -G by_process=1|gil.py computes 3 2>/dev/null|waited_us waits stack holder
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
pyslow 190|timed.py|time_ms program tid function stack
    rows = [row for row in rows if row["function"] == "sleeps_200_ms"]
    assert all(200 <= row["time_ms"] < 60000 and row["tid"] > 1 and row["program"].startswith("python3") for row in rows), rows
    functions = [[frame.split()[-1] for frame in row["stack"]] for row in rows]
    assert functions == 3 * [["sleeps_200_ms", "both", "main", "<module>"]] + [["sleeps_200_ms", "main", "<module>"]], functions
    assert rows[0]["stack"][0].endswith('timed.py", line 11, in sleeps_200_ms'), rows[0]
pytasks|stretches.py /dev/null|tasks steps run_us loop_us others_us slowest_us name coroutine, slowest_us name coroutine stack
    slowest, = last
    assert (slowest["name"], slowest["stack"][0].split()[0]) == ("blocks", "slow_step") and slowest["slowest_us"] >= 399000, slowest
    found = {row["name"]: row for row in first if row["coroutine"] in ("computes", "blocks", "late", "waits")}
    steps = {name: (row["tasks"], row["steps"]) for name, row in found.items()}
    assert steps == {"computes": (2, 6), "Task-N": (2, 4), "blocks": (1, 3), "late": (1, 3)}, rows
    assert found["computes"]["run_us"] >= 298000 and found["late"]["loop_us"] >= 399000 and found["Task-N"]["others_us"] >= 590000, rows
SCRIPTS
  while IFS='|' read -r number arguments program keys <&9; do
    echo "$arguments"
    # a free-threaded build has an allocator of its own for all objects
    [[ $arguments != pymalloc* ]] || ! is_free_threaded "$system" || continue
    eval "words=($arguments)"
    script "${words[@]}" -G json=1 -c "env LD_PRELOAD=$shim sh -c '$system $top/test/workloads/$program'"
    { echo "first, last = kinds('$keys')" && cat "$BATS_TEST_TMPDIR/check.$number"; } | rows "$top/test/workloads/${program%% *}"
  done 9< <(some 30 <"$BATS_TEST_TMPDIR/scripts")
}

# Its place may have been evicted, too, and has no line then.
@test "pyexc with json=1 has a row of JSON for what was evicted" {
  need_time
  script_says pyexc -DPYTHON_STACKS=24 -G json=1 -c "env LD_PRELOAD=$shim $system $top/test/workloads/raises.py"
  rows <<'PY'
kinds("count exception function file line")
assert [row for row in rows if row["exception"] == "(other)" and row["line"] == 0], rows
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
# stacks begin with a function of the program, or a collection, and are whole from there on
rows = [row for row in rows if "stack" in row]
begins = [frame for row in rows for frame in row["stack"][row["stack"][0] == "<GC>" :][:1]]
assert all("/timed.py" in frame or '"<string>"' in frame for frame in begins), rows
functions = [[frame.split()[-1] for frame in row["stack"]] for row in rows]
assert ["main", "<module>"] in functions, functions
if "bytes" not in rows[0]:
    assert [stack for stack in functions if stack[:3] == ["holder", "run", "_bootstrap_inner"]], functions
PY
  done
  timed pystacks -G user=1
  # from 3.14 on a thread has its name in the kernel, too
  refute grep -vE '^(python3[.0-9t]*|Thread-1 [(]holde);(<module>|holder)[; ]' "$printed"
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
  script "$@" -c "env LD_PRELOAD=$shim sh -c '$system -S $timed; $system -S $timed'" # what site imports has thousands of stacks
}

@test "with by_process=1 the scripts have rows and stacks of each process" {
  need_time
  local name file=$top/test/workloads/child.py
  for name in 'pytime -G top=1000' 'pymalloc -G stacks=1' 'pyline */timed.py:*' 'pydist both'; do
    echo "$name"
    [[ $name != pymalloc* ]] || ! is_free_threaded "$system" || continue # its objects are mimalloc's
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
  is_free_threaded "$system" || [ "$(awk '$2 == 5 && $3 == 41943045 && $6 == "allocates_8_mb" { print $1 }' "$printed" | sort -u | wc -l)" = 2 ]
  twice pystacks -G by_process=1
  [ "$(grep -cE '^python3[.0-9t]* \([0-9]+\);<module>;main;both;sleeps_200_ms [0-9]{6,}$' "$printed")" = 2 ]
  refute grep -vE '^(python3[.0-9t]*|Thread-1 [(]holde) \([0-9]+\);' "$printed"
  twice pyblocked -G by_process=1 -G min=100000
  grep -E '^(python3[.0-9t]*|Thread-1 [(]holde) \([0-9]+\)$' "$printed" >"$BATS_TEST_TMPDIR/roots"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/roots")" -ge 8 ]
  [ "$(grep -oE '\([0-9]+\)$' "$BATS_TEST_TMPDIR/roots" | sort -u | wc -l)" = 2 ]
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

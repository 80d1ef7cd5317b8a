# pyfaults, held against a program that knows which pages it makes resident, and which it ceases to share.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

# Runs pyfaults on parts of the workload: its rows are in $printed, what the program says is in $said.
# usage: faulted OPTIONS... -- PYTHON PART...
faulted() {
  script_beside pyfaults "$top/test/workloads/faults.py" -G top=1000 "$@"
}

# What the program has said is what the rows have, within 1 percent, and what else the function and the interpreter touch.
# The totals are those of the rows.
check_pages() {
  /usr/bin/python3 - "$printed" "$said" <<'PY'
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
totals = rows.pop()
assert said and rows and not any("rest_rows" in row for row in rows)
by_process = "pid" in rows[0]
kb = collections.defaultdict(int)
for row in rows:
    kb[row["function"], row["kind"], row["what"], row.get("pid")] += row["kb"]
    if row["function"].startswith("worker_") and row["kind"].endswith("copy"):
        kb["worker_*", "*copy", "", row["pid"]] += row["kb"]
for one in said:
    key = one["function"], one["kind"], one["what"], one["pid"] if by_process else None
    print(key, "said", one["kb"], "printed", kb[key])
    assert one["kb"] * 0.99 <= kb[key] <= one["kb"] * 1.01 + one["more"]
assert all(row["kb"] > 0 and row["kind"] in ("new", "file", "swap", "copy", "gc-copy") and row["what"] for row in rows)
assert totals["kb"] == sum(row["kb"] for row in rows)
assert totals["faults"] == sum(row["faults"] for row in rows)
assert totals["copied_kb"] == sum(row["kb"] for row in rows if row["kind"] in ("copy", "gc-copy"))
assert totals["gc_copied_kb"] == sum(row["kb"] for row in rows if row["kind"] == "gc-copy")
assert totals["resident_kb"] > 5000
PY
}

@test "pyfaults tells which function makes how much of which memory resident, and what a child copies" {
  faulted -G by_process=1 -- "$system" touches from_kernel reads_file thread_of_c forks
  [ "$(wc -l <"$said")" = 6 ]
  check_pages
}

@test "pyfaults knows zeros, private and huge pages, the heap and the stack, and a parent that copies" {
  need_time
  faulted -G by_process=1 -- "$system" reads_zeros touches_huge writes_file parent_copies
  [ "$(wc -l <"$said")" = 6 ]
  check_pages
  faulted -- "$system" on_heap
  [ "$(wc -l <"$said")" = 1 ]
  check_pages
  # what a call takes of the stack depends on how CPython was built
  faulted -- "$system" on_stack
  [ "$(wc -l <"$said")" = 1 ]
  check_pages
}

@test "pyfaults tells copies by a collection from others in each CPython, and whether gc.freeze() would help" {
  need_time
  local python
  while read -r python <&9; do
    echo "$python"
    is_free_threaded "$python" && continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 7))' || continue
    faulted -G by_process=1 -- "$python" touches forks collects preforks
    [ "$(wc -l <"$said")" = 22 ]
    check_pages
  done 9< <(guest_pythons)
  freezes collects
  if is_free_threaded "$system"; then
    grep -qE '^Copied, after a fork: [0-9]+ KB, 0[.]0 % of it while garbage was collected; of [1-9][0-9]*[.][0-9] % that is not known$' "$printed"
    return
  fi
  grep -qE '^Copied, after a fork: [0-9]+ KB, (8[0-9]|9[0-9])[.][0-9] % of it while garbage was collected$' "$printed"
  grep -qE '^gc[.]freeze[(][)] before the fork would have kept at most [1-9][0-9]{4} KB of this shared$' "$printed"
  freezes collects_frozen forks
  grep -qE '^Copied, after a fork: [0-9]+ KB, [0-9][.][0-9] % of it' "$printed"
  refute grep -F 'gc.freeze()' "$printed"
}

# Runs pyfaults as a user does.
freezes() {
  script pyfaults -c "env LD_PRELOAD=$shim $system $top/test/workloads/faults.py $*" >/dev/null
}

@test "pyfaults has stacks, copies alone, and the program in a folded stack" {
  need_time
  local faults=$top/test/workloads/faults.py
  # the largest, or in a free-threaded build the second: mimalloc's at the start are larger
  script pyfaults -G stacks=1 -G top=2 -c "env LD_PRELOAD=$shim $system $faults touches" >/dev/null
  diff - <(sed 1d "$printed" | awk -v RS= -v ORS='\n\n' '/in touches\n/ { print; exit }' |
    sed -E "s,$faults,faults.py,; s/ [0-9]+[.][0-9]  new/ SHARE  new/; s/line [0-9]+/line N/") <<'EXPECTED'
     1500        6000   SHARE  new      [anonymous]
File "faults.py", line N, in touches
File "faults.py", line N, in <module>

EXPECTED
  script pyfaults -G copies=1 -G json=1 -c "env LD_PRELOAD=$shim $system $faults touches forks" >/dev/null
  [ "$(jq -r '.kind // empty' "$printed" | sort -u | xargs)" = copy ]
  script pyfaults -G folded=1 -c "env LD_PRELOAD=$shim $system $faults touches" >/dev/null
  grep -qE '^python3[^;]*;<module> [(][^;]*faults.py[^;]*[)];touches [^;]*;\[new \[anonymous\]\] [0-9]{7}$' "$printed"
}

@test "pyfaults tells the class of the objects whose pages a child copies, by counting references and by a collection" {
  local python faults=$top/test/workloads/faults.py
  while read -r python <&9; do
    echo "$python"
    is_free_threaded "$python" && continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 7))' || continue
    script pyfaults -G types=1 -G json=1 -G top=1000 -c "env LD_PRELOAD=$shim $python $faults collects preforks" >/dev/null
    /usr/bin/python3 - "$printed" <<'PY'
import json
import sys

rows = [row for row in map(json.loads, open(sys.argv[1], encoding="utf-8")) if "kind" in row]
assert all(bool(row["type"]) == row["kind"].endswith("copy") for row in rows)
for function, kind, type in ("child_collects", "gc-copy", "list"), ("worker_reads", "copy", "set"), ("worker_collects", "gc-copy", "set"):
    kb = {}
    for row in rows:
        if (row["function"], row["kind"], row["what"]) == (function, kind, "[anonymous]"):
            kb[row["type"]] = kb.get(row["type"], 0) + row["kb"]
    print(function, kind, kb)
    assert kb[type] > 0.7 * sum(kb.values())
PY
  done 9< <(guest_pythons)
  ! is_free_threaded "$system" || return 0
  script pyfaults -G types=1 -G copies=1 -c "env LD_PRELOAD=$shim $system $faults collects forks" >/dev/null
  grep -qE '^ +FAULTS +KB +SHARE  KIND +TYPE +WHAT +FUNCTION +FILE$' "$printed"
  grep -qE ' gc-copy  list +\[anonymous\] +child_collects ' "$printed"
  grep -qE ' copy     \[other\] +\[anonymous\] +child_writes ' "$printed"
  script pyfaults -G types=1 -G folded=1 -c "env LD_PRELOAD=$shim $system $faults collects" >/dev/null
  grep -qE '^python3[^;]*;.*;child_collects [^;]*;<GC>;\[gc-copy list \[anonymous\]\] [0-9]{8}$' "$printed"
}

@test "pyfaults has the pages of numpy's arrays, pymalloc their bytes, and pyheap neither" {
  need_time
  "$system" -c 'import numpy' 2>/dev/null || skip "needs python3-numpy"
  local kept
  faulted -- "$system" arrays
  [ "$(wc -l <"$said")" = 2 ]
  check_pages
  script pymalloc -G json=1 -G top=1000 -c "env LD_PRELOAD=$shim $system $top/test/workloads/faults.py arrays"
  [ "$(jq -c 'select(.function == "reserves" and .kind == "malloc") | [.count, .bytes]' "$printed")" = '[1,41943040]' ]
  script pyheap -G json=1 -G bytes=4096 -G top=3000 -c "env LD_PRELOAD=$shim $system $top/test/workloads/faults.py arrays"
  # 20 MB of the 40 are resident
  jq -se '.[-1] | .resident > .live + 20000000' "$printed"
  kept=$(jq -s '[.[] | select(.stack) | select(.stack[0] | test(" in (reserves|fills)$")) | .live] | add // 0' "$printed")
  [ "$kept" -lt 100000 ]
}

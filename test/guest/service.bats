# A Django service traced from its start, whose own counts the script must print, and services that plant what makes their
# pages slow: a part of make check-service.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

@test "pystacks tells of a Django service's functions what it counts itself" {
  need_time "make check-service"
  need curl
  "$system" -c 'import django, gunicorn' || skip "needs python3-django and gunicorn"
  STAP_TIMEOUT=900 timeout -k 5 $((1000 * SLOW)) "$top/test/long/service/run" --requests 4 'pystacks:^with_sql$' >"$printed" || {
    cat "$printed"
    return 1
  }
  cat "$printed"
  # the thirteen functions
  awk '/^py/ { if ($4 != 13 || $5 != 0) bad = 1; n++ } END { exit bad || n != 1 }' "$printed"
}

# Runs pyrequest on the service of causes.py, and compares its tables and the line of each request with what the service says:
# the cause that was planted in the slow pages is the first one, and each page's parts are those of its own clocks.
# usage: causes_are_found 'KIND CAUSE...' STAP'S ARGUMENTS...
causes_are_found() {
  export PYTHON_GIL=1 # in a free-threaded build, where else nothing waits for it
  # on a busy machine the service may take ten seconds to start, of which pyrequest warns
  STAP_TIMEOUT=900 script_says pyrequest -c "env LD_PRELOAD=$shim $system $top/test/workloads/causes.py $1" -G json=1 "${@:2}" >"$printed.service" || {
    cat "$printed.service"
    return 1
  }
  refute grep -E 'WARNING: (lost|skipped|more than|no room)|ERROR|could not be read' "$printed.said"
  grep -xF '{"failed": []}' "$printed.service"
  /usr/bin/python3 - "$printed" "$printed.service" "$1" <<'PY'
import collections
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.startswith('{"path"')]
kind, *paths = sys.argv[3].split()
left_out = rows.pop()
assert "left_out_at_end" in left_out and not any(left_out.values()), left_out
assert len({one["pid"] for one in said}) == 2
names = {path: path.replace("_", " ") for path in paths}
names.update(gil="GIL", cpu="CPU", page_faults="page fault")


def key_of(cause):
    return cause.lower().replace(" ", "_") + "_us"


def parts_of(row):
    return {key: value for key, value in row.items() if key.endswith("_us") and key not in ("wall_us", "gc_us", "import_us", "longest_us")}


requests, pages = collections.defaultdict(list), collections.defaultdict(list)
for row in rows:
    if "stack" in row and row["by"] != "'/ready'":
        requests[row["tid"]].append(row)
for one in said:
    if one["path"] != "/ready":
        pages[one["tid"]].append(one)
assert requests.keys() == pages.keys()
groups = collections.defaultdict(list)
for tid in pages:
    requests[tid].sort(key=lambda row: row["start"] + row["wall_us"] / 1e6)
    pages[tid].sort(key=lambda one: one["number"])
    assert len(requests[tid]) == len(pages[tid]), (tid, len(requests[tid]), len(pages[tid]))
    for row, one in zip(requests[tid], pages[tid]):
        path, parts = one["path"][1:], parts_of(row)
        groups[path].append((row, one))
        assert row["by"] == "'/%s'" % path and not row["failed"], (row, one)
        assert abs(sum(parts.values()) - row["wall_us"]) < 0.1, row
        assert one["within_us"] - 1 <= row["wall_us"] <= one["us"] + 1, (row, one)
        # the clock of the loop's thread runs in the other tasks' steps, too
        on_cpu = parts["cpu_us"] + parts["kernel_us"]
        assert (kind == "tasks" or one["cpu_within_us"] - 1 <= on_cpu) and on_cpu <= one["cpu_us"] + 1, (row, one)
        if not one["slow"]:
            continue
        own, beside = parts[key_of(names[path])], parts["run_queue_us"] + parts["gil_us"] + parts["loop_us"]
        slept = one["slow_us"] - one["slow_cpu_us"]
        print(path, "own", own, "beside", beside, "slept", slept, "wall", row["wall_us"])
        if path in ("cpu", "kernel"):
            assert on_cpu >= one["slow_cpu_us"] - 1, (row, one)
        else:
            assert own <= one["us"] - (kind == "flask") * one["slow_cpu_us"] + 1, (row, one)
            assert own + beside >= slept * 0.99 - 50, (row, one)
assert groups.keys() == set(paths) and all(len(group) == 20 for group in groups.values())
tables = {row["by"].strip("'/"): row for row in rows if "p50_us" in row}
first = {}
for row in rows:
    if "cause" in row:
        first.setdefault(row["by"].strip("'/"), row)
for path in paths if tables else []:
    group, table, cause = groups[path], tables[path], first[path]
    group.sort(key=lambda each: each[0]["wall_us"])
    assert (table["requests"], table["failed"]) == (20, 0), table
    assert sum(one["within_us"] for row, one in group) / 20 - 1 <= table["mean_us"] <= sum(one["us"] for row, one in group) / 20 + 1
    row, one = group[-1]
    assert one["within_us"] - 2 <= table["max_us"] <= one["us"] + 1, (table, one)
    # the first row is what the slowest one has more of than those around the median
    more = {key: value - sum(each[0][key] for each in group[7:12]) / 5 for key, value in parts_of(row).items()}
    assert abs(max(more.values()) - cause["difference_us"]) < 2 and cause["difference_us"] - more[key_of(cause["cause"])] < 2, (cause, more)
    # and is what was planted, unless a busy machine took as much from it
    planted = one["slow_cpu_us"] if path in ("cpu", "kernel") else one["slow_us"] - one["slow_cpu_us"]
    print(path, table["max_us"], cause["cause"], cause["difference_us"])
    if one["slow"] and planted > one["us"] * 0.6:
        assert cause["cause"] == names[path], (cause, more, one)
PY
}

@test "pyrequest names what makes each route of a Flask service slow, and divides each request by the service's own clocks" {
  need_time "make check-service"
  "$system" -c 'import flask, gunicorn' || skip "needs python3-flask and gunicorn"
  local causes='gil lock page_faults run_queue cpu kernel timer file file_lock pipe socket poll epoll child signal stopped other'
  causes_are_found "flask $causes" -G slowest=20 -G top=30 flask.app.wsgi_app "environ['PATH_INFO']"
  causes_are_found 'flask gil lock socket' -G each=1 flask.app.wsgi_app "environ['PATH_INFO']"
}

@test "pyrequest names what makes the tasks of an asyncio service slow, and divides each by the service's own clocks" {
  need_time "make check-service"
  causes_are_found 'tasks loop task future lock' -G tasks=1 -G slowest=20 page path
  causes_are_found 'tasks loop task future lock' -G tasks=1 -G each=1 page path
}

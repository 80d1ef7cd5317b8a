# The dashboard for Grafana: what Grafana requires of the file, and that it shows the metrics of the exporter's script,
# each of them and no other.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

# Prints what is wrong with the dashboard $1 and the script $2.
wrong_in() {
  /usr/bin/python3 - "$1" "$2" <<'PY'
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    script = file.read()

metrics = {}
for name, kind in re.findall(r'metric\("(\w+)", "(\w+)"', script):
    for series in [name + part for part in ("_bucket", "_sum", "_count")] if kind == "histogram" else [name]:
        metrics[series] = 0
LABELS = {"instance", "le"} | set(re.findall(r'(\w+)=\\"', script)) | {"program", "found"}
KEYS = {
    "dashboard": {"title": str, "uid": str, "schemaVersion": int, "panels": list, "templating": dict, "time": dict},
    "panel": {"id": int, "type": str, "title": str, "description": str, "datasource": dict, "gridPos": dict, "targets": list},
    "grid": {"x": int, "y": int, "w": int, "h": int},
    "target": {"refId": str, "expr": str, "legendFormat": str, "datasource": dict},
    "variable": {"name": str, "type": str, "query": (str, dict)},
}


def wrong(*words):
    print(*words)


def check(kind, there):
    for key, wanted in KEYS[kind].items():
        if not isinstance(there.get(key), wanted) or there[key] == "":
            wrong(kind, there.get("title", there.get("name", "")), "has no", key)


def check_query(where, text, variables):
    for name in re.findall(r"\bpython_\w+", text):
        if name in metrics:
            metrics[name] += 1
        else:
            wrong(where, "uses", name, "which the script has not")
    for name in re.findall(r"(\w+)(?:=|!=|=~|!~)\"", text) + re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", text))):
        if name not in LABELS:
            wrong(where, "uses the label", name)
    for name in re.findall(r"\$(\w+)", text):
        if name not in variables | {"__rate_interval"}:
            wrong(where, "uses the variable", name)


check("dashboard", dashboard)
variables = {variable["name"] for variable in dashboard["templating"]["list"]}
for variable in dashboard["templating"]["list"]:
    check("variable", variable)
    if variable["type"] == "query":
        check_query(variable["name"], variable["query"]["query"].replace("label_values", ""), variables)
metrics = dict.fromkeys(metrics, 0)
cells, ids = {}, set()
for panel in dashboard["panels"]:
    check("panel", panel)
    check("grid", panel["gridPos"])
    if panel["id"] in ids:
        wrong("two panels have the id", panel["id"])
    ids.add(panel["id"])
    grid = panel["gridPos"]
    if grid["x"] < 0 or grid["w"] < 1 or grid["x"] + grid["w"] > 24:
        wrong(panel["title"], "is not within 24 columns")
    for cell in [(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])]:
        if cell in cells:
            wrong(panel["title"], "overlaps", cells[cell])
            break
        cells[cell] = panel["title"]
    if not panel["targets"] or len({target["refId"] for target in panel["targets"]}) < len(panel["targets"]):
        wrong(panel["title"], "has no targets, or two of the same refId")
    for target in panel["targets"]:
        check("target", target)
        check_query(panel["title"], target["expr"], variables)
        for name in re.findall(r"{{(\w+)}}", target["legendFormat"]):
            if name not in LABELS:
                wrong(panel["title"], "has the label", name, "in its legend")
for name in sorted(name for name, uses in metrics.items() if not uses):
    wrong("no panel uses", name)
if len(metrics) < 9:
    wrong("the script has", len(metrics), "series only")
PY
}

@test "the dashboard has each metric of the exporter's script and no other, in a file that Grafana takes" {
  local faulty=$BATS_TEST_TMPDIR/faulty change said dashboard=$top/scripts/exporter/grafana.json
  run wrong_in "$dashboard" "$top/scripts/exporter/python.stp"
  echo "$output"
  [ "$status $output" = "0 " ]
  # each fault is found
  while IFS='|' read -r change said; do
    sed "$change" "$dashboard" >"$faulty"
    run wrong_in "$faulty" "$top/scripts/exporter/python.stp"
    echo "$change: $output"
    [[ $status == 0 && $output == *"$said"* ]]
  done <<'FAULTS'
s/python_c_calls_total/python_calls_total/|no panel uses python_c_calls_total
s/python_c_calls_total/python_b_calls_total/|which the script has not
s/"x": 12/"x": 11/|overlaps
s/"x": 12/"x": 13/|not within 24 columns
s/"refId": "B"/"refId": "A"/|two of the same refId
s/"schemaVersion"/"schema"/|has no schemaVersion
s/{{generation}}/{{age}}/|in its legend
s/\$program/$programs/|uses the variable
FAULTS
}

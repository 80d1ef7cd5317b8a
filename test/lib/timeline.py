# timeline.py TRACE: checks a file of pytrace by what Perfetto makes of the Trace Event Format, and prints what it has.
#
# Perfetto sorts all events by ts, and leaves those of one ts in the order of the file.  Then, in each track (a pid and a
# tid), each B has an E, an X ends within the slice in which it begins, an E has no other name than its B, and both ends of a
# flow are within a slice.  Of pytrace, beside this: each track has its events in order in the file, without the beginnings of
# flows; one of states has neither gaps nor slices beside each other.
#
# Prints, with tabs, for each kind of slice or instant: its category, its name, "which" of its arguments or "-", the function
# of its thread in which it begins or "-", how often it is there, and its microseconds; then for each flow "arrow", and the
# names of both tracks.  The category of a function is "function".
#
# SPDX-License-Identifier: MIT

import collections
import json
import sys

STATES = 5000000

with open(sys.argv[1], encoding="utf-8") as file:
    events = json.load(file)
names, last = {}, {}
for event in events:
    assert event["ph"] in "MBEXisf", event
    track = event["pid"], event["tid"]
    event["ns"] = round(event["ts"] * 1000)
    event["until"] = event["ns"] + round(event.get("dur", 0) * 1000)
    if event["ph"] == "M" and event["name"] == "thread_name":
        names[track] = event["args"]["name"]
    elif event["ph"] not in "Ms":
        assert event["ns"] >= last.get(track, 0), event
        last[track] = event["ns"]

stacks = collections.defaultdict(list)
counts, times = collections.Counter(), collections.Counter()
states, flows = {}, collections.defaultdict(dict)


def function_of(pid, tid):
    functions = [slice["name"] for slice in stacks[pid, tid] if slice["cat"] == "function"]
    return functions[-1] if functions else "-"


def begin(event):
    if event["cat"] not in ("state", "gc", "gil", "system call", "exception"):
        event["cat"] = "function"
    tid = event["tid"] - STATES if event["cat"] == "state" else event["tid"]
    event["key"] = event["cat"], event["name"], event.get("args", {}).get("which", "-"), function_of(event["pid"], tid)


def end(event, until):
    counts[event["key"]] += 1
    times[event["key"]] += until - event["ns"]


for event in sorted((event for event in events if event["ph"] != "M"), key=lambda event: event["ns"]):
    track = event["pid"], event["tid"]
    stack = stacks[track]
    while stack and stack[-1]["ph"] == "X" and stack[-1]["until"] <= event["ns"]:
        stack.pop()
    if event["ph"] == "B":
        begin(event)
        stack.append(event)
    elif event["ph"] == "E":
        begun = stack.pop()
        assert begun["ph"] == "B" and event.get("name", begun["name"]) == begun["name"], (begun, event)
        end(begun, event["ns"])
    elif event["ph"] == "X":
        begin(event)
        assert event["cat"] == "state" and not stack, (stack, event)
        assert event["ns"] == states.get(track, event["ns"]), (states[track], event)
        states[track] = event["until"]
        stack.append(event)
        end(event, event["until"])
    elif event["ph"] == "i":
        begin(event)
        end(event, event["ns"])
    else:
        assert stack, event
        assert event["ph"] not in flows[event["id"]], event
        flows[event["id"]][event["ph"]] = event
for track, stack in stacks.items():
    assert not [event for event in stack if event["ph"] == "B"], stack
    assert track in names or not states, track
for key, count in sorted(counts.items()):
    print(*key, count, times[key] // 1000, sep="\t")
for flow in flows.values():
    assert flow["s"]["ns"] <= flow["f"]["ns"], flow
    print("arrow", *(names[flow[end]["pid"], flow[end]["tid"]] for end in "sf"), sep="\t")

# dump.py LIBRARY ROOM [many]: dumps this process with the tapset's C functions in LIBRARY, as pydump does, and compares
# the frames, the variables and the tasks with those that Python has, or counts those of many threads.
#
# SPDX-License-Identifier: MIT

import asyncio
import ctypes
import json
import os
import sys

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p
has_gil = not (hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled())
outer = "of the module"


def dump(depth=64, locals=1, tasks=1, as_json=1, processes=0, keeps_gil=True):
    library.run_here()
    function = (ctypes.PyDLL if keeps_gil else ctypes.CDLL)(sys.argv[1]).__python_dump_5
    function.restype = ctypes.c_longlong
    function(*(ctypes.c_longlong(one) for one in (depth, locals, tasks, as_json, processes)))
    text = library.take_printed().decode("utf-8")
    # a process behind the first one begins with a comma
    return json.loads(('{"processes":[' + text[1:] if text[0] == "," else text) + "]}") if as_json else text


def check(what, expected, got):
    if expected != got:
        print("%s:\nexpected: %s\ngot:      %s" % (what, expected, got))
        os._exit(1)


def called(short, quoted='a "b"\\\n\x7f', late=None):
    long = "x" * 300
    umlauts = "\xfc" * 120
    cell = [short]
    del late
    return (lambda: (cell, dump()))()[1]


def calls():
    class Named:
        attribute = 7
        inside = called(3)

    return Named.inside


def check_values():
    process, = calls()["processes"]
    thread, = process["threads"]
    check("version", sys.version.split()[0].rstrip("+"), process["version"])
    check("whole", (True, True, True), (thread["whole"], process["all_threads"], process["all_locals"]))
    check("name", "MainThread", thread["name"])
    check("gil", has_gil or None, thread["gil"])
    check("gil given away", False if has_gil else None, dump(keeps_gil=False)["processes"][0]["threads"][0]["gil"])
    functions = [frame["function"] for frame in thread["frames"]]
    check("functions", ["dump", "<lambda>", "called", "Named", "calls", "check_values", "<module>"], functions)
    check("lines", [called.__code__.co_firstlineno + 5, check_values.__code__.co_firstlineno + 1],
          [thread["frames"][at]["line"] for at in (2, 5)])
    check("file", os.path.abspath(__file__), os.path.abspath(thread["frames"][2]["file"]))
    check("variables", {"short": "3", "quoted": repr('a "b"\\\n\x7f'), "long": "'" + "x" * 96 + "...",
                        "umlauts": "'" + "\xfc" * 96 + "...", "cell": "[3]"}, thread["frames"][2]["locals"])
    check("class", "7", thread["frames"][3]["locals"]["attribute"])
    module = thread["frames"][-1]["locals"]
    check("module", repr(outer), module["outer"])
    assert not any(name.startswith("__") for name in module), module
    cut, = dump(depth=2)["processes"]
    check("cut", (2, False), (len(cut["threads"][0]["frames"]), cut["threads"][0]["whole"]))
    bare, = dump(locals=0, tasks=0)["processes"]
    assert "locals" not in bare["threads"][0]["frames"][0] and "tasks" not in bare["threads"][0] and "tasks" not in bare
    lines = dump(as_json=0).split("\n")
    at = lines.index("    outer = 'of the module'")
    assert lines[0].startswith("Thread ") and lines[1].startswith('File "') and lines[1].endswith(", in dump"), lines
    assert any(line.endswith(", in <module>") for line in lines[:at]), lines
    check("several", ['Process 1 ""', "", 'Thread 1 "MainThread", running, has the GIL' if has_gil else 'Thread 1 "MainThread", running'],
          dump(as_json=0, processes=1).split("\n")[:3])


async def waits(what):
    await what


async def main():
    future = asyncio.get_running_loop().create_future()
    first = asyncio.create_task(waits(future), name='the "first"')
    second = asyncio.create_task(waits(first), name="second")
    await asyncio.sleep(0)
    process, = dump()["processes"]
    text = dump(locals=0, as_json=0)
    future.set_result(None)
    await second
    return process, text


def check_tasks():
    process, text = asyncio.run(main())
    thread, = process["threads"]
    tasks = {task["name"]: task for task in thread["tasks"] + process["tasks"]}
    check("where", (3, []), (len(thread["tasks"]), process["tasks"]))
    check("all", True, process["all_tasks"])
    check("names", ["Task-1", "second", 'the "first"'], sorted(tasks))
    check("states", ["running", "waits", "waits"], [tasks[name]["state"] for name in sorted(tasks)])
    check("waits", [[], [{"task": 'the "first"'}], [{"class": "Future"}]], [tasks[name]["waits_for"] for name in sorted(tasks)])
    check("stack", ["waits"], [frame["function"] for frame in tasks["second"]["frames"]])
    assert tasks["second"]["frames"][0]["locals"]["what"].startswith("<"), tasks
    check("running", ["dump", "main"], [frame["function"] for frame in tasks["Task-1"]["frames"]])
    lines = text.split("\n")
    assert '  Task "second", waits for "the "first""' in lines and '  Task "the "first"", waits for Future' in lines, text
    assert any(line.startswith('  File "') and line.endswith(", in waits") for line in lines), text


# What a program may put in the place of its version is written as JSON, too.
def check_version():
    library.pretend_jit(0)  # makes the page writable
    page = 0x550070790000
    at = page + ctypes.string_at(page, 64).index(sys.version.split()[0].rstrip("+").encode())
    before = ctypes.string_at(at, 20)
    ctypes.memmove(at, b'3"\x1b\xff\xc2\x9b' + bytes(14), 20)
    check("version", '3"\x1b???', dump()["processes"][0]["version"])
    ctypes.memmove(at, before, 20)


def deep(depth, function):
    return deep(depth - 1, function) if depth else function()


# Of 100 threads with 900 frames each.
def check_many():
    def printed(name, *arguments):
        library.run_here()
        getattr(ctypes.PyDLL(sys.argv[1]), name)(*(ctypes.c_longlong(one) for one in arguments))
        return library.take_printed().decode("utf-8").split("\n")

    async def asks():
        return deep(900, lambda: printed("print_python_tasks_1", 1000))

    def count(lines):
        return sum(line.startswith("File ") for line in lines)

    library.have_threads(100)
    lines = deep(900, lambda: dump(depth=1000, locals=0, tasks=0, as_json=0)).split("\n")
    check("frames of a dump", (64000, True), (count(lines), "..." in lines))
    check("heads", 100, sum(line.startswith("Thread ") for line in lines))
    last = deep(900, lambda: dump(depth=1000, locals=0, tasks=0))["processes"][0]["threads"][-1]
    check("the last thread", ([], False), (last["frames"], last["whole"]))
    lines = deep(900, lambda: printed("print_python_threads_1", 1000))
    check("frames of all threads", (64000, True), (count(lines), "..." in lines))
    # up to 3.13 the search for the running task ends before
    assert sys.version_info < (3, 8) or count(asyncio.run(asks())) <= 64000
    library.have_threads(1)


if sys.argv[3:] == ["many"]:
    check_many()
else:
    check_values()
    check_version()
    if sys.version_info >= (3, 8):
        check_tasks()
print("all as expected")

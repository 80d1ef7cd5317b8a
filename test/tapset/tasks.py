# tasks.py LIBRARY ROOM [ps]: reads the tasks of this process with the tapset's C functions in LIBRARY, and compares
# python_task() and print_python_tasks() with what workloads/tasks.py expects; with ps, from 3.14 on, which task awaits
# which with what "python -m asyncio ps" prints of this process.
#
# SPDX-License-Identifier: MIT

import ctypes
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
import tasks

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p
library.take_reads.restype = ctypes.c_ulong
library.print_python_tasks_1.restype = ctypes.c_longlong
room = ctypes.create_string_buffer(int(sys.argv[2]))
compared = most = 0


def compare(expected, got):
    global compared
    compared += 1
    if expected != got:
        print("expected:\n%s\ngot:\n%s" % (expected, got))
        os._exit(1)


# the rows of "python -m asyncio ps": thread, task, name, stack, the stack of who awaits it, its name and address
TABLE = "import asyncio.tools as t, json, sys; print(json.dumps(t.build_task_table(t.get_all_awaited_by(int(sys.argv[1])))))"


def listed_by_ps():
    "Of each task the name and the functions of its stack, the innermost first; and who awaits which."
    table, edges = set(), set()
    for row in json.loads(subprocess.check_output([sys.executable, "-c", TABLE, str(os.getpid())]).decode("utf-8")):
        table.add((row[2], tuple(one.split(".")[-1] for one in row[3].split(" -> "))))
        if row[5]:
            edges.add((row[5], row[2]))
    return table, edges


def listed_by_us():
    library.print_python_tasks_1(ctypes.c_longlong(64))
    table, edges = set(), set()
    for one in library.take_printed().decode("utf-8").split("\n\n"):
        found = re.match('Task "(.*?)", (?:waits for (.*)|.*)', one)
        if found:
            table.add((found.group(1), tuple(re.findall("^File .*, in (.*)", one, re.MULTILINE))))
            edges.update((found.group(1), other) for other in re.findall('"(.*?)"', found.group(2) or ""))
    return table, edges


def compare_with_ps(blocks):
    "But what runs, of which ps has another stack, and stacks that are cut."
    ours, our_edges = listed_by_us()
    theirs, their_edges = listed_by_ps()
    running = set(name for one in blocks for name in re.findall('Task "(.*?)", running', one)) | {"deep"}
    # it ends at generators that are no coroutines
    cut = set((name, functions[-len(other) :]) for name, functions in ours for its, other in theirs if its == name)
    compare(sorted(one for one in theirs if one[0] not in running), sorted(one for one in cut if one[0] not in running))
    # 3.14 does not know who awaits one that runs
    compare(*(sorted(edge for edge in edges if not running & set(edge)) for edges in (their_edges, our_edges)))


def trigger(blocks, running):
    global most
    library.run_here()
    if sys.argv[3:]:
        if blocks and "eager in main" not in running:
            compare_with_ps(blocks)
        return
    library.python_task_0(room)
    compare(running.replace("\n", "\\n"), room.value.decode("utf-8"))
    if not blocks:
        return
    library.take_reads()
    # in print_python_tasks() of the library there is one thread, and no kernel that knows its number
    count = library.print_python_tasks_1(ctypes.c_longlong(64)); reads = library.take_reads()
    plain = library.take_printed().decode("utf-8")
    blocks, printed = (re.sub("running in thread .*", "running", text) for text in ("\n".join(blocks), plain))
    compare(tasks.comparable(blocks.split("\n\n")), tasks.comparable(one for one in printed.split("\n\n") if one))
    compare(blocks.count("Task "), count)
    # in code of the JIT the line of what runs in a thread may be an earlier one
    library.pretend_jit(1)
    library.print_python_tasks_1(ctypes.c_longlong(64))
    marked = library.take_printed().decode("utf-8")
    library.pretend_jit(0)
    expected = re.sub("(running in thread.*\nFile.*)", r"\1 [jit]", plain)
    compare(*(re.sub(", line .*?, in", "", text) for text in (expected, marked)))
    most = max(most, reads // count)


if sys.argv[3:]:
    tasks.ODD = "odd"  # it fails on others
tasks.run(trigger)
print("%d compared%s" % (compared, ", at most %d reads for a task" % most if most else ""))

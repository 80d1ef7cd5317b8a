# tasks.py LIBRARY ROOM: reads the tasks of this process with the tapset's C functions in LIBRARY, and compares
# python_task() and print_python_tasks() with what workloads/tasks.py expects.
#
# SPDX-License-Identifier: MIT

import ctypes
import os
import re
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


def trigger(blocks, running):
    global most
    library.run_here()
    library.python_task_0(room)
    compare(running.replace("\n", "\\n"), room.value.decode("utf-8"))
    if not blocks:
        return
    library.take_reads()
    # in print_python_tasks() of the library there is one thread, and no kernel that knows its number
    count = library.print_python_tasks_1(ctypes.c_longlong(64)); reads = library.take_reads()
    printed = library.take_printed().decode("utf-8")
    blocks, printed = (re.sub("running in thread .*", "running", text) for text in ("\n".join(blocks), printed))
    compare(tasks.comparable(blocks.split("\n\n")), tasks.comparable(one for one in printed.split("\n\n") if one))
    compare(blocks.count("Task "), count)
    most = max(most, reads // count)


tasks.run(trigger)
print("%d compared, at most %d reads for a task" % (compared, most))

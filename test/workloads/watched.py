# watched.py [sub]: calls functions in a second thread until stdin ends, with sub in a subinterpreter, too.  For each
# line of stdin it prints, in a line, how many threads the process has, which hooks hooks.py finds, and which
# functions of the shim CPython has in its interpreters and thread states, by their distance from the start of the
# shim's mapping.
#
# SPDX-License-Identifier: MIT
import ctypes
import os
import struct
import sys
import threading
import time

from hooks import hooks

WORDS = {"interpreter": 4096, "thread": 48}
python = ctypes.pythonapi


def function(name, *arguments):
    found = getattr(python, name)
    found.restype = ctypes.c_void_p
    found.argtypes = [ctypes.c_void_p] * len(arguments)
    return found(*arguments)


def linked(first, following):
    while first:
        yield first
        first = function(following, first)


def states():
    for interpreter in linked(function("PyInterpreterState_Head"), "PyInterpreterState_Next"):
        yield interpreter, WORDS["interpreter"]
        for thread in linked(function("PyInterpreterState_ThreadHead", interpreter), "PyThreadState_Next"):
            yield thread, WORDS["thread"]


def functions_of_shim():
    found = set()
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps if "libpython-stap" in line]
    spans = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    code = [span for span, line in zip(spans, lines) if "x" in line[1]]
    with open("/proc/self/mem", "rb", 0) as memory:
        for address, words in states():
            memory.seek(address)
            data = memory.read(8 * words)
            for word in struct.unpack("%dQ" % (len(data) // 8), data[: len(data) // 8 * 8]):
                if any(start <= word < end for start, end in code):
                    found.add("%x" % (word - spans[0][0]))
    return ",".join(sorted(found)) or "-"


def called():
    return 1


def interpreters():
    try:
        import _interpreters as found
    except ImportError:
        import _xxsubinterpreters as found
    return found


def run():
    sub = interpreters().create() if "sub" in sys.argv else None
    while not ended:
        if sub is not None:
            interpreters().run_string(sub, "def called(): return 1\nfor _ in range(20): called()")
        for _ in range(20):
            called()
        time.sleep(0.005)


ended = False
thread = threading.Thread(target=run)
thread.start()
print("started", flush=True)
while sys.stdin.readline():
    print(len(os.listdir("/proc/self/task")), hooks().strip(), functions_of_shim(), flush=True)
ended = True
thread.join()
print("ended", flush=True)

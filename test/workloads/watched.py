# watched.py [sub]: calls functions in a second thread until stdin ends, with sub in a subinterpreter, too.  For each
# line of stdin it prints, in a line, how many threads the process has, which hooks hooks.py finds, and which
# functions of the shim CPython has in its interpreters, thread states and functions of sys.monitoring, by their
# distance from the start of the shim's mapping.
#
# SPDX-License-Identifier: MIT
import contextlib
import ctypes
import os
import struct
import sys
import threading
import time

from hooks import hooks

WORDS = {"interpreter": 4096, "thread": 48}
python = ctypes.pythonapi
libc = ctypes.PyDLL(None)  # calls keep the GIL
libc.pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]


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
    for name in "use_tool_id", "free_tool_id":
        if hasattr(sys, "monitoring"):
            method = id(getattr(sys.monitoring, name)) + object.__basicsize__  # its PyMethodDef
            yield ctypes.c_void_p.from_address(method).value, 2


@contextlib.contextmanager
def gil_kept():
    "Up to 3.11 the shim's thread has a thread state at times, which is freed while it has the GIL."
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    time.sleep(0.02)  # who waits already asks for the GIL once more after the interval of before
    yield
    sys.setswitchinterval(before)


def functions_of_shim():
    found = set()
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps if "libpython-stap" in line]
    spans = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    code = [span for span, line in zip(spans, lines) if "x" in line[1]]
    data = ctypes.create_string_buffer(8 * WORDS["interpreter"])
    with open("/proc/self/mem", "rb", 0) as memory, gil_kept():
        for address, words in states():
            count = max(libc.pread(memory.fileno(), data, 8 * words, address), 0) // 8
            for word in struct.unpack_from("%dQ" % count, data):
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
    if sub is not None:
        interpreters().destroy(sub)


ended = False
thread = threading.Thread(target=run)
thread.start()
print("started", flush=True)
while sys.stdin.readline():
    print(len(os.listdir("/proc/self/task")), hooks().strip(), functions_of_shim(), flush=True)
ended = True
thread.join()
print("ended", flush=True)

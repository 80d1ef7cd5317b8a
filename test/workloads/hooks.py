# hooks.py SECONDS [fork]: prints the hooks that are installed in CPython, a line at its start and at each
# change, until they were installed and removed, for SECONDS at most.  With fork it forks all the time.
#
# SPDX-License-Identifier: MIT
import contextlib
import ctypes
import gc
import glob
import importlib
import os
import sys
import time


def watchers():
    "The names of the shim's threads in this process."
    names = []
    for path in glob.glob("/proc/self/task/*/comm"):
        with contextlib.suppress(OSError), open(path) as comm:  # a thread may have ended
            names.append(comm.read().strip())
    return [name for name in names if name.startswith("python-stap")]


def evaluator():
    "The frame evaluator, if a public function returns it: 3.9 and later."
    python = ctypes.pythonapi
    if not hasattr(python, "_PyInterpreterState_GetEvalFrameFunc"):
        return ""
    python.PyInterpreterState_Get.restype = ctypes.c_void_p
    get = python._PyInterpreterState_GetEvalFrameFunc
    get.restype = ctypes.c_void_p
    default = ctypes.cast(python._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    return "" if get(ctypes.c_void_p(python.PyInterpreterState_Get())) == default else " evaluator"


def events():
    "What sys.monitoring calls other than Python functions for: 3.12 and later."
    found = ""
    for tool in range(6) if hasattr(sys, "monitoring") else ():
        if sys.monitoring.get_tool(tool):
            active = sys.monitoring.get_events(tool)
            names = vars(sys.monitoring.events).items()
            found += " " + "+".join(sorted(name for name, bit in names if bit & active))
    return found


def hooks():
    found = evaluator() + events()
    if gc.callbacks:
        found += " gc"
    if not hasattr(importlib._bootstrap._find_and_load, "__code__"):
        found += " import"
    return found + "."


if __name__ == "__main__":
    seen, before = [], "."
    end = time.time() + float(sys.argv[1])
    while time.time() < end and not (len(seen) > 2 and seen[-1] == seen[0]):
        now = hooks()
        # twice: an interpreter that is asked for hooks has a frame evaluator for a moment
        if now == before and now not in seen[-1:]:
            print(now.strip(), flush=True)
            seen.append(now)
        before = now
        time.sleep(0.01)
        if len(sys.argv) > 2:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

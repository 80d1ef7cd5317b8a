# tasks_elsewhere.py LIBRARY ROOM SHIM [STAP-PYTHON]: in a CPython 3.14 or later whose lists of asyncio's tasks are not where
# the shim looks for them, print_python_tasks() of the tapset's C functions in LIBRARY prints <unknown>, and
# stap-python list says so.  The lists are made unlike lists for as long as the shim is loaded and compares them.
#
# SPDX-License-Identifier: MIT

import _imp
import ctypes
import importlib.machinery
import os
import subprocess
import sys
import time

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
state = ctypes.pythonapi.PyThreadState_Get()
SAYS = "no tasks: the lists of asyncio's tasks are not where CPython's release has them"


def word(at):
    return ctypes.c_ulong.from_address(at)


def is_empty_list(at):
    return word(at).value == word(at + 8).value == at


# Whether the shim has compared, and published what does: lines of its page (probes/shared/offsets_page.h) is not 0.
def has_offsets():
    try:
        return os.pread(memory, 26, 0x550070790000)[24:] not in (b"", b"\0\0")
    except OSError:
        return False


memory = os.open("/proc/self/mem", os.O_RDONLY)
# asyncio_tasks_head, which has no tasks, and with a GIL mem_free_queue (Include/internal/pycore_tstate.h)
heads = [at for at in range(state + 800, state + 1100, 8) if is_empty_list(at)][:2]
for at in heads:
    word(at).value = word(at + 8).value = 0
_imp.create_dynamic(importlib.machinery.ModuleSpec("python_stap", None, origin=sys.argv[3]))
while not has_offsets():
    time.sleep(0.01)
for at in heads:
    word(at).value = word(at + 8).value = at
library.run_here()
count = library.print_python_tasks_1(ctypes.c_longlong(64))
printed = library.take_printed().decode("utf-8")
if (count, printed) != (0, "<unknown>\n"):
    sys.exit("%d: %s" % (count, printed))
if sys.argv[4:]:
    listed = subprocess.check_output([sys.argv[4], "list", str(os.getpid())]).decode("utf-8")
    if SAYS not in (line.strip() for line in listed.split("\n")):
        sys.exit(listed)
print("unknown, and said")

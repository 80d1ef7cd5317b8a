# falsified.py SHIM FALSIFIED: overwrites each word of CPython's debug offsets, by falsified.c, before the shim reads them,
# and compares the page with that of a run without.  What the page has must be the same, or unknown, and then the page and
# PYTHON_STAP_DEBUG say so.
#
# SPDX-License-Identifier: MIT

import os
import struct
import subprocess
import sys

READ = """
with open("/proc/self/mem", "rb", 0) as memory:
    for address in (0x550070790000, 0x2070790000):
        try:
            memory.seek(address)
            page = memory.read(4096)
        except OSError:
            continue
        if page[:3] == b"stp":
            print(page.hex())
            break
"""
FREE_THREADED = "t" in sys.abiflags
STACKS = """cookie version free_threaded thread_state.interp interpreter_frame.previous interpreter_frame.executable
interpreter_frame.instr_ptr interpreter_frame.localsplus code_object.filename code_object.name code_object.qualname code_object.linetable
code_object.firstlineno code_object.argcount code_object.localsplusnames code_object.localspluskinds
code_object.co_code_adaptive pyobject.ob_type tuple_object.ob_item dict_object.ma_keys dict_object.ma_values""".split()
if sys.version_info < (3, 14):
    STACKS.append("interpreter_frame.owner")
if FREE_THREADED:
    STACKS += ["interpreter_frame.tlbc_index", "code_object.co_tlbc"]
GIL = ["interpreter_state." + name for name in
       ("ceval_gil", "gil_runtime_state", "gil_runtime_state_locked", "gil_runtime_state_holder")]
# what is unknown, and how the line begins that says so
WITHOUT = {"stacks": "no stack traces: ", "threads": "no stack traces without a marker: ",
           "modules": "no tasks, and nothing of the GIL: ", "gil": "nothing of the GIL: it is not found", "": ""}
WORDS = {13: 59, 14: 69, 15: 81}  # up to those that the shim reads
VALUES = "+8", "0", "1", "0x7ffffffffffffff8"


def run(falsified):
    environment = dict(os.environ, LD_PRELOAD=" ".join(sys.argv[1:]), PYTHON_STAP_DEBUG="1")
    if falsified:
        environment["FALSIFIED"] = falsified
    done = subprocess.run([sys.executable, "-S", "-c", READ], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode or not done.stdout:
        sys.exit("%s: status %d, %s" % (falsified, done.returncode, done.stderr))
    page = bytes.fromhex(done.stdout)
    return page, page[1024:].rstrip(b"\0").decode("latin-1"), done.stderr


def number(page, format, at):
    return struct.unpack_from(format, page, at)[0]


def unknown(page):
    """What is unknown by the page.  All else is as it should be."""
    def same(start, end):
        if page[start:end] != true[start:end]:
            sys.exit("%s: the page has %s" % (falsified, page[:140].hex()))

    same(0, 24)
    if not number(page, "H", 24):
        return "threads" if number(page, "i", 52) else "stacks"
    same(24, 52)
    same(60, 104)
    if not number(page, "i", 52):
        return "threads"
    same(52, 60)
    if not number(page, "H", 104):
        return "modules"
    same(104, 112)
    if not number(page, "I", 116):
        return "gil"
    same(112, 140)
    return ""


def check(name, value, expected=None):
    """Whether the value made a difference.  Without expected: that nothing is wrong, and what is unknown is said."""
    global falsified
    falsified = "%s %s" % (name, value)
    page, text, printed = run(falsified)
    if "unchanged" in printed.split():
        return False
    found = unknown(page)
    start = WITHOUT[found]
    if expected not in (None, found) or not text.startswith(start) or bool(text) != bool(start) or text not in printed:
        sys.exit("%s: unknown: %r, not %r; %r; %s" % (falsified, found, expected, text, printed))
    return True


true, text, printed = run(None)
falsified = "as it is"
if text or unknown(true):
    sys.exit("%r is unknown, %r" % (unknown(true), text))
for names, expected in ((STACKS, "stacks"), (["thread_state.current_frame"], "threads"),
                        (["interpreter_state.imports_modules"], "modules"), (GIL, "gil")):
    for name in names:
        if sum([check(name, value, expected) for value in VALUES]) < 3:
            sys.exit("%s was not changed" % name)
for word in range(WORDS[sys.version_info[1]]):
    check("#%d" % word, "+8")
print("as expected")

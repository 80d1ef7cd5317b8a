# objects.py LIBRARY ROOM audited|stacks|running: reads this process with the tapset's C functions in LIBRARY, and
# compares python_argstr() with what workloads/audited.py expects, or python_backtrace() with the stack that
# Python walks, in each frame of workloads/stacks.py.  ROOM is the size of SystemTap's strings.
#
# SPDX-License-Identifier: MIT

import contextlib
import ctypes
import io
import os
import re
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.__python_stack_take_3.restype = ctypes.c_longlong
library.take_printed.restype = ctypes.c_char_p
room = ctypes.create_string_buffer(int(sys.argv[2]))
workload = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", sys.argv[3].replace("running", "stacks") + ".py")
with open(workload, "rb") as file:
    source = file.read().decode("utf-8")
compared = 0


def string(function, *arguments):
    function(room, *(ctypes.c_longlong(argument) for argument in arguments))
    return room.value.decode("utf-8")


def compare(expected, got):
    global compared
    compared += 1
    if expected != got:
        sys.exit("expected %r\n     got %r" % (expected, got))


def cut(text, last, unit):
    "The part of a text that fits before the last word, and whether it was cut."
    whole = []
    left = len(room) - 1 - len(last)
    for piece in re.findall(unit, text, re.DOTALL):
        left -= len(piece.encode("utf-8"))
        whole.append(piece)
        if left < 0:
            return "".join(whole[:-1]), True
    return text, False


def audited():
    events = []
    sys.audit = lambda event, *arguments: events.append("stap" + string(library.python_argstr_1, id(arguments)))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, workload, "exec"), {})
    lines = said.getvalue().splitlines()
    compare(len(lines), len(events))
    for line, event in zip(lines, events):
        compare(line, event)
    # with exact room for the last byte, and with too little
    for length in range(len(room) - 10, len(room) + 3):
        arguments = ("x" * 200,) * 4 + (1, "x" * (length - 823))
        text = repr(arguments)
        compare(length, len(text))
        most = len(room) - 1 - len("...")
        compare(text if len(text) <= most else text[:most] + "...", string(library.python_argstr_1, id(arguments)))
    compare("", string(library.python_argstr_1, 0))
    compare("<unknown>", string(library.python_argstr_1, 0xDEAD))


def stack_of(frame):
    lines = []
    while frame:
        name = frame.f_code.co_filename.replace("\x1b", "\\x1b").replace("\n", "\\n")
        lines.append('File "%s", line %d, in %s\n' % (name, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return lines


def here(last=None):
    frame = sys._getframe(1)
    lines = stack_of(frame)
    library.print_python_backtrace_2(ctypes.c_longlong(id(frame)), ctypes.c_longlong(1000))
    compare("".join(lines), library.take_printed().decode("utf-8"))
    compare("".join(lines[:1]) + ("...\n" if len(lines) > 1 else ""), string(library.python_backtrace_2, id(frame), 1))
    text, full = cut("".join(lines), "<unknown>\n", "[^\n]*\n")
    compare(text + ("...\n" if full else ""), string(library.python_backtrace_2, id(frame), 1000))
    return last


def run_stacks(here):
    # all but its own here()
    text = re.sub(r"def here\(.*?\n\n\n", lambda found: "\n" * found.group().count("\n"), source, flags=re.DOTALL)
    exec(compile(text, workload, "exec"), {"here": here})


def running_here(last=None):
    "The stack of this thread, as a probe finds it that interrupts it."
    library.run_here()
    frame = sys._getframe()
    # one line, as it is in the stack
    lines = stack_of(frame); library.print_python_backtrace_2(0, 1000)
    compare("".join(lines), library.take_printed().decode("utf-8"))
    compare("string", string(library.python_funcname_0))
    return last


def sample(number):
    library.run_here()
    stack = library.__python_stack_take_3(b"program", 0, 0)
    compare("f_%d (<string>)" % number, string(library.__python_stack_name_2, stack, 1))


def names():
    "Code objects that are freed, each with another one at its address."
    for number in range(500):
        scope = {}
        exec("def f_%d(sample):\n    sample(%d)" % (number, number), scope)
        scope["f_%d" % number](sample)


def known():
    "Names of a stack that was seen before are not read again, also where the file's name has no hash yet."
    def sample_again():
        library.run_here()
        for _ in range(2):
            library.take_bytes()
            library.__python_stack_take_3(b"program", 0, 0)
        # six words a frame; a name with its type takes some 300 bytes
        compare(True, library.take_bytes() < 40 * 100 + 3000)

    lines = ["def f_0(call):\n    call()"] + ["def f_%d(call):\n    f_%d(call)" % (i, i - 1) for i in range(1, 40)]
    scope = {}
    exec(compile("\n".join(lines), os.path.join("/srv", "known.py"), "exec"), scope)
    scope["f_39"](sample_again)


def running():
    run_stacks(running_here)
    names()
    known()
    failed = []

    def thread():
        try:
            run_stacks(running_here)
        except BaseException as error:
            failed.append(error)

    other = threading.Thread(target=thread)
    other.start()
    other.join()
    compare([], failed)


def stacks():
    run_stacks(here)
    for none in 0xDEAD, id(sys._getframe()) + 1, id(len):
        compare("<unknown>\n", string(library.python_backtrace_2, none, 64))
    compare("...\n", string(library.python_backtrace_2, id(sys._getframe()), 0))
    compare(sys.version.split()[0], string(library.python_version_0))


globals()[sys.argv[3]]()
print(compared, "compared")

# interrupted.py LIBRARY: compares what the tapset's C functions in LIBRARY name an interrupted place with what the
# dynamic linker says of it, at many addresses of this process's libraries.
#
# SPDX-License-Identifier: MIT

import ctypes
import os
import random
import re
import subprocess
import sys
import sysconfig

import _ctypes

try:
    import hashlib
    import ssl
except ImportError:
    pass

library = ctypes.CDLL(sys.argv[1])
for function in library.__python_stack_open_3, library.interrupt_at, library.interrupt_kernel:
    function.restype = ctypes.c_longlong
room = ctypes.create_string_buffer(512)
own = ctypes.CDLL(None)
named = unnamed = 0


class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def joined(interrupt, *place):
    "The names at the inner end of a new stack, the outermost first."
    joined.count += 1
    outer = "%d" % joined.count
    stack = ctypes.c_longlong(library.__python_stack_open_3(ctypes.c_longlong(0), b"program", outer.encode()))
    inner = ctypes.c_longlong(interrupt(stack, *(ctypes.c_ulong(value) for value in place)))
    names = []
    for _ in range(100):
        library.__python_stack_name_2(room, inner, ctypes.c_longlong(len(names)))
        if room.value.decode() == outer:
            return names[::-1]
        names.append(room.value.decode())
    sys.exit("its stack is not the outer one")


joined.count = 0


def code():
    "The parts of the process that are executable, of files: the first and the last address, and the file."
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split()
            if "x" in fields[1] and len(fields) > 5 and fields[5][0] == "/":
                yield [int(address, 16) for address in fields[0].split("-")] + [fields[5]]


def compare(address, file):
    global named, unnamed
    of_c = re.search(r"/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)[.-][^/]*$", file)
    info = Info()
    got = joined(library.interrupt_at, address)
    if not own.dladdr(ctypes.c_void_p(address), ctypes.byref(info)):
        info.name = None
    if not got and loop_in_pieces and not info.name and file == loop_in_pieces:
        return
    if info.name == b"_PyEval_EvalFrameDefault":
        if got:
            sys.exit("%x: %s in the evaluator" % (address, got))
        return
    match = re.match(r"\[(.*?)\](?: (.*))?$", got[0]) if len(got) == 1 else None
    if not match or match.group(1) != os.path.basename(file):
        sys.exit("%x in %s: %s" % (address, file, got))
    if not match.group(2):
        # the C library has indirect functions, which choose others
        if info.name and not of_c:
            sys.exit("%x: [%s] without %s" % (address, file, info.name))
        unnamed += 1
        return
    named += 1
    # the same function by another name, perhaps; the C library has names for old programs alone, too
    if match.group(2) != (info.name or b"").decode() and not (of_c and info.name):
        function = getattr(ctypes.CDLL(file if file != os.path.realpath(sys.executable) else None), match.group(2))
        if ctypes.cast(function, ctypes.c_void_p).value != info.address:
            sys.exit("%x: %s, not %s" % (address, got, info.name))


def tail_calls():
    "The functions in C of instructions, in a CPython that has such, from its file: name and address."
    if "--with-tail-call-interp" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return []
    symbols = [line.split() for line in subprocess.check_output(["nm", sys.executable]).decode().splitlines()]
    at = {fields[-1]: int(fields[0], 16) for fields in symbols if len(fields) == 3}
    moved = ctypes.cast(ctypes.pythonapi.PyList_Append, ctypes.c_void_p).value - at["PyList_Append"]
    return [(name, at[name] + moved) for name in at if name.startswith("_TAIL_CALL_")]


def file_of_loop_in_pieces():
    "The file of the interpreter's loop, if _PyEval_EvalFrameDefault() is too small to be it; else None."
    info, symbol = Info(), ctypes.c_void_p()
    evaluator = ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p)
    RTLD_DL_SYMENT = 1
    if not own.dladdr1(evaluator, ctypes.byref(info), ctypes.byref(symbol), RTLD_DL_SYMENT):
        return None
    size = ctypes.c_uint64.from_address(symbol.value + 16).value  # st_size
    return os.path.realpath(info.file.decode()) if size < 8192 else None


loop_in_pieces = file_of_loop_in_pieces()
instructions = tail_calls()
for name, address in instructions:
    got = joined(library.interrupt_at, address)
    if got:
        sys.exit("%s: %s in the evaluator" % (name, got))
if instructions and len(instructions) < 200:
    sys.exit("%d functions of instructions" % len(instructions))

chosen = random.Random(1)
for first, last, file in list(code()):
    if "stap" in file or file == sys.argv[1]:
        continue
    for _ in range(12):
        address = chosen.randrange(first, last)
        # what is known of one is used for the next
        for at in range(address, address + 300, 6):
            if at < last:
                compare(at, file)
for name in "PyList_Append", "PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault", "PyErr_Occurred":
    if hasattr(ctypes.pythonapi, name):
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        info = Info()
        own.dladdr(ctypes.c_void_p(address), ctypes.byref(info))
        compare(address, os.path.realpath([file for first, last, file in code() if first <= address < last][0]))
if named < 10 or not unnamed:
    sys.exit("%d with a name, %d without" % (named, unnamed))

# the kernel's, up to 64 of them, without those of the interrupt itself
for own_functions, count, expected in (3, 1, 1), (0, 5, 5), (20, 64, 64), (20, 70, 65):
    names = joined(library.interrupt_kernel, own_functions, count)
    # in a call a function is behind where it returns to; where it was interrupted, it is just there
    wanted = ["f_%x_[k]" % (1000 + 10 * at - (at > 0)) for at in range(min(count, 64))][::-1]
    if names != (["..."] if count > 64 else []) + wanted or len(names) != expected:
        sys.exit("%r" % names)
print("%d with a name, %d without: %d compared" % (named, unnamed, named + unnamed))

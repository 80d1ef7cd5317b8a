# Reads the page that the shim publishes (probes/shared/offsets_page.h) as the tapset does, and compares what it finds
# by it with what Python says, in the main thread and in another one, and says where it is if that is the second address.  With an argument it
# first makes the file ARGUMENT.ready, and waits until the file ARGUMENT is there, and the page, at most 10 seconds.
#
# SPDX-License-Identifier: MIT

import ctypes
import gc
import mmap
import os
import platform
import struct
import sys
import sysconfig
import threading
import time

ADDRESSES = (0x550070790000, 0x2070790000)
MAGIC = 0x39707473
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def memory(address, size):
    with open("/proc/self/mem", "rb", 0) as mem:
        mem.seek(address)
        return mem.read(size)


def word(address):
    return struct.unpack("Q", memory(address, 8))[0]


def page_address():
    for address in ADDRESSES:
        try:
            if struct.unpack("I", memory(address, 4))[0] == MAGIC:
                return address
        except OSError:
            pass
    raise SystemExit("there is no page")


def compare(*pairs):
    for name, one, other in pairs:
        if one != other:
            sys.exit("%s: %r, not %r" % (name, one, other))


def check():
    magic, version = struct.unpack("I20s", memory(page_address(), 24))
    (lines, head_shift, frame_back, frame_code, frame_instruction, frame_owner, frame_copy,
     code_filename, code_name, code_first_line, code_lines, code_instructions, code_size, code_copies,
     thread_slot, thread_cframe, thread_frame, frame_globals, dict_keys, dict_values, keys_count,
     keys_indices, keys_size, keys_form) = struct.unpack("@14Hi9H", memory(page_address() + 24, 50))
    compare(("magic", magic, MAGIC), ("version", version.rstrip(b"\0").decode(), sys.version.split()[0]),
            ("head", head_shift, object.__basicsize__ - 16), ("copies", code_copies != 0, FREE_THREADED))
    frame = sys._getframe()
    code, back = frame.f_code, frame.f_back

    minor = sys.version_info[1]

    def inner(frame):
        return id(frame) if minor < 11 else word(id(frame) + object.__basicsize__ + 8)

    compare(("lines", lines, 1 if minor < 10 else 2 if minor == 10 else 3),
            ("back", word(inner(frame) + frame_back), inner(back)),
            ("code", word(inner(frame) + frame_code) & ~7, id(code)),
            ("filename", word(id(code) + code_filename), id(code.co_filename)),
            ("name", word(id(code) + code_name), id(code.co_name)),
            ("size", code_size, type(code).__basicsize__),
            ("first line", struct.unpack("i", memory(id(code) + code_first_line, 4))[0], code.co_firstlineno))
    code_qualname, = struct.unpack("H", memory(page_address() + 150, 2))
    compare(("qualified", code_qualname and word(id(code) + code_qualname), id(code.co_qualname) if minor >= 11 else 0))
    table = code.co_linetable if minor >= 10 else code.co_lnotab
    compare(("lines", word(id(code) + code_lines), id(table)))
    # the caller stands at its call
    if minor >= 11:
        first = id(back.f_code) + code_instructions
        if code_copies:
            copy = struct.unpack("i", memory(inner(back) + frame_copy, 4))[0]
            first = word(word(id(back.f_code) + code_copies) + 8 + 8 * copy)
            copies.append(first != id(back.f_code) + code_instructions)
        stands_at = word(inner(back) + frame_instruction) - first
    else:
        stands_at = struct.unpack("i", memory(inner(back) + frame_instruction, 4))[0] * (2 if minor == 10 else 1)
    compare(("instruction", stands_at, back.f_lasti))
    compare(("globals", word(inner(frame) + frame_globals), id(globals())))
    keys = word(id(globals()) + dict_keys)
    compare(("values", word(id(globals()) + dict_values), 0), ("entries", word(keys + keys_count), len(globals())),
            ("form", keys_form, 1 if minor < 11 else 2))
    if minor < 11:
        count = word(keys + keys_size)
        entry = keys + keys_indices + count * (1 if count < 256 else 2) + 8
    else:
        entry = keys + keys_indices + 2 ** memory(keys + keys_size + 1, 1)[0]
    compare(("first global", struct.unpack("2Q", memory(entry, 16)), (id(list(globals())[0]), id(__name__))))
    if frame_owner:
        compare(("owner", memory(inner(back) + frame_owner, 1)[0] < 3, True))
    state = word(thread_pointer() + thread_slot)
    check_interpreter(state)
    compare(("state", state, ctypes.pythonapi.PyThreadState_Get()))
    # this frame, or those that it calls here
    innermost = word((word(state + thread_cframe) if thread_cframe else state) + thread_frame)
    for calls in range(3):
        if innermost != inner(frame):
            innermost = word(innermost + frame_back)
    compare(("innermost", innermost, inner(frame)))


# The dict of modules, and the GIL: this thread has had it last, and gave it up to read memory.  Where it's off, no
# thread has it.
def check_interpreter(state):
    (thread_interpreter, interpreter_modules, interpreter_gil, gil_optional, gil_size, gil_distance, gil_holder, gil_locked,
     gil_switches) = struct.unpack("@HI2HIqiii", memory(page_address() + 104, 36))
    interpreter = word(state + thread_interpreter)
    modules = word(interpreter + interpreter_modules)
    compare(("modules", modules, id(sys.modules)))
    gil = word(interpreter + interpreter_gil) if interpreter_gil else id(type(sys.modules)) + gil_distance
    if sys.version_info < (3, 7):
        current = ctypes.addressof(ctypes.c_void_p.in_dll(ctypes.pythonapi, "_PyThreadState_Current"))
        compare(("holder", gil + gil_holder, current), ("within", gil <= current < gil + gil_size, True), ("locked", gil_locked, 0))
        return
    interval = int(sys.getswitchinterval() * 1000000)
    compare(("interval", word(gil + gil_holder - 8), interval), ("locked", struct.unpack("i", memory(gil + gil_locked, 4))[0], 0),
            ("size", 100 < gil_size < 300, True), ("optional", gil_optional != 0, FREE_THREADED))
    if gil_optional:
        compare(("enabled", struct.unpack("i", memory(gil, 4))[0] != 0, sys._is_gil_enabled()))
    if not gil_optional or sys._is_gil_enabled():
        compare(("holder", word(gil + gil_holder), state), ("switches", 0 < word(gil + gil_switches) < 100000, True))
    check_collector(interpreter, gil)


def check_collector(interpreter, gil):
    interpreter_collecting, collecting_frame, gil_to_collecting = struct.unpack("2Ii", memory(page_address() + 152, 12))
    compare(("collector", (interpreter_collecting != 0, gil_to_collecting != 0, collecting_frame != 0),
             (False, False, False) if FREE_THREADED else (sys.version_info >= (3, 9), sys.version_info < (3, 9), sys.version_info >= (3, 15))))
    if FREE_THREADED:
        return
    at = interpreter + interpreter_collecting if interpreter_collecting else gil + gil_to_collecting
    seen = []

    def collects(phase, info):
        seen.append(struct.unpack("i", memory(at, 4))[0])

    gc.callbacks.append(collects)
    gc.collect(0)
    gc.callbacks.remove(collects)
    compare(("collecting", seen + [struct.unpack("i", memory(at, 4))[0]], [1, 1, 0]))


def thread_pointer():
    if platform.machine() == "x86_64":
        return libc.pthread_self()
    if platform.machine() == "aarch64":
        return read_thread_pointer()
    raise SystemExit("no thread pointer")


def code_of(*instructions):
    """A function without arguments, of aarch64's instructions."""
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p] + [ctypes.c_size_t] * 5
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    code = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1 & 0xffffffff, 0)
    ctypes.memmove(code, struct.pack("<%dI" % len(instructions), *instructions), 4 * len(instructions))
    libc.mprotect(code, 4096, mmap.PROT_READ | mmap.PROT_EXEC)
    return ctypes.CFUNCTYPE(ctypes.c_void_p)(code)


libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_void_p
if platform.machine() == "aarch64":
    read_thread_pointer = code_of(0xd53bd040, 0xd65f03c0)  # mrs x0, tpidr_el0; ret
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p


def caller():
    check()
    done.append(1)


def is_complete():
    try:
        return struct.unpack("i", memory(page_address() + 52, 4))[0] != 0
    except SystemExit:
        return False


# another key, made before CPython's, that has the thread's state, too
if hasattr(libc, "other_key"):
    libc.pthread_setspecific(ctypes.c_uint.in_dll(libc, "other_key"), ctypes.c_void_p(ctypes.pythonapi.PyThreadState_Get()))
waited = 0
if sys.argv[1:]:
    open(sys.argv[1] + ".ready", "w").close()
while sys.argv[1:] and not (os.path.exists(sys.argv[1]) and (is_complete() or waited > 10)):
    time.sleep(0.01)
    waited += 0.01
done = []
copies = []
caller()
other = threading.Thread(target=caller)
other.start()
other.join()
compare(("threads", len(done), 2))
if copies:
    compare(("copies", copies, [False, os.environ.get("PYTHON_TLBC") != "0"]))
with open("/proc/self/maps") as maps:
    [page] = [line.split() for line in maps if line.startswith("%x-" % page_address())]
compare(("protection", page[1], "r--p"))
if page_address() != ADDRESSES[0]:
    print("the page is at %#x" % page_address())

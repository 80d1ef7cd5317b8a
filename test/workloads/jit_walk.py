# jit_walk.py PID LIST: stops the process PID, which runs jit_stacks.py and has printed LIST, at many machine instructions,
# walks its stack by the shim's page as the tapset does, and compares the stack with where the program is.  Prints how often
# it looked; how often the thread was in the JIT's code; how often a function was another one; how often the innermost line
# was another one in the JIT's code, and how often elsewhere.  x86-64, 3.15 with the GIL.
#
# SPDX-License-Identifier: MIT

import ctypes
import os
import struct
import sys
import time

ROUNDS, STEPS = 10, 500
PTRACE_CONT, PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 9, 12, 0x4206, 0x4207
FS_BASE, REGISTERS = 21, 27  # of struct user_regs_struct
PAGE, EXECUTOR = 0x550070790000, 148  # offsetof(struct offsets_page, tstate_current_executor)
FIRST_VARIABLE, TAGS = 80, 7
pid, here = int(sys.argv[1]), int(sys.argv[2])
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
memory = os.open("/proc/%d/mem" % pid, os.O_RDONLY)


def read(form, address):
    return struct.unpack(form, os.pread(memory, struct.calcsize(form), address))


def word(address):
    return read("Q", address)[0]


(frame_back, frame_code, frame_instruction, _, _, _, code_name, code_first_line, code_lines, code_instructions, _, _, thread_slot,
 _, thread_frame) = read("@12Hi2H", PAGE + 28)
thread_executor = read("H", PAGE + EXECUTOR)[0]


def lines_of(code):
    "The line of each instruction, from co_linetable (Objects/locations.md of CPython)."
    table = word(code + code_lines)
    entries = iter(os.pread(memory, word(table + 16), table + 32))
    line, lines = read("i", code + code_first_line)[0], []

    def varint():
        value = shift = 0
        for byte in entries:
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                return value

    for byte in entries:
        kind = byte >> 3 & 15
        if kind in (13, 14):
            change = varint()
            line += -(change >> 1) if change & 1 else change >> 1
            for _ in range(3 * (kind == 14)):
                varint()
        elif kind < 13:
            line += max(kind - 10, 0)
            for _ in range(2 if kind >= 10 else 1):
                next(entries)
        lines += [line if kind < 15 else None] * ((byte & 7) + 1)
    return lines


def name_of(code):
    string = word(code + code_name)
    return os.pread(memory, word(string + 16), string + 40).decode()


def variable(frame, index):
    address = word(frame + FIRST_VARIABLE + 8 * index) & ~TAGS
    return read("I", address + 24)[0] if address else None


def look():
    registers = (ctypes.c_ulong * REGISTERS)()
    libc.ptrace(PTRACE_GETREGS, pid, 0, ctypes.addressof(registers))
    state = word(registers[FS_BASE] + thread_slot)
    compiled = word(state + thread_executor) != 0
    innermost = frame = word(state + thread_frame)
    functions = []
    while frame:
        code = word(frame + frame_code) & ~TAGS
        if word(code + 8) == code_type:
            functions.append(code)
        frame = word(frame + frame_back)
    for code in functions:
        if code not in known:
            known[code] = name_of(code), lines_of(code)
    stack = [known[code][0] for code in functions]
    wrong_stack = stack not in (["inner", "outer", "<module>"], ["outer", "<module>"])
    within = word(word(word(here + 24)) + 24) & 0xFFFFFFFF  # here[0]
    wrong_stack |= within == 1 and stack[0] != "inner"
    wrong_line = False
    if stack[0] == "inner":
        lines = known[functions[0]][1]
        line = lines[(word(innermost + frame_instruction) - functions[0] - code_instructions) // 2]
        start = lines[0]
        # first and second are variables 2 and 4
        begins, ends = (5, 9) if variable(innermost, 4) is not None else (2, 5) if variable(innermost, 2) is not None else (0, 2)
        wrong_line = not start + begins <= (line or start) <= start + ends
    return compiled, wrong_stack, wrong_line and compiled, wrong_line and not compiled


def stop(request):
    libc.ptrace(request, pid, 0, 0)
    os.waitpid(pid, 0)


libc.ptrace(PTRACE_SEIZE, pid, 0, 0)
stop(PTRACE_INTERRUPT)
registers = (ctypes.c_ulong * REGISTERS)()
libc.ptrace(PTRACE_GETREGS, pid, 0, ctypes.addressof(registers))
code_type = word((word(word(word(registers[FS_BASE] + thread_slot) + thread_frame) + frame_code) & ~TAGS) + 8)
known, counts = {}, [0] * 4
for _ in range(ROUNDS):
    for _ in range(STEPS):
        counts = [count + found for count, found in zip(counts, look())]
        stop(PTRACE_SINGLESTEP)
    libc.ptrace(PTRACE_CONT, pid, 0, 0)
    time.sleep(0.01)
    stop(PTRACE_INTERRUPT)
print(ROUNDS * STEPS, *counts)

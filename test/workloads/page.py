# Reads the page that the shim publishes (probes/layout_page.h) as the tapset does, and compares what it finds
# by it with what Python says.  The argument is 1 if function markers are probed.
#
# SPDX-License-Identifier: MIT

import struct
import sys

ADDRESS = 0x550070790000


def memory(address, size):
    with open("/proc/self/mem", "rb", 0) as mem:
        mem.seek(address)
        return mem.read(size)


def word(address):
    return struct.unpack("Q", memory(address, 8))[0]


def compare(*pairs):
    for name, one, other in pairs:
        if one != other:
            sys.exit("%s: %r, not %r" % (name, one, other))


def check():
    magic, version = struct.unpack("I20s", memory(ADDRESS, 24))
    (lines, object_frame, frame_back, frame_code, frame_instruction, frame_owner, code_filename,
     code_name, code_first_line, code_lines, code_instructions) = struct.unpack("11H", memory(ADDRESS + 24, 22))
    compare(("magic", magic, 0x31707473), ("version", version.rstrip(b"\0").decode(), sys.version.split()[0]))
    if sys.argv[1] == "0":
        compare(("lines", lines, 0))
        return
    frame = sys._getframe()
    code, back = frame.f_code, frame.f_back

    def inner(frame):
        return word(id(frame) + object_frame) if object_frame else id(frame)

    minor = sys.version_info[1]
    compare(("lines", lines, 1 if minor < 10 else 2 if minor == 10 else 3),
            ("back", word(inner(frame) + frame_back), inner(back)),
            ("code", word(inner(frame) + frame_code) & ~7, id(code)),
            ("filename", word(id(code) + code_filename), id(code.co_filename)),
            ("name", word(id(code) + code_name), id(code.co_name)),
            ("first line", struct.unpack("i", memory(id(code) + code_first_line, 4))[0], code.co_firstlineno))
    table = code.co_linetable if minor >= 10 else code.co_lnotab
    compare(("lines", word(id(code) + code_lines), id(table)))
    # the caller stands at its call
    if minor >= 11:
        stands_at = word(inner(back) + frame_instruction) - id(back.f_code) - code_instructions
    else:
        stands_at = struct.unpack("i", memory(inner(back) + frame_instruction, 4))[0] * (2 if minor == 10 else 1)
    compare(("instruction", stands_at, back.f_lasti))
    if frame_owner:
        compare(("owner", memory(inner(back) + frame_owner, 1)[0] < 3, True))


def caller():
    check()


def called(number):
    return number


# many frames of which the caller is the module, or in C
for number in range(1500):
    called(number)
list(map(called, range(1500)))
caller()
with open("/proc/self/maps") as maps:
    [page] = [line.split() for line in maps if line.startswith("%x-" % ADDRESS)]
compare(("protection", page[1], "r--p"))

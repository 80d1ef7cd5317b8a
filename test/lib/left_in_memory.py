# Prints what tracers have left in the memory of processes, a line each: bytes of code that are not those of its file,
# as a breakpoint's; and semaphores of markers that are not 0.  On stdin are the semaphores, a line each: a file, and
# what semaphore_notes of test/lib/helpers/semaphores.bash prints of it.
#
# usage: left_in_memory.py PID... <SEMAPHORES
#
# SPDX-License-Identifier: MIT

import os
import re
import sys

DYNAMIC = 3  # ET_DYN: its addresses begin with 0


def mappings(pid):
    """The files that a process has mapped: path, permissions, start, end, offset in the file."""
    with open("/proc/%s/maps" % pid) as maps:
        for line in maps:
            match = re.match(r"(\w+)-(\w+) (....) (\w+) \S+ [1-9]\d* +(/.*)\n", line)
            if match and os.path.exists(match[5]):
                yield match[5], match[3], int(match[1], 16), int(match[2], 16), int(match[4], 16)


def changed_code(pid, memory):
    for path, permissions, start, end, offset in mappings(pid):
        if "x" not in permissions:
            continue
        with open(path, "rb") as file:
            file.seek(offset)
            code = file.read(end - start)
        memory.seek(start)
        found = memory.read(len(code))
        if found == code:
            continue
        for at, (byte, original) in enumerate(zip(found, code)):
            if byte != original:
                print("%s: code of %s at %#x: %#04x, was %#04x" % (pid, path, offset + at, byte, original))


def raised_semaphores(pid, memory, semaphores):
    bases = {path: start for path, _, start, _, offset in mappings(pid) if offset == 0}
    for path, name, address in semaphores:
        if path not in bases:
            continue
        with open(path, "rb") as file:
            is_dynamic = int.from_bytes(file.read(18)[16:], sys.byteorder) == DYNAMIC
        memory.seek(address + bases[path] * is_dynamic)
        number = int.from_bytes(memory.read(2), sys.byteorder)
        if number:
            print("%s: semaphore of %s in %s: %d" % (pid, name, path, number))


def main():
    semaphores = set()
    for line in sys.stdin:
        path, _, name, address = line.rstrip("\n").rsplit(" ", 3)
        if int(address, 16):
            semaphores.add((path, name, int(address, 16)))
    for pid in sys.argv[1:]:
        with open("/proc/%s/mem" % pid, "rb", 0) as memory:
            changed_code(pid, memory)
            raised_semaphores(pid, memory, sorted(semaphores))


main()

# damaged.py LIBRARY ROOM OBJECTS [SEED]: reads objects that are damaged, with the tapset's C functions in LIBRARY.
# Copies of objects of all kinds, and of what they point to, have some of their words replaced: types, sizes, pointers.
# What is read of them must be text that is whole and can be printed, and must end soon.  Nothing is written.
#
# SPDX-License-Identifier: MIT

import ctypes
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
import values

library = ctypes.CDLL(sys.argv[1])
library.take_reads.restype = ctypes.c_ulong
room = ctypes.create_string_buffer(int(sys.argv[2]))
wanted = int(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int.from_bytes(os.urandom(4), "little")
rng = random.Random(seed)

SLOT, SLOTS = 256, 256
MOST_READS = 20000
arena = ctypes.create_string_buffer(SLOT * SLOTS)
start = ctypes.addressof(arena)
memory = os.open("/proc/self/mem", os.O_RDONLY)
objects = values.SAME + [object for object, _ in values.OTHER] + [sys._getframe(), arena, library, memory]
TEXTS = library.__python_repr_1, library.__python_typename_1, library.python_argstr_1, library.__python_str_1
UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


def bytes_at(address):
    "What is there, up to where nothing is mapped."
    try:
        return os.pread(memory, SLOT, address)
    except (OSError, OverflowError):
        return b""


def word_at(data, at):
    return int.from_bytes(data[at : at + 8], sys.byteorder)


def pointers(data):
    "Where it points, by offset: what is found there."
    found = {}
    for at in range(0, len(data) - 7, 8):
        address = word_at(data, at)
        behind = bytes_at(address) if address > 4096 and address % 8 == 0 and address < 1 << 47 else b""
        if len(behind) == SLOT:
            found[at] = behind
    return found


# each object's bytes, and those behind its pointers
known = {}
templates = []
for object in objects:
    data = bytes_at(id(object))
    templates.append((data, sorted(pointers(data).items())))
    known[id(object)] = known[id(type(object))] = True
known = sorted(known)


def nonsense():
    kind = rng.randrange(10)
    if kind == 0:
        return 0
    if kind == 1:
        return rng.randrange(64)
    if kind == 2:
        return 2**64 - 1 - rng.randrange(64)
    if kind == 3:
        return rng.getrandbits(64)
    if kind == 4:
        return 1 << rng.randrange(64)
    if kind == 5:
        return rng.choice(known) + rng.choice((0, 0, 1, 8, 16))
    if kind == 6:  # near the end of what is mapped
        return start + SLOT * SLOTS - rng.randrange(64)
    return start + SLOT * rng.randrange(SLOTS) + rng.choice((0, 0, 0, 8, 24))


def put(slot, data):
    arena[slot * SLOT : slot * SLOT + len(data)] = data


def damage(slot, words):
    for _ in range(words):
        # its head more often: the type, the size and what comes behind
        at = slot * SLOT + 8 * (rng.randrange(6) if rng.random() < 0.7 else rng.randrange(SLOT // 8))
        if rng.random() < 0.2:
            arena[at + rng.randrange(8)] = rng.randrange(256)
        else:
            arena[at : at + 8] = nonsense().to_bytes(8, sys.byteorder)


def fill():
    "Puts damaged objects into the slots, one behind the other, each before what it points to."
    slot = 0
    placed = []
    while slot < SLOTS:
        data, behind = rng.choice(templates)
        put(slot, data)
        placed.append(slot)
        first = slot
        for at, target in behind:
            if slot + 1 < SLOTS and rng.random() < 0.4:
                slot += 1
                put(slot, target)
                arena[first * SLOT + at : first * SLOT + at + 8] = (start + slot * SLOT).to_bytes(8, sys.byteorder)
        for damaged in range(first, slot + 1):
            damage(damaged, rng.choice((0, 0, 1, 1, 2, 5)))
        slot += 1
    return placed


def fail(what, slot, said):
    sys.exit("seed %d, object %d in slot %d: %s: %r" % (seed, done, slot, what, said))


done = most = 0
different = set()
library.run_here()
while done < wanted:
    placed = fill()
    before = arena.raw
    for slot in placed:
        address = ctypes.c_longlong(start + slot * SLOT)
        library.take_reads()
        for function in TEXTS:
            function(room, address)
            try:
                said = room.value.decode("utf-8")
            except UnicodeDecodeError as error:
                fail(str(error), slot, room.raw)
            # python_str() has control characters as they are
            if function is not library.__python_str_1 and UNPRINTABLE.search(said):
                fail("can't be printed", slot, said)
            if len(different) < 10000:
                different.add(said)
        library.__python_int_1(address)
        reads = library.take_reads()
        most = max(most, reads)
        if reads > MOST_READS:
            fail("%d reads" % reads, slot, "")
        done += 1
    if arena.raw != before:
        fail("it was written", 0, "")
print("%d objects, %d texts, at most %d reads for one" % (done, len(different), most))

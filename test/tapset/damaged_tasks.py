# damaged_tasks.py LIBRARY ROOM TASKS [SEED]: reads damaged tasks, so many or more, with the tapset's C functions in
# LIBRARY.  Copies of asyncio's tasks, and of the coroutines, frames and futures that they point to, have some of their
# words replaced.  What is printed of them must be text that is whole, and must end soon.
#
# SPDX-License-Identifier: MIT

import asyncio
import ctypes
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))
import tasks

library = ctypes.CDLL(sys.argv[1])
library.take_reads.restype = ctypes.c_ulong
library.take_printed.restype = ctypes.c_char_p
library.print_python_tasks_1.restype = ctypes.c_longlong
room = ctypes.create_string_buffer(int(sys.argv[2]))
wanted = int(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int.from_bytes(os.urandom(4), "little")
rng = random.Random(seed)

SLOT, SLOTS = 512, 64
MOST_READS = 600000
arena = ctypes.create_string_buffer(SLOT * SLOTS + 4096)
start = (ctypes.addressof(arena) + 4095) & ~4095
memory = os.open("/proc/self/mem", os.O_RDONLY)
UNPRINTABLE = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
printed = {}


def bytes_at(address):
    try:
        return os.pread(memory, SLOT, address)
    except (OSError, OverflowError):
        return b""


def put(address, data):
    ctypes.memmove(address, bytes(data), len(data))


def words_of(data):
    return list(struct.unpack("<%dQ" % (len(data) // 8), data))


def copy_of(address, depth, used):
    "A copy of what is there and, as far as there is room and chance has it, of what it points to."
    slot = len(used)
    used.append(slot)
    to = start + slot * SLOT
    data = bytes_at(address)
    put(to, data)
    for at, word in enumerate(words_of(data)[:40]):
        # its type stays, mostly
        if depth and at != 1 and len(used) < SLOTS and rng.random() < 0.7 and word > 65536 and word % 8 == 0 and word < 1 << 47:
            behind = word - address
            if 0 <= behind < SLOT:  # within itself: a frame's stack
                put(to + 8 * at, struct.pack("<Q", to + behind))
            elif len(bytes_at(word)) == SLOT:
                put(to + 8 * at, struct.pack("<Q", copy_of(word, depth - 1, used)))
    return to


def fail(text):
    "Not sys.exit(), for which asyncio would wait for the tasks to end, which they never do."
    print("seed %d: %s" % (seed, text), flush=True)
    os._exit(1)


def nonsense():
    kind = rng.randrange(8)
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
    # a copy of something else, which makes cycles
    return start + SLOT * rng.randrange(SLOTS) + rng.choice((0, 0, 0, 8, 72))


def damage(used, count):
    for _ in range(count):
        at = start + SLOT * rng.choice(used) + 8 * (rng.randrange(24) if rng.random() < 0.8 else rng.randrange(SLOT // 8))
        if rng.random() < 0.2:
            put(at + rng.randrange(8), bytes([rng.randrange(256)]))
        else:
            put(at, struct.pack("<Q", nonsense()))


class Listed:
    "In the place of asyncio.tasks._all_tasks: the weak references in it have the addresses of the copies."


def list_to_3_13(addresses):
    # a float has its value where a weak reference has its object
    listed = Listed()
    listed.data = set(struct.unpack("<d", struct.pack("<Q", address))[0] for address in addresses)
    name = "_all_tasks" if hasattr(asyncio.tasks, "_all_tasks") else "_scheduled_tasks"
    before = getattr(asyncio.tasks, name)
    setattr(asyncio.tasks, name, listed)
    return lambda: setattr(asyncio.tasks, name, before)


def list_from_3_14(addresses):
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    state = ctypes.pythonapi.PyThreadState_Get()
    head = state + {14: 880, 15: 1048}[sys.version_info[1]]
    before = ctypes.string_at(head, 16)
    nodes = [address + asyncio.Task.__basicsize__ - 16 for address in addresses]
    ring = [head] + nodes
    for i, node in enumerate(ring):
        put(node, struct.pack("<2Q", ring[(i + 1) % len(ring)], ring[i - 1]))
    return lambda: put(head, before)


def show(addresses):
    "What is printed of them; what else there is, is done."
    put_back = (list_from_3_14 if sys.version_info >= (3, 14) else list_to_3_13)(addresses)
    library.run_here()
    library.take_reads()
    library.print_python_tasks_1(ctypes.c_longlong(64))
    library.python_task_0(room)
    reads = library.take_reads()
    put_back()
    return library.take_printed(), reads


def look(real):
    done = most = 0
    while done < wanted or (done < 50 * wanted and not any("<unknown>" in kind for kind in printed)):
        used, copies = [], []
        for task in rng.sample(real, 4):
            if len(used) < SLOTS - 1:
                copies.append(copy_of(id(task), 4, used))
        damage(used, rng.choice((0, 1, 2, 5, 20)))
        said, reads = show(copies)
        most = max(most, reads)
        try:
            text = said.decode("utf-8")
        except UnicodeDecodeError as error:
            fail("task %d: %s: %r" % (done, error, said))
        if UNPRINTABLE.search(text) or reads > MOST_READS:
            fail("task %d: %d reads: %r" % (done, reads, text))
        for block in text.split("\n\n"):
            kind = re.sub('".*?"|[0-9]+', "", block)
            printed[kind] = printed.get(kind, 0) + 1
        done += len(copies)
    print("%d tasks, %d texts, at most %d reads" % (done, len(printed), most))
    whole = sum(count for kind, count in printed.items() if "File" in kind and "<unknown>" not in kind)
    if whole < done / 10 or not any("<unknown>" in kind for kind in printed):
        fail("none was whole, or none was damaged: %d, %s" % (whole, list(printed)[:9]))


async def main():
    expected = {}
    await tasks.begin(asyncio.get_running_loop(), expected).acquire()
    for _ in range(20):
        await asyncio.sleep(0)
    real = [task for task in expected if type(task).__name__ != "_PyTask" and not task.done()]
    look(real)
    sys.stdout.flush()
    os._exit(0)  # the tasks never end


asyncio.run(main())

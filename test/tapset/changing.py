# changing.py LIBRARY ROOM TEXTS: reads objects, with the tapset's C functions in LIBRARY, while another thread
# changes them, frees them and makes others in their place, until it has read so many different texts.  What is read
# must be text that is whole and can be printed, and must end soon.
#
# SPDX-License-Identifier: MIT

import collections
import ctypes
import random
import re
import sys
import threading

library = ctypes.CDLL(sys.argv[1])  # its functions run without the GIL
library.take_reads.restype = ctypes.c_ulong
library.__python_caller_2.restype = ctypes.c_longlong
room = ctypes.create_string_buffer(int(sys.argv[2]))
wanted = int(sys.argv[3])
enough = threading.Event()
UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
MOST_READS = 20000


class Thing:
    pass


Point = collections.namedtuple("Point", "x y")
rng = random.Random(1)
items, table, some, raw, thing, error = [], {}, set(), bytearray(), Thing(), ValueError()
replaced = {"text": "", "number": 0, "tuple": (), "thing": None}
changes = 0


def value():
    return rng.choice((1, 2**70, -5, 1.5, "text" * rng.randrange(60), b"\xff" * rng.randrange(300), None, (1, (2, "x")), [3], {4: "5"}, Point(1, "y"), int))


def change():
    global changes
    while not enough.is_set():
        for _ in range(100):
            changes += 1
            kind = rng.randrange(12)
            key = rng.choice((rng.randrange(400), "key%d" % rng.randrange(400)))
            if kind == 0:
                items.append(value())
            elif kind == 1:
                del items[rng.randrange(len(items) + 1) :]
            elif kind == 2:
                items[:] = [value() for _ in range(rng.randrange(200))]
            elif kind == 3:
                table[key] = value()
            elif kind == 4:
                table.pop(key, None)
            elif kind == 5 and changes % 7 == 0:
                table.clear()
            elif kind == 6:
                some.add(key)
            elif kind == 7 and changes % 7 == 0:
                some.clear()
            elif kind == 8:
                raw[:] = b"z" * rng.randrange(5000)
            elif kind == 9:
                setattr(thing, "a%d" % rng.randrange(40), value())
            elif kind == 10:
                thing.__dict__ = {"a1": value()}
                error.args = (value(), value())
            else:
                replaced.update(text="\u4e2d" * rng.randrange(2000), number=1 << rng.randrange(500), tuple=tuple(items[:9]), thing=Thing())
                replaced["thing"].a1 = value()


def holds(items, table, some, raw, thing, error, replaced):
    different = set()
    most = 0
    paths = b"items[5]", b"items[-1][0]", b"table['key7']", b"table[7]", b"thing.a1", b"thing.a30", b"replaced['thing'].a1", b"replaced['text']"
    readers = [(library.__python_repr_1, ctypes.c_longlong(id(object))) for object in (items, table, some, raw, thing, error, replaced, thing.__dict__)]
    library.run_here()
    frame = ctypes.c_longlong(library.__python_caller_2(ctypes.c_longlong(0), ctypes.c_longlong(0)))
    readers += [(library.__python_local_2, frame, path) for path in paths]
    readers += [(library.__python_args_1, frame), (library.__python_locals_1, frame)]
    count = 0
    while len(different) < wanted or changes < 10 * wanted:
        for reader in readers:
            library.take_reads()
            reader[0](room, *reader[1:])
            reads = library.take_reads()
            most = max(most, reads)
            said = room.value.decode("utf-8")
            count += 1
            if UNPRINTABLE.search(said) or reads > MOST_READS:
                sys.exit("%d reads: %r" % (reads, said))
            different.add(said)
    enough.set()
    return count, len(different), most


sys.setswitchinterval(1e-5)
thread = threading.Thread(target=change)
thread.start()
count, different, most = holds(items, table, some, raw, thing, error, replaced)
thread.join()
print("%d reads of what changed %d times, %d texts, at most %d reads for one" % (count, changes, different, most))

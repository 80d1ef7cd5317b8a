# What the same CPython does alike on every architecture: calls, lines, calls in C, exceptions, collections, imports and
# audit events, between a call of begin() and one of end(), in each of two threads.  The program writes its maps into the
# file that is its argument, calls getppid(), and then idle() until the file ARGUMENT.seen is there, as a tracer has seen
# that.  With "sleeps" it also sleeps; with "own" and the address of a semaphore, that of the interpreter's own gc__start,
# it collects at its end: generation 0, then 1 while that semaphore is raised, then 2.
#
# SPDX-License-Identifier: MIT
import gc
import os
import sys
import time
import _thread


def begin():
    pass


def end():
    pass


def idle():
    pass


def rest():
    for _ in range(10):
        time.sleep(0.02)
        idle()


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def raises():
    raise ValueError("on purpose")


def catches():
    try:
        raises()
    except ValueError:
        pass


def counts(limit):
    for n in range(limit):
        yield n


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def größe(self):
        return abs(complex(self.x, self.y))


def collects():
    ring = []
    ring.append(ring)
    del ring
    gc.collect()


def imports():
    import this_one_is_here
    try:
        import this_one_is_not  # noqa: F401
    except ImportError:
        pass
    return this_one_is_here


def sleeps():
    time.sleep(2.5)  # longer than 2 ** 31 nanoseconds


def events():
    sys.audit("project.event", 1, "two")


def work():
    begin()
    factorial(5)
    catches()
    list(counts(3))
    Point(3, 4).größe()
    collects()
    imports()
    events()
    if "sleeps" in sys.argv:
        sleeps()
    end()


def collects_beside_its_own_marker(address):
    import ctypes
    semaphore = ctypes.c_ushort.from_address(address)
    gc.collect(0)
    semaphore.value = 1
    rest()
    gc.collect(1)
    semaphore.value = 0
    rest()
    gc.collect(2)


def in_a_thread():
    go.acquire()
    line = 1  # of a frame that ran already
    line += 1
    begin()
    factorial(3)
    catches()
    end()
    done.release()


go, done = _thread.allocate_lock(), _thread.allocate_lock()
go.acquire()
done.acquire()
_thread.start_new_thread(in_a_thread, ())
sys.modules["this_one_is_here"] = sys
gc.collect()
gc.disable()
with open("/proc/self/maps") as maps, open(sys.argv[1], "w") as copy:
    copy.write(maps.read())
os.getppid()
for _ in range(1000):
    time.sleep(0.05)
    idle()
    if os.path.exists(sys.argv[1] + ".seen"):
        break
rest()
work()
go.release()
done.acquire()
if "own" in sys.argv:
    collects_beside_its_own_marker(int(sys.argv[3], 0))

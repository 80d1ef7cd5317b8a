# metrics.py PROGRAM: collects, imports and calls known numbers of times, under a name of its own for each, by
# which the exporter's script labels its metrics; one of the names runs PROGRAM.
#
# SPDX-License-Identifier: MIT
import _thread
import gc
import os
import sys
import threading
import time

TOLD = 1  # s: calls are told under the name of that moment, ten times a second if the machine isn't busy

gc.disable()
comm = open("/proc/self/comm", "wb", 0)
with open(sys.argv[1]) as file:
    counted = compile(file.read(), sys.argv[1], "exec")


def called():
    pass


def in_thread(lock):  # under another name than the process
    thread = os.open("/proc/self/task/%d/comm" % _thread.get_native_id(), os.O_WRONLY)
    os.write(thread, b"thread")
    for _ in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        called()
    lock.release()


class Slow:
    def __del__(self):
        time.sleep(0.15)


def collects(name):
    comm.write(name)
    for generation in 0, 1, 2:
        gc.collect(generation)


gc.collect()
comm.write(b"counted")
exec(counted, {"__name__": "counted"})
lock = _thread.allocate_lock()
lock.acquire()
time.sleep(TOLD)
comm.write(b"known")
for _ in range(127):
    called()
_thread.start_new_thread(in_thread, (lock,))
lock.acquire()
time.sleep(TOLD)
comm.write(b"known_c")
for _ in range(30):
    abs(-1)
time.sleep(TOLD)
comm.write(b"slow")
slow = Slow()
slow.slow = slow
del slow
gc.collect()
collects(b'q"b\\s\nz')
for number in range(25):
    collects(b"n%02d" % number)
comm.write(b"python3")

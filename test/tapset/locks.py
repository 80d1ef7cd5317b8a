# locks.py LIBRARY ROOM: dumps this process with the tapset's C functions in LIBRARY, as pydump does, while a thread sleeps
# for a lock, and looks by which path it says that the thread knows the lock.
#
# SPDX-License-Identifier: MIT

import ctypes
import json
import os
import queue
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p


# The sleeper is the thread that has called run_here() last.
def dump(as_json=1):
    function = ctypes.PyDLL(sys.argv[1]).__python_dump_5
    function(*(ctypes.c_longlong(one) for one in (64, 0, 0, as_json, 0)))
    text = library.take_printed().decode("utf-8")
    if not as_json:
        return text.split("\n")[1:3]
    # a process behind the first one begins with a comma
    document = json.loads(('{"processes":[' + text[1:] if text[0] == "," else text) + "]}")
    return document["processes"][0]["threads"][0]["lock"]


def check(what, expected, got):
    if expected != got:
        print("%s:\nexpected: %s\ngot:      %s" % (what, expected, got))
        os._exit(1)


def in_system_call(number, address=0):
    library.enter_system_call(number, ctypes.c_ulong(address))


# The futex on which a thread sleeps, by the kernel.  It may be that of the GIL, for a moment.
def futex_of(thread_id):
    last = None
    while True:
        with open("/proc/self/task/%d/syscall" % thread_id) as file:
            call = file.read().split()
        if call == last and call[0] == str(library.futex_number()):
            return int(call[1], 16)
        last = call
        time.sleep(0.02)


class Pool:
    def __init__(self):
        self._lock = threading.Lock()
        self.count = 1


class Server:
    def __init__(self):
        self._pool = Pool()

    def takes(self, seen):
        seen.append(self._pool._lock)
        with self._pool._lock:
            pass


the_lock = threading.RLock()


def takes_the_lock(seen):
    seen.append(the_lock)
    with the_lock:
        pass


def gets(items, seen):
    seen.append(items.not_empty)
    items.get()


# 3.13.0 has semaphores, 3.13.5 hasn't; of a thread that is joined nothing is said in either.
sleeps_for_a_semaphore = False


def joins(worker, seen):
    seen.append(worker._tstate_lock if hasattr(worker, "_tstate_lock") else None)
    worker.join()


def waits_for(event, seen):
    seen.append(event._cond)
    event.wait()


# What is said of a lock for which a thread sleeps in a function, and whether something else is not taken for it.
def lock_of(function, *arguments, end):
    seen, ids = [], []

    def sleeps():
        ids.append(ctypes.CDLL(None).gettid())
        library.run_here()
        library.leave_cpu(0, 1)
        function(*arguments, seen)

    thread = threading.Thread(target=sleeps)
    thread.start()
    while not seen or (hasattr(seen[0], "_waiters") and not seen[0]._waiters):
        time.sleep(0.001)
    global sleeps_for_a_semaphore
    futex = futex_of(ids[0])
    lock = seen[0]._waiters[0] if hasattr(seen[0], "_waiters") else seen[0]
    sleeps_for_a_semaphore = lock is not None and futex == ctypes.c_ulong.from_address(id(lock) + object.__basicsize__).value
    in_system_call(library.futex_number(), futex)
    said, text = dump(), dump(as_json=0)
    for number, address in (library.futex_number(), id(lock)), (library.futex_number() + 1, futex):
        in_system_call(number, address)
        check("not for that lock", None, dump())
    in_system_call(library.futex_number(), futex)
    library.leave_cpu(0, 0)
    check("a thread that runs", None, dump())
    in_system_call(-1)
    end()
    thread.join()
    return said, text


# The lock is known by this path in this function.
def check_lock(path, function, call, *arguments, end, **others):
    said, text = lock_of(call, *arguments, end=end)
    if sys.version_info >= (3, 13) and path != "the_lock" and not sleeps_for_a_semaphore:
        check(path, (None, False), (said, text[0].startswith("waits for ")))
        return
    check(path, dict(path=path, function=function, holder=None, deadlock=[], **others), said)
    check("text", "waits for %s in %s" % (path, function), text[0])


server, items, event = Server(), queue.Queue(), threading.Event()
server._pool._lock.acquire()
check_lock("self._pool._lock", "takes", server.takes, end=server._pool._lock.release)
the_lock.acquire()
check_lock("the_lock", "takes_the_lock", takes_the_lock, end=the_lock.release)
check_lock("self.not_empty", "get", gets, items, end=lambda: items.put(1))
check_lock("event._cond", "waits_for", waits_for, event, end=event.set)
event = threading.Event()
worker = threading.Thread(target=event.wait)
worker.start()
check_lock("worker", "joins", joins, worker, end=event.set, join=True)
# a thread that waits for itself, as the library knows no other
def waits_for_itself(own):
    own.acquire()
    library.run_here()
    library.leave_cpu(0, 1)
    # the address of its semaphore
    in_system_call(library.futex_number(), ctypes.c_ulong.from_address(id(own) + object.__basicsize__).value)
    check("holder", dict(path="own", function="waits_for_itself", holder=1, deadlock=[1]), dump())
    text = ['waits for own in waits_for_itself, which is held by Thread 1 "MainThread"', "deadlock: Thread 1 -> Thread 1"]
    check("text", text, dump(as_json=0))


waits_for_itself(threading.RLock())


# A frame of "wait", whose caller in the same file has itself for a caller: the dump ends.  For the struct of 3.11
# (Include/internal/pycore_frame.h: previous).
class Condition:
    def wait(self):
        waiter = threading.Lock()
        library.run_here()
        library.leave_cpu(0, 1)
        in_system_call(library.futex_number(), ctypes.c_ulong.from_address(id(waiter) + object.__basicsize__).value)
        frame = ctypes.c_ulong.from_address(id(sys._getframe(1)) + object.__basicsize__ + 8).value
        previous = ctypes.c_ulong.from_address(frame + 48)
        before, previous.value = previous.value, frame
        said = dump(as_json=0)
        library.take_bytes()
        library.have_threads(300)
        dump()
        read = library.take_bytes()
        library.have_threads(1)
        previous.value = before
        check("a frame that calls itself", "waits for waiter in wait", said[0])
        # the threads share 100,000 frames, of 52 bytes, for their locks, and have 1000 each, of 15, for their names
        assert read < 14 * 1000 * 1000, read


def calls_wait():
    Condition().wait()


if sys.version_info[:2] == (3, 11):
    calls_wait()
print("all as expected")

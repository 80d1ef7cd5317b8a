# requests.py CAUSE...: calls handle() 20 times for each CAUSE; two of the calls take longer, for that cause.  "tasks" runs
# tasks of asyncio in place of it.  Prints a line of JSON for each call: the cause, whether it was a slow one, and the
# microseconds by its own clocks around the call, within it, and off the CPU in what is slow.  For pyrequest's suite.
#
# SPDX-License-Identifier: MIT

import asyncio
import ctypes
import fcntl
import json
import mmap
import os
import platform
import socket
import struct
import sys
import threading
import time

NAP = 0.4
said = []


def computes(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


# Three others compute meanwhile, each in a thread, or in a process on this thread's CPU: this one does for a quarter of the time.
def of_gil():
    others = [threading.Thread(target=computes, args=(2 * NAP,)) for _ in range(3)]
    for other in others:
        other.start()
    return lambda: computes(NAP), lambda: [other.join() for other in others]


def after_a_nap(function, *arguments):
    def naps():
        time.sleep(NAP)
        function(*arguments)

    return threading.Thread(target=naps)


def of_lock():
    lock = threading.Lock()
    lock.acquire()
    other = after_a_nap(lock.release)
    other.start()
    return lock.acquire, other.join


# A server that answers late.
def of_socket():
    ours, theirs = socket.socketpair()
    other = after_a_nap(theirs.send, b"x")
    other.start()
    return lambda: ours.recv(1), other.join


def of_timer():
    return lambda: time.sleep(NAP), lambda: None


def of_cpu():
    return lambda: computes(NAP), lambda: None


def of_run_queue():
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    reader, writer = os.pipe()
    parent = os.getpid()
    children = [os.fork() for _ in range(3) if os.getpid() == parent]
    if os.getpid() != parent:
        os.write(writer, b"x")
        computes(100 * NAP)
        os._exit(0)
    for _ in children:
        os.read(reader, 1)

    def ends():
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
        os.sched_setaffinity(0, cpus)

    return lambda: computes(NAP), ends


# Each page is there later than the one before.  Include/uapi/linux/userfaultfd.h
def of_page_fault(pages=1):
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(282 if platform.machine() == "aarch64" else 323, os.O_CLOEXEC)
    size = pages * mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(descriptor, 0xC018AA3F, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
    fcntl.ioctl(descriptor, 0xC020AA00, bytearray(struct.pack("QQQQ", begin, size, 1, 0)))

    def fills():
        for page in range(begin, begin + size, mmap.PAGESIZE):
            time.sleep(NAP / pages)
            fcntl.ioctl(descriptor, 0xC020AA04, bytearray(struct.pack("QQQq", page, mmap.PAGESIZE, 0, 0)))

    other = threading.Thread(target=fills)
    other.start()

    def ends():
        other.join()
        os.close(descriptor)
        memory  # lives until then

    return lambda: libc.memset(ctypes.c_void_p(begin), 1, size), ends


# time.thread_time() is there from 3.7 on.
def cpu_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def clocks():
    return cpu_time(), time.perf_counter()


# Adds to "within" the seconds since "began", and those since the reading of clocks() that the thread was off its CPU, at
# least: what stops it between the readings of two clocks counts as time on the CPU.
def add_times(within, began, cpu, middle):
    end = time.perf_counter()
    within += [end - began, end - middle - (cpu_time() - cpu)]


# within: the seconds between its first and its last line, and those off the CPU in what is slow.
def handle(path, slow, within):
    began = time.perf_counter()
    computes(0.001)
    start = clocks()
    slow()
    add_times(within, began, *start)
    if path == "raises":
        raise ValueError(path)


# A request within a request.
def handle_outer(path):
    handle("inner", lambda: time.sleep(NAP), [])


def nothing():
    pass


def say(path, is_slow, took, within, off):
    said.append({"path": path, "slow": is_slow, "us": took * 1e6, "within_us": within * 1e6, "off_us": off * 1e6})


def serves(path, number):
    is_slow = number % 10 == 9
    slow, ends = globals()["of_" + path]() if is_slow else (nothing, nothing)
    within = []
    began = time.perf_counter()
    handle(path, slow, within)
    took = time.perf_counter() - began
    ends()
    say(path, is_slow, took, *within)


# PATTERN names it, but it is no task.
def handle_no_task():
    pass


# What is ready waits for the loop, which sleeps; a task waits for another one, or for a timer of the loop.
async def handle_task(path, is_slow, within):
    began = time.perf_counter()
    handle_no_task()
    await asyncio.sleep(0.001)
    start = clocks()
    if is_slow and path == "loop":
        asyncio.get_event_loop().call_soon(time.sleep, NAP)
        await asyncio.sleep(0)
    elif is_slow and path == "task":
        await asyncio.ensure_future(asyncio.sleep(NAP))
    elif is_slow and path == "lock":
        of_lock()[0]()
    elif is_slow:
        await asyncio.sleep(NAP)
    add_times(within, began, *start)


async def serves_tasks():
    for path in ("loop", "task", "future", "lock"):
        for number in range(20):
            within = []
            began = time.perf_counter()
            await asyncio.ensure_future(handle_task(path, number % 10 == 9, within))
            took = time.perf_counter() - began
            say(path, number % 10 == 9, took, *within)


def main():
    for path in sys.argv[1:]:
        if path == "tasks":
            asyncio.get_event_loop_policy().new_event_loop().run_until_complete(serves_tasks())
            continue
        if path == "nested":
            handle_outer("outer")
            try:
                handle("raises", nothing, [])
            except ValueError:
                pass
            continue
        for number in range(20):
            serves(path, number)
    for one in said:
        print(json.dumps(one))


if __name__ == "__main__":
    main()

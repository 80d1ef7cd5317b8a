# Sleeps in each way that pyblocked tells from others, in functions named for that, and prints of each a line of JSON:
# the kind, which file or socket, and the microseconds for which the thread was off the CPU by its own clocks, at least and at
# most: the machine may stop it between the readings of two.  For the script's suite.
#
# SPDX-License-Identifier: MIT

import ctypes
import fcntl
import json
import mmap
import os
import platform
import queue
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

NAP = 0.3
folder = tempfile.mkdtemp()
threads = []


# exact: with the ports that the kernel gave.
def waits(function, kind, which="", *arguments, exact=None):
    outer, cpu, inner = time.perf_counter(), cpu_time(), time.perf_counter()
    function(*arguments)
    least, cpu = time.perf_counter() - inner, cpu_time() - cpu
    most = time.perf_counter() - outer
    said = {"function": function.__name__, "kind": kind, "which": which, "exact": exact or which}
    said.update(least_us=int((least - cpu) * 1e6), most_us=int((most - cpu) * 1e6))
    os.write(1, (json.dumps(said) + "\n").encode())


# time.thread_time() is there from 3.7 on.
def cpu_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def later(function, *arguments):
    def naps():
        time.sleep(NAP)
        function(*arguments)

    threads.append(threading.Thread(target=naps))
    threads[-1].start()


# Computes in C, without the GIL, and in Python.
def computes(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


# The other thread asks for the GIL within this function, and keeps it.
def waits_for_the_gil(asks, done):
    asks.release()
    while not done:
        pass


def of_the_gil():
    asks, done = threading.Lock(), []
    asks.acquire()

    def sleeps_with_the_gil():
        asks.acquire()
        ctypes.PyDLL(None).usleep(int(NAP * 1e6))
        done.append(True)

    other = threading.Thread(target=sleeps_with_the_gil)
    other.start()
    waits(waits_for_the_gil, "GIL", "", asks, done)
    other.join()


def takes_a_lock(lock):
    lock.acquire()


def gets_from_a_queue(items):
    items.get()


def of_locks():
    lock = threading.Lock()
    lock.acquire()
    later(lock.release)
    waits(takes_a_lock, "lock", "", lock)
    items = queue.Queue()
    later(items.put, 1)
    waits(gets_from_a_queue, "lock", "", items)


def sleeps():
    time.sleep(NAP)


def selects_nothing():
    select.select([], [], [], NAP)


def of_timers():
    waits(sleeps, "timer")
    waits(selects_nothing, "timer")


def reads_a_pipe(end):
    os.read(end, 1)


def fills_a_pipe(end, size):
    os.write(end, b"x" * size)


def opens_a_fifo(path):
    os.close(os.open(path, os.O_RDONLY))


def reads_a_terminal(end):
    os.read(end, 1)


def reads_an_eventfd(end):
    os.read(end, 8)


def of_files():
    ours, theirs = os.pipe()
    later(os.write, theirs, b"x")
    waits(reads_a_pipe, "pipe", "[%d]" % os.fstat(ours).st_ino, ours)
    later(os.read, ours, 1 << 20)
    waits(fills_a_pipe, "pipe", "[%d]" % os.fstat(ours).st_ino, theirs, (1 << 16) + 4096)
    fifo = folder + "/fifo"
    os.mkfifo(fifo)
    later(lambda: os.close(os.open(fifo, os.O_WRONLY)))
    waits(opens_a_fifo, "file", fifo, fifo)
    ours = os.open(fifo, os.O_RDWR)
    later(os.write, ours, b"x")
    waits(reads_a_fifo, "pipe", os.readlink("/proc/self/fd/%d" % ours), ours)
    master, slave = os.openpty()
    later(os.write, master, b"x\n")
    waits(reads_a_terminal, "file", os.readlink("/proc/self/fd/%d" % slave), slave)
    eventfd = ctypes.CDLL(None).eventfd(0, 0)
    later(os.write, eventfd, struct.pack("Q", 1))
    waits(reads_an_eventfd, "file", os.readlink("/proc/self/fd/%d" % eventfd), eventfd)


def reads_a_fifo(end):
    os.read(end, 1)


def locks_a_file(file):
    fcntl.flock(file, fcntl.LOCK_EX)


def locks_a_part(file):
    fcntl.lockf(file, fcntl.LOCK_EX, 1)


# A child has the lock, whose name is gone by the second time.
def of_file_locks():
    path = folder + "/a long; name\n"
    for function, taken in (locks_a_file, fcntl.flock), (locks_a_part, fcntl.lockf):
        with open(path, "w") as file:
            ready, has = os.pipe()
            child = os.fork()
            if not child:
                file = open(path, "w")
                taken(file, fcntl.LOCK_EX)
                os.write(has, b"x")
                time.sleep(NAP)
                os._exit(0)
            os.read(ready, 1)
            if taken is fcntl.lockf:
                os.unlink(path)
            waits(function, "file lock", os.readlink("/proc/self/fd/%d" % file.fileno()).replace("\n", "?"), file)
            os.waitpid(child, 0)


def name_of(one):
    host, port = one[:2]
    return "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)


def accepts(listener):
    listener.accept()


def receives(end):
    end.recv(1)


def receives_in_time(end):
    end.settimeout(60)
    end.recv(1)


def sends(end):
    end.sendall(b"x" * (1 << 20))


def drains(end):
    left = 1 << 20
    while left:
        left -= len(end.recv(1 << 20))


def of_sockets():
    for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
        listener = socket.socket(family, socket.SOCK_STREAM)
        # Small buffers are soon full, also on a slow machine.  They are small from the start: after a receive buffer has shrunk,
        # its window may be opened by the timer of TCP's probes alone, once for each 16 KiB.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        # not among those that the kernel gives
        for port in range(20000, 30000):
            try:
                listener.bind((host, port))
                break
            except OSError:
                pass
        listener.listen(5)
        one = socket.socket(family, socket.SOCK_STREAM)
        later(one.connect, (host, port))
        waits(accepts, "socket", name_of(listener.getsockname()), listener)
        one = socket.socket(family, socket.SOCK_STREAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        one.connect((host, port))
        other = listener.accept()[0]
        server = name_of(listener.getsockname())
        client = name_of(one.getsockname())
        any_client = server[: -len(str(port))] + "*"
        there, any_there = client + " -> " + server, any_client + " -> " + server
        here, any_here = server + " -> " + client, server + " -> " + any_client
        later(other.send, b"x")
        waits(receives, "socket", any_there, one, exact=there)
        later(one.send, b"x")
        waits(receives_in_time, "socket", any_here, other, exact=here)
        later(drains, other)
        waits(sends, "socket", any_there, one, exact=there)
    for way in (b"\0abstract\xc3\xa9", (folder + "/unix").encode()):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(way)
        listener.listen(5)
        one = socket.socket(socket.AF_UNIX)
        one.connect(way)
        other = listener.accept()[0]
        name = way.decode().replace("\0", "@")
        later(other.send, b"x")
        waits(receives, "socket", "unix -> " + name, one)
        later(one.send, b"x")
        waits(receives, "socket", "unix " + name, other)
    one, other = socket.socketpair()
    later(one.send, b"x")
    waits(receives, "socket", "unix [%d]" % os.fstat(other.fileno()).st_ino, other)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    later(datagrams.sendto, b"x", datagrams.getsockname())
    waits(receives, "socket", "udp " + name_of(datagrams.getsockname()), datagrams)


def polls_one(poll):
    poll.poll()


def polls_two(poll):
    poll.poll()


def selects_one(end):
    select.select([end], [], [end], 60)


def selects_two(one, other):
    select.select([one], [], [other], 60)


def polls_by_epoll(epoll):
    epoll.poll()


def of_polls():
    ours, theirs = os.pipe()
    others = os.pipe()[0]
    pipe = "[%d]" % os.fstat(ours).st_ino
    # a set of more than one word
    high = fcntl.fcntl(ours, fcntl.F_DUPFD, 200)
    one, two = select.poll(), select.poll()
    for poll, ends in (one, [ours]), (two, [ours, others]):
        for end in ends:
            poll.register(end, select.POLLIN)
    epoll = select.epoll()
    epoll.register(ours, select.EPOLLIN)
    for function, kind, which, arguments in (
        (polls_one, "pipe", pipe, [one]),
        (polls_two, "poll", "2 descriptors", [two]),
        (selects_one, "pipe", pipe, [high]),
        (selects_two, "poll", "2 descriptors", [ours, others]),
        (polls_by_epoll, "epoll", "", [epoll]),
    ):
        later(os.write, theirs, b"x")
        waits(function, kind, which, *arguments)
        os.read(ours, 1)


def waits_for_a_child(child):
    child.wait()


def waits_for_a_signal():
    signal.sigtimedwait([signal.SIGUSR1], NAP)


def of_processes():
    waits(waits_for_a_child, "child", "", subprocess.Popen(["sleep", str(NAP)]))
    waits(waits_for_a_signal, "signal")


def is_stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


# What it waits for is all the same after a stop.
def is_stopped_while_it_polls(end):
    end.settimeout(60)
    end.recv(1)


def of_stops():
    child = os.fork()
    if not child:
        waits(is_stopped, "stopped")
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    time.sleep(NAP)
    os.kill(child, signal.SIGCONT)
    os.waitpid(child, 0)
    one, other = socket.socketpair()
    child = os.fork()
    if not child:
        waits(is_stopped_while_it_polls, "socket", "unix [%d]" % os.fstat(one.fileno()).st_ino, one)
        os._exit(0)
    time.sleep(NAP / 3)
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    os.kill(child, signal.SIGCONT)
    time.sleep(NAP)
    other.send(b"x")
    os.waitpid(child, 0)


def touches_a_page(libc, page):
    libc.memset(ctypes.c_void_p(page), 1, 1)


# Include/uapi/linux/userfaultfd.h
def of_page_faults():
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(282 if platform.machine() == "aarch64" else 323, os.O_CLOEXEC)
    if descriptor < 0:
        return
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    api = struct.pack("QQQ", 0xAA, 0, 0)
    fcntl.ioctl(descriptor, 0xC018AA3F, bytearray(api))
    fcntl.ioctl(descriptor, 0xC020AA00, bytearray(struct.pack("QQQQ", page, mmap.PAGESIZE, 1, 0)))
    later(fcntl.ioctl, descriptor, 0xC020AA04, bytearray(struct.pack("QQQq", page, mmap.PAGESIZE, 0, 0)))
    waits(touches_a_page, "page fault", "", libc, page)


def competes_for_a_cpu():
    end = time.perf_counter() + 3 * NAP
    while time.perf_counter() < end:
        pass


def of_run_queues():
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    child = os.fork()
    if not child:
        computes(3 * NAP)
        os._exit(0)
    waits(competes_for_a_cpu, "run queue")
    os.waitpid(child, 0)
    os.sched_setaffinity(0, cpus)


def main():
    for part in (of_timers, of_locks, of_files, of_file_locks, of_sockets, of_polls, of_processes, of_stops, of_page_faults, of_run_queues, of_the_gil):
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part()
            while threads:
                threads.pop().join()
    shutil.rmtree(folder)


main()

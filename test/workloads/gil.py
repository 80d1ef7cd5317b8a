# Threads that wait for the GIL and threads that keep it, in functions named for that.
#
# usage: gil.py holds SECONDS         a thread always wants it, another one keeps it in functions in C; a line for each
#                                     function on stderr: its name, how many microseconds the other thread waited at
#                                     least and at most, and how many the function took; for holds(), which calls
#                                     them, the first is how long it slept at least between them
#        gil.py computes SECONDS      two threads compute; a line for each function: its name and its microseconds on a CPU
#        gil.py interpreters SECONDS  the same in two interpreters, the second of which has a GIL of its own
#
# SPDX-License-Identifier: MIT

import ctypes
import functools
import operator
import os
import sys
import threading
import time

took, least, most = {}, {}, {}  # in seconds, by function
called = ["holds"]  # the functions that holds() called, each followed by itself


def add(sums, name, time):
    sums[name] = sums.get(name, 0) + time


# ---- holds


# Calls a function in C with the time before and behind it, and what the thread that wants the GIL ran, or was ready to run
# while another one had the CPU, so that no other thread can get the GIL between these.  What a thread ran is in its
# clock at once, in schedstat later.
def measure(name, function, *arguments):
    start = time.time()
    texts = [ctypes.create_string_buffer(100) for _ in range(2)]
    reads = [iter(functools.partial(libc.pread, stat, text, 99, 0), -1) for text in texts]
    clock, ran = iter(time.time, None), iter(functools.partial(time.clock_gettime, wanting_clock), -1)
    calls = iter(functools.partial(function, *arguments), -1)
    _, had_run, before, _, behind, has_run, _ = next(zip(reads[0], ran, clock, calls, clock, ran, reads[1]))
    was_ready, ready = [int(text.value.split()[1]) / 1e9 for text in texts]
    add(least, name, behind - before - (has_run - had_run) - (ready - was_ready))
    add(took, name, time.time() - start)
    return behind - before


def keeps_it_asleep():
    measure("keeps_it_asleep", libc.usleep, 50000)


def keeps_it_in_c():
    measure("keeps_it_in_c", operator.mul, digits, digits)


# Less than the switch interval, right after the thread got the GIL elsewhere.
def keeps_it_briefly():
    measure("keeps_it_briefly", libc.usleep, 3000)


def rests():
    time.sleep(0.02)
    add(least, "holds", 0.02)


def holds():
    start = time.time()
    while time.time() < end:
        for function in (keeps_it_asleep, keeps_it_in_c, keeps_it_briefly):
            called.append(function.__name__)
            function()
            called.append("holds")
            rests()
    add(took, "holds", time.time() - start)
    ended.set()


# In a turn of the loop that is long, this thread may have waited for each function that the other one called since the
# turn before, and for the one that it was in then.  pygil sees the end of a wait at a tick, until which it may take for
# waiting what this thread ran: so the next 2 ms count, too, and all that stopped the machine in them.
def wants_it():
    global stat, wanting_clock
    stat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    wanting_clock = ~int(os.readlink("/proc/thread-self").split("/")[-1]) << 3 | 6  # as pthread_getcpuclockid() has it
    started.set()
    last, before, now_in, rest = time.time(), 0, 0, {}
    while not ended.is_set():
        now = time.time()
        turn = now - last
        if turn > 0.0002:
            rest.update((name, 0.002) for name in called[before:])
        for name in list(rest):
            most[name] = most.get(name, 0) + turn
            if turn < 0.001:
                rest[name] -= turn
            if rest[name] < 0:
                del rest[name]
        last, before, now_in = now, now_in, len(called) - 1


def run_holds():
    global libc, digits, end
    libc = ctypes.PyDLL(None)  # its functions keep the GIL
    wanting = threading.Thread(target=wants_it)
    wanting.start()
    started.wait()
    digits = 3 ** 1000
    while min(measure("", operator.mul, digits, digits) for _ in range(3)) < 0.04:
        digits *= digits
    del took[""]
    end = time.time() + seconds
    holding = threading.Thread(target=holds)
    holding.start()
    holding.join()
    wanting.join()


# ---- computes


def computes_much():
    for i in range(3000000 // speed):
        pass


def computes_little():
    for i in range(1000000 // speed):
        pass


def computes():
    while time.time() < end:
        for function in (computes_much, computes_little):
            start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
            function()
            add(took, function.__name__, time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - start)


def run_computes():
    global speed, end
    speed = 10
    end = time.time() + seconds
    threads = [threading.Thread(target=computes) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- interpreters

OTHERS = """
import threading, time
end = time.time() + %f
def computes_elsewhere():
    while time.time() < end:
        pass
threads = [threading.Thread(target=computes_elsewhere) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def run_interpreters():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    # These need the first interpreter's GIL, or long: before the threads compute, for which both then have the same time.
    other = interpreters.create()
    interpreters.run_string(other, "import threading, time")
    thread = threading.Thread(target=interpreters.run_string, args=(other, OTHERS % seconds))
    thread.start()
    run_computes()
    thread.join()
    interpreters.destroy(other)


started, ended = threading.Event(), threading.Event()
seconds = float(sys.argv[2])
{"holds": run_holds, "computes": run_computes, "interpreters": run_interpreters}[sys.argv[1]]()
for name in sorted(took):
    if least:
        sys.stderr.write("%s %d %d %d\n" % (name, least[name] * 1e6, most[name] * 1e6, took[name] * 1e6))
    else:
        sys.stderr.write("%s %d\n" % (name, took[name] * 1e6))

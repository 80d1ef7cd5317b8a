# What the benchmark measures, in any CPython from 3.6 on.
#
# usage: workload.py NAME [AROUND [N]]
#
# Runs the workload once to warm up, then N times (5), and prints the shortest time for one of its
# operations, in nanoseconds: of the thread's processor time, or elapsed or the process's where it says so.  AROUND is
# what is in place meanwhile: cProfile, setprofile, settrace, tracemalloc, or a library of test/bench/allocators.c.  The NAME switched does not end.
#
# SPDX-License-Identifier: MIT

import os
import sys
import threading
import time


kept = []


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls():
    fib(20)
    return 21891


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def moved(self, by):
        return Point(self.x + by, self.y - by)


def mixed():
    import json
    import re

    text = json.dumps([{"name": "n%d" % i, "value": i / 3, "list": list(range(i % 7))} for i in range(150)])
    total = len(json.loads(text))
    words = re.findall(r"[a-z]+", text * 2)
    total += len({word: words.count(word) for word in set(words)})
    point = Point(1, 2)
    for i in range(1500):
        point = point.moved(i)
    total += sum(sorted((x * 7919) % 1009 for x in range(3000)))
    return 1 if total else 0


def opens():
    for _ in range(1000):
        open("/dev/null").close()
    return 1000


def imports():
    for _ in range(40):
        sys.modules.pop("colorsys", None)
        import colorsys
    return 40


def execs():
    code = compile("x = 1", "<bench>", "exec")
    names = {}
    for _ in range(10000):
        exec(code, names)
    return 10000


def threads():
    for _ in range(100):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    return 100


def audits():
    audit = sys.audit
    for number in range(20000):
        audit("bench.event", number)
    return 20000


def collections():
    import gc

    for _ in range(2000):
        gc.collect(0)
    return 2000


def finds():
    sys.dont_write_bytecode = True  # the folder is the tree's
    from nothing import import_nothing

    return import_nothing(2000)


def make_functions(count):
    names = {}
    exec("\n".join("def f_%d():\n    pass" % number for number in range(count)), names)
    return [names["f_%d" % number] for number in range(count)]


def functions():  # 10,000 of them, in turn
    if not kept:
        kept.extend(make_functions(10000))
    for _ in range(20):
        for function in kept:
            function()
    return 20 * len(kept)


def deep(depth):
    return depth and deep(depth - 1)


def depth():  # calls with up to 900 callers
    for _ in range(40):
        deep(900)
    return 40 * 901


def calls_in(count, name="calls_in_%d_threads", n=14, calls=1219, processors=1, times=1):
    """The calls of fib(n), so many times, in each of so many threads at a time; elapsed time of each call, on each of so many
    processors."""
    def work():
        for _ in range(times):
            fib(n)

    def run():
        started = [threading.Thread(target=work) for _ in range(count)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        return times * calls * count / min(count, processors)

    run.__name__ = name % count
    return run


def sampled():  # long enough for dozens of samples
    for _ in range(40):
        fib(20)
    return 40 * 21891


def sampled_900_deep(depth=875):
    return sampled_900_deep(depth - 1) if depth else sampled()


def sampled_in(count):
    return calls_in(count, "sampled_in_%d_threads", 14, 1219, 1, 4)


def raises():  # and catches
    for _ in range(20000):
        try:
            raise ValueError
        except ValueError:
            pass
    return 20000


def allocates():  # and frees
    for _ in range(100):
        [object() for _ in range(1000)]
    return 100000


class Request:
    def __init__(self):
        self.user = Point(1, 2)


def valued(request, number, text, flag=None):
    return number


def values():  # calls of a function with arguments of a few kinds
    request, text = Request(), "select name, price from items where id=1"
    for number in range(20000):
        valued(request, number, text)
    return 20000


def hands_over(times):
    for _ in range(times):
        for _ in range(5000):  # some 100 microseconds, where nothing is emulated
            pass
        time.sleep(1e-6)  # gives up the GIL, for which others wait


def handovers():
    ends = [threading.Thread(target=hands_over, args=(250,)) for _ in range(4)]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    return 1000


def handovers_on_the_wall():
    return handovers()


in_threads = [calls_in(count) for count in (1, 4, 16, 64)]
# long enough for the kernel to give each thread a processor
parallels = [calls_in(count, "parallel_%d", 20, 21891, len(os.sched_getaffinity(0)), 50) for count in (1, 2, 4, 8)]
pyprofs = [sampled, sampled_900_deep, sampled_in(159), sampled_in(200)]
elapsed = {threads, handovers_on_the_wall, *in_threads, *parallels, *pyprofs}
workloads = {f.__name__: f for f in [calls, functions, mixed, opens, imports, execs, threads, audits, collections, finds, depth, raises, allocates, values, handovers, handovers_on_the_wall] +
             in_threads + parallels + pyprofs}


def switched():
    """Calls f_0() to f_999() every few milliseconds, until it is killed."""
    made = make_functions(1000)
    print("ready", flush=True)
    while True:
        for function in made:
            function()
        time.sleep(0.005)


def around(name):
    if name == "cProfile":
        import cProfile

        profile = cProfile.Profile()
        profile.enable()
        return profile.disable
    if name in ("setprofile", "settrace"):
        counts = {}

        def count(frame, event, argument):
            if event == "call":
                code = frame.f_code
                counts[code] = counts.get(code, 0) + 1
            return None

        getattr(sys, name)(count)
        return lambda: getattr(sys, name)(None)
    if name == "tracemalloc":
        import tracemalloc

        tracemalloc.start()
        return tracemalloc.stop
    if name.endswith(".so"):
        import ctypes

        ctypes.PyDLL(name).pass_on()
    if name == "told":
        print("ready", flush=True)
        sys.stdin.readline()
    return lambda: None


def main():
    if sys.argv[1] == "switched":
        switched()
    function = workloads[sys.argv[1]]
    clock = time.perf_counter if function in elapsed else getattr(time, "thread_time", time.process_time)
    if function is handovers:
        clock = time.process_time  # of all threads, with what runs in them in the kernel
    function()
    end = around(sys.argv[2] if len(sys.argv) > 2 else "")
    best = None
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        start = clock()
        operations = function()
        time_each = (clock() - start) / operations
        best = time_each if best is None else min(best, time_each)
    end()
    print("%.3f" % (best * 1e9))


main()

# The events whose instructions "make bench ARGS=instructions" counts.
#
# usage: events.py FILE KIND...
#
# Writes a line "KIND TIME" into FILE for each KIND: the nanoseconds that an event takes where the kernel's clock does not
# tick meanwhile.  The time is the thread's; for round_trips, requests and handovers, which always have something to run,
# and for samples it is elapsed; for markers it is a process's.
#
# SPDX-License-Identifier: MIT

import gc
import mmap
import os
import sys
import threading
import time

THIS = "/srv/bench/events.py"


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls():
    fib(6)
    return 26  # with this one


def lines():
    a = 1
    a = 2
    a = 3
    a = 4
    a = 5
    a = 6
    a = 7
    a = 8
    a = 9
    return 10


def raises():  # and catches
    for _ in range(20):
        try:
            raise ValueError
        except ValueError:
            pass
    return 20


def imports():
    return import_nothing(5)


def collections():
    for _ in range(5):
        gc.collect(0)
    return 5


def audits():
    for number in range(20):
        sys.audit("bench.event", number)
    return 20


def syscalls():
    for _ in range(20):
        os.getppid()
    return 20


def c_calls():
    return syscalls()


def allocations():
    for _ in range(20):
        bytearray(2000)
    return 20


def faults():
    memory = mmap.mmap(-1, 20 * mmap.PAGESIZE, mmap.MAP_PRIVATE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    memory.close()
    return 20


def echo(source, target):
    while os.read(source, 1):
        os.write(target, b"x")
    os._exit(0)


ends = []


def round_trips():  # to a child and back: both sleep once
    if not ends:
        # neither preempts the other that it wakes, whatever ran before
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        to_child, from_child = os.pipe(), os.pipe()
        if not os.fork():
            os.close(to_child[1])
            echo(to_child[0], from_child[1])
        os.close(to_child[0])
        ends.extend((from_child[0], to_child[1]))
    for _ in range(10):
        os.write(ends[1], b"x")
        os.read(ends[0], 1)
    return 20


def request():
    round_trips()


def requests():
    request()
    return 1


def computes(times):
    for _ in range(times):
        for _ in range(80):
            pass


def handovers():
    """What a thread that computes and reads takes longer where another one wakes up meanwhile and waits for the GIL until
    the read, each time.  The other one gets the processor as soon as it wants it."""
    def takes():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not done:
            time.sleep(5e-5)
            takings[0] += 1

    def gives():
        before = takings[0]
        for _ in range(20):
            computes(20)
            os.read(null, 1)
        counts.append(takings[0] - before)

    takings, counts, done = [0], [], []
    null = os.open("/dev/null", os.O_RDONLY)
    alone = median(rounds_of(gives, 25, time.perf_counter_ns)[0])
    counts.clear()
    other = threading.Thread(target=takes)
    other.start()
    took, _ = rounds_of(gives, ROUNDS, time.perf_counter_ns)
    done.append(True)
    other.join()
    os.close(null)
    return undisturbed([(time - alone) / count for time, count in zip(took, counts[1:])])


def markers():  # in a loop in C, without a Python: the driver's, in $ENTRIES.N
    def took(events):
        pid = os.posix_spawn(os.environ["DRIVER"], ["driver", "--always", "%s.%d" % (os.environ["ENTRIES"], events)], {})
        used = os.wait4(pid, 0)[2]
        return (used.ru_utime + used.ru_stime) * 1e9

    few, many = (median([took(events) for _ in range(25)]) for events in (1000, 5000))
    return (many - few) / 4000


loops = []


def steps():  # of tasks
    import asyncio

    async def awaits():
        for _ in range(9):
            await asyncio.sleep(0)

    async def gathers():
        await asyncio.gather(awaits(), awaits())

    if not loops:
        loops.append(asyncio.new_event_loop())
    loops[0].run_until_complete(gathers())
    return 22


def deep(depth, function):
    return deep(depth - 1, function) if depth else function()


KINDS = [calls, lines, raises, imports, collections, audits, syscalls, c_calls, allocations, faults, round_trips, requests, steps]


def median(values):
    return sorted(values)[len(values) // 2]


ROUNDS = 60


def undisturbed(values):
    """Elapsed: that of the round than which an eighth takes less.  Single rounds do, and in most of the others the kernel's clock
    ticks, or a timer of the script's."""
    return sorted(values)[len(values) // 8]


def rounds_of(function, times, clock):
    """The times of each round, and the events of one."""
    function()
    took = []
    for _ in range(times):
        start = clock()
        events = function()
        took.append(clock() - start)
    return took, events


def samples():
    """What a timer takes in most of the rounds that were interrupted: a few are, each is much shorter than its interval."""
    took, _ = rounds_of(lambda: computes(6), 2000, time.perf_counter_ns)
    most = median(took)
    return median([time - most for time in took if time - most > 1500])


def usual(function):
    """Of an event, in an undisturbed round.  The time of a thread has the ticks of few rounds; where interrupts come in others,
    it is less."""
    clock, most = (time.perf_counter_ns, undisturbed) if function in (round_trips, requests) else (time.thread_time_ns, median)
    nothing = median(rounds_of(int, 25, clock)[0])
    # CPython specializes what runs, for a hundred imports
    rounds_of(function, 24, clock)
    took, events = rounds_of(function, ROUNDS, clock)
    return (most(took) - nothing) / events


def measured(kind):
    """A kind is a name, or one and "_DEPTH"."""
    name, _, depth = kind.partition("-")
    function = {"samples": samples, "handovers": handovers, "markers": markers}.get(name) or (lambda: usual({f.__name__: f for f in KINDS}[name]))
    figure = deep(int(depth or 0), function)
    if ends:  # the child is as deep as this
        os.close(ends.pop())
        os.close(ends.pop())
        os.wait()
    return figure


# ---------------------------------------------------------------- what instructions.stp looks at

umasks = []


def stacked(serial, depth, functions, kind):
    """Calls os.umask(KIND * 1000 + DEPTH) nine times where its stack is DEPTH frames deep, of so many new functions in turn."""
    name = "f%03d_%%03d" % serial
    text = ["def leaf():", "    for _ in range(9): umask(%d)" % (kind * 1000 + depth)]
    for number in range(functions):
        text += ["def %s(n):" % (name % number), "    %s(n - 1) if n else leaf()" % (name % ((number + 1) % functions))]
    frame, around = sys._getframe(), 2  # and leaf()
    while frame.f_back:
        frame = frame.f_back
        around += 1
    names = {"umask": os.umask}
    umasks.append(names)  # another function at the place of one would not be a new one
    exec(compile("\n".join(text) + "\n", "/srv/bench/stacks.py", "exec"), names)
    names[name % 0](depth - around - 1)


class Point:
    def __init__(self):
        self.x = 1


class Request:
    def __init__(self):
        self.user = Point()


def valued(request, number, text, flag=None):
    return number


def primitives():
    serial = 0
    for depth in 10, 50, 200, 900:
        for kind in range(7):
            for _ in range(4):
                # Two functions of one slot of the tapset's table read their names each time: few of them, where names are known.
                stacked(serial, depth, depth if kind > 4 else 20, kind)
                serial += 1
    # Of these the outermost 840 frames are known after the first one.
    deep(840, lambda: [stacked(serial + number, 900, 60, 7) for number in range(8)])
    request, text = Request(), "select name, price from items where id=1"
    for number in range(30):
        valued(request, number, text)


def main():
    gc.disable()
    if sys.argv[2:] == ["primitives"]:
        primitives()
        return
    with open(sys.argv[1], "w") as file:
        for kind in sys.argv[2:]:
            file.write("%s %.3f\n" % (kind, measured(kind)))


# Costs must not depend on the length of this folder's path.
if __file__ == THIS:
    main()
else:
    folder = os.path.dirname(__file__)
    __file__ = THIS
    for name in "/srv/bench/nothing.py", THIS:  # constants, whose hashes are known, as those of most files' names
        with open(os.path.join(folder, os.path.basename(name))) as source:
            exec(compile(source.read(), name, "exec"))

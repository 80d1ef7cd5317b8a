# gil.py LIBRARY ROOM: the tapset's C functions in LIBRARY are told of threads that wait for this process's own GIL, and
# that time passes; compares what they charge with what has passed.
#
# SPDX-License-Identifier: MIT

import ctypes
import platform
import sys

library = ctypes.PyDLL(sys.argv[1])  # keeps the GIL
library.gil_here.restype = ctypes.c_longlong
FUTEX = {"x86_64": 202, "ppc64le": 221, "s390x": 238}.get(platform.machine(), 98)  # its number among system calls
MS = 1000000
PROCESS = 100


def ask(name, *arguments):
    function = library["%s_%d" % (name, len(arguments))]
    function.restype = ctypes.c_longlong
    return function(*(a.encode() if isinstance(a, str) else ctypes.c_longlong(a) for a in arguments))


def text(name, *arguments):
    room = ctypes.create_string_buffer(512)
    function = library["%s_%d" % (name, len(arguments))]
    function(room, *(ctypes.c_longlong(a) for a in arguments))
    return room.value.decode()


def expect(wanted, got):
    if wanted != got:
        frame = sys._getframe(1)
        sys.exit("line %d: %r, not %r" % (frame.f_lineno, got, wanted))


def thread(number):
    library.run_thread(number, 0, PROCESS + number, 1, 1, b"python3")
    library.join_process(PROCESS)
    library.run_here()


def switch(number, sleeps, futex=0, free=False):
    "The thread leaves its CPU; free: while no thread has the GIL."
    thread(number)
    library.leave_cpu(0 if sleeps else 1, sleeps)
    library.enter_system_call(FUTEX if futex else -1, ctypes.c_ulong(futex))
    if free:
        library.switch_without_holder(ctypes.c_longlong(sleeps))
    else:
        ask("__python_gil_switch_here", sleeps, 0, 0, 0)


def waits(number, futex, free=False):
    switch(number, 1, futex, free)


def waits_on(number, futex):
    switch(number, 1, futex)


def holds(number):
    thread(number)
    ask("__python_gil_tick", 0, 0)


def passes(ms, on_cpu=0):
    library.__getattr__("pass")(ms * MS, on_cpu * MS)


def charged():
    "Milliseconds and waits of each pair of functions, since the last time."
    found = {}
    for index in range(ask("__python_stacks_sort", 0)):
        stack, names = ask("__python_stack_at", index), []
        while True:
            name = text("__python_stack_name", stack, len(names))
            if not name:
                break
            names.append(name.split()[0])
        inner, outer = names[: names.index("[GIL]")], names[names.index("[GIL]") + 1 :]
        expect("python3", outer[-1])
        # the test's own functions are between
        pair = tuple(next((n for n in part if n in ("waits", "waits_on", "holds", "[free]")), part[0]) for part in (outer, inner))
        sums = ask("__python_stack_sum", stack, 0), ask("__python_stack_count", stack)
        before = charged.before.get(stack, (0, 0))
        charged.before[stack] = sums
        if sums != before:
            found[pair] = ((sums[0] - before[0]) / MS, sums[1] - before[1])
    return found


charged.before = {}


def second():
    ask("__python_gil_second")
    number = ask("__python_gil_next", 0)
    if not number:
        return None
    expect(0, ask("__python_gil_next", number))
    expect(PROCESS, ask("__python_gil_process", number))
    return [ask("__python_gil_" + what, number) / MS for what in ("some", "all")] + [ask("__python_gil_waits", number)]


thread(0)
gil = library.gil_here()
if not gil:
    sys.exit("this thread has the GIL, which is not found")
here = gil + 40  # within its condition

# any other futex
passes(1)
waits(1, gil - 8)
waits(1, gil + (1 << 24))
passes(5)
holds(0)
expect({}, charged())
expect(None, second())

# at a tick, and what is left when the thread runs again
waits(1, here)
passes(2)
holds(0)
expect({("waits", "holds"): (2, 0), ("waits", "waits"): (0, 1)}, charged())
passes(3)
switch(1, 0)  # its time was up: the GIL got to no other thread
waits(1, gil - 8)
expect({("waits", "holds"): (3, 0)}, charged())
passes(5)
switch(1, 1)
expect({}, charged())

# it waits on: to the one that has it now, with its own time in between, and no new wait
waits(2, here)
passes(5, 1)
waits_on(2, here)
told = sys.version_info >= (3, 7)  # 3.6 does not tell whether the GIL got to another thread: that is a new wait
expect(
    {("waits", "waits_on"): (5, 0), ("waits", "waits"): (0, 1)} if told else {("waits", "waits"): (4, 1), ("waits_on", "waits_on"): (0, 1)},
    charged(),
)
passes(4, 1)
waits(2, gil - 8)
expect({("waits" if told else "waits_on", "waits_on"): (3, 0)}, charged())

# the second: two that wait at a time are one part of it
passes(100)
expect([13, 13, 2] if told else [12, 12, 3], second())
expect(None, second())
waits(1, here)
waits(2, here)
passes(10)
waits(1, gil - 8)
waits(2, gil - 8)
passes(100)
some, all, begun = second()
expect((True, 20, 2), (9.5 < some < 10.5, all, begun))

# nobody has it when the wait begins, and then another thread: it is about to be taken, or in 3.6 has just been taken
charged()
waits(1, here, free=True)
expect({("waits", "[free]"): (0, 1)}, charged())
passes(5)
switch(1, 0)
waits(1, gil - 8)
expect({("waits", "[free]"): (5, 0)}, charged())
waits(1, here, free=True)
charged()
passes(5)
waits_on(1, here)
waits(1, gil - 8)
expect({("waits", "waits_on"): (5, 0)}, charged())

# those that still wait at the end
waits(3, here)
passes(7)
before = charged()
ask("__python_gil_end")
expect({("waits", "waits"): (7, 0)}, charged())

# by function
functions = ask("__python_shares_sort_part", "[GIL]", 0)
shares = {text("__python_share_name", i).split()[0]: ask("__python_share_total", i) / MS for i in range(functions)}
expect(50 if told else 46, shares["waits"])
expect(False, "holds" in shares or "[GIL]" in shares or "python3" in shares)
functions = ask("__python_shares_sort_part", "[GIL]", 1)
shares = {text("__python_share_name", i).split()[0]: ask("__python_share_total", i) / MS for i in range(functions)}
expect((5, 13, 27) if told else (5, 8, 31), (shares["holds"], shares["waits_on"], shares["waits"]))
# of a deep holder a tick charges not all waiters at once, but each in its turn (python_gil.stp.in, PYTHON_JOINED_NAMES)
def deep(frames):
    deep(frames - 1) if frames else holds(0)


sys.setrecursionlimit(2000)
for number in range(10, 30):
    waits(number, here)
charged()
passes(1)
deep(700)
expect(3, sum(time for time, begun in charged().values()))
for number in range(10, 30):
    waits(number, gil - 8)
charged()

expect(0, ask("__python_gil_no_waiter"))
print("all as expected")

# calls.py LIBRARY: what the tapset keeps of calls, sleeps and stacks of names, and whether a process is in
# the target, by its C, which is in the library: some threads begin and end calls, while time passes as it
# is told here.
#
# SPDX-License-Identifier: MIT

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p
CALLS = 65536  # tapset/python_calls.stp


def ask(name, *arguments):
    function = getattr(library, "%s_%d" % (name, len(arguments)))
    function.restype = ctypes.c_longlong
    return function(*(a.encode() if isinstance(a, str) else ctypes.c_longlong(a) for a in arguments))


def expect(expected, got):
    if expected != got:
        raise AssertionError("expected %r, got %r" % (expected, got))


def begin(name, frame):
    return ask("__python_call_begin", "x.py", name, frame)


def end(name, frame):
    got = ask("__python_call_end", "x.py", name, frame)
    expect(True, got in (0, ask("__python_function_number", "x.py", name)))
    return got != 0


def thread(number, parent=0, start_time=1, execs=0, program=b"sh"):
    library.run_thread(number, parent, 100 + number, start_time, execs, program)


def ended():
    return [ask("__python_call_" + what) for what in ("time", "own_time", "cpu_time", "own_cpu_time")]


def lost():
    return [ask("__python_calls_no_" + what) for what in ("room", "return", "entry")]


def times():
    expect(1, ask("__python_calls_with_cpu_time"))
    thread(1)
    begin("outer", 1)
    library.pass_(100, 50)
    begin("inner", 2)
    expect(2, ask("__python_call_depth"))
    expect(2, ask("__python_call_frame"))
    library.pass_(1000, 300)
    expect(True, end("inner", 2))
    expect([1000, 1000, 300, 300], ended())
    library.pass_(10, 5)
    # another thread's calls are its own
    thread(2)
    begin("inner", 2)
    library.pass_(7, 7)
    expect(True, end("inner", 2))
    expect([7, 7, 7, 7], ended())
    thread(1)
    begin("inner", 2)
    library.pass_(2000, 600)
    expect(True, end("inner", 2))
    expect(True, end("outer", 1))
    expect([3117, 117, 955, 55], ended())
    expect(0, ask("__python_call_depth"))
    expect([0, 0, 0], lost())


def recursion_and_notes():
    thread(1)
    begin("f", 1)
    ask("__python_call_set_note", 11)
    begin("f", 2)
    ask("__python_call_set_note", 22)
    expect(22, ask("__python_call_note"))
    expect(True, end("f", 2))
    expect(22, ask("__python_call_ended_note"))
    expect(0, ask("__python_call_outermost"))
    expect(11, ask("__python_call_note"))
    expect(True, end("f", 1))
    expect(11, ask("__python_call_ended_note"))
    expect(1, ask("__python_call_outermost"))


def what_is_not_seen():
    thread(1)
    begin("a", 1)
    begin("b", 2)
    begin("c", 3)
    expect(False, end("d", 4))
    expect([0, 0, 1], lost())
    expect(False, end("a", 5))  # the same function, another frame
    expect([0, 0, 2], lost())
    expect(True, end("a", 1))
    expect([0, 2, 2], lost())
    expect(False, end("b", 2))  # nothing is open
    expect([0, 2, 2], lost())
    # another program in the same thread, and another thread with the same number
    begin("a", 1)
    thread(1, execs=1)
    expect(0, ask("__python_call_depth"))
    begin("a", 1)
    thread(1, execs=1, start_time=2)
    expect(0, ask("__python_call_depth"))
    expect(False, end("a", 1))


def room():
    thread(1)
    for number in range(1, CALLS):
        expect(1, begin("deep", number))
    expect(0, begin("deep", CALLS))
    expect(1, lost()[0])
    expect(False, end("deep", CALLS))
    expect(True, end("deep", CALLS - 1))
    expect(1, begin("deep", CALLS))
    # without frames a return may be that of a call without room
    expect(0, begin("deep", 0))
    expect(False, end("deep", 0))
    for number in [CALLS] + list(range(CALLS - 2, 0, -1)):
        expect(True, end("deep", number))
    expect([0, 0], [ask("__python_call_depth"), lost()[1] - 2])


def sleeps():
    thread(3)
    begin("sleeper", 1)
    library.leave_cpu(1, 1)
    expect(0, ask("__python_will_sleep"))  # makes room
    library.leave_cpu(0, 0)
    expect(0, ask("__python_will_sleep"))
    library.leave_cpu(0, 1)
    expect(1, ask("__python_will_sleep"))
    library.leave_cpu(0, 128)  # ends
    expect(0, ask("__python_will_sleep"))
    ask("__python_sleep", 5)
    library.pass_(500, 0)
    number = ask("__python_next_asleep", 0)
    expect([500, 5], [ask("__python_asleep_time", number), ask("__python_asleep_stack", number)])
    expect(0, ask("__python_next_asleep", number))
    library.pass_(100, 40)
    expect(560, ask("__python_slept", 0))
    expect(5, ask("__python_slept_stack"))
    expect(0, ask("__python_slept", 0))
    expect(0, ask("__python_next_asleep", 0))
    expect(True, end("sleeper", 1))


def places():
    numbers = [ask("__python_function_number", "x.py", "f%d" % i) for i in range(12001)]
    expect(12001, len(set(numbers)))
    expect(False, ask("__python_function_number", "x.p", "yf") == ask("__python_function_number", "x.py", "f"))
    expect([2, 1, 2, 0, 1], [ask("__python_function_place", numbers[i], 2) for i in (0, 0, 1, 2, 1)])
    expect([2] * 11998, [ask("__python_function_place", number, 1 << 40) for number in numbers[2:12000]])
    expect(0, ask("__python_function_place", numbers[12000], 1 << 40))
    expect(1, ask("__python_function_place", numbers[11999], 2))


def printed(stack):
    ask("__python_stack_print", stack)
    return library.take_printed().decode()


def stacks():
    main = ask("__python_stack", 0, "main")
    f = ask("__python_stack", main, "f")
    g = ask("__python_stack", f, "g")
    expect([main, f, g], [ask("__python_stack", 0, "main"), ask("__python_stack", main, "f"), ask("__python_stack", f, "g")])
    other = ask("__python_stack", main, "g")
    expect(4, len({main, f, g, other}))
    for stack, time in (g, 10), (main, 3), (other, 50), (g, 30), (g, 5):
        ask("__python_stack_add", stack, time)
    expect(3, ask("__python_stacks_sort"))
    expect([other, g, main], [ask("__python_stack_at", i) for i in range(3)])
    expect([3, 45, 30], [ask("__python_stack_" + what, g) for what in ("count", "time", "longest")])
    expect(["main", "main;f;g", "main;g"], [printed(stack) for stack in (main, g, other)])
    expect(["", 0], [printed(1 << 40), ask("__python_stack_time", -1)])
    # the times that are equal, in the order in which the stacks came
    ask("__python_stack_add", f, 45)
    expect(4, ask("__python_stacks_sort"))
    expect([other, f, g, main], [ask("__python_stack_at", i) for i in range(4)])


def targets():
    for number, parent in (0, 0), (1, 0), (2, 1), (3, 0):
        thread(number, parent)
    inside = []
    for pid in 0, 101, 102, 100, 7:
        library.set_target(pid)
        inside.append([(thread(number, parent), ask("python_in_target"))[1] for number, parent in ((1, 0), (2, 1), (3, 0))])
    expect([[1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]], inside)


def versions():
    said = ctypes.create_string_buffer(512)
    for program, version in (b"python3.11", b"3.11"), (b"python3.12d", b"3.12"), (b"python3", b""), (b"xpython3.9", b""):
        thread(1, program=program)
        library.python_version_0(said)
        expect(version, said.value)


library.pass_ = getattr(library, "pass")
for test in times, recursion_and_notes, what_is_not_seen, room, sleeps, places, stacks, targets, versions:
    try:
        test()
    except AssertionError:
        print(test.__name__)
        raise
print("all as expected")

# calls.py LIBRARY: tries, with the tapset's C functions in LIBRARY, what the tapset keeps of calls, sleeps and
# stacks of names, what it prints of them as JSON, and which processes and files a script looks at.  Threads begin
# and end calls, and the clock shows what this program sets.
#
# SPDX-License-Identifier: MIT

import ctypes
import json
import sys

library = ctypes.CDLL(sys.argv[1])
library.take_printed.restype = ctypes.c_char_p
library.innermost_frame.restype = ctypes.c_longlong
CALLS, ASIDE = 65536, 1024  # tapset/python_calls.stp


def ask(name, *arguments):
    function = getattr(library, "%s_%d" % (name, len(arguments)))
    function.restype = ctypes.c_longlong
    return function(*(as_c(a) for a in arguments))


def as_c(argument):
    if isinstance(argument, int):
        return ctypes.c_longlong(argument)
    return argument if isinstance(argument, bytes) else argument.encode()


# The same of a function that returns a string.
def text_of(name, *arguments):
    said = ctypes.create_string_buffer(512)
    getattr(library, "%s_%d" % (name, len(arguments)))(said, *(as_c(a) for a in arguments))
    return said.value.decode()


def expect(expected, got):
    if expected != got:
        raise AssertionError("expected %r, got %r" % (expected, got))


def begin(name, frame):
    return ask("__python_call_begin", "x.py", name, frame)


numbers = {}


def end(name, frame):
    got = ask("__python_call_end", "x.py", name, frame)
    if got:
        expect(got, numbers.setdefault(name, got))
        expect(len(numbers), len(set(numbers.values())))
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
    expect(2, library.innermost_frame())
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
    expect(False, end("b", 3))  # nothing is open
    expect([0, 2, 2], lost())
    # another program in the same thread, and another thread with the same number
    begin("a", 1)
    thread(1, execs=1)
    expect(0, ask("__python_call_depth"))
    begin("a", 1)
    thread(1, execs=1, start_time=2)
    expect(0, ask("__python_call_depth"))
    expect(False, end("a", 1))


# Calls begin and end in greenlets of one thread, which take turns.
def greenlets():
    before = lost()
    thread(1)
    begin("request", 1)
    begin("step", 2)
    library.pass_(10, 0)
    begin("request", 3)
    begin("step", 4)
    ask("__python_call_set_note", 44)
    library.pass_(100, 0)
    expect(True, end("step", 2))
    expect([110, 1, 1], [ended()[0], ask("__python_call_depth"), ask("__python_call_outermost")])
    begin("step", 2)
    library.pass_(1000, 0)
    expect(True, end("step", 4))
    expect([1100, 1100, 0, 0], ended())
    expect([44, 2, 2], [ask("__python_call_ended_note"), ask("__python_call_depth"), library.innermost_frame()])
    begin("step", 4)
    expect(True, end("step", 4))
    expect(True, end("request", 3))
    expect([1100, 2], [ended()[0], ask("__python_call_depth")])
    expect(True, end("step", 2))
    expect([1000, 1000, 0, 0], ended())
    expect(True, end("request", 1))
    expect([1110, 0, 0, 0], ended())
    # a recursion is found to be one, a call of another greenlet is none
    begin("outer", 1)
    begin("f", 2)
    begin("f", 3)
    expect(True, end("outer", 1))
    begin("f", 4)
    expect([True, 1], [end("f", 4), ask("__python_call_outermost")])
    expect([True, 0], [end("f", 3), ask("__python_call_outermost")])
    expect([True, 1], [end("f", 2), ask("__python_call_outermost")])
    expect(before, lost())


def lost_returns():
    before = lost()
    new = lambda: [now - then for now, then in zip(lost(), before)]
    thread(1)
    # in the frame of a call that was set aside another one begins
    for name, frame in ("a", 1), ("b", 2), ("c", 3):
        begin(name, frame)
    expect(True, end("a", 1))
    begin("d", 2)
    expect([0, 2, 0], new())
    expect(False, end("b", 2))
    expect([0, 2, 1], new())
    expect(True, end("c", 3))
    expect(True, end("d", 2))
    expect([0, 1, 1], new())
    # without frames
    begin("a", 0)
    begin("b", 2)
    expect(True, end("a", 0))
    begin("a", 1)
    expect(False, end("b", 2))
    expect([0, 2, 2], new())
    # too many: the oldest are dropped
    for frame in range(2, ASIDE + 5):
        begin("b", frame)
    expect(True, end("a", 1))
    expect([0, 2 + ASIDE + 3, 2], new())
    expect([False] * 3 + [True] * ASIDE, [end("b", frame) for frame in range(2, ASIDE + 5)])
    expect([0, 5, 2], new())
    # a thread that has ended
    begin("a", 1)
    begin("b", 2)
    expect(True, end("a", 1))
    thread(1, start_time=3)
    expect(0, ask("__python_call_depth"))
    expect(False, end("b", 2))
    expect([0, 6, 2], new())


def forks():
    thread(1)
    library.pass_(10, 10)
    begin("outer", 1)
    ask("__python_call_set_note", 11)
    begin("inner", 2)
    ask("__python_call_set_note", 22)
    library.pass_(70, 20)
    ask("__python_call_fork")
    now = 10000
    # another program, a thread that was there before, and the child, when its parent is elsewhere
    expect(True, end("inner", 2))
    thread(2, parent=1, start_time=now, execs=1)
    ask("__python_call_forked")
    expect(0, ask("__python_call_depth"))
    thread(3, parent=1)
    ask("__python_call_forked")
    expect(0, ask("__python_call_depth"))
    thread(2, parent=1, start_time=now)
    ask("__python_call_forked")
    library.pass_(500, 300)
    expect([2, 2, 22], [ask("__python_call_depth"), library.innermost_frame(), ask("__python_call_note")])
    expect(True, end("inner", 2))
    expect([22, 11], [ask("__python_call_ended_note"), ask("__python_call_note")])
    expect([500, 500, 300, 300], ended())  # from the fork on
    expect(True, end("outer", 1))
    expect(0, ask("__python_call_depth"))
    thread(1)
    expect(1, ask("__python_call_depth"))
    # a child that begins when its parent has returned, and one that was forked after that
    library.pass_(100000, 0)
    expect(True, end("outer", 1))
    thread(2, parent=1, start_time=60000)
    ask("__python_call_forked")
    expect(2, ask("__python_call_depth"))
    thread(2, parent=1, start_time=200000)
    ask("__python_call_forked")
    expect(0, ask("__python_call_depth"))


def room():
    not_returned = lost()[1] + 3
    thread(1)
    # those set aside make room
    for frame in range(4):
        begin("aside", frame + CALLS)
    expect(True, end("aside", CALLS))
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
    expect(False, end("aside", CALLS + 1))
    expect([0, 0], [ask("__python_call_depth"), lost()[1] - not_returned])


# The stack of a sleep that has ended, its time, and the one on the run queue; of those that last, with their number.
def slept():
    return ended_sleep()[:3]


def asleep(number=0):
    six = (ctypes.c_ulonglong * 6)()
    number = library.next_asleep(six, number)
    return [number] + six[:3]


def begin_sleep(stack, queued, since=0):
    return library.begin_sleep(stack, queued, ctypes.c_ulonglong(since))


# With all time off a CPU, the time on one that was not counted before, and when it was measured.
def ended_sleep():
    six = (ctypes.c_ulonglong * 6)()
    library.end_sleep(six)
    return list(six)


def sleeps():
    thread(3)
    library.leave_cpu(1, 1)
    expect(2, library.leaves_cpu())  # makes room
    expect(0, ask("__python_will_sleep"))
    library.leave_cpu(0, 0)
    expect(2, library.leaves_cpu())
    library.leave_cpu(0, 1)
    expect(1, library.leaves_cpu())
    expect(1, ask("__python_will_sleep"))
    library.leave_cpu(0, 128)  # ends
    expect(0, library.leaves_cpu())
    expect(1, begin_sleep(5, 0))
    library.pass_(500, 0)
    number = asleep()[0]
    expect([number, 5, 500, 0], asleep())
    expect([0, 0, 0, 0], asleep(number))
    # it wakes up, and has no CPU yet
    library.queue(1)
    library.pass_(30, 0)
    expect([number, 5, 500, 30], asleep())
    library.queue(0)
    library.pass_(70, 40)
    expect([5, 530, 30], slept())
    expect([0, 0, 0], slept())
    expect([0, 0, 0, 0], asleep())
    # it is preempted
    expect(1, begin_sleep(6, 1))
    library.queue(1)
    library.pass_(80, 0)
    expect([number, 6, 80, 0], asleep())
    library.queue(0)
    library.pass_(25, 20)  # an interrupt is no wait for a CPU
    expect([6, 80, 0], slept())
    # it was about to sleep, so the kernel has not measured that
    expect(1, begin_sleep(6, 1))
    library.pass_(80, 0)
    library.pass_(20, 20)
    expect([6, 80, 0], slept())
    # a sample counts a part of the time on a CPU; what an interrupt takes is off it
    expect(1, begin_sleep(6, 1))
    library.queue(1)
    library.pass_(80, 0)
    library.queue(0)
    library.pass_(25, 20)
    expect(20, library.count_cpu())
    library.pass_(30, 30)
    *sleep, until = ended_sleep()
    expect([6, 80, 0, 85, 30], sleep)
    expect([0] * 6, ended_sleep())
    # what the probe of the switch takes is in the next sleep
    library.pass_(15, 0)
    expect(1, begin_sleep(5, 0, until))
    library.pass_(100, 0)
    expect([5, 115, 0], slept())


def printed(stack, what="stack_print", *more):
    ask("__python_" + what, stack, *more)
    return library.take_printed().decode()


def name_of(stack, outwards=0):
    return text_of("__python_stack_name", stack, outwards)


def of(what, stack):
    return ask("__python_stack_" + what, stack)


def sums(stack):
    return [ask("__python_stack_sum", stack, i) for i in range(4)]


def sorted_by(number):
    return [ask("__python_stack_at", i) for i in range(ask("__python_stacks_sort", number))]


def functions():
    different = []
    for name in ["x.pyf"] + ["f%d" % i for i in range(12000)]:
        begin(name, 1)
        different.append(ask("__python_call_end", "x.py", name, 1))
    begin("f", 1)
    different.append(ask("__python_call_end", "x.py", "f", 1))
    ask("__python_call_begin", "x.p", "yf", 1)
    different.append(ask("__python_call_end", "x.p", "yf", 1))
    expect(12003, len(set(different) - {0}))


def stacks():
    outer = ask("__python_stack_open", 0, "python", "main")
    f = ask("__python_stack_open", outer, "", "f")
    g = ask("__python_stack_open", f, "", "g")
    other = ask("__python_stack_open", outer, "", "g")
    expect([outer, f, g], [ask("__python_stack_open", *rest) for rest in ((0, "python", "main"), (outer, "", "f"), (f, "", "g"))])
    expect(4, len({outer, f, g, other} - {0}))
    for stack, time in (g, 10), (outer, 3), (other, 50), (g, 30), (g, 5):
        ask("__python_stack_add", stack, 1, time, 2, 1, time * 2)
    expect([other, g, outer], sorted_by(0))
    expect([g, outer, other], sorted_by(1)) # what is equal, in the order in which it came
    expect([g, outer, other], sorted_by(-1))
    expect([3, 30, [45, 6, 3, 90]], [of("count", g), of("longest", g), sums(g)])
    expect(["python;main", "python;main;f;g", "python;main;g"], [printed(stack) for stack in (outer, g, other)])
    expect("g\nf\nmain\npython\n", printed(g, "stack_print_lines"))
    expect('["g","f","main","python"]', printed(g, "json_print_names", 0))
    expect('["g","f"]', printed(g, "json_print_names", outer))
    expect('[]', printed(0, "json_print_names", 0))
    expect(["g", "f", "python", "", f], [name_of(g), name_of(g, 1), name_of(g, 3), name_of(g, 4), of("outer", g)])
    expect(["", 0, 0], [printed(1 << 40), of("count", -1), of("count", 0)])
    ask("__python_stack_add", 0, 7, 1, 0, 0, 0)
    expect(7, ask("__python_stacks_no_stack"))
    # since the last time
    expect([3, 5], [ask("__python_stacks_take"), ask("__python_stacks_taken")])
    ask("__python_stack_add", other, 4, 1, 0, 0, 0)
    expect([1, 4, other], [ask("__python_stacks_take"), ask("__python_stacks_taken"), ask("__python_stack_at", 0)])
    expect([4, 1], sums(other)[2:])
    expect([4, 0, 0], [ask("__python_stacks_rest", *part) for part in ((0, 1), (1, 1), (1, 0))])


# Twice: the second time others are sorted first.
def speedscope():
    names = [name for name, _ in JSON if name]
    for time in range(2):
        for at, name in enumerate(names):
            stack = ask("__python_stack_open", 0, b"speed\x1b;\xff", name)
            ask("__python_stack_add", stack, 10**7 * (1 + at * (1 - 2 * time)) + 10**9 * time, 0, 0, 0, 0)
        count = ask("__python_stacks_sort", -1)
        stacks = [ask("__python_stack_at", i) for i in range(count)]
        ask("__python_speedscope_frames", len(names))
        ask("__python_speedscope_samples", "it's \"pyprof\"", "microseconds", len(names), 1000000, 99)
        file = json.loads(library.take_printed().decode())
        frames = [frame["name"] for frame in file["shared"]["frames"]]
        profile, = file["profiles"]
        expect(["sampled", "microseconds", "it's \"pyprof\"", 0], [profile[key] for key in ("type", "unit", "name", "startValue")])
        expect(sum(profile["weights"]), profile["endValue"])
        expect([of("count", stack) * 1000000 // 99 for stack in stacks[:len(names)]], profile["weights"])
        ask("__python_speedscope_samples", "", "bytes", 0, 1, 1)
        expect(True, b',"unit":"bytes",' in library.take_printed())
        expect(len(frames), len(set(frames)))
        expect(set(range(len(frames))), set(sum(profile["samples"], [])))
        expect({text for name, text in JSON if name} | {"speed\x1b;\\377"}, set(frames))
        expect([frames.index("speed\x1b;\\377")] * len(names), [sample[0] for sample in profile["samples"]])
        expect({2}, {len(sample) for sample in profile["samples"]})


def rows():
    for line, time in (10, 5), (9, 6), (10, 5):
        ask("__python_row_add", "x.py", "h", str(line), 1, time, 0, 0, 0)
    h = ask("__python_stack_open", 0, "x.py", "h")
    ask("__python_stack_add", h, 1, 100, 0, 0, 0)
    ask("__python_stack_close", h)
    first, ten, nine = sorted_by(0)
    expect([h, h, "h", "x.py"], [first, of("outer", ten), name_of(h), name_of(h, 1)])
    expect(["x.py", "h", "10", ""], [text_of("__python_row_name", ten, inwards) for inwards in range(4)])
    expect(["x.py", "h", "", ""], [text_of("__python_row_name", h, inwards) for inwards in range(4)])
    expect([[10, 2], [6, 1]], [[sums(row)[0], of("count", row)] for row in (ten, nine)])
    ask("__python_stack_add_in", h, "", "9", 1, 1, 0, 0, 0)
    expect(7, sums(nine)[0])
    ask("__python_stack_add_in", h, "77", "9", 1, 50, 0, 0, 0)
    expect(["x.py", "h", "77", "9"], [text_of("__python_row_name", sorted_by(0)[1], inwards) for inwards in range(4)])
    # by file, line and process
    for process, line, time in ("77", 9, 5), ("8", 9, 4), ("", 10, 3), ("8", 100, 2):
        ask("__python_row_add", process, "y.py", str(line), 1, time * 1000, 0, 0, 0)
    ask("__python_stacks_sort", 0)
    ask("__python_stacks_sort_names", 4)
    expect(["8 9", "77 9", " 10", "8 100"], ["%s %s" % (name_of(row, 2), name_of(row)) for row in (ask("__python_stack_at", i) for i in range(4))])


# A row's cells as text and as JSON.
def table_row(cells):
    for key, text in cells:
        ask("__python_table_cell", key, text)
    ask("__python_table_end")
    return library.take_printed().decode()


def tables():
    columns = "\n%7pid%0depth %10time_us  %-8name %file:%12us_s(LINE)"
    cells = ("pid", "1"), ("depth", "2"), ("time_us", "33"), ("name", '"f"'), ("file", "x.py"), ("us_s", "5.6"), ("tim", "7"), ("time_us_", "7")
    wide = [(key, 12 * text) for key, text in cells]
    ask("__python_table_head", 0, columns)
    expect("\n    PID   TIME(us)  NAME     FILE:       US(s)(LINE)\n", library.take_printed().decode())
    expect('      1         33  "f"      x.py:         5.6\n', table_row(cells))
    expect("%s %s  %s %s:%s\n" % tuple(12 * text for text in ("1", "33", '"f"', "x.py", "5.6")), table_row(wide))
    expect("      1 x.py\n", table_row([cells[0], cells[4]]))
    ask("__python_table_head", 1, columns)
    expect("", library.take_printed().decode())
    expect('{"pid":1,"depth":2,"time_us":33,"name":"f","file":x.py,"us_s":5.6}\n', table_row(cells))
    expect('{"pid":1,"time_us":33}\n', table_row([cells[0], cells[2]]))
    # what the description has no column for, is not there
    for json, expected in (0, "\n"), (1, "}\n"):
        ask("__python_table_head", json, "%lines")
        library.take_printed()
        expect(expected, table_row(cells))
    # names of any length
    ask("__python_table_head", 0, "%-30function %file")
    library.take_printed()
    expect("f" * 511 + " " + "x" * 511 + "\n", table_row((("function", "f" * 511), ("file", "x" * 511))))


def histograms():
    for time in [0, 5, 7, 7, 300, 1 << 30]:
        ask("__python_histogram_add", "", "z.py", "histogram", time)
    row = next(row for row in sorted_by(0) if name_of(row) == "histogram")
    expect([[0, 1], [4, 3], [256, 1], [1 << 30, 1]], json.loads(printed(row, "histogram_print_json")))
    expect([], json.loads(printed(0, "histogram_print_json")))


# Bytes, and the string that JSON has for them.
JSON = (
    (b"", ""),
    (b"<module>", "<module>"),
    (b'"q" \\ /', '"q" \\ /'),
    (b"\1\t\n\r\33[31m\x7f", "\1\t\n\r\33[31m\x7f"),
    ("\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069".encode(), "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"),
    ("caf\xe9 \u65e5\u672c \U0001f40d \x9b \ud7ff \ue000 \uffff \U0010ffff".encode(), "caf\xe9 \u65e5\u672c \U0001f40d \x9b \ud7ff \ue000 \uffff \U0010ffff"),
    # not UTF-8: byte by byte
    (b"a\xffb\xc3", r"a\377b\303"),
    (b"\xe6\x97", r"\346\227"),
    (b"\xf0\x9f\x90\"", r"\360\237\220" + '"'),
    (b"\x80\xbf\xc0\x80\xc1\xbf\xf5\x80\x80\x80", r"\200\277\300\200\301\277\365\200\200\200"),
    (b"\xe0\x9f\xbf \xed\xa0\x80 \xf0\x8f\xbf\xbf \xf4\x90\x80\x80", r"\340\237\277 \355\240\200 \360\217\277\277 \364\220\200\200"),
    (b"\xf8\x90\x80\x80 \xf9\x80\x80\x80 \xfc\x8f\xbf\xbf \xff\x80\x80\x80", r"\370\220\200\200 \371\200\200\200 \374\217\277\277 \377\200\200\200"),
)


def json_strings():
    for text, expected in JSON:
        for got in text_of("__python_json", text), printed(text, "json_print"):
            expect(expected, json.loads(got))
            expect([], [c for c in got if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"])
    # cut: whole escapes and characters, and the quote
    for byte, least in (b"x", 509), (b"\1", 84), (b'"', 254), (b"\xff", 101), ("\u65e5".encode(), 168):
        string = json.loads(text_of("__python_json", byte * (511 // len(byte))))
        expect(True, string == json.loads(text_of("__python_json", byte)) * (len(string) // len(json.loads(text_of("__python_json", byte)))))
        expect(True, least - 6 <= len(string.replace(r"\377", "x")) <= least)
    # what SystemTap has cut in a character has no half of it, and what is printed is whole
    for character in "\xe9", "\u65e5", "\U0001f40d":
        for before in range(8):
            text = (b"x" * before + character.encode() * 300)[:511 - before // 4]
            expect(text.decode(errors="ignore"), json.loads(printed(text, "json_print")))
            expect(True, text.decode(errors="ignore").startswith(json.loads(text_of("__python_json", text))))
    expect(["a", 'b"', "", "c"], json.loads(printed('a\nb"\n\nc\n', "json_print_lines")))
    expect([["a", "b"], []], [json.loads(printed(text, "json_print_lines")) for text in ("a\nb", "")])


# What a terminal would act on, or show as a row of its own, is as in repr().
def printable_texts():
    for text, expected in (
        (b"", ""),
        ("caf\xe9 \u65e5\u672c \U0001f40d \\ ;".encode(), "caf\xe9 \u65e5\u672c \U0001f40d \\ ;"),
        (b"\33]0;title\7 \r\n\t\x7f", r"\x1b]0;title\x07 \r\n\t\x7f"),
        ("\x80\x9b31m\x9f\xa0".encode(), "\\x80\\x9b31m\\x9f\xa0"),
        ("\u061b\u061c\u200d\u200e\u200f\u2027\u2028\u2029\u202a\u202e\u2066\u2069".encode(),
         "\u061b" + r"\u061c" + "\u200d" + r"\u200e\u200f" + "\u2027" + r"\u2028\u2029\u202a\u202e\u2066\u2069"),
        (b"a\x9b \xe6\x97 \xed\xa0\x80", r"a\x9b \xe6\x97 \xed\xa0\x80"),
    ):
        expect(expected, text_of("__python_printable", text))
        stack = ask("__python_stack_open", ask("__python_stack_open", 0, "python", "outer"), "", text)
        if text:
            expect("python;outer;" + expected, printed(stack))
            expect(expected + "\nouter\npython\n", printed(stack, "stack_print_lines"))
    expect("x" * 500 + r"\x1b\x1b", text_of("__python_printable", b"x" * 500 + b"\33" * 11))


# What was used once is evicted, what is used often or held is not, and nothing is lost.
def evictions():
    room = ask("__python_stacks_room")
    held = ask("__python_stack_open", 0, "python", "held")
    total = sum(of("count", row) for row in sorted_by(-1))
    for number in range(room + 1000):
        ask("__python_row_add", "", "start.py", "f%d" % number, 1, 1, 0, 0, 0)
        if number % 100 == 0:
            ask("__python_row_add", "", "work.py", "view", 1, 1, 0, 0, 0)
    left = sorted_by(-1)
    expect((room + 1099) // 100, of("count", next(row for row in left if name_of(row) == "view")))
    evicted, count = ask("__python_stacks_evicted_number"), ask("__python_stacks_evicted_count")
    expect(True, 1000 <= evicted < 1400)
    expect(count, sum(of("count", row) for row in left if name_of(row) == "(other)"))
    expect(evicted + 1, count)  # of the rows before, the line that came twice
    expect(total + room + 1000 + (room + 1099) // 100, sum(of("count", row) for row in left))
    expect(["held", held], [name_of(held), ask("__python_stack_open", 0, "python", "held")])
    expect([0, 7], [ask("__python_stacks_no_name"), ask("__python_stacks_no_stack")])


def targets():
    for number, parent in (0, 0), (1, 0), (2, 1), (3, 0):
        thread(number, parent)
    inside = []
    for pid in 0, 101, 102, 100, 7:
        library.set_target(pid)
        inside.append([(thread(number, parent), ask("python_in_target"))[1] for number, parent in ((1, 0), (2, 1), (3, 0))])
    expect([[1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]], inside)


def files():
    own = """app.py|/srv/shop/app.py|<string>|<template>||/home/a/lib/python/x.py|/srv/lib/python3/x.py|/srv/lib/python3.x/x.py
/opt/lib/python3.11|/opt/lib/python3.11d/x.py|/opt/libs/python3.11/x.py|/opt/lib32/python3.11/x.py|/home/a/site-packages.py
/usr/lib/python3.py|frozen os|/srv/mylib/python.py|/srv/<frozen os>""".replace("\n", "|").split("|")
    others = """/usr/lib/python3.11/threading.py|/usr/lib64/python3.13/os.py|/usr/local/lib/python3.12/site-packages/flask/app.py
/home/a/.venv/lib/python3.9/site-packages/x.py|/srv/site-packages/x.py|/usr/lib/python3/dist-packages/gunicorn/config.py
/opt/dist-packages/x.py|/opt/x/lib/python3.13t/os.py|<frozen importlib._bootstrap>|<frozen os>|/usr/lib/python3/x.py
/root/.pyenv/versions/3.6.15/lib/python3.6/os.py|/srv/lib/x/lib64/lib/python3.6/os.py""".replace("\n", "|").split("|")
    expect(own, [file for file in own + others if ask("__python_users_file", file)])


def versions():
    said = ctypes.create_string_buffer(512)
    for program, version in (b"python3.11", b"3.11"), (b"python3.12d", b"3.12"), (b"python3", b""), (b"xpython3.9", b""):
        thread(1, program=program)
        library.python_version_0(said)
        expect(version, said.value)


library.pass_ = getattr(library, "pass")
for test in (
    times,
    recursion_and_notes,
    what_is_not_seen,
    greenlets,
    lost_returns,
    room,
    sleeps,
    functions,
    stacks,
    rows,
    tables,
    json_strings,
    printable_texts,
    evictions,
    histograms,
    targets,
    files,
    versions,
    forks,
    speedscope,
):
    try:
        test()
    except AssertionError:
        print(test.__name__)
        raise
print("all as expected")

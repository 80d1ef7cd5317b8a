# objects.py LIBRARY ROOM audited|stacks|running: reads this process with the tapset's C functions in LIBRARY, and
# compares python_argstr() with what workloads/audited.py expects, or python_backtrace() with the stack that
# Python walks, in each frame of workloads/stacks.py.  ROOM is the size of SystemTap's strings.
#
# SPDX-License-Identifier: MIT

import contextlib
import ctypes
import io
import os
import re
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.__python_stack_take_and_hold_3.restype = ctypes.c_longlong
library.take_printed.restype = ctypes.c_char_p
library.__python_find_object_in_1.restype = library.__python_find_object_counted_at_1.restype = library.__python_caller_2.restype = library.__python_int_1.restype = library.__python_local_object_2.restype = ctypes.c_longlong
library.take_reads.restype = ctypes.c_ulong
room = ctypes.create_string_buffer(int(sys.argv[2]))
workload = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads", sys.argv[3].replace("running", "stacks") + ".py")
with open(workload, "rb") as file:
    source = file.read().decode("utf-8")
sys.path.insert(0, os.path.dirname(workload))
compared = 0


def string(function, *arguments):
    function(room, *(argument if isinstance(argument, bytes) else ctypes.c_longlong(argument) for argument in arguments))
    return room.value.decode("utf-8")


def compare(expected, got):
    global compared
    compared += 1
    if expected != got:
        sys.exit("expected %r\n     got %r" % (expected, got))


def cut(text, last, unit):
    "The part of a text that fits before the last word, and whether it was cut."
    whole = []
    left = len(room) - 1 - len(last)
    for piece in re.findall(unit, text, re.DOTALL):
        left -= len(piece.encode("utf-8"))
        whole.append(piece)
        if left < 0:
            return "".join(whole[:-1]), True
    return text, False


def audited():
    events = []
    sys.audit = lambda event, *arguments: events.append("stap" + string(library.python_argstr_1, id(arguments)))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, workload, "exec"), {})
    lines = said.getvalue().splitlines()
    compare(len(lines), len(events))
    for line, event in zip(lines, events):
        compare(line, event)
    # with exact room for the last byte, and with too little
    for length in range(len(room) - 10, len(room) + 3):
        arguments = ("x" * 200,) * 4 + (1, "x" * (length - 823))
        text = repr(arguments)
        compare(length, len(text))
        most = len(room) - 1 - len("...")
        compare(text if len(text) <= most else text[:most] + "...", string(library.python_argstr_1, id(arguments)))
    compare("", string(library.python_argstr_1, 0))
    compare("<unknown>", string(library.python_argstr_1, 0xDEAD))


def stack_of(frame):
    lines = []
    while frame:
        name = frame.f_code.co_filename.replace("\x1b", "\\x1b").replace("\n", "\\n")
        lines.append('File "%s", line %d, in %s\n' % (name, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return lines


def address_of(frame):
    "As markers pass it: of the object up to 3.10, of its _PyInterpreterFrame from 3.11 on."
    return id(frame) if sys.version_info < (3, 11) else ctypes.c_ulong.from_address(id(frame) + object.__basicsize__ + 8).value


def here(last=None):
    frame = sys._getframe(1)
    lines = stack_of(frame)
    address = address_of(frame)
    library.print_python_backtrace_2(ctypes.c_longlong(address), ctypes.c_longlong(1000))
    compare("".join(lines), library.take_printed().decode("utf-8"))
    compare("".join(lines[:1]) + ("...\n" if len(lines) > 1 else ""), string(library.python_backtrace_2, address, 1))
    text, full = cut("".join(lines), "<unknown>\n", "[^\n]*\n")
    compare(text + ("...\n" if full else ""), string(library.python_backtrace_2, address, 1000))
    return last


def run_stacks(here):
    # all but its own here()
    text = re.sub(r"def here\(.*?\n\n\n", lambda found: "\n" * found.group().count("\n"), source, flags=re.DOTALL)
    exec(compile(text, workload, "exec"), {"here": here})


def running_here(last=None):
    "The stack of this thread, as a probe finds it that interrupts it."
    library.run_here()
    frame = sys._getframe()
    # one line, as it is in the stack
    lines = stack_of(frame); library.print_python_backtrace_2(0, 1000)
    compare("".join(lines), library.take_printed().decode("utf-8"))
    compare("string", string(library.python_funcname_0))
    return last


def sampled_here(last=None):
    "The names of the same stack, read from the process, and then found by what is kept of them."
    library.run_here()
    names = []
    frame = sys._getframe()
    while frame:
        names.append("%s (%s)\n" % (frame.f_code.co_name, frame.f_code.co_filename.replace("\x1b", "\\x1b").replace("\n", "\\n")))
        frame = frame.f_back
    for _ in range(2):
        library.__python_stack_print_lines_1(ctypes.c_longlong(library.__python_stack_take_and_hold_3(b"", 0, 0)))
        compare("".join(names).replace(";", ":"), library.take_printed().decode("utf-8"))
    return last


def sample(number):
    library.run_here()
    stack = library.__python_stack_take_and_hold_3(b"program", 0, 0)
    compare("f_%d (<string>)" % number, string(library.__python_stack_name_2, stack, 1))


def names():
    "Code objects that are freed, each with another one at its address."
    for number in range(500):
        scope = {}
        exec("def f_%d(sample):\n    sample(%d)" % (number, number), scope)
        scope["f_%d" % number](sample)


def modules():
    "The name of the module, in globals of all kinds."
    code = compile("library.run_here()\nlibrary.python_modulename_0(room)\nresult = room.value.decode('utf-8')", "x.py", "exec")
    many = {str(number): number for number in range(2000)}
    deleted = {str(number): number for number in range(300)}
    deleted["__name__"] = "behind.deleted"
    for number in range(300):
        del deleted[str(number)]
    for expected, scope in (
        ("a.b", {"__name__": "a.b"}), ("", {}), ("", {1: 2, "__name": "x", "__name__s": "x", "__nam\xe9__": "x"}),
        ("mixed", {"__name__": "mixed", 1: 2}), ("m\xf6d\u4e00", {"__name__": "m\xf6d\u4e00"}), ("<unknown>", {"__name__": 3}),
        ("<unknown>", many), ("first", dict(__name__="first", **many)), ("behind.deleted", deleted),
    ):
        scope.update(library=library, room=room)
        exec(code, scope)
        compare(expected, scope["result"])


def sample_line(expected):
    library.run_here()
    stack = library.__python_stack_take_and_hold_3(b"", 1, 0)
    compare("f (<string>:%d)" % expected, string(library.__python_stack_name_2, stack, 1))


def lines():
    "The same of functions of one name, whose lines alone are others."
    for number in range(500):
        # at each place of an address anew: the first line; where in the function; and far behind what is the same
        for before, within in (number % 7, 0), (0, number % 5), (3, 2 + number % 3):
            scope = {}
            calls = "    g()\n" * 40 if before == 3 else ""
            source = "\n" * before + "def f(sample, g):\n" + calls + "\n" * within + "    sample(%d)\n" + "\n" * (8 - within) + "    g()\n"
            exec(source % (source.count("\n", 0, source.index("sample(%")) + 1), scope)
            scope["f"](sample_line, int)


def recursive(depth, function):
    return recursive(depth - 1, function) if depth else function()


def sample_reads(style):
    library.run_here()
    library.take_reads()
    if library.__python_stack_take_and_hold_3(b"", style, 0) <= 0:
        sys.exit("no stack")
    return library.take_reads()


def reads():
    "Once known, names need no more reads of a frame than what tells that they are the same, also with lines."
    for style, most in (0, 4), (1, 13):  # words of the line table among them
        counts = [recursive(100, lambda: sample_reads(style)) for _ in range(2)]
        print("%d reads, then %d" % tuple(counts))
        if counts[1] > most * 106:
            sys.exit("too many")


def known():
    "Names of a stack that was seen before are not read again, also where the file's name has no hash yet."
    def sample_again():
        library.run_here()
        for _ in range(2):
            library.take_bytes()
            library.__python_stack_take_and_hold_3(b"program", 0, 0)
        # six words a frame; a name with its type takes some 300 bytes
        compare(True, library.take_bytes() < 40 * 100 + 3000)

    lines = ["def f_0(call):\n    call()"] + ["def f_%d(call):\n    f_%d(call)" % (i, i - 1) for i in range(1, 40)]
    scope = {}
    exec(compile("\n".join(lines), os.path.join("/srv", "known.py"), "exec"), scope)
    scope["f_39"](sample_again)


def running():
    run_stacks(running_here)
    run_stacks(sampled_here)
    names()
    modules()
    lines()
    reads()
    known()
    failed = []

    def thread():
        try:
            run_stacks(running_here)
        except BaseException as error:
            failed.append(error)

    other = threading.Thread(target=thread)
    other.start()
    other.join()
    compare([], failed)


def stacks():
    run_stacks(here)
    frame = sys._getframe()
    for none in (0xDEAD, address_of(frame) + 8, id(len)) + ((id(frame),) if sys.version_info >= (3, 11) else ()):
        compare("<unknown>\n", string(library.python_backtrace_2, none, 64))
    compare("...\n", string(library.python_backtrace_2, address_of(frame), 0))
    compare(sys.version.split()[0], string(library.python_version_0))


def look(arguments, paths, depth=0):
    frame = sys._getframe(1 + depth)
    library.run_here()
    frameptr = library.__python_caller_2(ctypes.c_longlong(0), ctypes.c_longlong(1 + depth)) if depth else address_of(frame)
    compare(address_of(frame), frameptr)
    if arguments is not None:
        expected = arguments.replace("%s", "<function look at 0x%x>" % id(look))
        compare(expected, string(library.__python_args_1, frameptr))
    for path, wanted in paths.items():
        text = wanted if isinstance(wanted, str) and re.match("<.*>$", wanted) else repr(wanted)
        compare((path, text), (path, string(library.__python_local_2, frameptr, path.encode())))
        address = library.__python_local_object_2(ctypes.c_longlong(frameptr), path.encode())
        compare((path, wanted if isinstance(wanted, int) else 0), (path, library.__python_int_1(ctypes.c_longlong(address))))
        compare((path, wanted if text == repr(wanted) and isinstance(wanted, str) else ""), (path, string(library.__python_str_1, address)))
    if frame.f_code.co_flags & 1 and sys.version_info >= (3, 7):  # 3.6 has f_locals in another order
        shown = string(library.__python_locals_1, frameptr)
        wanted = ["%s=%s" % (name, "<function look at 0x%x>" % id(look) if value is look else repr(value)) for name, value in frame.f_locals.items()]
        if not any(" object at " in one or "function " in one.replace("<function look", "") for one in wanted) and len(", ".join(wanted)) < len(room):
            compare(", ".join(wanted), shown)


@contextlib.contextmanager
def nameless(built_in):
    "The built-in type's name (tp_name) is on a page that is not in memory."
    name = ctypes.c_ulong.from_address(id(built_in) + object.__basicsize__ + 8)
    before, name.value = name.value, 4096
    yield
    name.value = before


def values():
    import values

    library.run_here()
    for object in values.SAME:
        compare(repr(object), string(library.__python_repr_1, id(object)))
    for object, text in values.OTHER:
        compare(text, string(library.__python_repr_1, id(object)))
    for object in values.SAME + [object for object, _ in values.OTHER]:
        name = type(object).__module__ + "." + type(object).__qualname__
        compare(name.replace("builtins.", ""), string(library.__python_typename_1, id(object)))
    for number in 0, 1, -1, 2**30, -(2**62), 2**63 - 1, True:
        compare(number, library.__python_int_1(ctypes.c_longlong(id(number))))
    for text in "", "x", "it's \x1b[0m \xe4\u4e2d\U0001f40d":
        compare(text, string(library.__python_str_1, id(text)))
    compare(("", 0, ""), (string(library.__python_repr_1, 0), library.__python_int_1(0), string(library.__python_str_1, 0)))
    with nameless(bool):
        texts = [string(library.__python_repr_1, id(object)) for object in (True, False, 1)]
    compare(["True", "False", "1"], texts)
    blocks()
    counted()
    values.calls(look)
    for none in 1000, 1001:  # the stack isn't so deep
        compare("<unknown>", string(library.__python_args_1, library.__python_caller_2(ctypes.c_longlong(0), ctypes.c_longlong(none))))


def blocks():
    "Which object is in a block of memory, from where it begins: what is before an object counts for its size."

    class Plain(object):
        pass

    class Slots(object):
        __slots__ = ("a",)

    class Weak(object):
        __slots__ = ("__weakref__",)

    class Error(Exception):
        pass

    plain = Plain()
    plain.x = 1
    for object_ in (1.5, 10**30, "x" * 100, "\xe4" * 9, b"x", bytearray(9), [1], (1, 2), {}, {"a": plain}, {1}, frozenset([1]), object(), plain, Slots(),
                    Weak(), Error(1), ValueError(), Plain, blocks, lambda: 0, iter([]), (_ for _ in ()), re.compile("x"), io.StringIO(), type("C", (int,), {})(7)):
        head = sys.getsizeof(object_) - type(object_).__sizeof__(object_)
        compare((object_, id(object_)), (object_, library.__python_find_object_in_1(ctypes.c_longlong(id(object_) - head))))
    for items in [1.5, plain, "x", [1], Error()] * 9, [Plain, int, type] * 9:
        compare(0, library.__python_find_object_in_1(ctypes.c_longlong.from_address(id(items) + list.__basicsize__ - 16)))
        compare(0, library.__python_find_object_counted_at_1(ctypes.c_longlong.from_address(id(items) + list.__basicsize__ - 16)))
    text = ctypes.create_string_buffer(b"some text and no object in it" * 9)
    for block in 0, 8, 1 << 47, ctypes.addressof(text):
        compare(0, library.__python_find_object_in_1(ctypes.c_longlong(block)))
        compare(0, library.__python_find_object_counted_at_1(ctypes.c_longlong(block)))


def counted():
    "Which object has its count of references, or its head for the collector, at an address."
    free_threaded = object.__basicsize__ > 16
    collected = 1 << 14  # Py_TPFLAGS_HAVE_GC
    for object_ in 1.5, 10**30, "x" * 100, b"x", [1], (1, 2), {"a": 1}, {1}, object(), counted, Exception(), type("C", (), {})(), int:
        places = (11, 12, 16) if free_threaded else (0, -8, -16) if type(object_).__flags__ & collected else (0,)
        for place in places:
            compare((object_, place, id(object_)), (object_, place, library.__python_find_object_counted_at_1(ctypes.c_longlong(id(object_) + place))))
        # what is behind these: the class
        compare((object_, 0), (object_, library.__python_find_object_counted_at_1(ctypes.c_longlong(id(object_) + object.__basicsize__ - 8))))
    a_count_is_an_address(object())


def a_count_is_an_address(object_):
    "So many references that their count is an address at which the process has memory: of 3.11's static objects it is often."
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(ctypes.c_void_p(0x3B9AC000), ctypes.c_size_t(65536), 3, 0x22, -1, ctypes.c_long(0))  # MAP_PRIVATE, MAP_ANONYMOUS
    if page != 0x3B9AC000:  # something else is there
        return
    ctypes.memset(page, 0x41, 65536)
    count = ctypes.c_ssize_t.from_address(id(object_) + object.__basicsize__ - 16)
    for more in range(8):
        count.value += page + more
        found = library.__python_find_object_counted_at_1(ctypes.c_longlong(ctypes.addressof(count)))
        count.value -= page + more
        compare((more, id(object_)), (more, found))


globals()[sys.argv[3]]()
print(compared, "compared")

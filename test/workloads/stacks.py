# Calls here() in every kind of frame, and prints the stack at its entry and at its return in the form of
# python_backtrace(): a probe must print the same.
#
# SPDX-License-Identifier: MIT

import sys


def here(last=None):
    frame = sys._getframe()
    first = frame.f_code.co_firstlineno
    entry, end = [(first, frame)], [(first + 14, frame)]
    frame = frame.f_back
    while frame:
        entry.append((frame.f_lineno, frame))
        end.append((frame.f_lineno, frame))
        frame = frame.f_back
    for stack in entry, end:
        for line, frame in stack:
            code = frame.f_code
            name = code.co_filename.replace("\x1b", "\\x1b").replace("\n", "\\n")
            print('File "%s", line %d, in %s' % (name, line, code.co_name))
    return last


def generator():
    here()
    got = yield 1
    yield (
        here(),
        got,
    )


async def coroutine():
    here()


class Body:
    here()

    def method(self):
        return here(
            self
        )

    @property
    def attribute(self):
        here(); return 1


class Made:
    def __init__(self, called):
        called()


# From 3.13 on CPython calls such an __init__() after some times from a frame of its own, that of _Py_InitCleanup.
def makes(called):
    for call in [int] * 1000 + [called]:
        Made(call)


def recursive(depth):
    if depth == 0:
        return here()
    return recursive(depth - 1)


def through_c(number):
    here()
    return -number


def with_exception():
    try:
        raise ValueError
    except ValueError:
        here()
    finally:
        here()


def many_lines():
    total = 0
    total += 1



















    here()
    for total in range(2):
        if total:
            here()


def main():
    here()
    list(generator())
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    Body().method()
    Body().attribute
    makes(here)
    recursive(30)
    sorted([1, 2], key=through_c)
    with_exception()
    many_lines()
    [here() for _ in range(2)]
    (lambda: here())()
    exec(compile("\n\n\nhere()", "<a\u0142 \u4e2d \U0001f40d>", "exec"), {"here": here})
    scope = {"here": here}
    exec(compile("def na\u00efve\u0142\u4e2d():\n    here()\nna\u00efve\u0142\u4e2d()", "\x1b[31m\n", "exec"), scope)
    exec(compile("def same():\n    here()\nsame()", "same", "exec"), scope)
    long = "\n" * 100000 + "def far():\n    here()\nfar()"
    exec(compile(long, "far.py", "exec"), scope)
    wide = "def wide():\n" + "    x = 1\n" * 3000 + "    here()\nwide()"
    exec(compile(wide, "wide.py", "exec"), scope)


main()
here()

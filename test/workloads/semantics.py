# Every way in which a frame starts, resumes and ends, except those that CPython
# reports wrongly to a profile function in Python.  The suites compare the events
# at the markers with those that expect.py sees.
#
# SPDX-License-Identifier: MIT
import functools
import sys


def raises():
    raise ValueError("on purpose")


def catches():
    try:
        raises()
    except ValueError:
        return "caught"


def passes_through():
    raises()


def cleans_up():
    try:
        raises()
    finally:
        len("cleaned")


def exceptions():
    catches()
    for function in passes_through, cleans_up:
        try:
            function()
        except ValueError:
            pass
    try:
        int("no number")
    except ValueError:
        pass
    try:
        len()
    except TypeError:
        pass


def counter(limit):
    n = 0
    while n < limit:
        got = yield n
        n += got or 1


def careful():
    try:
        yield 1
        yield 2
    except KeyError:
        yield 3
    finally:
        len("closed")


def delegates():
    result = yield from careful()
    return result


def generators():
    list(counter(3))
    sending = counter(10)
    next(sending)
    sending.send(5)
    throwing = delegates()
    next(throwing)
    throwing.throw(KeyError("in"))
    throwing.close()
    unstarted = counter(1)
    unstarted.close()
    unstarted = counter(1)
    try:
        unstarted.throw(KeyError("early"))
    except KeyError:
        pass
    sum(x * x for x in range(3))
    {x: x for x in [x for x in (1, 2)]}


class Awaitable:
    def __await__(self):
        got = yield "waiting"
        return got


async def inner(value):
    got = await Awaitable()
    return value + got


async def outer():
    first = await inner(1)
    second = await inner(2)
    return first + second


async def ticks():
    for i in range(2):
        yield i


async def consumes():
    total = 0
    async for i in ticks():
        total += i
    return total


def run(coroutine):
    try:
        coroutine.send(None)
        while True:
            coroutine.send(10)
    except StopIteration as stop:
        return stop.value


def coroutines():
    run(outer())
    run(consumes())


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@logged
def decorated(a, b=2):
    return a + b


class Base:
    value = len("class body")

    def __init__(self, x):
        self.x = x

    @property
    def double(self):
        return 2 * self.x

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def nothing():
        pass

    def __getattr__(self, name):
        return name

    def __eq__(self, other):
        return self.x == other.x

    def __len__(self):
        return 3


class Derived(Base):
    def __init__(self, x):
        super().__init__(x + 1)


def objects():
    thing = Derived.make(1)
    thing.double
    thing.missing
    thing.nothing()
    thing == Base(2)
    len(thing)
    del thing


def one_line_loop():
    n = 0
    while n < 3: n += 1  # fmt: skip
    for i in range(3): n += i  # fmt: skip
    return n


def builtins():
    sorted([3, 1, 2], key=lambda x: -x)
    "a,b".split(",")
    str.upper("x")
    [].append(1)
    list(map(str, (1, 2)))
    max(1, 2)
    isinstance(1, int)
    print("printed", file=sys.stdout)


def executes():
    exec(compile("def made():\n    return 1\nmade()\n", __file__, "exec"), {"__name__": "made"})
    eval("(lambda: 1)()")


if sys.version_info >= (3, 8):
    exec("""
def walrus():
    if (n := len("x")) and [m := n, m]:
        return m
""")
else:

    def walrus():
        pass


def main():
    exceptions()
    generators()
    coroutines()
    factorial(5)
    decorated(1, b=3)
    objects()
    one_line_loop()
    builtins()
    executes()
    walrus()


main()

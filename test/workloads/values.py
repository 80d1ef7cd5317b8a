# Objects of all kinds, and functions with variables of all kinds, for test/tapset/objects.py.
#
# SPDX-License-Identifier: MIT

import collections
import datetime
import decimal
import enum
import fractions
import sys
import uuid


class Plain:
    shared = "of the class"

    def __init__(self, x, y=2):
        self.x = x
        self.y = y

    @property
    def computed(self):
        return 1

    def method(self):
        return self.x

    def generates(self):
        yield self


class Child(Plain):
    pass


class Slots:
    __slots__ = ("a", "b", "c")

    def __init__(self, a):
        self.a = a
        self.b = [a]


class Both(Slots):
    pass


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Number(enum.IntEnum):
    ONE = 1


class Text(str):
    pass


class Mapping(dict):
    pass


class Error(Exception):
    pass


Point = collections.namedtuple("Point", "x y")

if sys.version_info >= (3, 7):
    import dataclasses

    @dataclasses.dataclass
    class Data:
        name: str
        size: int = 3

    @dataclasses.dataclass
    class Derived(Data):
        more: tuple = ()

    @dataclasses.dataclass
    class Wide:
        größe: int
        大: int
        b: int

    DATA = [Wide(1, 2, 3), Data("a"), Derived("b", 2, (1,)), [Data("c", 4)]]
else:
    DATA = []


def function(a, b=2):
    return a


def around():
    outer = 1

    def within():
        return outer

    return within


def generator():
    yield 1


changed = {"a": 1, "b": 2, "c": 3}
del changed["b"]
changed["d"] = 4
late = Plain(1)
del late.x
late.z = 3
late.x = 4
many = Plain(0)
for number in range(40):
    setattr(many, "n%d" % number, number)
itself = [1]
itself.append(itself)
shared = (1, 2)

# those whose text is repr()
class Day(datetime.date):
    pass


async def coroutines():
    pass


async def asynchronous():
    yield 1


coroutine = coroutines()
coroutine.close()
UTC = datetime.timezone.utc
ZONE = datetime.timezone(datetime.timedelta(hours=2), "CEST")
DECIMALS = """0 -0 1 -1.5 1.10 0.001 0.000001 0.0000001 1E+5 1.5E-10 -12E+3 0E-10 0E+3 1E-6 1E-7 123456789012345678901234567890.5
    9999999999999999999 10000000000000000000 1.00000000000000000000000000000000000001 Infinity -Infinity NaN -NaN sNaN NaN123"""
if "__slots__" in vars(decimal.Decimal):  # without its C module
    DECIMALS = ""
SAME = [decimal.Decimal(text) for text in DECIMALS.split()] + [
    None, True, False, 0, 1, -1, 2**29, 2**30, -(2**30), 2**60, 2**63, 2**64, -(2**64), 10**18, 10**19, 7 * 10**100, -(3**300),
    0.0, -0.0, 1.0, 0.1, -2.5, 1 / 3, 2 / 3, 1e15, 1e16, 1e17, 123456789012345678.0, 1e22, 1e23, 1.5e300, 1e-4, 1e-5, 5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 9007199254740993.0, 0.3, 2.0**-1074,
    4.35, 0.000123456, 100.0, 1e2, 5e-310, 9.5, 9.999999999999999e22, 2.0**70, 2.0**-30,
    1j, 2 + 3j, -1.5 - 2j, complex(0.0, -1), complex(-0.0, 1), complex(1, float("nan")), complex(2, float("-inf")),
    "", "a", "it's", 'say "x"', "\u061b\u061c \u200e\u200f\u2010 \u2027\u2028\u2029\u202a\u202e \u2066\u2069", "both ' and \"", "tab\t nl\n \\ \x00 \x7f", "\xe4\xf6 \u4e2d \U0001f40d",
    # a character with the byte of a quote; quotes beside wide characters
    "\u2713", "\u2227\U0001f427", "it's \u2208", 'say "\u2208"', "it's \"\U0001f40d\"",
    b"", b"bytes\x00\xff", b"it's", b"both ' and \"", bytearray(b"abc\x80"), bytearray(),
    (), (1,), (1, 2), [], [1, [2, [3]]], shared, [shared, shared],
    {}, {"a": 1}, {1: "x", (2, 3): None, "k": [1]}, changed, Mapping(a=1), {"x": {"y": {"z": 1}}},
    vars(Plain(1)), vars(Child(5, 6)), vars(late), {"many": 1, **{str(n): n for n in range(14)}},
    set(), {1}, frozenset(), frozenset({"a"}), {1, 2, 3}, frozenset({(1, 2)}),
    range(3), range(1, 9), range(0, 10, 3), slice(1, 2, None), slice(None, None, -1), Ellipsis, NotImplemented,
    int, str, type, Plain, collections.OrderedDict, Error, ValueError,
    function, around, around(), function.__class__,
    generator(), Plain.generates(None), coroutine, asynchronous(),
    datetime.date(2026, 1, 2), datetime.date(1, 12, 31), datetime.datetime(2026, 11, 23, 4, 5),
    datetime.datetime(2026, 11, 23, 0, 0, 5), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    datetime.datetime(2026, 10, 25, 2, 30, fold=1), datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZONE, fold=1),
    datetime.time(0), datetime.time(1, 2, 3), datetime.time(1, 2, 0, 65536), datetime.time(1, 2, tzinfo=UTC, fold=1),
    datetime.timedelta(0), datetime.timedelta(-1, 5), datetime.timedelta(1, 0, 7), datetime.timedelta(0, 86399, 999999),
    UTC, ZONE, datetime.timezone(datetime.timedelta(hours=-5, minutes=1)), datetime.timezone(datetime.timedelta(0), "Z"),
    uuid.UUID(int=5), uuid.UUID(int=2**128 - 1), uuid.UUID("0123456789abcdef0123456789abcdef"), uuid.UUID(int=0),
    Error(), Error(1, "two"), KeyError("k", 2), OSError(2, "No such file"), StopIteration(),
    Color.RED, Color.BLUE, Number.ONE, [Color.RED], Point(1, "y"), (Point(Point(1, 2), 3),),
    Text("of a class"),
] + DATA

# a text with an address, or of a class that writes itself otherwise
OTHER = [
    (Color, "<class 'values.Color'>"), (Plain(1), "<values.Plain>"), (object(), "<object>"), (Slots(1), "<values.Slots>"), ([Plain(1)], "[<values.Plain>]"),
    (fractions.Fraction(1, 2), "<fractions.Fraction>"), (iter([]), "<list_iterator>"),
    (Plain(1).method, "<bound method Plain.method of <values.Plain>>"), (len, "<builtin_function_or_method>"),
    (sys, "<module 'sys'>"), (collections, "<module 'collections' from %r>" % collections.__file__),
    (decimal.Decimal(10**80), "<decimal.Decimal>"), (Day(2026, 1, 2), "<values.Day>"),
    (2**700, "<int of 701 bits>"), (list(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, ...]"),
    ({n: n for n in range(17)}, "{" + ", ".join("%d: %d" % (n, n) for n in range(16)) + ", ...}"),
    (itself, "[1, [1, [1, [1, [...]]]]]"), ({1: {1: {1: {1: {1: 2}}}}}, "{1: {1: {1: {1: {...}}}}}"),
    ("x" * 300, "'" + "x" * 256 + "...'"), (bytearray(b"y" * 300), "bytearray(b'" + "y" * 256 + "...')"),
    (collections.OrderedDict(a=1), "{'a': 1}"), (Error("x" * 3, [Plain(1)]), "Error('xxx', [<values.Plain>])"),
]


# an attribute that a built-in class computes: from 3.12 on the dicts of these are elsewhere
BUILT_IN = "<computed>" if sys.version_info < (3, 12) else "<not there>"


# each calls look(arguments, {path: object, None for what isn't there}, callers further out)
def plain_arguments(look, a, b, c=3):
    look("look=%s, a=1, b='two', c=3", {"a": a, "b": b, "c": c})


def all_arguments(look, a, *rest, key, other="o", **more):
    look("look=%s, a=1, *(2, 3), key=4, other='o', **{'x': 5}", {"rest": rest, "more['x']": 5, "rest[-1]": 3, "key": 4})


def celled(look, a, *rest, b=2, **more):
    c = [a]

    def within():
        return a, b, c, rest, more, look

    look("look=%s, a=1, *(7,), b=2, **{}", {"a": 1, "b": 2, "c": [1], "c[0]": 1, "rest": (7,)})
    return within


def free(look):
    variable = {"k": (1, [2])}

    def inner():
        look("", {"variable": variable, "variable['k']": (1, [2]), "variable['k'][1][0]": 2, 'variable["k"][0]': 1})

    inner()


def unset(look):
    look("look=%s", {"later": "<unset>", "never": "<not there>", "look.never": "<not there>"})
    later = None
    look("look=%s", {"later": None})
    del later


def paths(look, self, rows, environ, late, many, both):
    look(None, {
        "self.x": 1, "self.y": 2, "self.shared": "of the class", "self.computed": "<computed>", "self.method": "<computed>",
        "self.z": "<not there>", "rows[0].x": 7, "rows[1].a": 8, "rows[1].b[0]": 8, "rows[1].c": "<not there>", "rows[-2].y": 9,
        "rows[2]": "<not there>", "rows[0][0]": "<computed>", "environ['PATH_INFO']": "/x", "environ[5]": "five", "environ[6]": "<not there>",
        "environ['PATH']": "<not there>", "late.z": 3, "late.x": 4, "late.y": 2, "many.x": 0, "many.n39": 39, "many.n40": "<not there>",
        "both.a": 5, "both.extra": 6, "self.": "<not there>", "rows[": "<not there>", "rows]": "<not there>", "rows[0]x": "<not there>",
        "rows['0']": "<computed>", "self.__class__": BUILT_IN, "self.x.real": BUILT_IN,
    })


def up(look, depth, value):
    if depth:
        return up(look, depth - 1, value + 1)
    look("look=%s, depth=0, value=10", {"value": 10, "Plain.shared": "of the class", "shared[1]": 2, "len": "<not there>"})
    look("look=%s, depth=1, value=9", {"value": 9, "look.x": "<not there>"}, 1)
    look("look=%s, depth=10, value=0", {"value": 0, "depth": 10}, 10)


def calls(look):
    "Calls look() from functions of all kinds."
    up(look, 10, 0)
    plain_arguments(look, 1, "two")
    all_arguments(look, 1, 2, 3, key=4, x=5)
    celled(look, 1, 7)
    free(look)
    unset(look)
    both = Both(5)
    both.extra = 6
    paths(look, Child(1), [Plain(7, 9), Slots(8)], {"PATH_INFO": "/x", 5: "five"}, late, many, both)

    class Body:
        inside = 1
        look(None, {"inside": 1, "outside": "<not there>"})

    def generates(n):
        look("n=3", {"n": 3})
        yield n
        look("n=3", {"n": 3})

    list(generates(3))
    (lambda x, *, y: look("x=1, y=2", {"x": 1, "y": 2}))(1, y=2)
    (lambda größe, 大: look("größe=1, 大={'字': 2}", {"größe": 1, "大['字']": 2, "größer": "<not there>"}))(1, {"字": 2})

# Raises audit events named "stap" with arguments of all kinds, and prints each as python_argstr() must: as
# repr(), except where the text is given beside it.
#
# SPDX-License-Identifier: MIT

import enum
import sys


class Text(str):
    pass


class Number(int):
    pass


class Color(enum.IntEnum):
    RED = 7


class Pair(tuple):
    pass


class Other:
    pass


class Real(float):
    pass


Fake = type("float", (), {})


def audit(*args, expected=None):
    sys.audit("stap", *args)
    print("stap" + (expected or repr(args)))


audit()
audit(None, True, False, 0, 1, -1)
audit(2**30 - 1, 2**30, -(2**30), 2**60 - 1, 2**60, 2**63, -(2**64 - 1), 2**64 - 1)
audit(2**64, -(2**90), 3**370)
audit(-(2**601), expected="(<int of 602 bits>,)")
audit("", "a", "tab\t newline\n back\\slash \x00 \x1b[31m \x7f")
audit("it's", 'say "it"', "it's \"it\"", b"it's")
audit("\xe4\xf6", "\u0142\u4e2d", "\U0001f40d", "mixed a\xe4\u4e2d\U0001f40d")
audit("\x9b", "\udc80", expected=r"('\x9b', '\udc80')")
audit("x" * 255, expected="('" + "x" * 255 + "',)")
audit("x" * 257, expected="('" + "x" * 256 + "...',)")
audit(b"", b"bytes\x00\xff'")
audit(b"y" * 300, expected="(b'" + "y" * 256 + "...',)")
audit(0.0, 0.5, -0.1, 0.3, 1.0, 123456.75, 1e-5, 2.0**52, 0.999999999, 1 / 3)
audit(float("inf"), float("-inf"), float("nan"), expected="(inf, -inf, nan)")
audit(1e300, -1e-300, 5e-324, 2.0**53)
audit((), (1,), (1, "two", (3.5, [4, None])), [])
audit((((((1,),),),),), expected="(((((...,),),),),)")
audit(list(range(20)), expected="([" + ", ".join(map(str, range(16))) + ", ...],)")
audit(*range(17), expected="(" + ", ".join(map(str, range(16))) + ", ...)")
audit(Text("text"), Text("\u4e2d"), Number(5), Color.RED, Pair((1, 2)), expected=(
    "('text', '\u4e2d', 5, 7, (1, 2))"))
audit(Other(), Real(1.5), Fake(), {}, set(), print, Other, len, expected=(
    "(<Other>, <Real>, <float>, <dict>, <set>, <builtin_function_or_method>, <type>, <builtin_function_or_method>)"))

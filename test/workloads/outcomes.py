# Functions that end in all ways; their names say how.  What each ends with is in OUTCOMES of test/guest/values.bats.
#
# SPDX-License-Identifier: MIT


def returns():
    return {"a": [1, 2.5]}


def returns_none():
    pass


def yields():
    yield "first"
    yield 2


def raises():
    raise ValueError("it's", 3)


def raises_in_c():
    int("x")


def raises_class():
    raise KeyError


def passes_on():
    raises()


class Own(Exception):
    def __init__(self, code):
        super().__init__("own", code)


def raises_own():
    raise Own(7)


def divides():
    return 1 // 0


def loses():
    {}["key"]


list(yields())
returns()
returns_none()
for function in raises, raises_in_c, raises_class, passes_on, raises_own, divides, loses:
    try:
        function()
    except Exception:
        pass

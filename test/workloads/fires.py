# A C library reports events of its own (fires.c): of a code object, and of what is none.
#
# SPDX-License-Identifier: MIT
import fires


def leaf():
    return 1


def caller(codelike, function):
    return fires.run(codelike, function)


def fails():
    raise ValueError("on purpose")


code = fires.code()
for codelike in code, "no code", 5, code:
    caller(codelike, leaf)
try:
    caller(code, fails)
except ValueError:
    print("fine")

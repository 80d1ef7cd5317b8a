# The sample program of the demo and of the suites: nested calls, with keyword
# and star arguments.  Its functions call each other the same way every time.
#
# SPDX-License-Identifier: MIT
import sys


def area(width, height=1, *, scale=1):
    return width * height * scale


def total(*shapes, **options):
    return sum_up([area(*shape, **options) for shape in shapes])


def sum_up(values):
    if not values:
        return 0
    return values[0] + sum_up(values[1:])


def count_down(n):
    while n:
        yield n
        n -= 1


def say(line):
    # in one write(), also with PYTHONUNBUFFERED: tracers print to the same place
    sys.stdout.write(line + "\n")


def main():
    say("total %d" % total((2, 3), (4,), scale=2))
    say("sum %d" % sum(count_down(2)))


if __name__ == "__main__":
    main()

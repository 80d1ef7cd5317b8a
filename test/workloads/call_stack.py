# The sample program of the demo and of the suites: nested calls, with keyword
# and star arguments.  Its functions call each other the same way every time.
#
# SPDX-License-Identifier: MIT


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


def main():
    print("total", total((2, 3), (4,), scale=2))
    print("sum", sum(count_down(2)))


if __name__ == "__main__":
    main()

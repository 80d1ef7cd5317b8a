# Calls functions and C functions, collects, imports, opens and raises a prime number of times each, so that a
# wrong count shows.  For the scripts' suites and examples.
#
# SPDX-License-Identifier: MIT

import gc
import os
import threading


def called_2():
    pass


def called_31():
    pass


def called_127():
    pass


def outer_5():
    for _ in range(3):
        inner_15()


def inner_15():
    pass


def generated():  # entered 1 + 7 times
    for number in range(7):
        yield number


def raises_11():
    raise ValueError("expected")


def lines_23():
    total = 0
    for number in range(23):
        total += number
    return total


def in_thread_13():
    pass


def thread_main():
    for _ in range(13):
        in_thread_13()


def collects():
    for generation, times in (0, 3), (1, 5), (2, 7):
        for _ in range(times):
            cycle = []
            cycle.append(cycle)
            del cycle
            gc.collect(generation)


def main():
    gc.disable()
    gc.collect()
    for _ in range(2):
        called_2()
    for _ in range(31):
        called_31()
    for _ in range(127):
        called_127()
    for _ in range(5):
        outer_5()
    for _ in generated():
        pass
    for _ in range(11):
        try:
            raises_11()
        except ValueError:
            pass
    lines_23()
    for _ in range(17):
        abs(-1)
    for _ in range(19):
        os.getppid()
    for _ in range(3):
        with open("/dev/null") as file:
            file.read()
    for _ in range(2):
        try:
            import no_such_module
        except ImportError:
            pass
    import colorsys
    collects()
    thread = threading.Thread(target=thread_main)
    thread.start()
    thread.join()


main()

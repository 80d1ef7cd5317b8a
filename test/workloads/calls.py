# Calls an empty function for a second, and prints how many nanoseconds a call takes at best, without what
# else the machine does.  For test/long/load/run --overhead, which runs each script on it: no program is slowed
# down more.
#
# SPDX-License-Identifier: MIT

import time


def called():
    pass


def hundred():
    begin = time.perf_counter_ns()
    for _ in range(100):
        called()
    return (time.perf_counter_ns() - begin) // 100


def main():
    end = time.perf_counter() + 1
    best = hundred()
    while time.perf_counter() < end:
        best = min(best, hundred())
    print(best)


main()

# Calls an empty function for a second, and prints how many nanoseconds a call takes.  What
# test/busy --overhead runs each script on: nothing is slowed down more.
#
# SPDX-License-Identifier: MIT

import time


def called():
    pass


def thousand():
    for _ in range(1000):
        called()


def main():
    thousand()
    calls, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + 1:
        thousand()
        calls += 1000
    print(round((time.perf_counter() - begin) * 1e9 / calls))


main()

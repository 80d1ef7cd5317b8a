# Functions that allocate, of which some keep what they allocate.  Prints the bytes that each of them keeps, by
# sys.getsizeof().
#
# usage: keeps.py TURNS
#
# SPDX-License-Identifier: MIT

import sys

cache = []


def remembers(turn):
    block = b"%08d" % turn * 125
    cache.append(block)


def closes_over():
    found = []

    def later():
        found.append(bytes(2000))
    return later, found


def bursts():
    blocks = [bytes(500) for _ in range(30)]
    return len(blocks)


def main(turns):
    later, found = closes_over()
    for turn in range(turns):
        remembers(turn)
        if turn % 4 == 0:
            later()
        bursts()
    print("remembers", sum(map(sys.getsizeof, cache)) + sys.getsizeof(cache))
    print("later", sum(map(sys.getsizeof, found)) + sys.getsizeof(found))
    kept.append(found)


kept = []
# From 3.14 on CPython keeps a few freed iterators of ranges for the next ones (Objects/rangeobject.c: rangeiter_dealloc()).
# They are there before, so that bursts() keeps none.
iterators = [iter(range(1)) for _ in range(10)]
del iterators
main(int(sys.argv[1]))

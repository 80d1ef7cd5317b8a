# running.py FIFO: two threads with frames on their stacks wait in a C function until they have read a byte from
# FIFO; a tracer that attaches meanwhile finds the frames running.
#
# SPDX-License-Identifier: MIT
import os
import sys
import threading

fifo = os.open(sys.argv[1], os.O_RDWR)


def wait():
    os.read(fifo, 1)


def leaf(): pass  # fmt: skip


def down(n):
    if n:
        return down(n - 1)
    wait()
    leaf()


def generator():
    yield 1
    wait()
    yield 2


def untraces():
    sys.settrace(None)


def raises():
    list(numbers)
    untraces()
    raise ValueError("on purpose")


numbers = generator()
next(numbers)
thread = threading.Thread(target=down, args=(2,))
thread.start()
try:
    raises()
except ValueError:
    leaf()

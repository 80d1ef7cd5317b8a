# suspended.py FIFO: frames that are on no stack when a tracer comes, as it does while one waits in a C function for a
# byte from FIFO; then calls that it sees begin.  $BESIDE is beside.c, compiled.
#
# SPDX-License-Identifier: MIT
import ctypes
import os
import sys

fifo = os.open(sys.argv[1], os.O_RDWR)
beside = ctypes.PyDLL(os.environ["BESIDE"]).beside
beside.argtypes = [ctypes.py_object]
beside.restype = None
waiting = []


def wait():
    os.read(fifo, 1)
    leaf()


def leaf():
    pass


def outer(n):
    if n:
        outer(n - 1)
    else:
        beside(wait)


def numbers():
    outer(2)
    yield 1


def later(n):
    if n:
        later(n - 1)


def switches():
    main.switch()


def called_by():
    switches()


try:
    import greenlet

    main = greenlet.getcurrent()
    waiting = [greenlet.greenlet(called_by) for _ in range(5)]
except ImportError:
    pass
for one in waiting:
    one.switch()
for _ in numbers():
    leaf()
for one in waiting:
    one.switch()
later(3)

# Allocates known numbers of bytes, by each function of the C library and each system call for that, in a
# function of its own each, one of which runs in a thread.
#
# SPDX-License-Identifier: MIT
import ctypes
import mmap
import threading

libc = ctypes.CDLL(None)
for name in "malloc", "calloc", "realloc", "sbrk":
    getattr(libc, name).restype = ctypes.c_void_p
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.posix_memalign.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
size = ctypes.c_size_t
where = ctypes.byref(ctypes.c_void_p())


def mallocs():
    for _ in range(7):
        libc.malloc(size(10007))
    # no process has room for these
    libc.malloc(size(-1))
    libc.malloc(size(1 << 47))


def callocs():
    for _ in range(11):
        libc.calloc(size(3), size(7001))
    libc.calloc(size(1 << 33), size(1 << 33))
    libc.calloc(size(1 << 63), size(1))


def reallocs():
    libc.realloc(libc.realloc(None, 300007), 600011)


def aligned():
    libc.posix_memalign(where, 16, 40009)
    libc.posix_memalign(where, 64, 50021)


def maps():
    mmap.mmap(-1, 1234567)
    with open("/usr/bin/python3", "rb") as file:
        mmap.mmap(file.fileno(), 12345, access=mmap.ACCESS_READ)


def breaks():
    libc.sbrk(size(20480))
    libc.sbrk(size(-20480))


thread = threading.Thread(target=callocs)
thread.start()
mallocs()
thread.join()
reallocs()
aligned()
maps()
breaks()

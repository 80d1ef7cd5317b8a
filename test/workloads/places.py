# Does what the kernel and the C library see, each in a function of its own, again and again for some seconds.
#
# SPDX-License-Identifier: MIT

import ctypes
import mmap
import os
import select
import signal
import socket
import sys
import time


def sleeps():
    select.select([], [], [], 0.001)


def faults():
    pages = mmap.mmap(-1, 64 * mmap.PAGESIZE)
    for page in range(64):
        pages[page * mmap.PAGESIZE] = 1
    pages.close()


def allocates():
    return bytearray(5000)


def connects():
    client = socket.socket()
    client.connect_ex(("127.0.0.1", 9))
    client.close()


def signals():
    os.kill(os.getpid(), signal.SIGUSR1)


def throws():  # in C++, which ends the process
    ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv()


signal.signal(signal.SIGUSR1, lambda number, frame: None)
child = os.fork()
if not child:
    os.close(2)
    throws()
os.waitpid(child, 0)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    sleeps()
    faults()
    allocates()
    connects()
    signals()

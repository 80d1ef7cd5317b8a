# Computes for some seconds in the kernel, in a function of a library, and in Python code, each in a function of its own.
#
# SPDX-License-Identifier: MIT

import os
import sys
import time
import zlib


def reads():
    for _ in range(5):
        os.read(zeros, 1 << 20)


def sums():
    zlib.crc32(data)


def spins():
    for _ in range(20000):
        pass


data = bytes(1 << 20)
zeros = os.open("/dev/zero", os.O_RDONLY)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    reads()
    sums()
    spins()

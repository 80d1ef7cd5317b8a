# Computes for some seconds in the kernel, in a library of C, and in Python code, each in a function of its own.
#
# SPDX-License-Identifier: MIT

import hashlib
import os
import sys
import time


def reads():
    for _ in range(20):
        os.read(zeros, 1 << 20)


def hashes():
    hashlib.md5(data)


def spins():
    for _ in range(20000):
        pass


data = bytes(1 << 20)
zeros = os.open("/dev/zero", os.O_RDONLY)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    reads()
    hashes()
    spins()

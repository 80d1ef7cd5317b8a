# Two forked processes do the same work: one as another user, who renames a function of Python's and one of libz's in the
# process's own memory; then one whose names are true.  Each prints its PID.
#
# SPDX-License-Identifier: MIT
import ctypes
import os
import time
import zlib

data = bytes(1 << 20)


def checks_sums():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        zlib.crc32(data)
        sum(range(20000))


# Both processes read the pages with libz's names: a forked process has them in its memory from then on alone.
def read_names(forge):
    name = checks_sums.__code__.co_name
    text = ctypes.string_at(id(name), 100)
    if forge:
        ctypes.memmove(id(name) + text.index(b"checks_sums"), b"FORGED_name", 11)
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_ulong, ctypes.c_ulong, ctypes.c_int]
    for line in open("/proc/self/maps"):
        words = line.split()
        start, end = (int(word, 16) for word in words[0].split("-"))
        if "libz.so" in line and words[1][0] == "r":
            for name in b"\0crc32_z\0", b"\0crc32\0":
                at = ctypes.string_at(start, end - start).find(name)
                if forge and at >= 0 and protect(start, end - start, 7) == 0:
                    ctypes.memmove(start + at + 1, b"FORGED_"[:len(name) - 2], len(name) - 2)


zlib.crc32(b"")  # ld.so looks for crc32 now
for who in "forges", "honest":
    if os.fork() == 0:
        print(who, os.getpid(), flush=True)
        if who == "forges":
            os.setuid(65534)
        read_names(who == "forges")
        checks_sums()
        os._exit(0)
    os.wait()

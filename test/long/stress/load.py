# load.py STOP [SECONDS]: threads compute the same again and again, in ways that fire all markers, until the file
# STOP exists.  Prints what they computed and how often the result was another, and, SECONDS later, the hooks
# that are still installed and the semaphores that are still raised (at $SEMAPHORES in the shim's file).
#
# SPDX-License-Identifier: MIT
import ctypes
import gc
import importlib
import os
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads"))
import hooks


def numbers(n):
    for i in range(n):
        yield i * i


def down(n):
    return down(n - 1) + 1 if n else 0


def raises(n):
    try:
        if n:
            raises(n - 1)
        raise ValueError(n)
    except ValueError as error:
        return error.args[0]
    finally:
        down(2)


class Thing:
    def __init__(self):
        self.itself = self

    def __del__(self):
        down(1)


def turn():
    found = [sum(numbers(30)), down(40), raises(5), len(sorted(map(str, range(20))))]
    for name in ("no_such_module_%d" % i for i in range(2)):
        try:
            importlib.import_module(name)
        except ImportError as error:
            found.append(str(error))
    Thing()
    gc.collect(0)
    with open(os.devnull, "wb") as nothing:
        found.append(nothing.write(b"12345"))
    result = []
    thread = threading.Thread(target=lambda: result.append(down(10)))
    thread.start()
    thread.join()
    return zlib.crc32(repr(found + result).encode())


def semaphores():
    with open("/proc/self/maps") as maps:
        base = [int(line.split("-")[0], 16) for line in maps if "libpython-stap" in line]
    addresses = os.environ.get("SEMAPHORES", "").split(",") if base else []
    return sum(ctypes.c_ushort.from_address(base[0] + int(address, 16)).value for address in addresses)


if __name__ == "__main__":
    expected = turn()
    turns, wrong = [], []

    def work():
        while True:
            (turns if turn() == expected else wrong).append(1)
            if os.path.exists(sys.argv[1]):
                break
            time.sleep(0.01)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    end = time.time() + float(sys.argv[2] if len(sys.argv) > 2 else 0)
    while time.time() < end and (semaphores() or hooks.hooks() != "."):
        time.sleep(0.05)
    print(expected, "wrong:", len(wrong), "hooks:", hooks.hooks(), "semaphores:", semaphores())
    print("turns:", len(turns), file=sys.stderr)

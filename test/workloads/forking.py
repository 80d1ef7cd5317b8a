# forking.py SHIM MARKER ADDRESS...: forks while the shim sets a hook in another thread; the child then raises
# the semaphore of another marker.  ADDRESS is that of MARKER's semaphore in the file SHIM.  Prints whether it was
# another thread, and 1 if the child gets the hook for its marker, not sooner.
#
# CPython calls its audit hooks while the shim sets its own: this program's audit hook sleeps then, and the
# program forks, up to 3.11 by libc's fork(), which does not wait for the shim.
#
# SPDX-License-Identifier: MIT
import ctypes
import importlib
import os
import sys
import threading
import time


def semaphore(name):
    file, *addresses = sys.argv[1:]
    start = [line.split("-")[0] for line in open("/proc/self/maps") if line.rstrip().endswith(file)][0]
    return ctypes.c_ushort.from_address(int(dict(zip(addresses[::2], addresses[1::2]))[name], 16) + int(start, 16))


def audit(event, arguments):
    if event == "sys.addaudithook" and not setting:  # the shim's
        setting.append(threading.get_ident())
        os.write(told, b"x")
        time.sleep(0.05 if waits else 0.5)


def until(condition):
    end = time.time() + 10
    while not condition() and time.time() < end:
        time.sleep(0.01)
    return condition()


def hooked():
    return not hasattr(importlib._bootstrap._find_and_load, "__code__")


def work():
    until(lambda: setting)


setting = []
tells, told = os.pipe()
waits = sys.version_info >= (3, 12)  # there a child from the middle of a pending call makes none itself
fork = os.fork if waits else ctypes.PyDLL(None).fork
sys.addaudithook(audit)
threading.Thread(target=work).start()
semaphore("audit").value = 1
os.read(tells, 1)  # so the other thread sets the hook
others = threading.get_ident() != setting[0]
child = fork()
if child == 0:
    semaphore("audit").value = 0
    semaphore("import__find__load__start").value = 1
    too_early = hooked()
    if os.fork() == 0:  # from here on the shim has a thread in the child again
        os._exit(0)
    os.wait()
    if waits:
        hooked()  # a Python function: the shim's thread starts
        collections = semaphore("gc__start")
        collections.value = 1
        time.sleep(1.5)  # in C, until that thread has asked for another hook twice
        collections.value = 0
    os._exit(too_early * 100 + until(hooked))
print(others, os.waitpid(child, 0)[1] >> 8)

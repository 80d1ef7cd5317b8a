# Three children, one after the other, each with known numbers of what pystat counts; prints their PIDs.
#
# SPDX-License-Identifier: MIT
import _thread
import gc
import os

gc.disable()


def called():
    pass


def in_thread(lock):
    lock.release()


def counts():  # 1 + 7 + 2 calls; 11 + 3 + 2 * 5 + 1 of C; 3 collections; 3 threads
    for _ in (1, 2, 3, 4, 5, 6, 7):
        called()
    for _ in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11):
        abs(-1)
    for _ in (1, 2, 3):
        gc.collect()
    for _ in (1, 2):
        lock = _thread.allocate_lock()
        lock.acquire()
        _thread.start_new_thread(in_thread, (lock,))
        lock.acquire()
    os._exit(0)


def imports():
    for _ in (1, 2):
        try:
            import no_such_module
        except ImportError:
            pass
    os._exit(0)


def three():
    one = 1
    two = 2
    return one + two


def walks():  # 2 lines, 3 in three(), and 2 at the end of this file
    three()
    os._exit(0)


for function in counts, imports, walks:
    pid = os.fork()
    if not pid:
        function()
    os.waitpid(pid, 0)
    print(pid, flush=True)

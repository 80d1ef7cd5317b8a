# Does a known number of what pytrace's timeline has, in functions named for that: calls, exceptions, collections, sleeps, waits
# for the GIL, and processes that end in the middle of functions or outlive the script.  Imports little, as each of a start's
# system calls is in the trace.
#
# SPDX-License-Identifier: MIT

import gc
import os
import signal
import threading
import time


def called_7():
    pass


def raises_11():
    raise KeyError("expected")


def collects_5():
    gc.collect()


def naps_3():
    time.sleep(0.3)


def locks_2(lock):
    lock.acquire(timeout=0.3)


# Until a process or thread sleeps in a function of the kernel's that has the word in its name.
def until_it_sleeps(path, word):
    while True:
        with open("/proc/%s/wchan" % path) as file:
            if word in file.read():
                return
        time.sleep(0.02)


def reads_a_pipe():
    ours, theirs = os.pipe()
    thread = threading.Thread(target=writes, args=(theirs,))
    thread.start()
    os.read(ours, 1)
    thread.join()


def writes(end):
    until_it_sleeps("self/task/%d" % os.getpid(), "pipe")
    os.write(end, b"x")


def waits_for_a_child():
    os.waitpid(child(exits_later), 0)


def exits_later():
    until_it_sleeps(os.getppid(), "wait")
    os._exit(0)


def asks_13():
    os.getppid()


# Two threads want the GIL all the time, until each has had it ten times.
def computes(turns, name):
    while len(turns) < 20:
        if turns[-1:] != [name]:
            turns.append(name)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def executes():
    os.execv("/bin/true", ["true"])


def exits():
    os._exit(0)


def outlives():
    time.sleep(60)


def child(function):
    pid = os.fork()
    if not pid:
        function()
        os._exit(1)
    return pid


def main():
    gc.disable()
    for _ in range(7):
        called_7()
    for _ in range(11):
        try:
            raises_11()
        except KeyError:
            pass
    for _ in range(5):
        collects_5()
    for _ in range(3):
        naps_3()
    lock = threading.Lock()
    lock.acquire()
    for _ in range(2):
        locks_2(lock)
    reads_a_pipe()
    waits_for_a_child()
    for _ in range(13):
        asks_13()
    turns = []
    threads = [threading.Thread(target=computes, args=(turns, name)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for function in is_killed, executes, exits:
        child(function)
        os.wait()
    # stap waits for what has its output
    for descriptor in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
    until_it_sleeps(child(outlives), "nanosleep")


main()

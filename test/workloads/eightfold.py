# eightfold.py [PROCESSES]: so many processes (8), which do the same at the same time: call 131 times 23 functions, one of
# them 40 deep; sleep 61 times, and say how often they left their processor for that; and have two threads that want the
# GIL.  For probes that run on several processors.
#
# SPDX-License-Identifier: MIT

import os
import resource
import sys
import threading
import time


def deep(depth):
    if depth:
        deep(depth - 1)


functions = {"deep": deep}
for number in range(22):
    exec("def f_%d():\n    pass" % number, functions)


def calls():
    for _ in range(131):
        for number in range(22):
            functions["f_%d" % number]()
        deep(39)


def sleeps():
    "A timer may be over before the thread has left its processor: the kernel counts how often it did."
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(61):
        time.sleep(0.002)
    os.write(1, b"%d sleeps\n" % (resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before))


def computes():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass


def main(go):
    os.read(go, 1)
    calls()
    sleeps()
    threads = [threading.Thread(target=computes) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


ready, go = os.pipe()
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8):
    if os.fork() == 0:
        os.close(go)
        main(ready)
        os._exit(0)
os.close(ready)
time.sleep(1)
os.close(go)  # they begin at the same time
while True:
    try:
        _, status = os.wait()
    except ChildProcessError:
        break
    if status:
        sys.exit("a process failed")

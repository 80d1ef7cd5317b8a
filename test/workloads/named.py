# named.py SECONDS: a thread "worker;1" computes in a method of a class for so long on a CPU, a thread "sleeper" sleeps
# ten times in another method, and meanwhile the main thread collects garbage.
#
# SPDX-License-Identifier: MIT

import gc
import sys
import threading
import time


class Worker:
    def computes(self):
        while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < float(sys.argv[1]):
            for _ in range(1000):
                pass

    class Sleeper:
        def sleeps(self):
            for _ in range(10):
                time.sleep(0.05)


def collects():
    while threads[0].is_alive():
        gc.collect()


gc.disable()
lists = [[] for _ in range(30000)]
threads = [
    threading.Thread(target=Worker().computes, name="worker;1"),
    threading.Thread(target=Worker.Sleeper().sleeps, name="sleeper"),
]
for thread in threads:
    thread.start()
collects()
for thread in threads:
    thread.join()

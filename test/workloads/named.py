# named.py SECONDS: for so long a thread "worker;1" computes in a method of a class, while the main thread collects
# garbage, and a thread "sleeper" sleeps in another method.
#
# SPDX-License-Identifier: MIT

import gc
import sys
import threading
import time


class Worker:
    def computes(self):
        while time.time() < end:
            for _ in range(1000):
                pass

    class Sleeper:
        def sleeps(self):
            while time.time() < end:
                time.sleep(0.1)


def collects():
    while time.time() < end:
        gc.collect()


gc.disable()
lists = [[] for _ in range(300000)]
end = time.time() + float(sys.argv[1])
threads = [
    threading.Thread(target=Worker().computes, name="worker;1"),
    threading.Thread(target=Worker.Sleeper().sleeps, name="sleeper"),
]
for thread in threads:
    thread.start()
collects()
for thread in threads:
    thread.join()

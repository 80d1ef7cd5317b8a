# How often each of the service's own functions was called, and what else it did: counted by itself, by whom the
# scripts' numbers are checked (test/long/service/run).  Each process writes its own at its end.
#
# SPDX-License-Identifier: MIT

import collections
import gc
import os
import sys
import threading

counted = collections.Counter()
lock = threading.Lock()
born_with = collections.Counter()


def count(name, times=1):
    with lock:
        counted[name] += times


def audited(event, args):
    if event in ("service.order", "sqlite3.connect"):
        count("audit " + event)


def collections_so_far():
    return {"gc %d" % generation: stats["collections"] for generation, stats in enumerate(gc.get_stats())}


# A forked process counts its own only, and begins with what its parent's collector says.
def begin():
    counted.clear()
    born_with.clear()
    born_with.update(collections_so_far())


def end(folder):
    gc.disable()
    counted.update(collections_so_far())
    counted.subtract(born_with)
    with open(os.path.join(folder, "counts.%d" % os.getpid()), "w") as file:
        for name in counted:
            print(name, counted[name], file=file, sep="\t")
    # nothing more is to be called or collected
    os._exit(0)


sys.addaudithook(audited)

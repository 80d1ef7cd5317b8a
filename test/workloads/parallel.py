# Eight threads that call the same functions at the same time; without the GIL they do so on several processors.
#
# usage: parallel.py calls      each of them 5,000 times shared(), its own function, and len()
#        parallel.py first      200 functions, each of them called by all threads as the first that call it
#        parallel.py names      functions whose module's name another thread changes meanwhile
#
# SPDX-License-Identifier: MIT

import sys
import threading

THREADS, CALLS, FRESH = 8, 5000, 200


def shared(number):
    return number


def calls(number):
    made = {}
    exec("def own_%d(): pass" % number, made)
    own, empty = made["own_%d" % number], []
    together.wait()
    for _ in range(CALLS):
        shared(number)
        own()
        len(empty)


def first(number):
    for function in fresh:
        together.wait()
        function()


def names(number):
    together.wait()
    turn = 0
    while number == 0 and threading.active_count() > 2:
        turn += 1
        module["__name__"] = "module_%d" % (turn % 50)
    for _ in range(CALLS if number else 0):
        named()


together = threading.Barrier(THREADS)
module = {"__name__": "module_0"}
exec("def named(): pass", module)
named = module["named"]
fresh = []
for n in range(FRESH):
    made = {}
    exec(compile("def fresh_%d(): pass" % n, __file__, "exec"), made)
    fresh.append(made["fresh_%d" % n])
threads = [threading.Thread(target=globals()[sys.argv[1]], args=(n,)) for n in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

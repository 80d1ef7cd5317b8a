# Eight threads or more that call the same functions at the same time; without the GIL they do so on several processors.
#
# usage: parallel.py calls      each of them 5,000 times shared(), its own function, and len()
#        parallel.py many       30 threads, each of them 200,000 times shared()
#        parallel.py first      200 functions, each of them called by all threads as the first that call it
#        parallel.py first_in_c 21 functions in C, str.isalpha() and such, likewise
#        parallel.py ends       the program ends while they call functions with code that has not run yet, as a
#                               finalizer does then
#        parallel.py attached SHIM    functions with code that has not run yet, while the library SHIM is loaded, for a tracer
#                               that is there already (the library semaphores.so is preloaded)
#        parallel.py names      functions whose module's name another thread changes meanwhile
#
# SPDX-License-Identifier: MIT

import ctypes
import sys
import threading
import time
import types

CALLS, FRESH = 5000, 200
THREADS = 30 if sys.argv[1] == "many" else 8


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


def many(number):
    together.wait()
    for _ in range(200000):
        shared(number)


def first(number):
    for function in fresh:
        together.wait()
        function()


def first_in_c(number):
    for function in tests_of_text:
        together.wait()
        function()


def new_functions(count):
    return [types.FunctionType(shared.__code__.replace(), {}) for _ in range(count)]


# Makes its functions beforehand, as ends() does: CPython's lock for new code objects may stay locked by a thread that CPython
# hangs as it ends (Objects/codeobject.c: intern_constants(), in 3.14).  Then no program would end that makes some.
class CallsAtTheEnd:
    def __init__(self):
        self.functions = new_functions(10)

    def __del__(self):
        for function in self.functions:
            function(1)


def ends(number):
    functions = new_functions(5000)
    together.wait()
    while True:
        for function in functions:
            function(1)


def attached(number):
    together.wait()
    if number == 0:
        ctypes.CDLL(sys.argv[2])
        ctypes.CDLL(None).semaphores_set(1)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        new_functions(1)[0](1)


def names(number):
    global changes
    together.wait()
    while number == 0 and threading.active_count() > 2:
        module["__name__"] = "module_%d" % (changes % 50)
        others[changes % 7] = "other_%d" % (changes % 50)  # where the name before was, if it is freed
        changes += 1
    for part in range(10 if number else 0):
        before = module["__name__"]
        while module["__name__"] == before:
            time.sleep(0.0001)  # however few processors there are, and however seldom the GIL is handed over
        for _ in range(CALLS // 10):
            named()


changes = 0
others = [None] * 7
together = threading.Barrier(THREADS + (sys.argv[1] == "ends"))
module = {"__name__": "module_0"}
exec("def named(): pass", module)
named = module["named"]
fresh = []
for n in range(FRESH):
    made = {}
    exec(compile("def fresh_%d(): pass" % n, __file__, "exec"), made)
    fresh.append(made["fresh_%d" % n])
of_text = "isalnum isalpha isdigit islower isspace istitle isupper".split()
tests_of_text = [getattr(text, name) for name in of_text for text in ("text", b"text", bytearray(b"text"))]
case = globals()[sys.argv[1]]
threads = [threading.Thread(target=case, args=(n,), daemon=case == ends) for n in range(THREADS)]
for thread in threads:
    thread.start()
if case == ends:
    sys.keep = CallsAtTheEnd()
    together.wait()
else:
    for thread in threads:
        thread.join()

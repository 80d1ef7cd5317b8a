# in_threads.py SECONDS [forks]: four threads that all do what markers report, on functions that they share and on
# code of their own: they call, also for the first time, raise, yield, import, collect, and make code; with "forks" one
# of them forks, too.  Prints "fine", or what went wrong.
#
# SPDX-License-Identifier: MIT
import gc
import os
import sys
import threading
import time
import types
import warnings

COUNT = 1500
wrong = []


def same(value):
    return value


def raises():
    try:
        raise ValueError
    except ValueError:
        pass


def generates():
    yield 1
    yield 2


class Caller:
    def calls(self):
        return [same(number) for number in range(3)]


# the same code in another module
elsewhere = types.FunctionType(same.__code__, {"__name__": "elsewhere"})


def fresh_functions():
    "Each with code that has not run yet."
    made = {"__name__": "fresh"}
    for number in range(COUNT):
        exec(compile("def fresh_%d(): pass" % number, "<fresh>", "exec"), made)
    return [made["fresh_%d" % number] for number in range(COUNT)]


together = threading.Barrier(4)
# no lock between the first calls of these, on all threads
fresh = fresh_functions()


def imports(number):
    try:
        __import__("missing_%d" % number)
    except ImportError:
        pass


def makes_code(number):
    "Code that is soon freed, and whose modules' names are made, too."
    code = compile("def made(): return 1\nmade(); made()", "<made>", "exec")
    exec(code, {"__name__": "module_%d" % (number % 3)})


def forks():
    child = os.fork()
    if child == 0:
        os._exit(same(7))
    status = os.waitpid(child, 0)[1]
    if status != 7 << 8:
        wrong.append("status of a child: %#x" % status)


def work(end, may_fork):
    turn = 0
    together.wait()
    for function in fresh:
        function()
    while time.monotonic() < end:
        turn += 1
        got = [same(1), elsewhere(2), *generates(), *Caller().calls(), len([1]), *sorted([2, 1])]
        if got != [1, 2, 1, 2, 0, 1, 2, 1, 1, 2]:
            wrong.append(got)
        raises()
        if turn % 20 == 0:
            imports(turn)
            makes_code(turn)
        if turn % 200 == 0:
            gc.collect()
        if may_fork and turn % 300 == 0:
            forks()


warnings.simplefilter("ignore")  # of forks among threads
end = time.monotonic() + float(sys.argv[1])
threads = [threading.Thread(target=work, args=(end, number == 0 and "forks" in sys.argv[2:])) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong[:3] or "fine")

# Sleeps once and computes in eleven functions, and prints the microseconds that each function had a CPU.
#
# SPDX-License-Identifier: MIT
import time

said = {}


def sleeps():
    time.sleep(0.3)


def all_of_them():
    for name in list(functions):
        began = time.thread_time()
        functions[name]()
        said[name] = time.thread_time() - began


functions = {"sleeps": sleeps}
for n in range(11):
    source = "def computes_%d():\n for _ in range(300000): pass" % n
    exec(compile(source, __file__, "exec"), globals())
    functions["computes_%d" % n] = globals()["computes_%d" % n]
all_of_them()
for name in said:
    print(name, round(said[name] * 1000000))

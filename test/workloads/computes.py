# Sleeps once, computes in 40 functions, and prints the microseconds that each function had a CPU.  Half of
# them have the kernel update that time at their end.
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
for n in range(20):
    for name, end in ("computes_%d" % n, "pass"), ("updates_%d" % n, "time.thread_time()"):
        source = "def %s():\n for _ in range(100000): pass\n %s" % (name, end)
        exec(compile(source, __file__, "exec"), globals())
        functions[name] = globals()[name]
all_of_them()
for name in said:
    print(name, round(said[name] * 1000000))

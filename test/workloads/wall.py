# wall.py SECONDS: a forked child whose threads compute, with and without the GIL, nap, and wait for each other, in functions
# named for that.  Prints a line of JSON for each of its threads: the thread ID, seconds by CLOCK_MONOTONIC before and at the
# begin of its life and at the end and behind it, its seconds on a CPU, and how many seconds it asked to sleep; then one with
# the seconds that the child was on a CPU.  For pywall's suite.
#
# SPDX-License-Identifier: MIT

import json
import os
import sys
import threading
import time
import zlib

NAP, NAPS = 0.2, 6


def computes(end):
    while time.monotonic() < end:
        pass


def computes_in_c(end):
    data = b"x" * 10000000
    while time.monotonic() < end:
        zlib.crc32(data)


def naps(_):
    for _ in range(NAPS):
        time.sleep(NAP)
        os.write(writer, b"x")
    os.close(writer)


def reads_a_pipe(_):
    while os.read(reader, 1):
        pass


def lives(function, end, said):
    said.update(tid=threading.get_native_id(), begin=time.monotonic())
    function(end)
    said.update(end=time.monotonic(), cpu=time.thread_time())


def runs_threads(functions):
    end = time.monotonic() + float(sys.argv[1])
    all_said, threads = [], []
    for function in functions:
        all_said.append({"function": function.__name__, "before": time.monotonic()})
        threads.append(threading.Thread(target=lives, args=(function, end, all_said[-1])))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return all_said


reader, writer = os.pipe()
ours, theirs = os.pipe()
main = {"function": "runs_threads", "before": time.monotonic()}
child = os.fork()
if not child:
    main.update(tid=threading.get_native_id(), begin=time.monotonic())
    lines = runs_threads([computes, computes, computes_in_c, naps, reads_a_pipe])
    main.update(naps=NAPS * NAP, end=time.monotonic(), cpu=time.thread_time())
    os.write(theirs, json.dumps([main, lines, os.fstat(reader).st_ino]).encode())
    os._exit(0)
os.close(writer)
usage = os.wait4(child, 0)[2]
after = time.monotonic()  # also of threads: one may end behind its join()
main, lines, inode = json.loads(os.read(ours, 1 << 16).decode())
for line in [main] + lines:
    line["after"] = after
for line in [main] + lines + [{"function": "", "cpu": usage.ru_utime + usage.ru_stime, "pipe": inode}]:
    print(json.dumps(line))

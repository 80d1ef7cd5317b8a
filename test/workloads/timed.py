# Sleeps, computes, waits for a lock and allocates for known times and amounts, in functions named after them.
# For the scripts' suites and examples.
#
# SPDX-License-Identifier: MIT

import threading
import time


def sleeps_200_ms():
    time.sleep(0.2)


def computes_100_ms():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass


def both():  # 200 ms asleep and 100 ms on a CPU in what it calls, 0 of its own
    sleeps_200_ms()
    computes_100_ms()


def quick():
    pass


def allocates_8_mb():
    return len(bytearray(8 * 1024 * 1024))


def waits_for_the_lock(lock):
    with lock:
        quick()


def holder(lock, held):
    with lock:
        held.set()
        time.sleep(0.5)


def main():
    for _ in range(3):
        both()
    sleeps_200_ms()
    for _ in range(1009):
        quick()
    for _ in range(5):
        allocates_8_mb()
    lock, held = threading.Lock(), threading.Event()
    thread = threading.Thread(target=holder, args=(lock, held))
    thread.start()
    held.wait()
    waits_for_the_lock(lock)
    thread.join()


main()

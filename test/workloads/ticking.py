# A program that nobody has prepared for tracing: it calls the same two functions ten times a second, until it is ended.
#
# SPDX-License-Identifier: MIT

import time


def tock():
    return time.monotonic()


def tick():
    tock()
    time.sleep(0.1)


while True:
    tick()

# made_up.py FIFO: calls its functions from frames that C has made up (made_up.c), the first of which
# waits for a byte from FIFO, while a tracer comes.
#
# SPDX-License-Identifier: MIT
import os
import sys

import made_up


def leaf():
    return len("x")


def nested():
    made_up.call(leaf)


def fails():
    raise ValueError("on purpose")


def all_of_them():
    made_up.call(leaf)
    made_up.call(nested)
    try:
        made_up.call(fails)
    except ValueError:
        pass


def wait():
    os.read(os.open(sys.argv[1], os.O_RDWR), 1)


made_up.call(wait)
for _ in range(3):
    all_of_them()

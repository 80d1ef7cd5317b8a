# running.py SECONDS: frames on the stacks of two threads for so long, which a tracer that comes
# meanwhile finds there, in a function of C.
#
# SPDX-License-Identifier: MIT
import sys
import threading
import time

end = time.time() + float(sys.argv[1])


def wait():
    time.sleep(end - time.time())


def leaf(): pass  # fmt: skip


def down(n):
    if n:
        return down(n - 1)
    wait()
    leaf()


def generator():
    yield 1
    wait()
    yield 2


def untraces():
    sys.settrace(None)


def raises():
    list(numbers)
    untraces()
    raise ValueError("on purpose")


numbers = generator()
next(numbers)
thread = threading.Thread(target=down, args=(2,))
thread.start()
try:
    raises()
except ValueError:
    leaf()

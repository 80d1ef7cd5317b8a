# ids.py CASE [SHIM]: a program in which other tools have ids of sys.monitoring, beside a shim that a tracer has armed.  What
# the tracer sees of it are calls of seen(); what it must not are calls of unseen().
#
# SPDX-License-Identifier: MIT
import cProfile
import ctypes
import gc
import sys
import time

from hooks import watchers

monitoring = sys.monitoring
use = monitoring.use_tool_id
free = monitoring.free_tool_id


def soon(true):
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true())


def ours():
    return [tool for tool in range(6) if monitoring.get_tool(tool) == "systemtap"]


def seen(act=None):
    if act:
        act()


def unseen():
    pass


def named(name):
    return soon(lambda: watchers() == [name])


def has(tool):
    return soon(lambda: ours() == [tool]) and named("python-stap")


# Any of the six will do; those that have names come last.
def any_of_them():
    for last, tool in enumerate((4, 3, 5, 2, 1, 0)):
        print(tool, has(tool))
        seen()
        use(tool, "other")  # of ours, which goes on to another one
    print("none", ours(), named("python-stap-ids"))
    unseen()
    free(1)
    print("again", has(1))
    seen()


# As its own from the first: what it finds there, and what it is called by.
def asks_for_ours():
    use(4, "a")
    use(3, "b")
    print(has(5))
    before = use, repr(use), use.__doc__, monitoring.use_tool_id is use
    calls = []

    def on_start(code, offset):
        calls.append(code.co_name)

    use(5, "mine")
    monitoring.register_callback(5, monitoring.events.PY_START, on_start)
    monitoring.set_events(5, monitoring.events.PY_START)
    seen()
    monitoring.set_events(5, 0)
    print(calls, monitoring.get_tool(5), has(2))
    for arguments in (5, "mine"), (2, 3), (7, "x"), (0,), ("5", "mine"):
        try:
            use(*arguments)
            print("used")
        except (TypeError, ValueError) as error:
            print(type(error).__name__, error)
    print(before == (use, repr(use), use.__doc__, monitoring.use_tool_id is use), ours())


# cProfile's own is 2.
def profiles():
    for tool in 4, 3, 5:
        use(tool, "other")
    print(has(2))
    profile = cProfile.Profile()
    profile.enable()
    seen()
    profile.disable()
    print([entry.callcount for entry in profile.getstats() if getattr(entry.code, "co_name", "") == "seen"], ours())


def moves_within_a_call():
    print(has(4))
    seen(lambda: use(4, "other"))
    print(ours())


# The shim comes later, by dlopen(); when it has its callback in gc.callbacks it has looked for an id, too.
def loads_it_later():
    for tool in range(6):
        use(tool, "other")
    ctypes.CDLL(sys.argv[2])
    print(soon(lambda: gc.callbacks), named("python-stap-ids"), ours())
    unseen()
    free(0)
    print("again", has(0))
    seen()


globals()[sys.argv[1]]()

# A loop that CPython's JIT compiles, under a tracer that comes meanwhile.
#
# usage: jit.py FOLDER EVENT...
#
# Runs a loop that calls functions, and makes the file FOLDER/compiled once it runs in the JIT's code.  Goes on in the
# same loop until the shim has these events of sys.monitoring, and for CALLS iterations more.  Then runs a loop of other
# functions, makes FOLDER/traced, waits until the tracer has gone, and runs both loops again.  Prints how many iterations
# of the first loop ran since the shim had the first of the events, and since it had all, and of how many iterations of
# 100 the JIT's code ran: of the first loop before and with the tracer, of the second with it, of both after it.
#
# SPDX-License-Identifier: MIT

import sys
import time

CALLS = 50000
SHIM = 4  # its id for sys.monitoring
folder, events = sys.argv[1], 0
for name in sys.argv[2:]:
    events |= getattr(sys.monitoring.events, name)
active, get_tool, get_events = sys._jit.is_active, sys.monitoring.get_tool, sys.monitoring.get_events


def inner(number):
    return number + 1


def outer(number):
    inner(number), inner(number), inner(number), inner(number), inner(number), inner(number), inner(number), inner(number)


def other(number):
    return number + 2


def say(name):
    open(folder + "/" + name, "w").close()


def until_traced():
    before = compiled = some = every = traced = 0
    while every < CALLS:
        outer(1)
        if get_tool(SHIM):
            some += 1
            every += get_events(SHIM) & events == events
            traced += active()
        else:
            before += 1
            compiled += active()
            if compiled == CALLS:
                say("compiled")
    return some, every, compiled * 100 // before, traced * 100 // some


def of_outer():
    compiled = 0
    for _ in range(CALLS):
        outer(1)
        compiled += active()
    return compiled * 100 // CALLS


def of_other():
    compiled = 0
    for _ in range(CALLS):
        other(1)
        compiled += active()
    return compiled * 100 // CALLS


found = [*until_traced(), of_other()]
say("traced")
while get_tool(SHIM):
    time.sleep(0.01)
print(*found, of_outer(), of_other())

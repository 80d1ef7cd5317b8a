# stretches.py FILE: tasks of asyncio that run, are ready and wait for known times.  Writes to the FILE what it measures
# itself, a line for each kind of task: its name, how many tasks and steps there are, how long they ran, and how long
# they were in their awaits, in microseconds.
#
# SPDX-License-Identifier: MIT

import asyncio
import sys
import time

STEP, PAUSE = 0.05, 0.1
now = time.perf_counter
ran, awaited = {}, {}


def note(sums, name, began):
    sums[name] = sums.get(name, 0) + now() - began


def busy(seconds, name):
    began = now()
    while now() < began + seconds:
        pass
    note(ran, name, began)


async def pause(seconds, name):
    began = now()
    await asyncio.sleep(seconds)
    note(awaited, name, began)


def slow_step():
    began = now()
    time.sleep(0.4)
    note(ran, "blocks", began)


async def computes():
    "Three steps that run, and two waits for others."
    for _ in range(2):
        busy(STEP, "computes")
        await pause(PAUSE, "computes")
    busy(STEP, "computes")


async def waits():
    "Runs for nothing, and waits."
    await pause(3 * PAUSE, "Task-N")


async def blocks():
    "The slowest step is the second one."
    await pause(0, "blocks")
    slow_step()
    await pause(0, "blocks")


async def late():
    "Is ready while the other one blocks the loop."
    await pause(0, "late")
    await pause(0, "late")


async def main():
    asyncio.current_task().set_name("main")
    await asyncio.gather(*(asyncio.create_task(computes(), name="computes") for _ in range(2)))
    await asyncio.create_task(waits())
    await asyncio.create_task(waits())
    await asyncio.wait([asyncio.create_task(blocks(), name="blocks"), asyncio.create_task(late(), name="late")])


asyncio.run(main())
with open(sys.argv[1], "w") as file:
    for name, tasks, steps in ("computes", 2, 6), ("Task-N", 2, 4), ("blocks", 1, 3), ("late", 1, 3):
        file.write("%s %d %d %d %d\n" % (name, tasks, steps, ran.get(name, 0) * 1e6, awaited[name] * 1e6))

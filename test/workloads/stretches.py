# stretches.py: tasks of asyncio whose times are known: prints for each group of them, as pytasks has it, what it measured
# itself: "name coroutine tasks steps run_ms loop_ms others_ms slowest_ms", in milliseconds of its own clock.
#
# SPDX-License-Identifier: MIT

import asyncio
import time

STEP, PAUSE = 0.05, 0.1


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def slow_step():
    time.sleep(0.4)


async def computes():
    "Three steps that run, and two waits for others."
    for _ in range(2):
        busy(STEP)
        await asyncio.sleep(PAUSE)
    busy(STEP)


async def waits():
    "Runs for nothing, and waits."
    await asyncio.sleep(3 * PAUSE)


async def blocks():
    "The slowest step."
    await asyncio.sleep(0)
    slow_step()
    await asyncio.sleep(0)


async def late():
    "Is ready while another task blocks the loop."
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def main():
    await asyncio.gather(*(asyncio.create_task(computes(), name="computes") for _ in range(2)))
    await asyncio.create_task(waits())
    await asyncio.create_task(waits())
    await asyncio.wait([asyncio.create_task(blocks(), name="blocks"), asyncio.create_task(late(), name="late")])


asyncio.run(main())

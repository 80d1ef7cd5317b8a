# flows.py: two tasks of asyncio in turns, with functions of known depths.
#
# SPDX-License-Identifier: MIT

import asyncio
import time


def deepest():
    time.sleep(0.02)


def deep():
    deepest()


async def inner():
    deep()
    await asyncio.sleep(0)
    deep()


async def outer():
    await inner()


async def main():
    await asyncio.gather(asyncio.create_task(outer(), name="one"), asyncio.create_task(outer(), name="two"))


asyncio.run(main())

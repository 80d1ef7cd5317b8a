# tasks.py FILE: asyncio's tasks of all kinds, each in its place, and what print_python_tasks() must say of them: by what
# Python itself tells of coroutines, and by what the tasks were made to do.  It writes that to the FILE, and then calls
# os.getppid() for the probe.  CPython 3.8 and later.
#
# tasks.py check FILE PRINTED: compares that with what a probe printed there: of each call print_python_tasks(), and
# "current: " with python_task().
#
# SPDX-License-Identifier: MIT

import asyncio
import gc
import itertools
import os
import re
import sys
import threading
import types

native_id = threading.get_native_id
VERSION = sys.version_info[:2]


# ---- what Python tells


def line_of(frame):
    def escaped(text):
        return text.replace("\\", "\\\\").replace("\n", "\\n")

    # a frame that has not begun has the line of its def
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return 'File "%s", line %d, in %s' % (escaped(frame.f_code.co_filename), line, escaped(frame.f_code.co_name))


def inner(object):
    "What is within a wrapper, of which Python has no attribute."
    found = [one for one in gc.get_referents(object) if hasattr(one, "ag_frame") or hasattr(one, "cr_frame")]
    return found[0] if found else None


def stack_of(task):
    "The lines of its coroutines, the innermost first."
    lines = []
    object = task.get_coro()
    while object is not None:
        for prefix, awaits in ("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await"):
            if hasattr(object, prefix + "_frame"):
                if getattr(object, prefix + "_frame") is not None:
                    lines.insert(0, line_of(getattr(object, prefix + "_frame")))
                object = getattr(object, awaits)
                break
        else:
            object = inner(object) if type(object).__name__ in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable") else None
    return lines


def running_stack(frame, last):
    lines = []
    while frame:
        lines.append(line_of(frame))
        if frame is last:
            break
        frame = frame.f_back
    return lines


def block(task, state, lines):
    return "\n".join(['Task "%s", %s' % (task.get_name().replace("\n", "\\n"), state)] + lines) + "\n"


# ---- the tasks


async def sleeps():
    if not stopped:
        await asyncio.sleep(1000)


async def nested(depth):
    if depth:
        return await nested(depth - 1)
    await sleeps()


async def with_lock(lock):
    async with lock:
        pass


class Manager:
    async def __aenter__(self):
        await sleeps()

    async def __aexit__(self, *error):
        await sleeps()


async def enters():
    async with Manager():
        pass


async def leaves(manager=Manager()):
    manager.__class__ = type("Ready", (Manager,), {"__aenter__": lambda self: asyncio.sleep(0)})
    async with manager:
        pass


async def generator():
    try:
        yield 1
        await sleeps()
        yield 2
    finally:
        await nested(1)


async def iterates():
    async for _ in generator():
        pass


async def sends():
    values = generator()
    send = getattr(values, "a" + "send")  # not an English word
    await send(None)
    await send(3)


async def throws():
    values = generator()
    await values.__anext__()
    await values.athrow(KeyError())


async def closes():
    values = generator()
    await values.__anext__()
    await values.aclose()


async def yields_between():
    "Which stands at a yield of its own, and so awaits nothing, while its reader waits."
    async for _ in generator_without_await():
        await sleeps()


async def generator_without_await():
    while True:
        yield 1


class Awaitable:
    def __await__(self):
        yield from sleeps().__await__()


class Yields:
    "Which awaits nothing where it waits: what it would be mistaken for is a variable."

    def __await__(self):
        while not stopped:
            other = sleeps()
            yield
            other.close()


async def awaits(object):
    await object


@types.coroutine
def of_generator(object):
    yield from object


async def gathers(*objects):
    await asyncio.gather(*objects)


async def waits(*tasks):
    await asyncio.wait(set(tasks))


async def waits_with_limit(object):
    await asyncio.wait_for(object, 1000)


async def turns():
    while not stopped:
        await asyncio.sleep(0)


async def recursive(depth):
    if depth:
        await recursive(depth - 1)
    else:
        await sleeps()


class Own(asyncio.Task):
    pass


class OwnTwice(Own):
    other = 3


stopped = []
FUTURE = "waits for Future"
ODD = "n\xe4me\nof two lines \u4e00"


def begin(loop, expected):
    """Makes the tasks; expected: what each does."""

    def make(name, coroutine, state, kind=None):
        task = kind(coroutine, loop=loop, name=name) if kind else asyncio.create_task(coroutine, name=name)
        expected[task] = state
        return task

    lock = asyncio.Lock()
    child = [make("child %d" % i, sleeps(), FUTURE) for i in range(4)]
    make("sleeps", sleeps(), FUTURE)
    make("nested", nested(5), FUTURE)
    expected[asyncio.create_task(sleeps())] = FUTURE  # without a name
    make("a lock", with_lock(lock), FUTURE)
    make("a queue", asyncio.Queue().get(), FUTURE)
    make("an event", asyncio.Event().wait(), FUTURE)
    make("a condition", waits_for_condition(), FUTURE)
    make("enters", enters(), FUTURE)
    make("leaves", leaves(), FUTURE)
    make("iterates", iterates(), FUTURE)
    make("sends", sends(), FUTURE)
    make("throws", throws(), FUTURE)
    make("closes", closes(), FUTURE)
    make("yields between", yields_between(), FUTURE)
    make("__await__", awaits(Awaitable()), FUTURE)
    make("yields", awaits(Yields()), "ready")
    make("types.coroutine", awaits(of_generator(sleeps())), FUTURE)
    make("a future", awaits(loop.create_future()), FUTURE)
    make("a task", awaits(child[0]), 'waits for "child 0"')
    make("a task's task", awaits(make("between", awaits(child[0]), 'waits for "child 0"')), 'waits for "between"')
    make("gathers", gathers(child[0], child[1], loop.create_future()), 'waits for "child 0", "child 1", Future')
    make("waits for one", waits(child[2]), 'waits for "child 2"')
    make("with a limit", waits_with_limit(child[3]), 'waits for "child 3"')
    make("derived", nested(1), FUTURE, Own)
    make("derived twice", nested(1), FUTURE, OwnTwice)
    make(ODD, sleeps(), FUTURE)
    make("turns", turns(), "ready")
    if VERSION < (3, 14):
        make("in Python", nested(2), FUTURE, asyncio.tasks._PyTask)
    if VERSION >= (3, 11):
        make("a group", scope["groups"](expected), None)
    if VERSION >= (3, 12):
        eager = asyncio.eager_task_factory(loop, nested(1), name="eager")
        expected[eager] = FUTURE
    return lock


async def waits_for_condition():
    condition = asyncio.Condition()
    async with condition:
        await condition.wait()


scope = dict(globals())
if VERSION >= (3, 11):
    exec(
        compile(
            """
async def groups(expected):
    async with asyncio.TaskGroup() as group:
        member = group.create_task(sleeps(), name="member")
        done = group.create_task(asyncio.sleep(0), name="done")
        expected[member] = FUTURE
        for task in expected:
            if task.get_name() == "a group":
                expected[task] = 'waits for "member"'
""",
            "groups.py",
            "exec",
        ),
        scope,
    )


async def main(trigger):
    loop = asyncio.get_running_loop()
    expected = {}
    task = asyncio.current_task()
    task.set_name("main")
    lock = begin(loop, expected)
    await lock.acquire()
    for _ in range(20):
        await asyncio.sleep(0)
    woken = loop.create_future()
    expected[asyncio.create_task(awaits(woken), name="woken")] = "ready"
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    woken.set_result(None)
    expected[asyncio.create_task(nested(3), name="not begun")] = "ready"
    missing = asyncio.all_tasks() - set(expected) - {task}
    assert not missing, missing
    shown(trigger, task, expected)
    if VERSION >= (3, 12):
        # an eager task runs within the step of this one, which is current no more
        async def inner():
            eager = asyncio.current_task()
            expected[task] = "running"
            shown(trigger, eager, expected, eager.get_coro().cr_frame)

        asyncio.eager_task_factory(loop, inner(), name="eager in main")
        del expected[task]
    others(loop, trigger)
    stopped.append(1)
    for other in expected:
        other.cancel()
    await asyncio.wait(set(expected))
    stopped.clear()


def shown(trigger, task, expected, last=None):
    "All of them, and what this one does that calls it."
    blocks = [block(one, state, stack_of(one)) for one, state in expected.items() if not one.done()]
    frame = sys._getframe()
    last = last or task.get_coro().cr_frame
    # one line, as it is in the stacks
    blocks.append(block(task, "running in thread %d" % native_id(), running_stack(frame, last))); trigger(blocks, task.get_name())


def others(loop, trigger):
    "No task runs in a callback, nor in a thread without a loop."
    called = []
    loop.call_soon(lambda: called.append(trigger(None, "")))
    thread = threading.Thread(target=trigger, args=(None, ""))
    thread.start()
    thread.join()
    loop.call_soon(lambda: None)


class Loop(asyncio.SelectorEventLoop):
    """Which is asked for something by tasks: this is called while one is current, and none of its frames is there."""

    trigger = None

    def call_soon(self, *args, **more):
        task = asyncio.current_task(self) if self.is_running() else None
        if self.trigger:
            self.trigger(None, task.get_name() if task else "")
        return super().call_soon(*args, **more)


async def ends():
    pass


async def by_the_loop(trigger):
    loop = asyncio.get_running_loop()
    loop.trigger = trigger
    # when it ends its coroutine has no frame any more, and the loop is asked to call who awaits it
    await asyncio.create_task(ends(), name="ends")
    loop.trigger = None


def blocks_loop(begun, go_on):
    async def blocked():
        begun.append((asyncio.current_task(), sys._getframe(), native_id()))
        go_on.acquire()

    async def main():
        sleeping = asyncio.create_task(sleeps(), name="in another thread")
        await asyncio.sleep(0)
        begun.append(sleeping)
        await asyncio.create_task(blocked(), name="blocks its loop")
        sleeping.cancel()

    asyncio.run(main())


async def beside(trigger):
    "Of another thread's loop, whose task blocks it."
    import time

    begun, go_on = [], threading.Lock()
    go_on.acquire()
    thread = threading.Thread(target=blocks_loop, args=(begun, go_on))
    thread.start()
    while len(begun) < 2:
        await asyncio.sleep(0.01)
    time.sleep(0.1)
    task = asyncio.current_task()
    task.set_name("beside")
    blocked, frame, thread_id = begun[1]
    main = [one for one in asyncio.all_tasks(blocked.get_loop()) if one not in (blocked, begun[0])][0]
    main.set_name("main of the other")
    expected = {begun[0]: FUTURE, main: 'waits for "blocks its loop"', blocked: "running in thread %d, asleep" % thread_id}
    shown(trigger, task, expected)
    go_on.release()
    thread.join()


def leaves_task(left):
    async def main():
        left.append(asyncio.create_task(nested(2), name="of a thread that has ended"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())


async def after(trigger):
    "Of a thread that is no more, whose loop did not end."
    left = []
    thread = threading.Thread(target=leaves_task, args=(left,))
    thread.start()
    thread.join()
    asyncio.current_task().set_name("after")
    shown(trigger, asyncio.current_task(), {left[0]: FUTURE})
    left[0]._log_destroy_pending = False


async def many(trigger, count):
    "The depth of one stack, and their number."
    expected = {asyncio.create_task(sleeps(), name="one of many"): FUTURE for _ in range(count)}
    expected[asyncio.create_task(recursive(100), name="deep")] = FUTURE
    asyncio.current_task().set_name("of many")
    for _ in range(3):
        await asyncio.sleep(0)
    shown(trigger, asyncio.current_task(), expected)


def run(trigger):
    asyncio.run(main(trigger))
    loop = Loop()
    loop.run_until_complete(by_the_loop(trigger))
    loop.close()
    asyncio.run(beside(trigger))
    asyncio.run(many(trigger, 300))
    asyncio.run(after(trigger))


# ---- what was printed


def comparable(blocks):
    "In an order of their own, also of the names for which one waits; without the call of the probe."

    def sorted_names(found):
        return "waits for " + ", ".join(sorted(found.group(1).split(", ")))

    whole = []
    for one in blocks:
        one = re.sub("waits for (.*)", sorted_names, one.strip("\n") + "\n", count=1)
        lines = re.sub("(, running.*\n)File .*, in trigger\n", "\\1", one).splitlines(True)
        # the innermost of a stack of more than 64 frames
        whole.append("".join(lines[:65] + ["...\n"] if len(lines) > 66 else lines))
    return "\n".join(sorted(whole))


def parts_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for part in re.findall("(.*?)^current: ([^\n]*)\n\n", text, re.DOTALL | re.MULTILINE):
        yield comparable(one for one in part[0].split("\n\n") if one), part[1]


def check(expected, printed):
    compared = 0
    for (blocks, current), (printed_blocks, printed_current) in itertools.zip_longest(parts_of(expected), parts_of(printed)):
        if current != printed_current or (blocks and blocks != printed_blocks):
            sys.exit("current: %s\n\n%s\n---- printed:\ncurrent: %s\n\n%s" % (current, blocks, printed_current, printed_blocks))
        compared += blocks.count("Task ")
    print("%d tasks compared" % compared)


def write():
    with open(sys.argv[1], "w", encoding="utf-8") as file:

        def trigger(blocks, running):
            file.write("".join(one + "\n" for one in blocks or []))
            file.write("current: %s\n\n" % running.replace("\n", "\\n"))
            file.flush()
            os.getppid()

        run(trigger)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        write()

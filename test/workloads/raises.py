# raises.py: raises exceptions of many kinds.  The comment behind a line is how often exception__raise is to come
# from it, and the types; lines without one raise nothing, or pass on what was raised elsewhere.
#
# SPDX-License-Identifier: MIT
import asyncio
import contextlib
import threading


class Failure(Exception):
    "Not one of C's."


class Named(type):
    @property
    def __name__(cls):
        raise SystemExit("code of the program's was run")


class Odd(Exception, metaclass=Named):
    pass


def raises():
    raise ValueError("x")  # 4 ValueError


def passes():
    raises()


def takes(function):
    try:
        function()
    except Exception:
        return True


def by_an_instruction():
    1 / (1 - 1)  # 1 ZeroDivisionError


def by_c():
    int("x")  # 1 ValueError


def by_a_subscript():
    {}["k"]  # 1 KeyError


def again_by_raise_alone():
    try:
        raise Failure(1)  # 1 Failure
    except Failure:
        raise


def again_by_name():
    try:
        raise Failure(1)  # 1 Failure
    except Failure as failure:
        raise failure  # 1 Failure


def again_in_the_caller():
    try:
        again_by_raise_alone_2()
    except Failure as failure:
        raise failure  # 1 Failure


def again_by_raise_alone_2():
    try:
        raise Failure(2)  # 1 Failure
    except Failure:
        raise


def another_from_it():
    try:
        raise Odd()  # 1 Odd
    except Odd as odd:
        raise RuntimeError() from odd  # 1 RuntimeError


def through_finally():
    try:
        raise Failure()  # 1 Failure
    finally:
        len("")


class Has:
    @property
    def it(self):
        raise AttributeError("it")  # 3 AttributeError


def after_one_that_c_took():
    "The next one of the same type has its address, and its traceback that one's."
    for _ in range(3):
        getattr(Has(), "it", None)
        try:
            raise AttributeError()  # 3 AttributeError
        except AttributeError:
            pass


def through_c():
    sorted([2, 1], key=lambda _: raises())


def down(n):
    if n == 0:
        raise Failure("deep")  # 1 Failure
    down(n - 1)


def from_the_deep():
    down(30)


def counts(n):
    for i in range(n):
        yield i
    return n


class Counts:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration  # 2 StopIteration
        self.n -= 1
        return self.n


def delegates():
    return (yield from counts(2))


def loops():
    "What ends a loop is no exception of the loop's; what __next__() raises is one there."
    list(counts(3))
    for _ in counts(3):
        pass
    for _ in Counts(2):
        pass
    sum(Counts(2))
    for _ in iter([1]):
        pass
    for _ in delegates():
        pass


def ends_by_hand():
    generator = counts(1)
    next(generator)
    next(generator)  # 1 StopIteration


def generates():
    try:
        yield 1  # 1 Failure
    except Failure:
        yield 2


def throws():
    generator = generates()
    next(generator)
    generator.throw(Failure())
    list(generator)


def generates_what_fails():
    yield 1
    raise Failure()  # 2 Failure


def loops_over_what_fails():
    for _ in generates_what_fails():
        pass


def delegates_to_what_fails():
    yield from generates_what_fails()


def loops_over_one_that_delegates():
    for _ in delegates_to_what_fails():
        pass


@contextlib.contextmanager
def manages():
    yield  # 1 Failure


def in_a_with():
    with manages():
        raise Failure()  # 1 Failure


async def fails():
    await asyncio.sleep(0)
    raise Failure("late")  # 1 Failure


async def awaits():
    await fails()


def in_a_task():
    "C gives the task's exception to whoever asks for it, and raises it there."
    loop = asyncio.new_event_loop()
    task = loop.create_task(awaits())
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()
    task.result()  # 1 Failure


def in_a_thread():
    thread = threading.Thread(target=takes, args=(raises,))
    thread.start()
    thread.join()


for function in (
    raises,
    passes,
    by_an_instruction,
    by_c,
    by_a_subscript,
    again_by_raise_alone,
    again_by_name,
    again_in_the_caller,
    another_from_it,
    through_finally,
    after_one_that_c_took,
    through_c,
    from_the_deep,
    loops,
    ends_by_hand,
    throws,
    loops_over_what_fails,
    loops_over_one_that_delegates,
    in_a_with,
    in_a_task,
    in_a_thread,
):
    takes(function)
print("fine")

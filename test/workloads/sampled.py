# sampled.py SECONDS [told]: computes in functions whose stacks are known, of all kinds, and with known shares of the
# time: of the samples in six, three and one of tenths() 60, 30 and 10 %. told: prints "ready", and begins after a line on stdin.
# sampled.py check SHARE <FOLDED: says how many samples of a sampler's there are, and which of their stacks are
# impossible, or exits with 1 if there are any, with 2 if a share is not right within SHARE points.  It also reads what
# CPython 3.15's own sampler writes (python3.15 -m profiling.sampling run -r 997 -a --collapsed -o FILE sampled.py SECONDS),
# and austin.
#
# SPDX-License-Identifier: MIT

import sys
import threading
import time


def spin():
    total = 0
    for number in range(300):
        total += number * number
    return total


def six():
    for _ in range(6):
        spin()


def three():
    for _ in range(3):
        spin()


def one():
    spin()


def tenths():
    six()
    three()
    one()


# two pairs of the same depth, in turn: a torn stack has the one's caller and the other's callee
def left():
    left_inner()


def left_inner():
    pass


def right():
    right_inner()


def right_inner():
    pass


def pairs():
    for _ in range(50):
        left()
        right()


def recursive(depth):
    if depth:
        recursive(depth - 1)
    else:
        spin()


def generator():
    for _ in range(3):
        spin()
        yield 1


def generators():
    for _ in generator():
        pass
    sum(nested())


def nested():
    yield from generator()


async def coroutine():
    spin()


async def awaits():
    await coroutine()


def coroutines():
    try:
        awaits().send(None)
    except StopIteration:
        pass


def key(number):
    spin()
    return -number


def through_c():
    sorted([3, 1, 2], key=key)
    list(map(key, [1]))


class Finalized:
    def __del__(self):
        spin()


def finalizers():
    Finalized()


def executed():
    exec("spin()", {"spin": spin})


def raises():
    try:
        fails()
    except ValueError:
        spin()


def fails():
    raise ValueError


def mixed():
    pairs()
    recursive(20)
    generators()
    coroutines()
    through_c()
    finalizers()
    executed()
    raises()


def run(end):
    while time.time() < end:
        for _ in range(4):
            tenths()
        mixed()


def main():
    if sys.argv[2:]:
        print("ready", flush=True)
        sys.stdin.readline()
    end = time.time() + float(sys.argv[1])
    threads = []
    for _ in range(2):
        threads.append(threading.Thread(target=run, args=(end,)))
        threads[-1].start()
    run(end)
    for thread in threads:
        thread.join()


CALLS = {
    "": "<module>", "thread": "run", "<module>": "Finalized main spin", "main": "run", "run": "tenths mixed",
    "tenths": "six three one", "six": "spin", "three": "spin", "one": "spin",
    "mixed": "pairs recursive generators coroutines through_c finalizers executed raises",
    "pairs": "left right", "left": "left_inner", "right": "right_inner", "recursive": "recursive spin",
    "generators": "generator nested", "nested": "generator", "generator": "spin", "coroutines": "awaits",
    "awaits": "coroutine", "coroutine": "spin", "through_c": "key", "key": "spin", "finalizers": "__del__",
    "__del__": "spin", "executed": "<module>", "raises": "fails spin",
}


def is_possible(names):
    "Whether this program calls its functions so; those of the standard library are passed over."
    at = 0
    while at < len(names) and not names[at].endswith("/sampled.py)"):
        at += 1
    before = "thread" if at else ""
    for caller, name in zip([""] + names[at:], names[at:]):
        if name.endswith("/sampled.py)") or (name.endswith(" (<string>)") and caller.endswith("/sampled.py)")):
            name = name.split(" (")[0]
            if name not in CALLS.get(before, "").split():
                return False
            before = name
    return True


def names_of(stack):
    """The functions of a folded stack; profiling.sampling has tid:1;sampled.py:main:159, and what runs the program first;
    austin has P1;T0:1;/FOLDER/sampled.py:main:159."""
    names = stack.split(";")[1:]
    if stack.startswith("tid:") or names[:1] and names[0].startswith("T0:"):
        parts = [name.rsplit(":", 2) for name in names if name.count(":") >= 2]
        names = ["%s (%s)" % (part[1].split(".")[-1], "/sampled.py" if part[0].split("/")[-1] == "sampled.py" else part[0]) for part in parts]
        if "<module> (/sampled.py)" in names:
            names = names[names.index("<module> (/sampled.py)"):]
    return names


def check(most_wrong):
    samples, impossible = 0, 0
    shares = {"six": 0, "three": 0, "one": 0}
    for line in sys.stdin:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        count = count or "1"  # of a name with a newline
        names = names_of(stack)
        samples += int(count)
        if not is_possible(names):
            impossible += int(count)
            print("impossible:", line, end="")
        for name in shares:
            if any(one.startswith(name + " (") for one in names):
                shares[name] += int(count)
    tenths = sum(shares.values())
    print("%d samples, %d impossible; %d in tenths()" % (samples, impossible, tenths))
    if impossible:
        sys.exit(1)
    if tenths < 100:
        sys.exit(2)
    for name, wanted in ("six", 60), ("three", 30), ("one", 10):
        share = 100.0 * shares[name] / tenths
        print("%s: %.1f %%" % (name, share))
        if abs(share - wanted) > most_wrong:
            print("%s: %.1f %%, not %d" % (name, share, wanted))
            sys.exit(2)


if sys.argv[1] == "check":
    check(float(sys.argv[2]))
else:
    main()

# seldom.py CASE: what programs do seldom, with a tracer that comes at the worst moment: by the semaphores at
# $SEMAPHORES in the shim's file.  Prints "fine", or what is not.
#
# SPDX-License-Identifier: MIT
import ctypes
import gc
import os
import signal
import sys
import threading
import time

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    interpreters = None


def probe(wanted):
    with open("/proc/self/maps") as maps:
        base = next((int(line.split("-")[0], 16) for line in maps if "libpython-stap" in line), None)
    for address in os.environ["SEMAPHORES"].split(",") if base else ():
        ctypes.c_ushort.from_address(base + int(address, 16)).value = wanted


def step(n):
    return n + 1


def go_on(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step(1)
        time.sleep(0.01)


def ends_well(child, seconds):
    "Whether the child ends with 7 within that time."
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return "fine" if status == 7 << 8 else "the child's status is %d" % status
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the child hangs"


def forks_in_c_while_asked():
    "A C function has the GIL, while the shim waits for it, and then forks: as uwsgi's master does."
    library = ctypes.PyDLL(None)
    fork, usleep = library.fork, library.usleep
    probe(1)
    go_on(0.5)
    before_forks = getattr(library, "__register_atfork")
    before_forks.argtypes = [ctypes.c_void_p] * 4
    before_forks(ctypes.cast(library.pause, ctypes.c_void_p), None, None, None)
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    child = fork()
    if child == 0:
        for _ in range(20):
            step(1)
            usleep(50000)
        os._exit(7)
    return ends_well(child, 10)


def forks_without_handlers():
    "By _Fork(), of which the C library tells nobody."
    child = ctypes.PyDLL(None)._Fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0)
        os.waitpid(grandchild, 0)
        os._exit(7)
    return ends_well(child, 10)


def forks_in_c_beside_threads():
    "In the child the stacks of the other threads are others' soon."
    fork = ctypes.PyDLL(None).fork
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(0.3)
    child = fork()
    if child == 0:
        thread = threading.Thread(target=step, args=(1,))
        thread.start()
        thread.join()
        go_on(0.2)
        probe(1)
        go_on(1)
        os._exit(7)
    return ends_well(child, 10)


def puts_its_evaluator_in_front_again():
    evaluators = ctypes.PyDLL(os.environ["EVALUATOR"])
    evaluators.put_in_front()
    step(1)
    for _ in range(3):
        probe(1)
        go_on(0.3)
        evaluators.put_in_front()
        go_on(0.1)
        probe(0)
        go_on(0.3)
    return "fine"


def has_its_evaluator_in_front_of_the_deep():
    evaluators = ctypes.PyDLL(os.environ["EVALUATOR"])
    sys.setrecursionlimit(20000)
    seen = []

    def down(n):
        if n:
            return down(n - 1)
        probe(0)
        time.sleep(0.3)
        step(1)
        seen.append(evaluators.in_front())

    probe(1)
    go_on(0.3)
    evaluators.put_in_front()
    step(1)
    down(8000)
    step(1)
    seen.append(evaluators.in_front())
    return "fine" if seen == [1, 1] else seen


def shares_the_index_of_code_objects():
    "An extension has ours in a subinterpreter, and a word of its own there."
    sub = interpreters.create()
    code = """
import ctypes, time
python = ctypes.pythonapi
set_extra = python._PyCode_SetExtra
set_extra.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
def loop():
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        time.sleep(0.01)
set_extra(loop.__code__, python._PyEval_RequestCodeExtraIndex(None), 1)
loop()
"""
    thread = threading.Thread(target=interpreters.run_string, args=(sub, code))
    thread.start()
    time.sleep(0.5)
    probe(1)
    thread.join()
    return "fine"


def has_a_list_of_gc_callbacks_that_goes(shim):
    gc.callbacks = list(gc.callbacks)
    ctypes.CDLL(shim)  # as attach does
    go_on(1.5)
    gc.callbacks = None
    filled = [[7] for _ in range(100000)]
    del filled
    filled = [b"A" * 23 for _ in range(100000)] + [(1.5 * i,) for i in range(100000)]
    probe(1)
    go_on(1)
    return "fine"


def loses_its_tracer_in_a_gc_callback():
    log = []

    def first(phase, info):
        log.append("first " + phase)
        if phase == "stop":
            probe(0)
            go_on(0.4)

    def second(phase, info):
        log.append("second " + phase)

    probe(1)
    go_on(0.5)
    gc.callbacks += [first, second]
    gc.disable()
    gc.collect()
    return "fine" if log == ["first start", "second start", "first stop", "second stop"] else log


def has_a_subinterpreter_that_refuses_once():
    sub = interpreters.create()
    code = """
import sys, time
told = 0
def hook(event, arguments):
    global told
    if event == "sys.monitoring.register_callback":
        told += 1
        if told == 1:
            raise PermissionError("once")
sys.addaudithook(hook)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    time.sleep(0.01)
"""
    thread = threading.Thread(target=interpreters.run_string, args=(sub, code))
    thread.start()
    time.sleep(0.4)
    probe(1)
    try:
        for _ in range(150):
            time.sleep(0.01)
    except PermissionError as error:
        return "the main interpreter got %r" % error
    finally:
        thread.join()
    return "fine"


print(globals()[sys.argv[1]](*sys.argv[2:]), flush=True)
os._exit(0)

# forks.py CASE LIBRARY: forks, and an end, while the markers whose semaphores semaphores.so raises are wanted;
# LIBRARY is forks.c.  Prints "fine", or what went wrong.
#
# SPDX-License-Identifier: MIT
import atexit
import ctypes
import os
import signal
import sys
import threading
import time
import warnings
import weakref

from hooks import watchers

library = ctypes.PyDLL(sys.argv[2])
fork = ctypes.PyDLL(None).fork


def step(n):
    return n + 1


def for_seconds(seconds):
    "Numbers, until that time is up."
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        n += 1
        yield n


def a_thread_sleeps():
    "In a free-threaded build a child that C forked waits at its end for a thread that was attached at the fork."
    threading.Thread(target=ctypes.CDLL(sys.argv[2]).sleep_for_good, daemon=True).start()
    while not library.sleeps():
        time.sleep(0.001)


def others_use_the_lock():
    def work():
        while True:
            library.use()

    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()


def ends(child, status):
    "Whether the child ends in time, with this status."
    for _ in for_seconds(10):
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            return how == status << 8
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return False


def a_child_exits():
    "Whether the child of os.fork() ends that calls nothing but os._exit()."
    child = os.fork()
    if child == 0:
        os._exit(7)
    return ends(child, 7)


def a_child_runs(fork):
    "Whether the child of this function calls Python functions, and ends."
    child = fork()
    if child == 0:
        for _ in for_seconds(0.05):
            step(1)
        sys.exit(7)
    return ends(child, 7)


def in_c_with_a_lock():
    "A fork handler takes a lock for which another thread waits, with the GIL, if it gets that in the middle."
    library.hold_over_forks()
    others_use_the_lock()
    end = time.monotonic() + 3
    while time.monotonic() < end:  # no Python function is called, so the shim's thread asks for the GIL
        child = library.fork_and_end()
        assert os.waitpid(child, 0) == (child, 0)


def with_a_lock(take=library.take_late):
    "The same by handlers of os.register_at_fork()."
    os.register_at_fork(before=take, after_in_parent=library.give, after_in_child=library.give)
    others_use_the_lock()
    end = time.monotonic() + 3
    while time.monotonic() < end:  # as in in_c_with_a_lock()
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)


def while_hooks_are_set():
    "The same; CPython's audit hooks let the GIL go while the shim arms."
    sys.addaudithook(lambda event, arguments: event.startswith("sys.monitoring") and time.sleep(0.003))
    with_a_lock(library.take)


def in_c_beside_a_thread_that_sleeps():
    "The child runs Python, of which CPython knows nothing, whatever the shim's thread did."
    a_thread_sleeps()
    for _ in for_seconds(3):
        if not a_child_runs(fork):
            return "a child hangs"


def in_c_after_calls(before=lambda: None):
    "The same; functions are called, and then a C function forks that has long had the GIL."
    set_semaphores = ctypes.CDLL(None).semaphores_set
    sys.setswitchinterval(0.2)
    a_thread_sleeps()
    for n in range(6):
        set_semaphores(n % 2)
        before()
        for _ in for_seconds(0.15):
            step(1)
        if not a_child_runs(library.fork_late):
            return "a child hangs"


def in_c_after_calls_that_come_late():
    "The same; a C function has the GIL first, as if the thread had no processor."
    return in_c_after_calls(library.keep_the_gil)


def after_a_sleep():
    "No thread answers the shim's, which then makes itself a thread state, under a lock that the child takes, too."
    for n in range(60):
        time.sleep(n * 0.007 % 0.1)
        if not a_child_exits():
            return "a child hangs"


def beside_a_thread_that_arms():
    "Another thread is within a pending call, which is the shim's; and the child has such calls of its own."
    if "free-threading" not in sys.version:  # there the GIL changes hands within the call
        sys.addaudithook(lambda event, arguments: event.startswith("sys.monitoring") and time.sleep(0.003))
    made = []
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda unused: made.append(1) or 0)

    def work():
        while True:
            step(1)

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    for _ in for_seconds(6):
        time.sleep(0.005)
        child = os.fork()
        if child == 0:
            ctypes.pythonapi.Py_AddPendingCall(call, None)
            for _ in for_seconds(1):
                if made:
                    break
                step(1)
            sys.exit(7 if made else 8)
        if not ends(child, 7):
            return "a child hangs"


def the_watcher_is_back():
    return any(watchers() for _ in for_seconds(5))


def back_beside_a_thread_that_arms():
    "Another thread makes pending calls, and a CPython without a GIL may forget those of the main thread."
    main, ended = threading.get_ident(), []
    sys.addaudithook(
        lambda event, arguments: event.startswith("sys.monitoring")
        and threading.get_ident() != main
        and time.sleep(0.005)
    )

    def work():
        while not ended:
            step(1)

    thread = threading.Thread(target=work)
    thread.start()
    forks = 0
    while forks < 60 and the_watcher_is_back():
        time.sleep(forks * 0.007 % 0.02)
        if not a_child_exits():
            return "a child hangs"
        forks += 1
    ended.append(True)
    thread.join()
    return None if the_watcher_is_back() else "no thread of the shim's after fork %d" % forks


def with_a_long_handler():
    "What the shim looks at meanwhile, to start its thread when os.fork() is done."
    walked = ctypes.c_long.in_dll(ctypes.CDLL(None), "walked")
    seen = []

    def handler():
        before = walked.value
        for _ in range(5000):
            step(1)
        seen.append(walked.value - before)

    os.register_at_fork(after_in_parent=handler)
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    return None if 0 < seen[0] < 5 * 5000 else "walked %d times in 5000 calls" % seen[0]


def with_a_local():
    "The child frees the variables of the function that forked when that returns."

    class Local:
        pass

    def forks():
        local = Local()
        child = os.fork()
        for _ in range(1000):  # calls nothing: pending calls are made in this frame
            pass
        return child, weakref.ref(local)

    child, local = forks()
    if child == 0:
        os._exit(7 if local() is None else 8)
    return None if ends(child, 7) else "the local is alive in the child"


def without_functions_at_exit():
    library.live_on()
    for _ in for_seconds(0.3):
        time.sleep(0.01)
    atexit._clear()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wrong = globals()[sys.argv[1]]()
    print(wrong or "fine", flush=True)
    if not sys.argv[1].startswith("without"):
        os._exit(0)

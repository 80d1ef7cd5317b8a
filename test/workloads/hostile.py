# hostile.py CASE: programs that do to CPython what a tracer could trip over.
# Each prints what it computed; the suites run them traced and untraced.
#
# SPDX-License-Identifier: MIT
import gc
import os
import sys
import threading
import time
import warnings


def plus(x):
    return len([x]) + x


def audit_hook_in_python():
    "Its frames are traced, also while the shim itself is audited."
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(lambda event, arguments: plus(1) and None)
    return sum(plus(i) for i in range(10))


def audit_hook_that_refuses():
    def refuse(event, arguments):
        if event in ("sys.settrace", "sys.setprofile", "object.__getattr__"):
            raise RuntimeError(event)

    if hasattr(sys, "addaudithook"):
        sys.addaudithook(refuse)
    return sum(plus(i) for i in range(10))


def trace_function_that_nobody_else_holds():
    seen = set()

    class Tracer:
        def trace(self, frame, event, argument):
            seen.add(event)
            return self.trace

    sys.settrace(Tracer().trace)
    plus(1)
    plus(2)
    sys.settrace(None)
    return sorted(seen)


def profile_of_the_program():
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    for i in range(7):
        plus(i)
    profile.disable()
    return sorted(
        entry.callcount for entry in profile.getstats() if getattr(entry.code, "co_name", "") == "plus"
    )


def down(n):
    return down(n - 1) if n else 0


def deep_recursion():
    "Nearly as deep as a C stack of 8 MB allows in 3.6 to 3.10."
    sys.setrecursionlimit(100000)
    threading.stack_size(8 * 1024 * 1024)
    thread = threading.Thread(target=down, args=(15000,))
    thread.start()
    thread.join()
    return "ended"


def locals_read_by_a_collection():
    "A collection in the middle of a call reads the locals of every frame."

    def read(phase, info):
        frame = sys._getframe()
        while frame:
            len(frame.f_locals)
            frame = frame.f_back

    def outer(x):
        def inner():
            return [x]

        return inner

    inner = outer(1)
    gc.callbacks.append(read)
    gc.set_threshold(1, 1, 1)
    for _ in range(200):
        inner()
    gc.callbacks.remove(read)
    return "read"


def subinterpreters():
    try:
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
        else:
            import _xxsubinterpreters as interpreters
    except ImportError:
        return "none"
    for _ in range(5):
        interpreter = interpreters.create()
        interpreters.run_string(interpreter, "def g():\n yield 1\nlist(g())")
        interpreters.destroy(interpreter)
    return "ended"


def submodule_imported_lazily():
    "3.15's concurrent.futures does it; _find_and_load() gets a keyword then."
    import concurrent.futures
    from concurrent.futures import thread

    return thread.__name__, concurrent.futures.ThreadPoolExecutor.__name__


def forks_among_threads():
    "CPython tidies up after a fork in Python code that takes the longer the more threads there were."
    warnings.simplefilter("ignore")  # 3.12 and later warn of it
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(50)]
    for thread in threads:
        thread.start()
    statuses = set()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            time.sleep(0.02)
            sum(plus(i) for i in range(100))
            os._exit(7)
        statuses.add(os.waitpid(child, 0)[1] >> 8)
    end.set()
    for thread in threads:
        thread.join()
    return statuses


def thread_that_outlives_the_program():
    "At the end CPython drops what the thread's frames hold, and so runs Python."

    class Leaver:
        def __del__(self, plus=plus):
            plus(1)

    def work():
        leaver = Leaver()
        ready.set()
        time.sleep(100)
        del leaver

    ready = threading.Event()
    threading.Thread(target=work, daemon=True).start()
    ready.wait()
    return "ready"


print(globals()[sys.argv[1]]())

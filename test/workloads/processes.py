# processes.py CASE: what programs do with processes, threads and interpreters.  Each prints its results, and
# last how often it called marked(), in all processes and interpreters.
#
# SPDX-License-Identifier: MIT
import multiprocessing
import os
import subprocess
import sys
import threading


def marked():
    return os.getpid()


def fork():
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            marked()
            os._exit(3)
        marked()
        print(os.waitpid(pid, 0)[1] >> 8, flush=True)
    return 6


def fork_that_ends_in_order():
    pid = os.fork()
    marked()
    if pid == 0:
        sys.exit(4)
    print(os.waitpid(pid, 0)[1] >> 8, flush=True)
    return 2


def fork_in_a_thread():
    def worker():
        pid = os.fork()
        marked()
        if pid == 0:
            os._exit(5)
        print(os.waitpid(pid, 0)[1] >> 8, flush=True)

    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
    return 2


def pool(x):
    marked()
    return 2 * x


def multiprocess(method):
    with multiprocessing.get_context(method).Pool(2) as workers:
        print(workers.map(pool, range(4)), flush=True)
    return 4


def multiprocessing_fork():
    return multiprocess("fork")


def multiprocessing_spawn():
    return multiprocess("spawn")


def multiprocessing_forkserver():
    return multiprocess("forkserver")


def execute():
    print(subprocess.call([sys.executable, __file__, "executed"]), flush=True)
    sys.stdout.flush()
    marked()
    os.execv(sys.executable, [sys.executable, __file__, "executed"])


def executed():
    marked()
    print(3, flush=True)
    os._exit(6)


def daemon_thread_at_exit():
    def worker():
        while True:
            marked.__name__.upper()

    threading.Thread(target=worker, daemon=True).start()
    marked()
    return 1


def leaves_at_once():
    marked()
    print(1, flush=True)
    os._exit(7)


def threads():
    def worker():
        for _ in range(100):
            marked()

    workers = [threading.Thread(target=worker) for _ in range(8)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    return 800


def interpreters():
    code = """
def marked_inside(n):
    return n
class Body:
    marked_inside(1)
marked_inside(2)
"""
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            import _testcapi

            for _ in range(6):
                print(_testcapi.run_in_subinterp(code), flush=True)
            return 12
    for _ in range(3):
        one = module.create()
        two = module.create()
        module.run_string(one, code)
        module.run_string(two, code)
        module.destroy(one)
        module.destroy(two)
    return 12


def interpreters_on_threads():
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return 0
    code = """
def marked_there(n):
    return n
for n in range(100):
    marked_there(n)
"""

    def worker():
        for _ in range(3):
            interpreter = module.create()
            module.run_string(interpreter, code)
            module.destroy(interpreter)

    workers = [threading.Thread(target=worker) for _ in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    return 1200


if __name__ == "__main__":
    print(globals()[sys.argv[1]](), flush=True)

# programs.py CASE [NUMBER]: programs that fork, start threads, get signals and end in every way.  Each prints its
# results, which must be the same with the shim and without.
#
# SPDX-License-Identifier: MIT
import atexit
import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings


def down(n):
    return down(n - 1) + 1 if n else 0


def busy_threads(count):
    "They compute until the event that is returned is set."
    end = threading.Event()

    def work():
        while not end.is_set():
            down(20)
            time.sleep(0.001)

    for _ in range(count):
        threading.Thread(target=work).start()
    return end


# ---------------------------------------------------------------- forks


def forks(number):
    end = busy_threads(4)
    statuses = {}
    for i in range(number):
        child = os.fork()
        if child == 0:
            os._exit(down(30) % 256)
        status = os.waitpid(child, 0)[1]
        statuses[status] = statuses.get(status, 0) + 1
    end.set()
    print("forks:", statuses)


def doubled(x):
    return 2 * x + down(10) - 10


def pools(number):
    for method in "fork", "spawn":
        for _ in range(number):
            with multiprocessing.get_context(method).Pool(3) as pool:
                print(method, sum(pool.map(doubled, range(50))))


def before_exec():
    down(10)


def commands(number):
    end = busy_threads(2)
    out = set()
    for _ in range(number):
        out.add(subprocess.check_output(["echo", "forked"], preexec_fn=before_exec))
        out.add(subprocess.check_output(["echo", "vforked"], close_fds=False))
        if hasattr(os, "posix_spawn"):
            out.add(os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1])
    end.set()
    print(sorted(map(str, out)))


def orphans(number):
    "Children that end in order, with threads of their own, and grandchildren."
    for _ in range(number):
        child = os.fork()
        if child == 0:
            thread = threading.Thread(target=down, args=(50,))
            thread.start()
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            thread.join()
            sys.exit(9)
        if os.waitpid(child, 0)[1] != 9 << 8:
            print("another status")
    print("ended")


# ---------------------------------------------------------------- threads


def threads(number):
    "200 at a time."
    sums = []
    for _ in range(number):
        some = [threading.Thread(target=lambda: sums.append(down(15))) for _ in range(200)]
        for thread in some:
            thread.start()
        for thread in some:
            thread.join()
    print(len(sums), sum(sums))


# ---------------------------------------------------------------- ends


def at_exit(*words):
    atexit.register(lambda: print(*words + (down(20),), flush=True))


def exits(number):
    at_exit("at exit")
    sys.exit(number)


def leaves(number):
    at_exit("never")
    busy_threads(2)
    os._exit(number)


def fails(number):
    at_exit("failed")
    busy_threads(2).set()
    raise ValueError(number)


def daemons(number):
    for _ in range(4):
        threading.Thread(target=lambda: [down(20) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(0.02)
    at_exit("ended among daemons")


def interrupted(number):
    "An interrupt while it ends."
    at_exit("after the interrupt")
    signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
    atexit.register(os.kill, os.getpid(), signal.SIGINT)


def terminated(number):
    atexit.register(os.kill, os.getpid(), signal.SIGTERM)


def aborts(number):
    os.abort()


def replaced(number):
    busy_threads(2).set()
    os.execv("/bin/sh", ["sh", "-c", "exit %d" % number])


def ends_by_pthread_exit(number):
    "The main thread alone, and the others after it."
    end = busy_threads(2)
    threading.Timer(0.1, end.set).start()
    sys.stdout.flush()
    ctypes.CDLL(None).syscall(60, 0)


# ---------------------------------------------------------------- signals


def signals(number):
    "A timer of 1 ms, signals from outside, and reads that they interrupt."
    counts = {"timer": 0, "outside": 0}

    def count(name):
        def handler(signum, frame):
            counts[name] += 1
            if threading.current_thread() is not threading.main_thread():
                print("not on the main thread")

        return handler

    signal.signal(signal.SIGALRM, count("timer"))
    signal.signal(signal.SIGUSR1, count("outside"))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    print("begins", flush=True)
    read, write = os.pipe()
    end = time.time() + number
    wrong = 0
    while time.time() < end:
        threading.Timer(0.005, os.write, (write, b"x")).start()
        wrong += os.read(read, 1) != b"x" or down(30) != 30
        time.sleep(0.003)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Python puts the default back when it ends
    print("wrong:", wrong, "timer:", counts["timer"] > 10 * number)


def waits(number):
    "Each of the queued signals is for the thread that waits for it, with all threads of Python blocking it."
    wanted = {signal.SIGRTMIN + 1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    got = []

    def wait():
        while True:
            info = signal.sigwaitinfo(wanted)
            if info.si_signo == signal.SIGUSR2:
                break
            got.append(info.si_signo)

    thread = threading.Thread(target=wait)
    thread.start()
    for i in range(number):
        os.kill(os.getpid(), signal.SIGRTMIN + 1)
        down(20)
        if i % 50 == 0:
            time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGUSR2)
    thread.join()
    print("waited for:", len(got))


def descriptor(number):
    "signalfd(): a thread that doesn't block the signal would take it from the descriptor."
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    mask = (ctypes.c_ulong * 16)(1 << (signal.SIGUSR2 - 1))
    fd = ctypes.CDLL(None).signalfd(-1, mask, 0)
    got = 0
    for i in range(number):
        os.kill(os.getpid(), signal.SIGUSR2)
        got += len(os.read(fd, 128)) == 128
        down(20)
        time.sleep(0.001)
    print("read:", got)


# ---------------------------------------------------------------- what is the program's own


def callers(tenths):
    "Threads of C that call into CPython and leave it, with a Python function to call and without."
    calls = set()

    def call():
        calls.add(threading.get_ident())

    library = ctypes.CDLL(os.environ["CALLERS"])
    for argument in None, ctypes.py_object(call):
        library.begin(argument)
        end = time.monotonic() + tenths / 10
        while time.monotonic() < end or (argument and not calls):
            time.sleep(0.0005)
        library.end()
    print("called:", len(calls) > 0, threading.get_ident() in calls)


def locks(tenths):
    "An audit hook takes a lock that is held around a fork, as where logging logs audit events."
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

    def audit(event, arguments):
        if event.startswith(("sys.set", "sys.add", "sys.monitoring")):  # as an armed tracer's may
            time.sleep(0.002)
            with lock:
                pass

    if hasattr(sys, "addaudithook"):
        sys.addaudithook(audit)
    forks = 0
    end = time.monotonic() + tenths / 10
    while time.monotonic() < end or forks < 5:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        forks += 1
        time.sleep(0.03)
    print("forked")


class Interrupt(BaseException):
    pass


def interrupts(tenths):
    "A signal handler raises, often in the middle of an audit hook that takes its time."
    raised = caught = 0

    def handle(signum, frame):
        nonlocal raised
        raised += 1
        raise Interrupt

    def audit(event, arguments):
        end = time.monotonic() + 0.003
        while time.monotonic() < end:
            pass

    def spin(until):  # 3.13.0's own exception tables don't have the jump at the end of a loop
        while time.monotonic() < until:
            sum([1, 2])

    if hasattr(sys, "addaudithook"):
        sys.addaudithook(audit)
    signal.signal(signal.SIGALRM, handle)
    end = time.monotonic() + tenths / 10
    # a busy machine may raise few in that time
    while time.monotonic() < end or raised <= 5 and time.monotonic() < end + 40:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                spin(time.monotonic() + 0.05)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            caught += 1
    # 3.8 itself prints, and drops, what is raised while a trace function is set
    print(raised > 5, raised - caught if sys.version_info[:2] != (3, 8) else 0)


def exceptions_set(tenths):
    "Threads end by an exception that another one sets for them, often while an audit hook of theirs takes its time."
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception.argtypes = ctypes.c_ulong, ctypes.py_object

    def audit(event, arguments):
        if event.startswith(("sys.set", "sys.add", "sys.monitoring")):
            time.sleep(0.002)

    if hasattr(sys, "addaudithook"):
        sys.addaudithook(audit)
    end = time.monotonic() + tenths / 10
    ended = True
    while ended and time.monotonic() < end:
        began, ends = threading.Event(), threading.Event()

        def run():
            try:
                while True:
                    began.set()
                    time.sleep(0.05)
            except Interrupt:
                ends.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        began.wait()
        set_exception(thread.ident, Interrupt)
        ended = ends.wait(5)
    print("ended:", ended)


def profiles(tenths):
    "A profile function is set and removed in a function whose caller runs all the time."

    def profile(frame, event, argument):
        pass

    def work():
        sys.setprofile(profile)
        for _ in range(20):  # a tracer detaches now, and the next one attaches
            time.sleep(0.01)
        sys.setprofile(None)

    end = time.monotonic() + tenths / 10
    while time.monotonic() < end:
        work()
    print("profiled", sys.getprofile())


def forks_in_c(number):
    "A thread forks by C, without the GIL, and the child runs Python."
    library = ctypes.CDLL(None)
    statuses = set()
    for _ in range(number):
        child = library.fork()
        if child == 0:
            os._exit(sum(range(20)) - 190)
        statuses.add(os.waitpid(child, 0)[1])
    print(statuses)


class Finalized:
    finalized = 0

    def __init__(self, where):
        self.itself, self.where = self, where

    def __del__(self):
        Finalized.finalized += 1
        self.where.add(threading.current_thread().name)


def looks(tenths):
    "On which threads audit hooks and finalizers run."
    where = set()
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(lambda event, arguments: where.add(threading.current_thread().name))
    gc.set_threshold(1)
    if "LATER" in os.environ:
        ctypes.CDLL(os.environ["LATER"])
    end = time.monotonic() + tenths / 10
    while time.monotonic() < end:
        for _ in range(100):
            Finalized(where)
        time.sleep(0.001)
    print(sorted(where), threading.active_count(), Finalized.finalized > 100)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # 3.12 and later warn of forks among threads
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 3)

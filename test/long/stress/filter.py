# filter.py CASE [SECONDS]: a program that allows itself few system calls by seccomp, computes for SECONDS, and
# ends.  For x86-64 only, whose numbers of system calls it uses.  With HOOKED=LOG in the environment it first waits
# until the shim's log says that it has set its hooks: what sets them needs system calls.  It waits for stdin, too.
#
# SPDX-License-Identifier: MIT
import ctypes
import itertools
import os
import signal
import sys
import threading
import time

READ, WRITE, CLOSE, FSTAT, LSEEK, MUNMAP, BRK, SIGACTION, SIGRETURN = 0, 1, 3, 5, 8, 11, 12, 13, 15
MMAP, MPROTECT, MREMAP, MADVISE, PAUSE, GETPID, EXIT, SIGALTSTACK, FUTEX, GETTID, EXIT_GROUP = (
    9, 10, 25, 28, 34, 39, 60, 131, 202, 186, 231)  # fmt: skip
FORK_AND_WAIT = (56, 61, 14, 273)  # clone, wait4, rt_sigprocmask, set_robust_list
# What Python itself calls when it ends.
ENDS = (CLOSE, FSTAT, LSEEK, MUNMAP, BRK, SIGACTION, SIGRETURN, GETPID, SIGALTSTACK, EXIT_GROUP)
MEMORY = (MMAP, MPROTECT, MREMAP, MADVISE)
KILL, EPERM = 0x80000000, 0x00050001  # SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO | EPERM
ALLOW = 0x7FFF0000

libc = ctypes.CDLL(None, use_errno=True)


def down(n):
    return down(n - 1) + 1 if n else 0


def turn(read, write):
    "A few calls, and no system calls but these two."
    os.write(write, b"x")
    os.read(read, 1)
    return down(20) + sum(x * x for x in range(20)) + len("%d" % 7)


def compute(seconds, clock=time.monotonic):
    read, write = os.pipe()
    expected = turn(read, write)
    end = clock() + seconds
    yield
    wrong = 0
    while clock() < end:
        wrong += turn(read, write) != expected
    yield wrong


def instruction(code, operand, yes=0, no=0):
    return code.to_bytes(2, "little") + bytes((yes, no)) + operand.to_bytes(4, "little")


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def allow_only(calls, otherwise, everywhere=False):
    code = instruction(0x20, 0)  # the call's number
    for i, call in enumerate(calls):
        code += instruction(0x15, call, len(calls) - i)
    code += instruction(0x06, otherwise) + instruction(0x06, ALLOW)
    program = Program(len(code) // 8, code)
    if libc.prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.syscall(317, 1, 1 if everywhere else 0, ctypes.byref(program)) != 0:  # seccomp
        raise OSError(ctypes.get_errno(), "seccomp")


def run(seconds, *filter, everywhere=False):
    steps = compute(seconds)
    next(steps)
    allow_only(*filter, everywhere=everywhere)
    print("begins", flush=True)
    os.read(0, 1)  # the tests' way to have other threads run
    print("wrong:", next(steps), flush=True)


def strict(seconds):
    "The mode of four calls, and without the processor's clock; the thread ends by the only way that is left."
    turns = itertools.count()
    steps = compute(seconds, lambda: next(turns) / 10000)
    next(steps)
    libc.prctl(22, 1, 0, 0, 0)
    os.write(1, b"begins\n")
    os.write(1, b"wrong: %d\n" % next(steps))
    libc.syscall(EXIT, 0)


def refused_everywhere(seconds):
    "In all threads, and what isn't allowed fails."
    run(seconds, (READ, WRITE) + ENDS, EPERM, everywhere=True)


def refused_here(seconds):
    run(seconds, (READ, WRITE) + ENDS, EPERM)


def killed_everywhere(seconds):
    "What each thread of the C library needs is left."
    run(seconds, (READ, WRITE, FUTEX) + ENDS + MEMORY, KILL, everywhere=True)


def killed_here(seconds):
    run(seconds, (READ, WRITE) + ENDS, KILL)


def killed_here_but_for_memory(seconds):
    run(seconds, (READ, WRITE) + ENDS + MEMORY, KILL)


def forks(seconds):
    "Nothing that a new thread would need."
    steps = compute(seconds)
    next(steps)
    allow_only((READ, WRITE, GETTID) + ENDS + FORK_AND_WAIT, EPERM)
    print("begins", flush=True)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(3)
        print(os.waitpid(child, 0)[1] >> 8, flush=True)
    print("wrong:", next(steps), flush=True)


def in_a_thread(seconds):
    "The program's main thread goes on without a filter."
    # A CPython 3.6 opens libgcc_s when its first thread ends; the one with the filter could not, and would abort.
    first = threading.Thread(target=int)
    first.start()
    first.join()
    thread = threading.Thread(target=run, args=(seconds, (READ, WRITE, FUTEX, EXIT) + MEMORY + ENDS, EPERM))
    thread.start()
    thread.join()
    print("ended", flush=True)


def watcher():
    "The folder of the shim's thread in /proc; None: there is none."
    for thread in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % thread) as name:
            if name.read().startswith("python-stap"):
                return "/proc/self/task/%s" % thread
    return None


def wait_for_the_watcher(seconds=3):
    """Until the shim's thread waits for the GIL to be free, which is once a second, up to 3.11.  It wakes each
    millisecond then, else each 50.  The GIL is kept: what PyDLL calls does not release it."""
    c = ctypes.PyDLL(None)
    thread = watcher()
    status = c.open(thread.encode() + b"/status", os.O_RDONLY) if thread else None
    text = ctypes.create_string_buffer(8192)
    sys.setswitchinterval(100)

    def wakes():
        c.pread(status, text, len(text) - 1, 0)
        return int(text.value.split(b"\nvoluntary_ctxt_switches:")[1].split()[0])

    end = time.monotonic() + seconds
    while thread and time.monotonic() < end:
        before, until = wakes(), time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        if wakes() - before > 5:
            break
    sys.setswitchinterval(0.005)


def killed_while_the_watcher_waits(seconds):
    "The filter of a thread that keeps the GIL, while the main thread is not there to answer the shim."

    def thread():
        global libc
        steps = compute(seconds)
        next(steps)
        print("begins", flush=True)
        while open("/proc/self/task/%d/syscall" % os.getpid()).read().split()[0] != str(PAUSE):
            pass
        libc = ctypes.PyDLL(None, use_errno=True)
        wait_for_the_watcher()
        allow_only((READ, WRITE) + ENDS + MEMORY, KILL)
        os.write(1, b"wrong: %d\n" % next(steps))
        libc.syscall(EXIT_GROUP, 0)

    threading.Thread(target=thread).start()
    libc.pause()


def is_hooked():
    "Whether the shim's log, which goes to stderr, says so."
    with open(os.environ["HOOKED"]) as log:
        return "hook: installed" in log.read()


def wait_for_a_look(seconds=5):
    """Until the shim's thread has just looked for filters, which it does once a second.  Up to 3.11 it then takes the
    GIL: who sets a filter without futex() at that moment is killed (limits in probes/README.md)."""

    def reads():
        thread = watcher()
        if not thread:
            return 0
        with open(thread + "/io") as io:
            return int(io.read().split("syscr: ")[1].split()[0])

    end, first = time.monotonic() + seconds, reads()
    while reads() == first and time.monotonic() < end:
        time.sleep(0.01)
    last = None
    while last != reads() and time.monotonic() < end:
        last = reads()
        time.sleep(0.05)


if __name__ == "__main__":
    signal.alarm(150)
    while "HOOKED" in os.environ and not is_hooked():
        time.sleep(0.01)
    if "HOOKED" in os.environ:
        wait_for_a_look()
    globals()[sys.argv[1]](float(sys.argv[2]) if len(sys.argv) > 2 else 0.2)

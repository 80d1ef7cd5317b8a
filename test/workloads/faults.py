# Functions that make known numbers of pages resident, and processes that share pages since a fork and write to them.  Each
# part prints lines of JSON: the function, the kind, what the memory is, KB, and how many KB more may be there.
#
# usage: faults.py PART...
#
# SPDX-License-Identifier: MIT

import ctypes
import gc
import itertools
import json
import mmap
import os
import sys

PAGE = mmap.PAGESIZE
MADV_HUGEPAGE, MADV_NOHUGEPAGE = 14, 15
PR_SET_THP_DISABLE = 41
libc = ctypes.CDLL(None)


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def advise(memory, advice):
    libc.madvise(ctypes.c_void_p(address_of(memory)), ctypes.c_size_t(len(memory)), advice)
    return memory


def anonymous(pages):
    """Memory that nothing is in."""
    return advise(mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE), MADV_NOHUGEPAGE)


def says(function, kind, what, kb, pid=0, more=64):
    line = {"function": function, "kind": kind, "what": what, "kb": kb, "pid": pid or os.getpid(), "more": more}
    print(json.dumps(line), flush=True)


def write(memory):
    for at in range(0, len(memory), PAGE):
        memory[at] = 1


def touches():
    memory = anonymous(1500)
    for at in range(0, len(memory), PAGE):
        memory[at] = 1
    says("touches", "new", "[anonymous]", 1500 * PAGE // 1024)


# The page of zeros is no memory of the process; the write is what makes a page resident.
def reads_zeros():
    memory = anonymous(2000)
    for at in range(0, len(memory), PAGE):
        memory[at]
    for at in range(0, len(memory), PAGE * 2):
        memory[at] = 1
    says("reads_zeros", "new", "[anonymous]", 1000 * PAGE // 1024)
    says("reads_zeros", "file", "[anonymous]", 0)
    for advice in MADV_NOHUGEPAGE, MADV_HUGEPAGE:
        with open("/dev/zero", "rb") as zeros:
            memory = advise(mmap.mmap(zeros.fileno(), 8 << 20, mmap.MAP_PRIVATE), advice)
        for at in range(0, len(memory), PAGE):
            memory[at]
    says("reads_zeros", "file", "/dev/zero", 0)


def touches_huge():
    memory = advise(mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE), MADV_HUGEPAGE)
    for at in range(0, len(memory), PAGE):
        memory[at] = 1
    says("touches_huge", "new", "[anonymous]", 8192)


def from_kernel():
    memory = anonymous(1200)
    with open("/dev/zero", "rb", 0) as zeros:
        zeros.readinto(memory)
    says("from_kernel", "new", "[anonymous]", 1200 * PAGE // 1024)


# A file of memory, as not every file system has mappings that are shared.
def mapped(name, pages, access=mmap.ACCESS_READ):
    file = libc.memfd_create(name.encode(), 0)
    os.write(file, b"x" * (pages * PAGE - 1) + b"\0")
    return "/memfd:%s (deleted)" % name, mmap.mmap(file, 0, access=access)


def reads_file():
    path, memory = mapped("read", 600)
    for at in range(0, len(memory), PAGE):
        memory[at]
    says("reads_file", "file", path, 600 * PAGE // 1024)


# A private mapping: a write makes a page of the process's own, without the file's first.
def writes_file():
    path, memory = mapped("written", 1000, mmap.ACCESS_COPY)
    for at in range(0, len(memory), PAGE):
        memory[at] = 1
    says("writes_file", "new", path, 1000 * PAGE // 1024)


# strlen() in a thread that C has started.
def thread_of_c():
    path, memory = mapped("by C", 700, mmap.ACCESS_COPY)
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, libc.strlen, ctypes.c_void_p(address_of(memory)))
    libc.pthread_join(thread, None)
    says("[no Python]", "file", path, 700 * PAGE // 1024)


# Some of it is resident: malloc() keeps 128 KB free at the heap's end, less than 1 percent of this.
def on_heap():
    libc.malloc.restype = ctypes.c_void_p
    for _ in range(400):
        libc.memset(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(60000))), 1, ctypes.c_size_t(60000))
    says("on_heap", "new", "[heap]", 400 * 60000 // 1024, more=1000)


def reserves(numpy):
    return numpy.empty(40 << 20, numpy.uint8)


def fills(array):
    array[:len(array) // 2] = 1


# numpy's malloc() of so many bytes is a mapping.  Its first page has the head of the block.
def arrays():
    import numpy
    libc.prctl(PR_SET_THP_DISABLE, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    fills(reserves(numpy))
    says("reserves", "new", "[anonymous]", 0)
    says("fills", "new", "[anonymous]", 20 << 10)


def in_child(run, *arguments):
    child = os.fork()
    if child == 0:
        run(*arguments)
        os._exit(0)
    os.waitpid(child, 0)
    return child


def child_writes(memory):
    for at in range(0, len(memory), PAGE):
        memory[at] = 2


# The child copies 1,500 of the parent's 2,000 pages.  When it has ended the parent has them for itself.
def forks():
    memory = anonymous(2000)
    write(memory)
    child = in_child(child_writes, memoryview(memory)[:1500 * PAGE])
    says("child_writes", "copy", "[anonymous]", 1500 * PAGE // 1024, child)
    write(memory)
    says("write", "copy", "[anonymous]", 0)


def parent_writes(memory):
    for at in range(0, len(memory), PAGE):
        memory[at] = 3


# The parent writes while the child is there.
def parent_copies():
    memory = anonymous(1000)
    write(memory)
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(written)
        os.read(read, 1)
        os._exit(0)
    parent_writes(memory)
    os.close(written)
    os.waitpid(child, 0)
    says("parent_writes", "copy", "[anonymous]", 1000 * PAGE // 1024)


# What a collection touches of other objects, in KB.
OTHERS = 4000


def child_collects():
    gc.collect()


def child_collects_frozen():
    gc.collect()


# A collection writes to the head of each list.
def collects():
    kept = [[] for _ in range(200000)]
    child = in_child(child_collects)
    says("child_collects", "gc-copy", "[anonymous]", sum(map(sys.getsizeof, kept)) // 1024, child, OTHERS)


def collects_frozen():
    kept = [[] for _ in range(200000)]
    gc.freeze()
    in_child(child_collects_frozen)
    says("child_collects_frozen", "gc-copy", "[anonymous]", 0 * len(kept))


def private_kb():
    """What the process shares with no other, as the kernel counts it."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))


def worker_reads(values):
    for _ in values:
        pass


def worker_collects():
    gc.collect()


def worker_works(table):
    worker_reads(itertools.islice(table.values(), len(table) // 2))
    worker_collects()


def worker(table, all_are_there, answers):
    os.read(all_are_there, 1)
    private_kb()  # copies pages itself
    before = private_kb()
    worker_works(table)
    os.write(answers, b"%d %d\n" % (os.getpid(), private_kb() - before))


def works(table, workers):
    """The PIDs of processes that work on the table at the same time, with the KB of which each makes copies."""
    all_are_there, written = os.pipe()
    answers = os.pipe()
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            os.close(written)
            worker(table, all_are_there, answers[1])
            os._exit(0)
        children.append(child)
    os.close(written)
    os.close(answers[1])
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    return [tuple(map(int, answer.split())) for answer in os.read(answers[0], 1000).splitlines()]


# As a server that forks workers: they count references to half of a table's values, which copies their pages.  Their
# collections copy those of the other half, unless all is frozen.
def preforks():
    table = {number: {number} for number in range(50000)}
    pages = [id(value) // PAGE for value in table.values()]
    copied = set(pages[:len(pages) // 2])
    collected = set(pages) - copied
    for frozen in False, True:
        if frozen:
            gc.freeze()
        for child, private in works(table, 3):
            says("worker_*", "*copy", "", private, child)
            says("worker_reads", "copy", "[anonymous]", len(copied) * PAGE // 1024, child)
            says("worker_collects", "gc-copy", "[anonymous]", 0 if frozen else len(collected) * PAGE // 1024, child,
                 500 if frozen else OTHERS)


def goes_deep(depth):
    return max(map(goes_deep, [depth - 1])) if depth else 0


# A call of Python by C takes half a kilobyte of the stack or more.
def on_stack():
    sys.setrecursionlimit(5000)
    goes_deep(2000)
    says("goes_deep", "new", "[stack]", 1000, more=6000)


gc.disable()
for part in sys.argv[1:]:
    globals()[part]()

# seldom.py CASE: what programs seldom do, while a tracer attaches at the worst moment: it raises the semaphores
# at $SEMAPHORES in the shim's file itself.  Prints "fine", or what went wrong.
#
# SPDX-License-Identifier: MIT
import ctypes
import gc
import glob
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings

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
    reader, writer = os.pipe()
    subprocess.Popen(["sleep", "1.5"], stdout=writer)
    os.close(writer)
    os.dup2(reader, 0)
    before_forks = getattr(library, "__register_atfork")
    before_forks.argtypes = [ctypes.c_void_p] * 4
    # It waits for the end of its stdin; a signal's handler, in Python, would start the child's own watcher.
    before_forks(ctypes.cast(library.getchar, ctypes.c_void_p), None, None, None)
    child = fork()
    if child == 0:
        for _ in range(20):
            step(1)
            usleep(50000)
        os._exit(7)
    return ends_well(child, 10)


def forks_without_handlers():
    "By _Fork(), for which the C library calls no fork handlers."
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


def puts_back_the_default_evaluator():
    "Where its own was before a tracer came: the next tracer has its hook."
    evaluators = ctypes.PyDLL(os.environ["EVALUATOR"])
    evaluators.put_in_front()
    seen = []
    for _ in range(2):
        probe(1)
        go_on(0.5)
        seen.append(evaluators.in_front() or evaluators.is_the_default())
        evaluators.put_back_the_default()
        probe(0)
        go_on(0.5)
        seen.append(evaluators.is_the_default())
    return "fine" if seen == [0, 1, 0, 1] else seen


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
    lists = [[] for _ in range(1000)]  # one has the memory of a list that is freed
    probe(1)
    go_on(1)
    return "fine" if len(lists) == 1000 and not any(lists) else "the shim changed a list that is not its own"


def starts_an_interpreter_after_attach(shim):
    "The main one calls functions all the time; CPython says which evaluator each has (3.9 to 3.11)."
    python = ctypes.pythonapi
    head, following, evaluator = (
        python.PyInterpreterState_Head,
        python.PyInterpreterState_Next,
        python._PyInterpreterState_GetEvalFrameFunc,
    )
    head.restype = following.restype = evaluator.restype = ctypes.c_void_p
    following.argtypes = evaluator.argtypes = [ctypes.c_void_p]
    ctypes.CDLL(shim)  # as attach does
    go_on(1.5)
    sub = interpreters.create()
    go_on(0.3)
    probe(1)
    go_on(1)
    interpreters.run_string(sub, "def f(): pass\nfor _ in range(9): f()")
    seen, state = set(), head()
    while state:
        seen.add(evaluator(state))
        state = following(state)
    default = ctypes.cast(python._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    return "fine" if len(seen) == 1 and default not in seen else "not each has the hook"


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


def name_of(task):
    with open(task + "/comm") as name:
        return name.read().strip()


def watches(task):
    return name_of(task).startswith("python-stap")


def closes_all_files_and_opens_its_own():
    "As a daemon does; each gets the lowest number that is free, and stays open."
    for _ in range(30):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    begin, probed, wrong = time.monotonic(), 0, 0
    while time.monotonic() < begin + 3:
        if (time.monotonic() - begin) // 0.06 % 2 != probed:
            probed = 1 - probed
            probe(probed)
        os.closerange(3, 20)
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
        wrong += files != [3, 4, 5]
        step(1)
        for file in files:
            try:
                os.close(file)
            except OSError:
                wrong += 1
    os.dup2(os.open(os.devnull, os.O_RDONLY), 100)
    tables = [task + "/fd/100" for task in glob.glob("/proc/self/task/*") if watches(task)]
    if len(tables) != 1 or os.path.exists(tables[0]):
        return "the watcher has the program's files: %s" % tables
    return "fine" if wrong == 0 else "%d times a file of the program's was another or closed" % wrong


def closes_a_pipe_that_was_its_output():
    reader, writer = os.pipe()
    output = os.dup(1)
    os.dup2(writer, 1)
    os.close(writer)
    probe(1)
    go_on(0.5)
    os.dup2(output, 1)
    return "fine" if select.select([reader], [], [], 0)[0] else "the pipe is still open for writing"


def set_filter(codes):
    "Of the calling thread.  Whether that can be done."

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]

    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in codes))
    program = Program(len(codes), ctypes.addressof(code))
    prctl = ctypes.CDLL(None).prctl
    prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    return prctl(22, 2, ctypes.byref(program)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def named(name):
    "Whether a thread soon has this name."
    end, names = time.monotonic() + 20, []
    while name not in names and time.monotonic() < end:
        step(1)
        time.sleep(0.01)
        names = [name_of(task) for task in glob.glob("/proc/self/task/*")]
    return name in names


def beside_a_filter(function):
    """Calls the function while another thread has a filter, of which the shim knows.

    Returns "fine", or whether the program's name was right before, during and after that."""
    done = threading.Event()

    def limit():
        if set_filter([(0x06, 0, 0, 0x7FFF0000)]):  # all calls are allowed
            done.wait()

    names = [named("python-stap")]
    thread = threading.Thread(target=limit)
    thread.start()
    names.append(named("python-stap-sec"))
    function()
    done.set()
    thread.join()
    names.append(named("python-stap"))
    return "fine" if all(names) else names


def tells_of_a_filter_by_its_name():
    probe(1)
    return beside_a_filter(lambda: None)


def is_traced_again_after_a_filter(folder):
    "A tracer leaves while a filter keeps the hooks; until folder has a file `ends` there may be another tracer."

    def leaves():
        probe(0)
        go_on(1)

    probe(1)
    go_on(0.5)
    outcome = beside_a_filter(leaves)
    go_on(1)
    open(folder + "/ready", "w").close()
    while not os.path.exists(folder + "/ends"):
        time.sleep(0.01)
    return outcome


def tells_of_a_filter_behind_many_groups():
    "The line of the groups, in /proc/self/status, is before that of the filters."
    os.setgroups(range(100000, 110000))
    return tells_of_a_filter_by_its_name()


def frees_the_tool_id_of_the_shim():
    "What the shim changes for all interpreters is undone as the tracer leaves: posix._exit() is CPython's."

    def function():  # struct PyCFunctionObject: m_ml; struct PyMethodDef: ml_meth
        definition = ctypes.c_void_p.from_address(id(os._exit) + object.__basicsize__).value
        return ctypes.c_void_p.from_address(definition + ctypes.sizeof(ctypes.c_void_p)).value

    def becomes(own, own_is):
        end = time.monotonic() + 20
        while (function() == own) != own_is and time.monotonic() < end:
            go_on(0.1)
        return (function() == own) == own_is

    monitoring, own = sys.monitoring, function()
    probe(1)
    seen = [becomes(own, False)]
    monitoring.free_tool_id(next(tool for tool in range(6) if monitoring.get_tool(tool) == "systemtap"))
    go_on(3)  # the shim looks once a second
    probe(0)
    seen.append(becomes(own, True))
    return "fine" if all(seen) else seen


def forks_in_a_handler_of_its_own(shim):
    "CPython calls it after the shim's, and takes its locks next; the C library calls the slow one before the shim's."
    is_nested = False
    warnings.simplefilter("ignore")  # of 3.12 and later: a fork beside a thread

    def handler():
        nonlocal is_nested
        if is_nested:
            return
        is_nested = True
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        delay.value = 300000
        probe(1)

    os.register_at_fork(before=handler)
    ctypes.CDLL(shim)  # as attach does
    go_on(1)
    library = ctypes.CDLL(os.environ["LIBRARY"])
    library.handle_forks()
    delay = ctypes.c_uint.in_dll(library, "fork_us")
    children = []

    def fork():
        children.append(os.fork())
        if children[0] == 0:
            os._exit(7)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join(20)
    return ends_well(children[0], 10) if children else "the fork hangs"


def forks_in_the_child_of_its_handler(shim):
    "That child is in the middle of a fork for ever: a thread of the shim's there would be one of which CPython warns."
    results = []

    def handler():
        if results:
            return
        results.append("no child")
        child = os.fork()
        if child == 0:
            go_on(0.3)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                if os.fork() == 0:
                    os._exit(0)
            os._exit(1 if seen else 7)
        results.append(ends_well(child, 10))

    os.register_at_fork(before=handler)  # called after the shim's
    ctypes.CDLL(shim)
    go_on(1)
    if os.fork() == 0:
        os._exit(0)
    return results[-1]


def is_left_while_c_forks(shim):
    "The C library calls the slow handler after the shim's: meanwhile a thread of the program is to take the hooks out."
    library = ctypes.CDLL(os.environ["LIBRARY"])
    library.handle_forks()
    ctypes.CDLL(shim)  # as attach does
    probe(1)
    go_on(1)
    seen = [len(gc.callbacks)]
    ctypes.c_uint.in_dll(library, "fork_us").value = 1500000

    def fork():
        probe(0)
        library.sleep_and_fork(500000)

    thread = threading.Thread(target=fork)
    thread.start()
    time.sleep(1)
    thread.join()
    end = time.monotonic() + 20
    while gc.callbacks and time.monotonic() < end:
        go_on(0.1)
    seen.append(len(gc.callbacks))
    return "fine" if seen == [1, 0] else seen


def forks_under_a_filter_that_kills_what_is_new():
    "At close_range(), which the child's watcher inherits."
    # the call's number; 436: the process is killed; else the call is allowed
    if not set_filter([(0x20, 0, 0, 0), (0x15, 0, 1, 436), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)]):
        return "no filter can be set"
    child = os.fork()
    if child == 0:
        probe(1)
        go_on(1)
        os._exit(7)
    return ends_well(child, 10)


def is_attached_to_while_a_library_is_loaded(shim):
    "The library's constructor takes the GIL again and again, under ld.so's lock."
    load = ctypes.CDLL(None).dlopen  # without the GIL
    load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
    loaded = []
    thread = threading.Thread(target=lambda: loaded.append(load(os.environ["CONSTRUCTOR"].encode(), 2)))
    ctypes.CDLL(shim)  # as attach does
    probe(1)
    thread.start()
    while thread.is_alive():
        go_on(0.01)
    return "fine" if loaded[0] else "not loaded"


def has_little_address_space():
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
    probe(1)
    go_on(1)
    return "fine" if bytearray(150 << 20) else "no bytes"


def rests_in_threads():
    "Prints how many kB each of 100 threads takes, while tracers attach and detach."

    def size():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() // 1024

    threading.stack_size(256 * 1024)
    probe(1)
    go_on(0.3)
    before = size()
    for _ in range(100):
        threading.Thread(target=go_on, args=(10,), daemon=True).start()
    for wanted in 0, 1, 0, 1:
        go_on(0.4)
        probe(wanted)
    go_on(0.6)
    each = (size() - before) // 100
    # without the GIL a thread has heaps of its own, some 150 kB without the shim
    return "fine" if each < (250 if "free-threading" in sys.version else 100) else "%d kB a thread" % each


def is_on_no_stack_for_the_next_tracer():
    "A tracer sees very many calls begin that it does not see return; the next one comes while others are on no stack."
    beside = ctypes.PyDLL(os.environ["BESIDE"]).beside
    beside.argtypes = [ctypes.py_object]
    beside.restype = None

    def deep(n, call):
        return deep(n - 1, call) if n else call()

    def suspended(n):
        if n:
            suspended(n - 1)
        else:
            beside(meanwhile)

    def meanwhile():
        turn(1)
        deep(2000, bool)

    def turn(wanted):
        probe(wanted)
        go_on(0.5)

    sys.setrecursionlimit(10**6)
    turn(1)
    deep(40000, lambda: turn(0))
    suspended(30)
    return "fine"


def recurses_in_c_on_a_small_stack():
    "C recursion below Python recursion, that needs most of the stack."
    inside = []
    for _ in range(500):
        inside = [inside]
    lengths = []

    def down(n):
        return down(n - 1) if n else len(repr(inside))

    probe(1)
    go_on(0.3)
    threading.stack_size(128 * 1024)
    thread = threading.Thread(target=lambda: lengths.append(down(150)))
    thread.start()
    thread.join()
    return "fine" if lengths == [1002] else lengths


def lowers_its_stack_limit():
    def down(n):
        return down(n - 1) if n else 0

    probe(1)
    go_on(0.3)
    resource.setrlimit(resource.RLIMIT_STACK, (300 * 1024, -1))
    down(900)
    return "fine"


print(globals()[sys.argv[1]](*sys.argv[2:]), flush=True)
os._exit(0)

# neighbours.py CASE: programs with tracers, profilers, debuggers and hooks of their own, and frames that end
# in difficult ways.  Each prints what its own tools saw, and last how often it called marked().
#
# SPDX-License-Identifier: MIT
import gc
import io
import sys
import threading
import time


def marked():
    n = len("x")
    return n


def mine(frame):
    return frame.f_code.co_filename == __file__


def trace_function():
    seen = []

    def trace(frame, event, argument):
        if mine(frame):
            seen.append((event, frame.f_code.co_name, frame.f_lineno))
            return trace

    marked()
    sys.settrace(trace)
    marked()
    marked()
    sys.settrace(None)
    marked()
    print(seen, sys.gettrace())
    return 4


def trace_function_of_a_frame():
    seen = []

    def trace(frame, event, argument):
        seen.append((event, frame.f_lineno))
        return trace

    def traced():
        sys._getframe().f_trace = trace
        marked()
        marked()

    sys.settrace(lambda frame, event, argument: None)
    traced()
    sys.settrace(None)
    print(seen)
    return 2


def trace_function_that_raises():
    def trace(frame, event, argument):
        if event == "return":
            raise ValueError(event)
        return trace

    sys.settrace(trace)
    try:
        marked()
    except ValueError as error:
        print(error, sys.gettrace())
    marked()
    return 2


def profile_function():
    seen = []

    def profile(frame, event, argument):
        if frame.f_code is marked.__code__:
            seen.append((event, frame.f_code.co_name, getattr(argument, "__name__", "")))

    sys.setprofile(profile)
    marked()
    marked()
    sys.setprofile(None)
    marked()
    print(seen, sys.getprofile())
    return 3


def both_on_all_threads():
    seen = []

    def trace(frame, event, argument):
        if frame.f_code.co_name == "marked":
            seen.append(event)
        return trace

    def profile(frame, event, argument):
        if frame.f_code.co_name == "marked":
            seen.append("profile " + event)

    threading.settrace(trace)
    threading.setprofile(profile)
    for _ in range(3):
        thread = threading.Thread(target=marked)
        thread.start()
        thread.join()
    threading.settrace(None)
    threading.setprofile(None)
    print(seen)
    return 3


def c_profiler():
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    for _ in range(5):
        marked()
    profile.disable()
    marked()
    stats = pstats.Stats(profile).stats
    print(sorted((key[2], value[0]) for key, value in stats.items() if "marked" in key[2] or "len" in key[2]))
    return 6


def coverage_of_the_library():
    import trace

    tracer = trace.Trace(count=1, trace=0)
    tracer.runfunc(marked)
    tracer.runfunc(marked)
    print(sorted((line, n) for (name, line), n in tracer.results().counts.items() if name == __file__))
    return 2


def debugger():
    import pdb

    out = io.StringIO()
    debug = pdb.Pdb(stdin=io.StringIO("step\nstep\nnext\nprint(n)\nreturn\nwhere\ncontinue\n"), stdout=out)
    debug.use_rawinput = False
    debug.prompt = ""
    debug.runcall(marked)
    marked()
    print(out.getvalue())
    return 2


def breakpoints():
    import bdb

    hits = []

    class Debugger(bdb.Bdb):
        def user_line(self, frame):
            if self.break_here(frame):
                hits.append(frame.f_lineno)
            self.set_continue()

    debug = Debugger()
    print(debug.set_break(__file__, marked.__code__.co_firstlineno + 1))
    debug.runcall(lambda: [marked() for _ in range(3)])
    debug.clear_all_breaks()
    print(hits)
    return 3


def monitoring():
    if not hasattr(sys, "monitoring"):
        marked()
        return 1
    seen = []
    tools = sys.monitoring
    events = tools.events

    def see(name, result=None):
        def callback(code, *rest):
            if code is marked.__code__:
                seen.append(name)
                return result

        return callback

    tools.use_tool_id(2, "mine")
    for name in "PY_START", "PY_RETURN", "CALL", "C_RETURN":
        tools.register_callback(2, getattr(events, name), see(name))
    tools.register_callback(2, events.LINE, see("LINE", tools.DISABLE))
    tools.set_events(2, events.PY_START | events.PY_RETURN | events.CALL | events.LINE)
    marked()
    marked()
    tools.restart_events()
    marked()
    tools.set_events(2, 0)
    tools.free_tool_id(2)
    marked()
    print(seen)
    return 4


def audit_hook_that_raises():
    if hasattr(sys, "addaudithook"):

        def refuse(event, arguments):
            if event == "open" and "no-such" in str(arguments[0]):
                raise PermissionError("refused")

        sys.addaudithook(refuse)
    try:
        open("/no-such-file")
    except OSError as error:
        print(error)
    marked()
    return 1


def collections_of_its_own():
    seen = []
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    gc.disable()
    gc.collect()
    gc.callbacks[:] = []
    marked()
    time.sleep(1.2)
    gc.callbacks.append(lambda phase, info: seen.append("again"))
    for _ in range(500):
        gc.collect(1)
    print(seen[:2], len(seen))
    return 1


def imports_of_its_own():
    import builtins
    import importlib

    seen = []
    original = builtins.__import__
    find = importlib._bootstrap._find_and_load

    def own_import(name, *rest, **keywords):
        seen.append(name)
        return original(name, *rest, **keywords)

    def own_find(name, *rest, **keywords):
        seen.append("find " + name)
        return find(name, *rest, **keywords)

    builtins.__import__ = own_import
    importlib._bootstrap._find_and_load = own_find
    try:
        import no_such_module
    except ImportError:
        marked()
    builtins.__import__ = original
    importlib._bootstrap._find_and_load = find
    print(seen)
    return 1


def recursion():
    deepest = []

    def counted(n):
        deepest[:] = [n]
        counted(n + 1)

    try:
        counted(1)
    except RecursionError:
        print("RecursionError")
    marked()
    return 1


def collected_generators():
    def generator():
        try:
            yield 1
        finally:
            marked()

    for _ in range(3):
        half = generator()
        next(half)
        del half
    cycle = generator()
    next(cycle)
    holder = [cycle]
    holder.append(holder)
    del cycle, holder
    gc.collect()
    return 4


if __name__ == "__main__":
    print(globals()[sys.argv[1]](), flush=True)

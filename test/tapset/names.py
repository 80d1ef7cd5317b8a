# names.py LIBRARY ROOM: compares what the tapset's C functions in LIBRARY say of this process's threads, methods and
# collections with what Python says.
#
# SPDX-License-Identifier: MIT

import ctypes
import gc
import os
import sys
import sysconfig

library = ctypes.PyDLL(sys.argv[1])  # keeps the GIL
take_and_hold = library.__python_stack_take_and_hold_3
take_and_hold.restype = ctypes.c_longlong
library.take_printed.restype = ctypes.c_char_p
library.take_stack.argtypes = [ctypes.py_object, ctypes.py_object]
room = ctypes.create_string_buffer(int(sys.argv[2]))
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def text(function):
    library[function](room)
    return room.value.decode("utf-8")


def expect(wanted, got):
    if wanted != got:
        frame = sys._getframe(1)
        sys.exit("line %d: %r, not %r" % (frame.f_lineno, got, wanted))


def stack(number):
    library.__python_stack_print_lines_1(ctypes.c_longlong(number))
    return library.take_printed().decode("utf-8").splitlines()


# ---- threads; the tasks of LIBRARY have numbers, and the main thread the same PID as its process


def run(task):
    library.run_thread(task, 0, 100 + task, 1, 1, b"python3")
    library.join_process(100)
    library.run_here()
    library.pass_second()


def name_here(task):
    run(task)
    return text("python_thread_name_0")


def name_deep(task, depth=30):
    return name_deep(task, depth - 1) if depth else name_here(task)


expect("MainThread", name_here(0))  # most Pythons have not imported threading yet
import threading  # noqa: E402

expect("MainThread", name_deep(0))
threading.main_thread().name = "leads"
expect("MainThread", text("python_thread_name_0"))  # for a second
library.pass_second()
expect("leads", text("python_thread_name_0"))


class Named(threading.Thread):
    "Like a pool's: run() is its own."

    def __init__(self, name):
        super().__init__(name=name)

    def run(self):
        results.append(name_deep(1))
        self.name = "renamed"
        results.append(name_here(1))
        library.print_python_threads_1(ctypes.c_longlong(3))
        results.append(library.take_printed().decode("utf-8").splitlines()[0])


results = []
for given, wanted in (("worker-1", "worker-1"), ("a b\n\xe4", "a b\\n\xe4"), ("x" * 200, "x" * 124 + "..."), ("", "")):
    thread = Named(given)
    if not given:
        thread._name = ""
    thread.start()
    thread.join()
    expect([wanted, "renamed", 'Thread 101 "renamed", running'], results)
    results.clear()

# a thread that threading has not started, and one whose Thread is not at the bottom
done = threading.Event()


def unnamed():
    results.append(name_here(1))
    library.print_python_threads_1(ctypes.c_longlong(3))
    results.append(library.take_printed().decode("utf-8").splitlines()[0])
    done.set()


import _thread  # noqa: E402

_thread.start_new_thread(unnamed, ())
done.wait()
expect(["", 'Thread 101 "python3", running'], results)
results.clear()


def bootstrap_of_another():
    def _bootstrap(self):
        results.append(name_here(1))
        done.set()

    done.clear()
    _thread.start_new_thread(_bootstrap, (threading.main_thread(),))
    done.wait()
    expect([""], results)
    results.clear()


bootstrap_of_another()


# a child's main thread is the one that forked
def forks():
    child = os.fork()
    if not child:
        os._exit(0 if name_here(0) == threading.current_thread().name == "forks" else 1)
    results.append(os.waitpid(child, 0)[1])


thread = threading.Thread(target=forks, name="forks")
thread.start()
thread.join()
expect([0], results)
results.clear()

# ---- qualified names


class Outer:
    class Inner:
        def method(self):
            library.python_funcname_0(room)
            return [room.value.decode("utf-8"), stack(take_and_hold(b"", 0, 0))[0]]

    @staticmethod
    def static():
        def local():
            return Outer.Inner().method()

        return local()


def qualified(name, plain):
    return name if sys.version_info >= (3, 11) else plain


def in_file(name):
    return [name, "%s (%s)" % (name, __file__)]


run(0)
for _ in range(2):
    expect(in_file("method"), Outer.static())
    library.__python_qualify_1(ctypes.c_longlong(1))
    expect(in_file(qualified("Outer.Inner.method", "method")), Outer.static())
    library.__python_qualify_1(ctypes.c_longlong(0))
# code objects that are freed, each with another one of the same name at its address
library.__python_qualify_1(ctypes.c_longlong(1))
for number in range(300):
    scope = {"stack": stack, "take": take_and_hold}
    exec("class C_%d:\n    def f(self):\n        return stack(take(b'', 0, 0))[0]" % number, scope)
    expect(qualified("C_%d.f" % number, "f") + " (<string>)", scope["C_%d" % number]().f())
library.pass_second()
expect("leads", text("python_thread_name_0"))
thread = Named("worker-2")
thread.start()
thread.join()
expect("worker-2", results[0])
library.__python_qualify_1(ctypes.c_longlong(0))

# ---- collections


def taken():
    return stack(ctypes.c_longlong.in_dll(library, "taken").value)


def collects():
    gc.collect()


def calls_back(phase, info):
    library.take_stack(phase, info)


user = ctypes.c_int.in_dll(library, "taken_user")
has_mark = sys.version_info >= (3, 7) and not FREE_THREADED
mark = ["<GC>"] if has_mark else []
here = "collects (%s)" % __file__
run(0)
library.take_stack(None, None)
expect("<module> (%s)" % __file__, taken()[0])
for user.value in 0, 1, 2:
    gc.callbacks.append(library.take_stack)
    collects()
    gc.callbacks.pop()
    expect(mark + [here, "<module> (%s)" % __file__], taken()[: len(mark) + 2])
user.value = 2
gc.callbacks.append(library.take_stack)
exec(compile("collects()", "/usr/lib/python3.%d/not_ours.py" % sys.version_info[1], "exec"))
gc.callbacks.pop()
expect(mark + [here], taken()[: len(mark) + 1])
# what it calls in Python, from 3.15 on known as such
user.value = 0
gc.callbacks.append(calls_back)
collects()
gc.callbacks.pop()
expect((mark if sys.version_info < (3, 15) else []) + ["calls_back (%s)" % __file__], taken()[: 1 + bool(mark and sys.version_info < (3, 15))])
# another thread, which waits meanwhile
waits, is_there = threading.Lock(), threading.Event()
waits.acquire()


def another():
    run(1)
    is_there.set()
    waits.acquire()


thread = threading.Thread(target=another, daemon=True)
thread.start()
is_there.wait()


def of_another(phase, info):
    library.run_thread(1, 0, 101, 1, 1, b"python3")
    library.take_stack(phase, info)


gc.callbacks.append(of_another)
collects()
gc.callbacks.pop()
expect(True, "another (%s)" % __file__ in taken())
expect(False, "<GC>" in taken())
waits.release()
thread.join()

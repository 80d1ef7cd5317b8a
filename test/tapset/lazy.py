# lazy.py LIBRARY ROOM: imports modules in CPython 3.15, lazily or not, and checks what __python_lazy_import() in LIBRARY
# says just when the import begins.  ROOM is the size of SystemTap's strings.
#
# SPDX-License-Identifier: MIT

import _frozen_importlib
import ctypes
import functools
import sys
import types

library = ctypes.PyDLL(sys.argv[1])
room = ctypes.create_string_buffer(int(sys.argv[2]))
program = """
lazy import at_module_level, in_a_function, in_a_class, in_an_exec, of_another_module, never_used
lazy from from_import import name
import eager
import eager.inner
said('')
at_module_level
said('FILE:7')
def uses():
    return (1 +
        in_a_function)
uses()
said('FILE:11')
class Uses:
    in_a_class
said('FILE:15')
exec('in_an_exec')
said('<string>:1')
other.name = globals()['of_another_module']
other.name
said('FILE:20')
name
said('FILE:22')
__import__('by_a_call')
said('')
import eager_again
said('')
"""
checked = 0


def said(expected):
    global checked
    checked += 1
    expected = expected.replace("FILE", __file__)
    if room.value.decode() != expected:
        sys.exit("expected %r, got %r" % (expected, room.value.decode()))
    room.value = b"nothing"


class Module(int):
    "What each import returns: the number that the function in C returned has all attributes."

    def __getattr__(self, name):
        return self


room.value = b"nothing"
library.run_here()
function = library.__python_lazy_import_0
function.argtypes = [ctypes.c_char_p, ctypes.py_object, ctypes.py_object]
function.restype = Module
original = _frozen_importlib._find_and_load
code = compile(program, __file__, "exec")
_frozen_importlib._find_and_load = functools.partial(function, room)
try:
    exec(code, {"said": said, "other": types.ModuleType("other"), "__name__": "program"})
finally:
    _frozen_importlib._find_and_load = original
print(checked, "compared")

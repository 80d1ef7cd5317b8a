# narrow.py LIBRARY: a Python of 32 bits reads itself with the tapset's functions in LIBRARY, which know the objects of 64
# bits: they say "<unknown>" or nothing, and read nothing.
#
# SPDX-License-Identifier: MIT
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.take_reads.restype = ctypes.c_ulong
library.take_bytes.restype = ctypes.c_ulong
room = ctypes.create_string_buffer(512)


def said(function, *arguments):
    function(room, *(ctypes.c_longlong(argument) for argument in arguments))
    return room.value.decode()


library.run_here()
kept = [("open", 7), "text", 7, 2.5, [1], {}, len, said]
for kept_one in kept:
    for function in library.python_argstr_1, library.__python_repr_1, library.__python_str_1, library.__python_typename_1:
        text = said(function, id(kept_one))
        if text.strip("(),") not in ("", "<unknown>"):
            sys.exit("%r is %r" % (kept_one, text))
text = said(library.python_backtrace_2, id(sys._getframe()), 10)
if text.strip() not in ("", "<unknown>"):
    sys.exit("the stack is %r" % text)
if library.take_bytes() or library.take_reads():
    sys.exit("something was read")
print("nothing read")

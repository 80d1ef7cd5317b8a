# in_jit.py LIBRARY ROOM: runs a loop that CPython's JIT compiles, and checks that LIBRARY marks the loop's function while
# the JIT's code runs, and then alone.  ROOM is the size of SystemTap's strings.
#
# SPDX-License-Identifier: MIT

import ctypes
import sys

library = ctypes.PyDLL(sys.argv[1])
room = ctypes.create_string_buffer(int(sys.argv[2]))
library.run_here()
active, take, printed = sys._jit.is_active, library.__python_stack_take_and_hold_3, library.take_printed
backtrace = library.print_python_backtrace_2
printed.restype = ctypes.c_char_p
TURNS = 20000
LINE = sys._getframe().f_lineno + 6


def loop():
    found = []
    for _ in range(TURNS):
        found += [(active(), take(b"", 1, 0), backtrace(0, 1), printed(), active())]
    return found


def label(stack):
    library.__python_stack_name_2(room, stack, 0)
    return room.value.decode()


compiled = 0
for before, stack, _, text, after in loop():
    # else the JIT's code was entered or left between the calls
    if before == after:
        compiled += before
        mark = " [jit]" * before
        expected = "loop (%s:%d)%s" % (__file__, LINE, mark), 'File "%s", line %d, in loop%s\n...\n' % (__file__, LINE, mark)
        if (label(stack), text.decode()) != expected:
            sys.exit("expected %r, got %r" % (expected, (label(stack), text)))
if not TURNS / 4 < compiled < TURNS:
    sys.exit("the JIT's code ran in %d of %d turns" % (compiled, TURNS))
print(compiled, "compared")

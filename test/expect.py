# expect.py PROGRAM [ARGS...]: runs a Python program as its own interpreter would, and writes to
# the file $EXPECT what sys.setprofile() sees of the program's functions, a line an event:
#
#   > funcname lineno     a frame starts or goes on
#   < funcname lineno     it returns, yields, awaits or ends by an exception
#
# The suites compare it with what tracers see at the markers, in a run without sys.setprofile().
#
# SPDX-License-Identifier: MIT
import os
import sys

program = sys.argv[1]
events = []


def profile(frame, event, argument):
    if event in ("call", "return") and frame.f_code.co_filename == program:
        # 3.11 and later: a module's first instruction is on no line.
        line = frame.f_lineno or frame.f_code.co_firstlineno
        events.append((">" if event == "call" else "<", frame.f_code.co_name, line))


with open(program) as source:
    code = compile(source.read(), program, "exec")
sys.argv[:] = sys.argv[1:]
sys.path[0] = os.path.dirname(program)
main = type(sys)("__main__")
main.__file__ = program
sys.modules["__main__"] = main
sys.setprofile(profile)
try:
    exec(code, main.__dict__)
finally:
    sys.setprofile(None)
    with open(os.environ["EXPECT"], "w") as out:
        for event in events:
            out.write("%s %s %d\n" % event)

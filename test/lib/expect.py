# expect.py PROGRAM [ARGS...]: runs a Python program as the interpreter itself would, and writes to
# the file $EXPECT the events of sys.setprofile() for the program's functions, a line each:
#
#   > funcname lineno     a frame starts or resumes
#   < funcname lineno     it returns, yields, awaits or ends by an exception
#   ( funcname lineno     a function of C is called, by that line
#   ) funcname lineno     it returns, or ends by an exception
#
# or, with LINES in the environment, those of sys.settrace():
#
#   . funcname lineno     a line
#
# The suites compare the file with the events that tracers get from the markers, in a run without
# sys.setprofile() and sys.settrace().
#
# SPDX-License-Identifier: MIT
import os
import sys

program = sys.argv[1]
events = []


marks = {"call": ">", "return": "<", "c_call": "(", "c_return": ")", "c_exception": ")"}


def profile(frame, event, argument):
    if frame.f_code.co_filename == program:
        name = argument.__name__ if event.startswith("c_") else frame.f_code.co_name
        # 3.11 and later: a module's first instruction is on no line.
        line = frame.f_lineno or frame.f_code.co_firstlineno
        events.append((marks[event], name, line))


def trace(frame, event, argument):
    if frame.f_code.co_filename == program:
        if event == "line":
            events.append((".", frame.f_code.co_name, frame.f_lineno))
        return trace


with open(program) as source:
    code = compile(source.read(), program, "exec")
sys.argv[:] = sys.argv[1:]
sys.path[0] = os.path.dirname(program)
main = type(sys)("__main__")
main.__file__ = program
sys.modules["__main__"] = main
if os.environ.get("LINES"):
    sys.settrace(trace)
else:
    sys.setprofile(profile)
try:
    exec(code, main.__dict__)
finally:
    sys.setprofile(None)
    sys.settrace(None)
    with open(os.environ["EXPECT"], "w") as out:
        for event in events:
            out.write("%s %s %d\n" % event)

# names.py: functions with difficult names, one call each, and modules whose name is not a string.
#
# SPDX-License-Identifier: MIT
import sys
import types


def renamed(name, filename="names"):
    code = (lambda: None).__code__
    if hasattr(code, "replace"):
        code = code.replace(co_name=name, co_filename=filename)
    else:
        code = types.CodeType(
            code.co_argcount,
            code.co_kwonlyargcount,
            code.co_nlocals,
            code.co_stacksize,
            code.co_flags,
            code.co_code,
            code.co_consts,
            code.co_names,
            code.co_varnames,
            filename,
            name,
            code.co_firstlineno,
            code.co_lnotab,
        )
    return types.FunctionType(code, {"__name__": "module_of_" + filename})


def call_all():
    for name in "plain", "caf\xe9", "\u65e5\u672c", "\U0001f40d", "", "\ud800", "a\udc80b":
        renamed(name)()
    renamed("nul\0nul")()
    renamed("long" * 2500)()
    renamed("f", "dir/\U0001f40d.py")()
    renamed("f", "bad\udcff.py")()
    renamed("f", "")()
    function = renamed("f")
    for module in "caf\xe9", "\ud800", 7, None:
        function.__globals__["__name__"] = module
        function()
    del function.__globals__["__name__"]
    function()


def churn():
    "Code objects are made and freed: what the shim keeps with each must be freed too."

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    def calls(n):
        for i in range(n):
            renamed("%05d" % i + "x" * 10000)()

    calls(1000)
    before = resident()
    calls(10000)
    return (resident() - before) // 1000000


if len(sys.argv) > 1:
    print(churn())
else:
    call_all()

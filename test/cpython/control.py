# control.py ARGUMENTS...: python -m test ARGUMENTS, beside a sys.monitoring tool that asks for the
# events that the shim asks for, with callbacks of C as the shim's are: what a test then does
# otherwise it does with any tool.
#
# SPDX-License-Identifier: MIT
import runpy
import sys

TOOL = 4
monitoring = sys.monitoring
events = [
    getattr(monitoring.events, name)
    for name in "PY_START PY_RESUME PY_THROW PY_RETURN PY_YIELD PY_UNWIND LINE JUMP CALL C_RETURN C_RAISE".split()
]
monitoring.use_tool_id(TOOL, "control")
for event in events:
    monitoring.register_callback(TOOL, event, "".format)  # takes anything
monitoring.set_events(TOOL, sum(events))
sys.argv[0] = "test"
del sys.path[0]
runpy.run_module("test", run_name="__main__", alter_sys=True)

# interpreters.py FILE: until FILE exists a subinterpreter runs on a thread, and another one runs a function
# every second, on the main thread.
#
# SPDX-License-Identifier: MIT
import os
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

on_thread = interpreters.create()
now_and_then = interpreters.create()
interpreters.run_string(now_and_then, "def once(n): pass")
thread = threading.Thread(
    target=interpreters.run_string,
    args=(
        on_thread,
        """
import os
import time
def turn():
    time.sleep(0.01)
def turns():
    while not os.path.exists(%r):
        turn()
turns()
"""
        % sys.argv[1],
    ),
)
thread.start()
while not os.path.exists(sys.argv[1]):
    interpreters.run_string(now_and_then, "once(0)")
    time.sleep(1.1)
thread.join()
if sys.version_info >= (3, 12):
    tools = "[sys.monitoring.get_tool(tool) for tool in range(6)]"
    interpreters.run_string(now_and_then, "import sys; print(%s, flush=True)" % tools)
interpreters.destroy(on_thread)
interpreters.destroy(now_and_then)
print("ended")

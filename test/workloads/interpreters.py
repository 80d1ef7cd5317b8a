# interpreters.py: a subinterpreter runs on a thread for three and a half seconds, and another one runs a
# function every second, on the main thread.
#
# SPDX-License-Identifier: MIT
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
import time
def turn():
    time.sleep(0.01)
def turns(seconds):
    end = time.time() + seconds
    while time.time() < end:
        turn()
turns(3.6)
""",
    ),
)
thread.start()
for second in range(4):
    interpreters.run_string(now_and_then, "once(%d)" % second)
    time.sleep(1.1)
thread.join()
if sys.version_info >= (3, 12):
    tools = "[sys.monitoring.get_tool(tool) for tool in range(6)]"
    interpreters.run_string(now_and_then, "import sys; print(%s, flush=True)" % tools)
interpreters.destroy(on_thread)
interpreters.destroy(now_and_then)
print("ended")

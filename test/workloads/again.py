# again.py TIMES: runs semantics.py many times in one process, and says whether it left more and more objects
# behind.
#
# SPDX-License-Identifier: MIT
import contextlib
import gc
import io
import os
import sys

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "semantics.py")
with open(path) as source:
    code = compile(source.read(), path, "exec")


def blocks_after(times):
    for _ in range(times):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {"__name__": "semantics", "__file__": path})
    gc.collect()
    return sys.getallocatedblocks()


times = int(sys.argv[1])
before = blocks_after(10)
growths = []
for _ in range(8):
    now = blocks_after(times)
    growths.append(now - before)
    before = now
# what leaks does so in each of them; caches still fill in the one or the other: without a GIL by thousands at once
growth = min(growths)
print("objects left behind:", growth if growth > times // 2 else "none")

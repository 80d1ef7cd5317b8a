# gil_off.py LIBRARY ROOM: in a free-threaded build the tapset's C functions in LIBRARY find that there is no GIL, and
# the GIL once the module needs_gil has turned it on.
#
# SPDX-License-Identifier: MIT

import ctypes
import sys
import warnings

library = ctypes.PyDLL(sys.argv[1])
library.gil_here.restype = ctypes.c_longlong
library.run_here()


def expect(enabled):
    found = sys._is_gil_enabled(), library.gil_here() != 0, not library.gil_is_off()
    if found != (enabled,) * 3:
        sys.exit("%r, not %r" % (found, enabled))


expect(False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", RuntimeWarning)
    import needs_gil  # noqa: F401
expect(True)

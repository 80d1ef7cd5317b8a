# The entry point of python_stap.start.  CPython prints the error of an entry point that fails: this one prints
# nothing where the shim is missing or can't be loaded.
#
# SPDX-License-Identifier: MIT


def load():
    try:
        import python_stap
    except Exception:
        pass

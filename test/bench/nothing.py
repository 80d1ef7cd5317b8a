# Imports that find and load a module, and read no file: of events.py and workload.py.
#
# SPDX-License-Identifier: MIT

import sys
from importlib.machinery import ModuleSpec


class Nothing:
    """Finds and loads the module bench_nothing, which is empty."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, Nothing) if name == "bench_nothing" else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        pass


def import_nothing(times):
    sys.meta_path.insert(0, Nothing)
    for _ in range(times):
        sys.modules.pop("bench_nothing", None)
        import bench_nothing
    sys.meta_path.remove(Nothing)
    return times

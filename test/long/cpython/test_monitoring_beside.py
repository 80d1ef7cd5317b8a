# CPython's test_monitoring, run beside another tool (python -m test --testdir): it uses the ids 2, 3
# and 4 and expects no other tool, but the shim is one, with id 4.  Here its third id is 5, and it
# overlooks the shim's tool.
#
# SPDX-License-Identifier: MIT
import sys

from test import test_monitoring
from test.test_monitoring import *  # noqa: F401, F403

SHIM_TOOL = 4
own_ids = 2, 3, 5
all_events = sys.monitoring._all_events


def set_up(self):
    for number, tool in enumerate(own_ids, 1):
        if sys.monitoring.get_tool(tool):  # a test before failed
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)
        sys.monitoring.use_tool_id(tool, "test%d %s" % (number, type(self).__name__))


def tear_down(self):
    for tool in own_ids:
        self.assertEqual(sys.monitoring.get_events(tool), 0)
        sys.monitoring.free_tool_id(tool)


def all_events_but_the_shims():
    events = {name: tools & ~(1 << SHIM_TOOL) for name, tools in all_events().items()}
    return {name: tools for name, tools in events.items() if tools}


test_monitoring.TEST_TOOL3 = own_ids[2]
test_monitoring.MonitoringTestBase.setUp = set_up
test_monitoring.MonitoringTestBase.tearDown = tear_down
sys.monitoring._all_events = all_events_but_the_shims

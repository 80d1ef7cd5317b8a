# leaves.py TRACEFS SHIM PID: traces the process as SystemTap does. Probes the sites of function__entry in all processes, raises
# its semaphore in this one by 2, and prints "ready". At the end of stdin takes all that back, so that what a child has
# inherited is left.
#
# SPDX-License-Identifier: MIT

import os
import re
import subprocess
import sys

tracefs, shim, pid = sys.argv[1:]
GROUP = "leaves%d" % os.getpid()


def put(name, text):
    file = os.open(os.path.join(tracefs, name), os.O_WRONLY | os.O_APPEND)
    os.write(file, text.encode())
    os.close(file)


def readelf(option):
    return subprocess.run(["readelf", "--wide", option, shim], stdout=subprocess.PIPE, check=True).stdout.decode()


def offset_of(address):
    """Where in the file the address is."""
    for line in readelf("--segments").splitlines():
        if line.split()[:1] == ["LOAD"]:
            offset, start, _, size = (int(word, 16) for word in line.split()[1:5])
            if start <= address < start + size:
                return address - start + offset
    raise ValueError(address)


def write_semaphore(address, value):
    with open("/proc/%s/maps" % pid) as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(shim))
    with open("/proc/%s/mem" % pid, "r+b", 0) as memory:
        memory.seek(base + address)
        memory.write(value.to_bytes(2, sys.byteorder))


notes = re.findall(r"Provider: python\n\s+Name: function__entry\n\s+Location: (\w+), .* Semaphore: (\w+)\n", readelf("--notes"))
for number, (site, _) in enumerate(notes):
    put("uprobe_events", "p:%s/site%d %s:%#x\n" % (GROUP, number, shim, offset_of(int(site, 16))))
try:
    put("events/%s/enable" % GROUP, "1")
    write_semaphore(int(notes[0][1], 16), 2)
    print("ready", flush=True)
    sys.stdin.read()
finally:
    # also after an error: a probe that stays would be in the kernel's list until the next boot
    put("events/%s/enable" % GROUP, "0")
    for number in range(len(notes)):
        put("uprobe_events", "-:%s/site%d\n" % (GROUP, number))
write_semaphore(int(notes[0][1], 16), 0)

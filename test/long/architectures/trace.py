# For gdb, which is the tracer here: writes each event of markers, with its arguments by the ELF notes, a line each:
#
#   THREAD MARKER ARGUMENT...    an address is NULL or *
#
# The environment says what to trace:
#
#   SOCKET    that of the stub of QEMU, in which the program waits
#   ROOT      the root folder that it runs in
#   SHIM      the file that has the markers
#   MARKERS   those that are probed
#   BEGIN     from this function of the program on; without it, from its first instruction on
#   MAPS      a file with its maps at that time; MAPS.seen is made when the program's idle() is seen
#   EVENTS    the file to write
#
# SPDX-License-Identifier: MIT
import os
import re
import subprocess

import gdb

HERE = os.path.dirname(os.path.realpath(__file__))
SHIM = os.environ["SHIM"]

# The parameters of each marker, a letter each: s, a string; p, another pointer; n, a number.
kinds = {}
with open(os.path.join(HERE, "../../../probes/python.d")) as lines:
    for marker, parameters in re.findall(r"^ *probe (\w+)\((.*)\);$", lines.read(), re.M):
        kinds[marker] = ["s" if "char *" in p else "p" if "*" in p else "n" for p in parameters.split(",")]


def operands():
    """The ELF notes' arguments, for an architecture whose notes gdb can't read: in registers alone."""
    notes = subprocess.run(["readelf", "--wide", "--notes", SHIM], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {name: re.findall(r"-?(\d)@(\w+)", arguments)
            for name, arguments in re.findall(r"Name: (\w+)\n.*\n *Arguments: (.*)", notes)}


def text_at(address):
    if not address:
        return "NULL"
    inferior, text = gdb.selected_inferior(), b""
    while b"\0" not in text:
        text += bytes(inferior.read_memory(address + len(text), 64 - (address + len(text)) % 64))
    return '"%s"' % text.split(b"\0")[0].decode()


class Marker(gdb.Breakpoint):
    seen = False  # idle() of everywhere.py

    def __init__(self, name):
        super().__init__("-probe-stap %s:python:%s" % (SHIM, name))
        self.name, self.silent = name, True

    def argument(self, number):
        if not registers:
            return int(gdb.parse_and_eval("$_probe_arg%d" % number))
        size, register = registers[self.name][number]
        value = int(gdb.selected_frame().read_register(register))
        return int.from_bytes((value % 2 ** 64).to_bytes(8, "little")[:int(size)], "little", signed=True)

    def stop(self):
        words = [str(gdb.selected_thread().num), self.name]
        for number, kind in enumerate(kinds[self.name]):
            value = self.argument(number)
            if kind == "n":
                words.append(str(value))
            else:
                value %= 2 ** (8 * gdb.lookup_type("long").sizeof)
                words.append(text_at(value) if kind == "s" else "*" if value else "NULL")
        events.write(" ".join(words) + "\n")
        if '"idle"' in words and not self.seen and "MAPS" in os.environ:
            open(os.environ["MAPS"] + ".seen", "w").close()
            Marker.seen = True
        return False


def run(command):
    return gdb.execute(command, to_string=True)


events = open(os.environ["EVENTS"], "w")
for setting in ("pagination off", "confirm off", "sysroot " + os.environ["ROOT"], "solib-search-path " + os.path.dirname(SHIM)):
    run("set " + setting)
run("target remote " + os.environ["SOCKET"])
registers = operands() if "riscv" in run("show architecture") else None
if os.environ.get("BEGIN"):
    gdb.Breakpoint(os.environ["BEGIN"], temporary=True)
    gdb.execute("continue")
# gdb does not find the libraries of programs for x86 in QEMU.
if not any(file.filename == SHIM for file in gdb.objfiles()):
    with open(os.environ["MAPS"]) as maps:
        start = next(line.split("-")[0] for line in maps if SHIM in line)
    run("add-symbol-file %s -o 0x%s" % (SHIM, start))
for name in os.environ["MARKERS"].split():
    Marker(name)
gdb.execute("continue")
events.close()

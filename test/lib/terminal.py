# terminal.py STEP... -- COMMAND...: runs a command on a terminal of its own, and does these steps with it:
#
#   size=ROWSxCOLUMNS  sets the terminal's size (24x80)
#   see=REGEX          waits until the screen matches, its lines with newlines between; at most $LIMIT seconds (20)
#   key=TEXT           types it; \xNN is a byte
#   signal=NAME        sends it to the command
#   stops              waits until the command is stopped
#   run=SHELL COMMAND  runs it
#
# Waits for the command's end.  Prints the lines that are left on the terminal, and "status N"; what a program must set
# back, and has not, follows: "alternate", "hidden", "cut" (lines are not wrapped), "raw" (termios), "unknown: BYTES".
#
# SPDX-License-Identifier: MIT
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time


class Screen:
    def __init__(self):
        self.rows, self.columns = 24, 80
        self.buffers = {False: [""], True: [""]}
        self.modes = {1049: False, 7: True, 25: True}
        self.row = self.column = 0
        self.rest = self.unknown = b""

    @property
    def lines(self):
        return self.buffers[self.modes[1049]]

    def command(self, sequence):
        match = re.fullmatch(rb"\x1b\[(\?)?([0-9;]*)([a-zA-Z])", sequence)
        private, number, letter = match.groups() if match else (None, b"", b"?")
        if private and letter in (b"h", b"l") and int(number) in self.modes:
            self.modes[int(number)] = letter == b"h"
            if int(number) == 1049:
                self.buffers[True] = [""]
                self.row, self.column = len(self.lines) - 1, 0
        elif letter == b"H" and not number:
            self.row = self.column = 0
        elif letter == b"K":
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif letter == b"J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif letter != b"m":
            self.unknown += sequence

    def feed(self, data):
        data = self.rest + data
        # an escape sequence, or a character, whose end is still to come
        cut = re.search(rb"(\x1b\[?[?0-9;]*|[\xc0-\xff][\x80-\xbf]{0,2})\Z", data)
        self.rest = b""
        if cut and not self.is_whole(cut.group()):
            data, self.rest = data[: cut.start()], cut.group()
        for part in re.findall(rb"\x1b\[[?0-9;]*[a-zA-Z]|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+", data):
            if part[:1] == b"\x1b":
                self.command(part)
            elif part == b"\r":
                self.column = 0
            elif part == b"\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
                if self.modes[1049] and self.row >= self.rows:
                    del self.lines[0]
                    self.row -= 1
            elif part < b" " or part == b"\x7f":
                self.unknown += part
            else:
                text = part.decode(errors="replace")
                self.unknown += text.encode() if re.search("[\x80-\x9f\ufffd]", text) else b""
                line = self.lines[self.row].ljust(self.column)
                line = line[: self.column] + text + line[self.column + len(text) :]
                self.column += len(text)
                self.lines[self.row] = line if self.modes[7] else line[: self.columns]

    @staticmethod
    def is_whole(end):
        try:
            return end[:1] != b"\x1b" and bool(end.decode())
        except UnicodeDecodeError:
            return False


def fail(text):
    print("\n".join(screen.lines))
    os.kill(pid, signal.SIGKILL)
    sys.exit(text)


def read(seconds):
    is_ready = bool(select.select([master], [], [], seconds)[0])
    if is_ready:
        screen.feed(os.read(master, 65536))
    return is_ready


def wait_until(condition, what):
    end = time.monotonic() + int(os.environ.get("LIMIT") or 20) * int(os.environ.get("SLOW") or 1)
    while not condition():
        has_ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        while read(0.05):
            pass
        if (has_ended or time.monotonic() > end) and not condition():
            fail("waited in vain for " + what)


def is_stopped():
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None


steps, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
screen = Screen()
master, slave = os.openpty()
modes = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in 0, 1, 2:
        os.dup2(slave, descriptor)
    os.execvp(command[0], command)
for step in ["size=24x80"] + steps:
    name, _, value = step.partition("=")
    if name == "size":
        screen.rows, screen.columns = map(int, value.split("x"))
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", screen.rows, screen.columns, 0, 0))
    elif name == "see":
        wait_until(lambda: re.search(value, "\n".join(screen.lines), re.DOTALL | re.MULTILINE), value)
    elif name == "key":
        os.write(master, value.encode().decode("unicode_escape").encode("latin-1"))
    elif name == "signal":
        os.kill(pid, getattr(signal, "SIG" + value))
    elif name == "stops":
        wait_until(is_stopped, "the command to stop")
    elif name == "run":
        subprocess.check_call(value, shell=True)
    else:
        fail("what is " + step)
status = None
while status is None:
    read(0.05)
    done, result = os.waitpid(pid, os.WNOHANG)
    status = os.waitstatus_to_exitcode(result) if done else None
while read(0):
    pass
print("\n".join(line.rstrip() for line in screen.lines).rstrip())
print("status %d" % status)
for mode, is_set, word in (1049, True, "alternate"), (25, False, "hidden"), (7, False, "cut"):
    if screen.modes[mode] == is_set:
        print(word)
if termios.tcgetattr(slave) != modes:
    print("raw")
if screen.unknown:
    print("unknown: %r" % screen.unknown)

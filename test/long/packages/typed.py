"""usage: typed.py [--answer TEXT]... [--until REGEX] [--then SECONDS] [--limit SECONDS] COMMAND...

Runs the command, which is to be script(1) or a way to it, whose stdin has what is typed; prints what appears on that
terminal.  At each question, "[y/N] ", the next TEXT is typed.  Once REGEX is in it, and SECONDS more have passed, Ctrl-C is typed.  The exit status is the command's; 124 if
it was ended as the limit had passed.
"""
# SPDX-License-Identifier: MIT

import argparse
import os
import re
import selectors
import subprocess
import sys
import time


def shown(raw):
    """What a terminal would show in the end: of what was printed over another text, the later."""
    lines = raw.decode(errors="replace").replace("\r\n", "\n").split("\n")
    return "\n".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line.rstrip("\r").rsplit("\r", 1)[-1]).rstrip() for line in lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--answer", action="append", default=[])
    parser.add_argument("--until", type=lambda text: re.compile(text.encode(), re.MULTILINE))
    parser.add_argument("--then", type=float, default=0)
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    process = subprocess.Popen(given.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    raw, ends, limit = b"", None, time.monotonic() + given.limit
    while True:
        now = time.monotonic()
        if ends and now >= ends:
            process.stdin.write(b"\x03")
            process.stdin.flush()
            ends, given.until = None, None
        if now > limit:
            process.kill()
            break
        if not selector.select(0.1):
            continue
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            break
        raw += part
        if given.answer and raw.endswith(b"[y/N] "):
            process.stdin.write(given.answer.pop(0).encode() + b"\n")
            process.stdin.flush()
        if given.until and not ends and given.until.search(raw):
            ends = now + given.then
    sys.stdout.write(shown(raw).rstrip("\n") + "\n" if raw.strip() else "")
    status = process.wait()
    sys.exit(124 if time.monotonic() > limit else status if status >= 0 else 128 - status)


main()

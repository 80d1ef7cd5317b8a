# unanswered.py FOLDER INODE: a file system of FUSE on FOLDER. Each name in it is a file of this inode number, of 100 bytes,
# whose reads get no answer before this program ends; FOLDER.asked is made at the first one.
#
# SPDX-License-Identifier: MIT

import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT = 1, 2, 3, 14, 15, 26, 36
fuse = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse
if ctypes.CDLL(None).mount(b"none", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit(1)
while True:
    request = os.read(fuse, 1 << 20)
    _, kind, unique, node = struct.unpack_from("<IIQQ", request)
    inode, mode = (1, 0o40755) if node == 1 and kind != LOOKUP else (int(sys.argv[2]), 0o100644)
    attributes = struct.pack("<6Q10I", inode, 100, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
    answers = {
        LOOKUP: struct.pack("<4Q2I", 2, 0, 0, 0, 0, 0) + attributes,
        GETATTR: struct.pack("<Q2I", 0, 0, 0) + attributes,
        OPEN: struct.pack("<Q2I", 1, 0, 0),
        INIT: struct.pack("<4I", 7, 31, 4096, 0) + struct.pack("<2H", 0, 0) + struct.pack("<I", 4096) + bytes(40),
    }
    if kind == READ:
        open(sys.argv[1] + ".asked", "w").close()
    elif kind not in (FORGET, INTERRUPT):
        answer = answers.get(kind, b"")
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0 if kind in answers else -38, unique) + answer)

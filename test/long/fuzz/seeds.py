# seeds.py FOLDER: the inputs with which the fuzzers begin, a folder for each: FOLDER/objects and so on.
#
# SPDX-License-Identifier: MIT
import os
import struct
import sys

top = sys.argv[1]


def seed(fuzzer, name, data):
    folder = os.path.join(top, fuzzer)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


# ---- objects: struct head of objects.c, then memory from LOW on

LOW = 0x1000


class Memory:
    def __init__(self):
        self.bytes = bytearray()

    def put(self, data):
        while len(self.bytes) % 8:
            self.bytes.append(0)
        self.bytes += data
        return LOW + len(self.bytes) - len(data)

    def words(self, *words):
        return self.put(struct.pack("<%dQ" % len(words), *(w % 2**64 for w in words)))

    def type(self, name, flags, basicsize=16, itemsize=0, base=0):
        name = self.put(name.encode() + b"\0" * 8)
        return self.words(1, 0, 0, name, basicsize, itemsize, *[0] * 15, flags, *[0] * 10, base)


CODE_SIZE = 184  # of the type
# struct offsets_page
LAYOUT = "<I20s14Hi25H2xI2HIq3i2HI2H2Ii4x"


class Python:
    "The objects of a CPython, as python_objects.stp.in knows them."

    def __init__(self, minor):
        self.minor = minor
        self.gil_distance = 0
        self.memory = m = Memory()
        self.old = minor < 12
        static = 0 if self.old else 2
        self.base = m.type("object", static)
        self.types = {
            "str": m.type("str", 1 << 28 | static, 80 if self.old else 64, 0, self.base),
            "int": m.type("int", 1 << 24 | static, 24, 4, self.base),
            "tuple": m.type("tuple", 1 << 26 | static, 24, 8, self.base),
            "list": m.type("list", 1 << 25 | static, 40, 0, self.base),
            "bytes": m.type("bytes", 1 << 27 | static, 33, 1, self.base),
            "float": m.type("float", static, 24, 0, self.base),
            "NoneType": m.type("NoneType", static, 16, 0, self.base),
            "code": m.type("code", static, CODE_SIZE, 0, self.base),
            "dict": m.type("dict", 1 << 29 | static, 48, 0, self.base),
        }
        self.types["bool"] = m.type("bool", 1 << 24 | static, 24, 4, self.types["int"])

    def str(self, text):
        kind = 1 if all(ord(c) < 256 for c in text) else 2 if all(ord(c) < 65536 for c in text) else 4
        ascii = all(ord(c) < 128 for c in text)
        state = kind << 2 | 0x20 | (0x40 if ascii else 0) | 0x80
        raw = text.encode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind], "surrogatepass")
        middle = [] if ascii else [0, 0]
        end = [0] if self.old else []
        return self.memory.put(
            struct.pack("<%dQ" % (5 + len(middle + end)), 1, self.types["str"], len(text), 0, state, *(end + middle))
            + raw
            + b"\0" * 4
        )

    def int(self, value, type="int"):
        digits, rest = [], abs(value)
        while rest:
            digits.append(rest % 2**30)
            rest >>= 30
        if self.old:
            size = -len(digits) if value < 0 else len(digits)
        else:
            size = len(digits) << 3 | (2 if value < 0 else 0)
        return self.memory.put(
            struct.pack("<QQq%dI" % max(1, len(digits)), 1, self.types[type], size, *(digits or [0]))
        )

    def bytes_(self, data):
        return self.memory.put(struct.pack("<QQQQ", 1, self.types["bytes"], len(data), 0) + data + b"\0")

    def float(self, value):
        return self.memory.put(struct.pack("<QQd", 1, self.types["float"], value))

    def tuple(self, *items):
        return self.memory.words(1, self.types["tuple"], len(items), *items)

    def list(self, *items):
        items_at = self.memory.words(*items)
        return self.memory.words(1, self.types["list"], len(items), items_at, len(items))

    def globals(self, *items):
        "A dict with str for keys: eight indices, and the entries."
        head = [1, 8, 0, 0, len(items)] if self.minor < 11 else [1, 3 | 3 << 8 | 1 << 16, 0, len(items)]
        entries = [word for key, value in items for word in ([0] if self.minor < 11 else []) + [self.str(key), value]]
        return self.memory.words(1, self.types["dict"], len(items), 0, self.memory.words(*head, 0, *entries), 0)

    def none(self):
        return self.memory.words(1, self.types["NoneType"])

    def layout(self):
        "As probes/shim/cpython/offsets.c fills it in."
        n = self.minor
        filename = 112 if n >= 11 else 104 if n >= 8 else 96
        return struct.pack(
            LAYOUT,
            0x39707473,
            b"3.%d.1" % n,
            3 if n >= 11 else 2 if n == 10 else 1,
            0,
            8 if n >= 12 else 48 if n == 11 else 24,
            0 if n >= 12 else 32,
            56 if n >= 11 else 96 if n == 10 else 104 if n >= 7 else 120,
            70 if n in (12, 13) else 0,
            0,
            filename,
            filename + 8,
            68 if n >= 12 else 72 if n == 11 else 40 if n >= 8 else 36,
            filename + (24 if n >= 11 else 16),
            184 if n >= 11 else 0,
            CODE_SIZE,
            0,
            8,
            56 if n in (11, 12) else 0,
            24 if n <= 10 else 8 if n == 11 else 0 if n == 12 else 72,
            24 if n >= 12 else 8 if n == 11 else 48,
            32,
            40,
            24 if n >= 11 else 32,
            32 if n >= 11 else 40,
            8,
            2 if n >= 11 else 1,
            8 if n >= 13 else 0,
            2 if n >= 13 else 1 if n >= 11 else 0,
            1 if n == 11 else 0,
            360,
            40,
            24,
            128,
            120,
            200,
            204,
            208,
            216,
            224 if n >= 11 else 0,
            0 if n >= 11 else 232,
            0 if n >= 11 else 240,
            16,
            8,
            16 if n >= 12 else 0,
            0,
            208,
            self.gil_distance,
            8,
            16,
            24,
            0,
            0,
            0,
            0,
            filename + 16 if n >= 11 else 0,
            24 if n >= 9 else 0,
            0,
            32 if n in (7, 8) else 0,
        )

    def frames(self, names, table):
        "A stack; its last frame."
        layout = struct.unpack(LAYOUT, self.layout())
        (_, _, _, _, back, code_at, instruction, owner, _, filename_at, name_at, first_line, lines, codes) = layout[:14]
        frame = 0
        globals = self.globals(("x", 0), ("__name__", self.str("a.b")))
        self.heap = bytearray(self.memory.bytes[self.base - LOW :][:264]) + bytes(120)
        struct.pack_into("<Q", self.heap, 168, 1 << 9 | (1 << 4 if self.minor >= 11 else 0) | (1 << 2 if self.minor >= 13 else 0))
        struct.pack_into("<2Q", self.heap, 256, self.base, globals)
        struct.pack_into("<Q", self.heap, 288, 16 if self.minor < 11 else 0)
        struct.pack_into("<2Q", self.heap, 360, self.str("Class"), self.memory.words(1, 8 | 3 << 8, 0, 0, 1, 0, 0, self.str("x"), 3))
        heap = self.memory.put(bytes(self.heap))
        instance = self.memory.words(0, 0, 0, 1, heap, globals) + 24
        variables = self.tuple(self.str("self"), self.str("rows"), self.str("cell"))
        values = [instance, self.list(self.int(5), instance), self.memory.words(1, self.memory.type("cell", 0, 24, 0, self.base), instance)]
        for name in names:
            code = bytearray(256)
            filename, funcname, linetable = self.str("/srv/x.py"), self.str(name), self.bytes_(table)
            struct.pack_into("<QQ", code, 0, 1, self.types["code"])
            struct.pack_into("<Q", code, filename_at, filename)
            struct.pack_into("<Q", code, name_at, funcname)
            struct.pack_into("<Q", code, lines, linetable)
            struct.pack_into("<i", code, first_line, 7)
            struct.pack_into("<3i", code, 200, 1 | 4, 1, 1)
            struct.pack_into("<Q", code, 216, variables)
            struct.pack_into("<3Q", code, 224, self.bytes_(b"\x20\x20\x40"), variables, variables)
            code = self.memory.put(bytes(code))
            made = bytearray(160)
            struct.pack_into("<Q", made, back, frame)
            struct.pack_into("<Q", made, code_at, code)
            struct.pack_into("<Q", made, layout[19], globals)
            struct.pack_into("<4Q", made, 120, globals, *values)
            if self.minor >= 11:
                struct.pack_into("<Q", made, instruction, code + codes + 4)
            else:
                struct.pack_into("<i", made, instruction, 4)
            frame = self.memory.put(bytes(made))
        self.innermost = frame
        return frame

    def dict(self, *items):
        return self.globals(*items)

    def patch(self, address, *words):
        struct.pack_into("<%dQ" % len(words), self.memory.bytes, address - LOW, *words)

    def task(self):
        "A task of asyncio that waits for a future, in a coroutine whose frame is the innermost one."
        m, old = self.memory, self.minor < 11
        flags = 0 if self.minor < 12 else 1 << 9
        size, future_size, state, waiter = (192, 152, 88, 152) if old else (168, 112, 104, 120)
        kinds = {
            "_asyncio.Task": m.type("_asyncio.Task", flags, size, 0, self.base),
            "_asyncio.Future": m.type("_asyncio.Future", flags, future_size, 0, self.base),
            "_asyncio.FutureIter": m.type("_asyncio.FutureIter", flags, 24, 0, self.base),
            "coroutine": m.type("coroutine", 0, 152 if self.minor >= 14 else 96, 0, self.base),
        }
        future = m.words(1, kinds["_asyncio.Future"], *[0] * (future_size // 8 - 2))
        iterator = m.words(1, kinds["_asyncio.FutureIter"], future)
        stack = m.words(iterator)
        name = self.str("f")
        if old:
            code = struct.unpack_from("<Q", m.bytes, self.innermost - LOW + 32)[0]
            self.patch(code + 112 - 8 - 56, self.bytes_(b"\x48\0" * 20))
            self.patch(self.innermost + 64, stack)
            self.patch(self.innermost + 80, 1)
            self.patch(self.innermost + 104, 0xFF << 32)
            coroutine = m.words(1, kinds["coroutine"], self.innermost, 0, 0, name, name, 0, 0, 0, 0, 0)
        else:
            frame = bytes(m.bytes[self.innermost - LOW :][:160])
            coroutine = m.words(1, kinds["coroutine"], 0, name, name, 0, 0, 0, 0xFF << 24)
            at = m.put(frame)
            self.patch(at + 64, stack + 8)
        task = m.words(1, kinds["_asyncio.Task"], *[0] * (size // 8 - 2))
        self.patch(task + waiter, future, coroutine, self.str("a task"))
        return task

    def modules_with(self, task):
        "Those of a CPython whose asyncio has that task; it runs, and is one of all."
        m = self.memory
        instance = m.type("WeakSet", 1 << 9, 24, 0, self.base) - 0
        m.words(*[0] * 20)  # the rest of that type
        self.patch(instance + 288, 16)
        weak = m.words(1, self.base, task)
        table = m.words(weak, 5, *[0] * 14)
        all_tasks = m.words(1, instance, self.dict(("data", m.words(1, m.type("set", 0, 200, 0, self.base), 1, 1, 7, table))))
        current = self.dict(("a loop", task))
        module = m.words(1, self.base, self.dict(("_current_tasks", current), ("_all_tasks", all_tasks)))
        return self.dict(("sys", 0), ("asyncio.tasks", module))

    def thread(self, _, task=0):
        "A thread that runs its frame: the thread pointer."
        cframe, at = struct.unpack(LAYOUT, self.layout())[15:17]
        modules = self.modules_with(task) if task else self.globals(("sys", 0))
        gil = self.memory.put(bytes(208))
        self.gil_distance = 0 if self.minor >= 12 else gil - self.types["dict"]
        interpreter = self.memory.words(0, modules, gil, 1, *([0] * 400 if task else []))
        head = struct.pack("<3Q", 0, 0, interpreter)
        frame = self.memory.put((head + bytes(at))[:at] + struct.pack("<Q", self.innermost))
        state = self.memory.put((head + bytes(cframe))[:cframe] + struct.pack("<Q", frame)) if cframe else frame
        struct.pack_into("<4Q", self.memory.bytes, gil - LOW, 5000, state, 1, 7)
        if task and self.minor >= 14:  # behind it: the task that runs, and the list of all; and that of the interpreter
            self.memory.put(bytes(1000))
            node = task + 168 - 16
            self.patch(state + 872, task, node, node)
            self.patch(node, state + 880, state + 880)
            self.patch(interpreter + 8 + 3192, interpreter + 8 + 3192, interpreter + 8 + 3192)
        return self.memory.words(0, state)

    def endless(self):
        "A thread whose innermost frame is its own caller, with a line table that goes on and on."
        _, _, _, _, back, code_at, instruction, _, _, _, _, lines, codes = struct.unpack(LAYOUT, self.layout())[:13]
        thread, memory, frame = self.thread(0), self.memory.bytes, self.innermost - LOW
        (code,) = struct.unpack_from("<Q", memory, frame + code_at)
        (table,) = struct.unpack_from("<Q", memory, code - LOW + lines)
        struct.pack_into("<Q", memory, frame + back, self.innermost)
        if self.minor >= 11:
            struct.pack_into("<Q", memory, frame + instruction, code + codes + 2**31 - 1)
        else:
            struct.pack_into("<i", memory, frame + instruction, 2**30 - 1)
        struct.pack_into("<Q", memory, table - LOW + 16, 2**20)
        # where objects.c has the memory again and again
        start = -(-(2**40) // len(memory)) * len(memory)
        struct.pack_into("<Q", memory, code - LOW + lines, start + table - LOW)
        return thread

    def seed(self, name, object, flags=3):
        head = self.layout() + struct.pack("<QBB6x", object, 20, flags)
        seed("objects", "%s.3.%d" % (name, self.minor), head + bytes(self.memory.bytes))


for minor in (9, 10, 11, 13, 14):
    table = bytes([0x80, 0, 0x81, 2]) * 4 if minor < 11 else bytes([0x82, 3, 1, 2, 0xE9, 2, 0xF0, 65, 3])
    p = Python(minor)
    p.seed("stack", p.frames(["<module>", "f", "\u00e9t\u00e9", "\ud800\U0001f40d"], table))
    p = Python(minor)
    p.seed("running", p.thread(p.frames(["<module>", "f;g", "h"], table)))
    if minor in (10, 14):
        p = Python(minor)
        p.frames(["<module>", "waits"], table)
        p.seed("tasks", p.thread(0, p.task()))
    p = Python(minor)
    p.frames(["endless"], bytes(8))
    p.seed("endless", p.endless())
    p = Python(minor)
    numbers = p.list(p.int(0), p.int(-5), p.int(2**62), p.int(2**64 - 1), p.int(-(2**70)), p.int(1, "bool"))
    floats = [p.float(x) for x in (0.0, -1.5, 1e300, 1e-300, 0.1, float("nan"), float("-inf"))]
    p.seed("arguments", p.tuple(p.str("/etc/hosts"), p.bytes_(b"'\xff\n"), numbers, p.none(), p.tuple(*floats)), 7)
    p = Python(minor)
    nested = p.tuple()
    for i in range(6):
        nested = p.tuple(nested, p.str("\u20ac\x1b'\\"), p.list(nested))
    p.seed("nested", nested)
    p = Python(minor)
    long_name = p.memory.type("x" * 200, 0, 16, 0, p.base)
    p.seed("types", p.list(p.memory.words(1, long_name), p.memory.words(1, p.types["code"])))
seed("objects", "names", bytes(struct.calcsize(LAYOUT)) + bytes(9) + b"\x07" + bytes(6) + b"\x85abcde\x03xyz\x83f;g" * 3)


# ---- descriptions

seed(
    "descriptions",
    "all",
    r"""# a comment
function__entry "x.py" "f" 3 0xdead "mod"   # and one more
2 * function__return "\x41\n\t\\\"" NULL -7 NULL "m" * 3 NULL 0x30
sleep 1
2 * {
  3 * { # within
    line "x.py" "a" * 100 2147483647
  }
  sleep 0
}
gc__start 2
gc__done -9223372036854775808
import__find__load__start "json"
import__find__load__done 0xffffffffffffffff 0
audit "open" 0x1
cfunction__entry "x.py" "len" 1 "builtins"
exception__raise "x.py" "f" 3 0x1 "ValueError"
0 * cfunction__return "" "" 1 ""
""",
)
for i, text in enumerate(
    ('audit "\\x00" NULL', "9223372036854775808 * {", '1 * gc__start "', "}", "line 1 2", '"x" * 1073741825', "\x1b[31m")
):
    seed("descriptions", "bad%d" % i, text)


# ---- proc: what is asked, the target of the link exe, and the files, as in proc.c

MAPS = """00400000-00401000 r-xp 00000000 fe:00 1234                               /bin/python3.11
7f0000000000-7f0000001000 r--p 00000000 fe:00 2                          /lib/libpython3.11.so.1.0
7f0000001000-7f0000002000 r-xp 00001000 fe:00 2                          /lib/libpython3.11.so.1.0
7f0000003000-7f0000004000 r-xp 00000000 fe:00 3                          /lib/libc.so.6
7f0000005000-7f0000006000 r-xp 00000000 fe:00 4                          /usr/lib/libpython-stap.so.0 (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""
STAT = "2147483647 (a) b)) S 1 1 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1\n"
STATUS = """Name:	python3
State:	S (sleeping)
TracerPid:	0
Uid:	0	0	0	0
Gid:	0	0	0	0
SigBlk:	0000000000000000
Seccomp:	0
x86_Thread_features:	
CapBnd:	000001ffffffffff
CapEff:	000001ffffffffff
"""
MACHINE = (
    'ID=fedora\nID_LIKE="rhel suse"\nVERSION_ID=1\n',
    "6.1.0-18-amd64\n",
    "CONFIG_MODULES=y\n# CONFIG_UPROBES is not set\nCONFIG_UPROBE_EVENTS=y\n",
    "none [integrity] confidentiality\n",
    "Y\n",
    "1\n",
    "\6\0\0\0\1",
    '@define __python_shim_path %( "/lib/*.so.?" %)\n',
    "__python_stp_is_ours\nprobe python.function.entry = never {}\n",
    "stapdev:x:1:me\nstapusr:x:2:\n",
    "me:x:1000:1000::/:/bin/sh\n",
)
ENVIRONMENT = "A=b\0PYTHON_STAP=offs\0PYTHON_DISABLE_REMOTE_DEBUG\0"
for what, name in enumerate(("list", "attach", "doctor")):
    for maps in (MAPS, MAPS.replace("-stap", ""), MAPS.replace("-stap", "\x1b]0;x\7").rstrip("\n")):
        parts = ("/bin/python3.11", maps, STAT, STATUS, ENVIRONMENT, "python3\0-X\0", "1\n", STATUS) + MACHINE
        seed("proc", "%s%d" % (name, len(maps)), bytes([what]) + b"\xff".join(p.encode() for p in parts))
    # lines that don't end
    seed("proc", name + "cut", bytes([what]) + b"\xff".join(p.rstrip("\n").encode() for p in parts))

# ---- words

SITE = "\nsite: 3 11 - /usr/lib/python3/dist-packages\n"
for i, words in enumerate(
    (
        ["run", "--", "python3", "x.py"],
        ["run", "-x"],
        ["list", "/bin/sh"],
        ["list", "1"],
        ["enable", "python3"],
        ["disable"],
        ["attach", "1"],
        ["doctor", "x"],
        ["--list-scripts"],
        ["--version"],
        ["pyflow", "-c", "python3 x.py"],
        ["pyflow.stp", "-vccd 'x'; ls", "--", "-c", "x"],
        ["pycalls", "cfunctions", "5", "-G", "top=3", "-x", "1", "-o", "/dev/null", "-c", "a | b"],
        ["../pyflow", "-c"],
        ["record", "--push", "http://127.0.0.1:1/", "-p", "1"],
    )
):
    words = b"".join(word.encode() + b"\0" for word in words)
    seed("words", str(i), words + b"\xff" + SITE.encode())
seed("words", "other", b"enable\0\xff\nsite: 3 14 3.14.4 \n")


# ---- names: 1 and make()'s bytes, or 0 and others()', as in names.py


def text(kind, data):
    return bytes([kind, len(data)]) + data


odd = (text(0, b"x.py"), text(0, b"\xff\xe9"), text(1, b"\xe9\0z"), text(2, b"\0\xd8a\0"), text(3, b"\x0d\xf4\1\0"), text(0xC0, b"long"))
for kind in range(5):
    for i, name in enumerate(odd):
        module = bytes([kind * 3]) + name
        seed("names", "function%d%d" % (kind, i), bytes([1, kind]) + name + odd[i - 1] + module + bytes([kind + i, 2, 7, 0, 3, 0x82, 3, 1]))
for kind in range(3):
    for i, name in enumerate(odd):
        seed("names", "other%d%d" % (kind, i), bytes([0, kind + 3 * i + 0x40]) + name + bytes([5]) + b"".join(bytes([k]) + name for k in range(12)))

# names.py: makes of the bytes of an input what names.c runs under the shim, in the interpreter that is
# in it: make() for functions with odd names, and so on.  It says what the markers are to pass.
#
# SPDX-License-Identifier: MIT
import builtins
import sys
import types

def template():
    return None


def generator():
    yield 1
    yield 2


def calls():
    return len(())


def raises():
    raise KeyError


async def coroutine():
    return 1


TEMPLATES = [template, generator, calls, raises, coroutine]


class Text(str):
    "A str that is none to those who look at the type."

    def __str__(self):
        raise ValueError

    __repr__ = __hash__ = __str__


class Hostile:
    def __repr__(self):
        raise KeyError(self)

    __str__ = __hash__ = __eq__ = __bool__ = __len__ = __iter__ = __index__ = __repr__

    def __getattr__(self, name):
        raise KeyError(name)


class Reader:
    "Takes an input apart."

    def __init__(self, data):
        self.data = data
        self.at = 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def take(self, count):
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken

    def number(self):
        return int.from_bytes(self.take(self.byte() % 9), "little", signed=True)

    def text(self):
        "Of any kind that a str has, with lone surrogates, NULs, of any length."
        kind = self.byte()
        raw = self.take(self.byte())
        if kind & 0x80:  # of some pages
            raw *= 1 + self.byte() // 2
        if kind % 4 == 0:
            text = raw.decode("utf-8", "surrogateescape")
        elif kind % 4 == 1:
            text = raw.decode("latin-1")
        elif kind % 4 == 2:
            text = raw[: len(raw) & ~1].decode("utf-16-le", "surrogatepass")
        else:
            units = memoryview(raw[: len(raw) & ~3]).cast("I")
            text = "".join(chr(unit % 0x110000) for unit in units)
        return sys.intern(text) if kind & 0x20 else text

    def object(self, depth=0):
        kind = self.byte() % 16
        if kind < 4:
            return self.text()
        if kind == 4:
            return self.number()
        if kind == 5:
            return self.number() << (self.byte() * 8)
        if kind == 6:
            return self.take(self.byte())
        if kind == 7:
            return None
        if kind == 8:
            return Hostile()
        if kind == 9:
            return Text(self.text())
        if kind == 10:
            return float(self.number()) / 7
        if kind == 11:
            itself = []
            itself.append(itself)
            return itself
        if kind == 12:
            return object.__new__(Text)
        if depth > 6:
            return depth
        items = [self.object(depth + 1) for _ in range(self.byte() % 8)]
        return tuple(items) if kind & 1 else items


def utf8(name):
    "What a marker passes for it: UTF-8 up to a NUL, or NULL where it can't be encoded."
    if not isinstance(name, str):
        return None
    try:
        return str.encode(name, "utf-8")
    except UnicodeEncodeError:
        return None


def fits(table, code):
    """Whether it has no more instructions than the code.  Else 3.11 writes beyond a table of its own, for
    any trace function (Objects/codeobject.c, _PyCode_CreateLineArray)."""
    units = sum((byte & 7) + 1 for i, byte in enumerate(table) if byte & 128 or i == 0)
    return sys.version_info[:2] != (3, 11) or units * 2 <= len(code.co_code)


def function(reader):
    "A function, and what its markers pass: file, name, module."
    template = TEMPLATES[reader.byte() % len(TEMPLATES)].__code__
    filename, name, module = reader.text(), reader.text(), reader.object()
    what = reader.byte()
    replaced = {"co_filename": filename, "co_name": name, "co_firstlineno": abs(reader.number()) % 2**31}
    if what & 1 and sys.version_info >= (3, 10):
        table = reader.take(reader.byte())
        if fits(table, template):
            replaced["co_linetable"] = table
    if what & 2 and sys.version_info >= (3, 11):
        replaced["co_qualname"] = reader.text()
    code = template.replace(**replaced)
    space = {"__name__": module, "len": len, "KeyError": KeyError}
    if what & 4:
        del space["__name__"]
        module = None
    return types.FunctionType(code, space), utf8(filename), utf8(name), utf8(module)


# An import finds nothing, and is soon over.
sys.path[:] = []
sys.path_importer_cache.clear()


def make(data):
    return function(Reader(data))


def run(made):
    "Runs it as it is meant to be run."
    try:
        result = made()
        if hasattr(result, "send"):
            if hasattr(result, "__next__"):
                list(result)
            else:
                result.send(None)
    except (KeyError, StopIteration):
        pass


def others(data):
    "What has no function: audit events, imports, modules of C functions."
    reader = Reader(data)
    what = reader.byte()
    try:
        if what % 3 == 0:
            event = reader.text()
            arguments = [reader.object() for _ in range(reader.byte() % 6)]
            expect_event(utf8(event))
            sys.audit(event, *arguments)
        elif what % 3 == 1:
            name = reader.object()
            if what & 0x40:
                __import__(name, *[reader.object() for _ in range(reader.byte() % 3)])
            else:
                sys.modules["_frozen_importlib"]._find_and_load(*[name] * (what >> 3 & 3))
        else:
            before = builtins.abs.__module__
            builtins.abs.__module__ = reader.object()
            try:
                builtins.abs(-1)
            finally:
                builtins.abs.__module__ = before
    except (Exception, RecursionError):
        pass
    finally:
        expect_event(None)

"""Profiles for the tests of stap-python record and diff: one by hand, and what is in the files of each format.

usage: profiles.py make FOLDED             writes a profile with all kinds of names, and odd ones
       profiles.py check FOLDED RATE FILE  whether FILE, by its suffix, has the same numbers and names
       profiles.py raw FILE.pb.gz          prints its samples with labels, lines and types
       profiles.py go                      writes a profile as other programs do, to stdout

SPDX-License-Identifier: MIT
"""

import collections
import gzip
import html.parser
import json
import re
import struct
import sys
import xml.etree.ElementTree

ODD = [
    b"</script><script>alert(1)</script> (x.py)",
    b"]]><script>alert(2)</script> (x.py)",
    b'"\'&<>`${1} (<b>.py)',
    b"<!--<script> (x.py)",
    b"\xff\xfe\xc3( (\xed\xa0\x80.py)",
    b"\x01\x1b[31m\x7f\xc2\x9b (x.py)",
    b"\xef\xbf\xbe\xef\xbf\xbf (x.py)",
    "été_日本語_🐍 (é.py)".encode(),
    b"constructor",
    b"__proto__",
    b"%s%n (100%.py)",
    b"n" * 3000 + b" (long.py)",
    b" ",
    b"",
]
STACKS = [
    (b"python3;<module> (a.py);f (a.py);g (b.py)", 40),
    (b"python3;<module> (a.py);f (a.py)", 10),
    (b"python3;<module> (a.py);f (a.py);f (a.py);f (a.py);[libcrypto.so.3] SHA1_Init", 7),
    (b"python3;<module> (a.py);f (a.py);[libz.so.1]", 5),
    (b"python3;<module> (a.py);f (a.py);vfs_read_[k];copy_[k]", 3),
    (b"python3;<module> (a.py);<GC>", 2),
    (b"python3;[unknown]", 4),
    (b"python3;<module> (a.py);[GIL];g (b.py)", 1),
    (b"other;<module> (a.py);g (b.py)", 6),
]


def make(path):
    lines = [stack + b" %d\n" % value for stack, value in STACKS]
    lines += [b"odd;" + name + b";inner (x.py) 2\n" for name in ODD]
    with open(path, "wb") as file:
        file.write(b"".join(lines))


def clean(name):
    """What is shown of a name: no control characters, no bytes that are not UTF-8, nothing that XML lacks."""
    text = name.decode("utf-8", "surrogateescape")
    # a sequence that is not UTF-8 is a character for each byte
    return re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def printable(name):
    """The same in pprof's files."""
    text = name.decode("utf-8", "surrogateescape")
    return re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff]",
                  lambda found: "".join("\\x%02x" % byte for byte in found[0].encode("utf-8", "surrogateescape")), text)


def folded(path, shown):
    stacks = collections.Counter()
    for line in open(path, "rb").read().split(b"\n")[:-1]:
        stack, value = line.rsplit(b" ", 1)
        stacks[tuple(shown(name) for name in stack.split(b";"))] += int(value)
    return stacks


def functions(stacks):
    own, total = collections.Counter(), collections.Counter()
    for stack, value in stacks.items():
        own[stack[-1]] += value
        for name in set(stack):
            total[name] += value
    return {name: (own[name], total[name]) for name in total}


def from_svg(text):
    root = xml.etree.ElementTree.fromstring(text)
    name_space = "{http://www.w3.org/2000/svg}"
    tags = collections.Counter(element.tag.replace(name_space, "") for element in root.iter())
    assert set(tags) <= {"svg", "style", "rect", "text", "title", "g", "script"}, tags
    assert tags["script"] <= 1, tags
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    frames = []
    for group in root.iter(name_space + "g"):
        if group.get("class") != "f":
            continue
        title, rect, label = group
        name, values = title.text.split("\n")
        width = float(rect.get("width"))
        assert len(label.text or "") * 6.6 <= width, (label.text, width)
        frames.append((int(group.get("data-depth")), int(group.get("data-start")), int(group.get("data-total")), name,
                       values, rect.get("fill"), float(rect.get("y"))))
    return frames


def stacks_of_frames(frames):
    """The stacks of frames that lie within each other; own values are what inner frames leave."""
    own, at = {}, {}
    for depth, start, total, name, *_ in sorted(frames):
        inside = [key for key in at if key[0] == depth - 1 and key[1] <= start and start + total <= key[1] + key[2]]
        assert depth == 0 or len(inside) == 1, (name, inside)
        stack = at[inside[0]] + (name,) if depth else ()
        at[depth, start, total] = stack
        own[stack] = own.get(stack, 0) + total
        if depth:
            own[at[inside[0]]] -= total
    return collections.Counter({stack: value for stack, value in own.items() if value})


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.cell, self.graph = collections.Counter(), [], None, text[text.index("<svg"):text.index("</svg>") + 6]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def fields(data):
    """The fields of a message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 2:
            length = varint()
            yield key >> 3, data[at:at + length]
            at += length
        else:
            assert key & 7 == 0
            yield key >> 3, varint()


def packed(data):
    return [value for _, value in fields(b"".join(b"\x08" + part for part in re.findall(b"[\x80-\xff]*[\x00-\x7f]", data)))]


def from_pprof(path):
    """Samples: (stack of (function, file, line, mapping), values, labels); types; the other fields."""
    message = list(fields(gzip.open(path).read()))
    strings = [value.decode() for number, value in message if number == 6]
    assert strings[0] == ""
    tables = {number: {} for number in (3, 4, 5)}
    for number, value in message:
        if number in tables:
            entry = dict(fields(value))
            tables[number][entry[1]] = entry
    types = [tuple(strings[dict(fields(value))[field]] for field in (1, 2)) for number, value in message if number == 1]
    samples = []
    for number, value in message:
        if number != 2:
            continue
        sample, labels = list(fields(value)), {}
        for field, inner in sample:
            if field == 3:
                label = dict(fields(inner))
                labels[strings[label[1]]] = strings[label[2]] if 2 in label else label[3]
        stack = []
        for place in packed(dict(sample)[1]):
            location = tables[4][place]
            line = dict(fields(location[4]))
            function = tables[5][line[1]]
            stack.insert(0, (strings[function[2]], strings[function[4]], line.get(2, 0), strings[tables[3][location[2]][5]]))
        samples.append((stack, packed(dict(sample)[2]), labels))
    rest = {number: value for number, value in message if number >= 9}
    rest[11] = tuple(strings[value] for _, value in fields(rest[11])) if 11 in rest else ()
    rest[14] = strings[rest.get(14, 0)]
    return samples, types, rest


def name_in_pprof(function, file, line, mapping):
    if mapping == "[kernel.kallsyms]":
        return function + "_[k]"
    if file and file == mapping:
        return function if function.startswith("[") else "[%s] %s" % (file, function)
    return "%s (%s%s)" % (function, file, ":%d" % line if line else "") if file else function


def check(path, rate, made):
    if made.endswith(".pb.gz"):
        samples, types, rest = from_pprof(made)
        stacks = collections.Counter()
        for stack, values, labels in samples:
            root = labels.pop("program", None)
            assert not labels, labels
            stacks[((root,) if root is not None else ()) + tuple(name_in_pprof(*place) for place in stack)] += values[0]
            assert values[1] == values[0] * 10**9 // rate, values
        assert types == [("samples", "count"), ("cpu", "nanoseconds")], types
        assert rest[12] == 10**9 // rate, rest
        wanted = folded(path, printable)
    else:
        wanted = folded(path, clean)
    if made.endswith(".svg"):
        stacks = stacks_of_frames(from_svg(open(made, "rb").read()))
    elif made.endswith(".html"):
        page = Page(open(made, encoding="utf-8").read())
        assert page.tags["script"] == 1, page.tags
        stacks = stacks_of_frames(from_svg(page.graph))
        rows = {row[4]: (int(row[0]), int(row[2])) for row in page.rows[1:]}
        assert rows == functions(wanted), rows
        shares = [(int(row[0]), int(row[2])) for row in page.rows[1:]]
        assert shares == sorted(shares, reverse=True)
        all_samples = sum(wanted.values())
        assert all(abs(float(row[1]) - 100 * int(row[0]) / all_samples) < 0.01 for row in page.rows[1:])
    elif made.endswith(".json"):
        content = json.load(open(made, encoding="utf-8"))
        names = [frame["name"] for frame in content["shared"]["frames"]]
        profile, = content["profiles"]
        stacks = collections.Counter()
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stacks[tuple(names[index] for index in sample)] += -(-weight * rate // 10**6)
        assert profile["endValue"] == sum(profile["weights"])
        # JSON may have the characters that XML may not
        wanted = folded(path, lambda name: re.sub("[\ud800-\udfff]", "\ufffd", name.decode("utf-8", "surrogateescape")))
        assert {"name": "g (b.py)", "file": "b.py"} in content["shared"]["frames"]
    difference = set(stacks.items()) ^ set(wanted.items())
    assert not difference, difference


def raw(path):
    samples, types, rest = from_pprof(path)
    print(" ".join("%s/%s" % one for one in types))
    print("time %d duration %d period %d %s/%s" % (rest.get(9, 0), rest.get(10, 0), rest[12], *rest[11]) + (rest[14] and " " + rest[14]))
    for stack, values, labels in samples:
        print(";".join("%s %s:%d" % place[:3] for place in stack), *values,
              " ".join("%s=%s" % label for label in sorted(labels.items())))


def message(*parts):
    """A message of (field, number or bytes)."""
    def varint(value):
        made = b""
        while value > 0x7F:
            made += bytes([value & 0x7F | 0x80])
            value >>= 7
        return made + bytes([value])

    made = b""
    for field, value in parts:
        if isinstance(value, int):
            made += varint(field << 3) + varint(value)
        elif isinstance(value, list):
            made += message((field, b"".join(varint(number) for number in value)))
        else:
            made += varint(field << 3 | 2) + varint(len(value)) + value
    return made


def go():
    """Values unpacked, samples before the tables, an inlined function, a field that nobody knows, fixed-size fields."""
    strings = ["", "samples", "count", "cpu", "nanoseconds", "main.main", "/go/main.go", "main.inlined", "/bin/x"]
    data = message(
        (1, message((1, 1), (2, 2))), (1, message((1, 3), (2, 4))),
        (2, message((1, 1), (1, 2), (2, 3), (2, 30))), (2, message((1, [2]), (2, [1, 10]))),
        (3, message((1, 1), (2, 4096), (5, 8))),
        (4, message((1, 1), (2, 1), (3, 4097), (4, message((1, 2), (2, 9))), (4, message((1, 1), (2, 7))))),
        (4, message((1, 2), (2, 1), (4, message((1, 1), (2, 8))))),
        (5, message((1, 1), (2, 5), (3, 5), (4, 6))), (5, message((1, 2), (2, 7), (4, 6))),
        (77, b"unknown")) + b"\xf1\x04" + struct.pack("<Q", 5) + b"\xf5\x04" + struct.pack("<I", 5)
    data += message(*((6, text.encode()) for text in strings), (12, 100))
    sys.stdout.buffer.write(gzip.compress(data))


if __name__ == "__main__":
    arguments = sys.argv[2:]
    if sys.argv[1] == "make":
        make(*arguments)
    elif sys.argv[1] == "check":
        check(arguments[0], int(arguments[1]), arguments[2])
    elif sys.argv[1] == "raw":
        raw(*arguments)
    else:
        go()

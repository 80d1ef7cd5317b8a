# pyroscope.py FOLDER: a server that behaves as the file FOLDER/mode says, and writes what it gets to FOLDER: takes (as
# Grafana Pyroscope does), slow, 500, 404, garbage, silent (never answers) or shut (ends connections).  Its port is in
# FOLDER/port.  Request N is N.path, N.headers and N.body once it was taken; each one that came adds a byte to FOLDER/came.
# pyroscope.py decode FILE: a pprof profile as text, with this file's own reader of profile.proto.
#
# SPDX-License-Identifier: MIT

import gzip
import http.server
import os
import sys
import time


def fields(data):
    "Yields the number and the value of each field of a message."
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            assert at + size <= len(data), "truncated"
            yield key >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError("wire type %d" % (key & 7))


def numbers(data):
    "A packed field, or a single number."
    return [data] if isinstance(data, int) else [value for _, value in fields(b"".join(b"\x08" + bytes(one) for one in split(data)))]


def split(data):
    "The bytes of each number of a packed field."
    one = []
    for byte in data:
        one.append(byte)
        if byte < 128:
            yield one
            one = []


def decode(path):
    with open(path, "rb") as file:
        profile = list(fields(gzip.decompress(file.read())))
    strings = [value.decode("utf-8", "replace") for number, value in profile if number == 6]
    functions, locations = {}, {}
    for number, value in profile:
        one = dict(fields(value)) if number in (4, 5) else {}
        if number == 5:
            functions[one[1]] = strings[one.get(2, 0)]
        elif number == 4:
            locations[one[1]] = dict(fields(one[4]))[1]
    for name, number in ("time", 9), ("duration", 10), ("period", 12):
        print(name, *[value for field, value in profile if field == number])
    print("types", *["%s/%s" % (strings[dict(fields(value))[1]], strings[dict(fields(value))[2]])
                     for field, value in profile if field == 1])
    for number, value in profile:
        if number == 2:
            sample = list(fields(value))
            stack = [functions[locations[one]] for field, data in sample if field == 1 for one in numbers(data)]
            values = [one for field, data in sample if field == 2 for one in numbers(data)]
            print(";".join(reversed(stack)), *values)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(folder + "/mode", encoding="ascii") as file:
            mode = file.read().strip()
        with open(folder + "/came", "a", encoding="ascii") as file:
            file.write("x")
        if mode == "silent":
            time.sleep(600)
        if mode == "slow":
            time.sleep(2)
        if mode == "garbage":
            self.wfile.write(b"\x00\x1b[31mno HTTP at all\r\n\r\n")
        if mode in ("garbage", "shut"):
            self.close_connection = True
            return
        if mode in ("takes", "slow"):
            self.server.taken += 1
            name = "%s/%d." % (folder, self.server.taken)
            for end, data in ("path", self.path.encode()), ("headers", str(self.headers).encode()), ("body", body):
                with open(name + end + ".new", "wb") as file:
                    file.write(data)
                os.rename(name + end + ".new", name + end)
        answer = b"" if mode in ("takes", "slow") else b"out of \x1b[31mroom\nand more"
        self.send_response(200 if mode in ("takes", "slow") else int(mode))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if sys.argv[1] == "decode":
    decode(sys.argv[2])
else:
    folder = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
    server.taken = len([name for name in os.listdir(folder) if name.endswith(".body")])
    with open(folder + "/port", "w", encoding="ascii") as file:
        file.write(str(server.server_port))
    server.serve_forever()

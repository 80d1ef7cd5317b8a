# pyroscope.py FOLDER [PORT]: a server that behaves as the file FOLDER/mode says, and writes what it gets to FOLDER: takes (as
# Grafana Pyroscope does), slow, 500, 404, garbage, silent (never answers) or shut (ends connections).  Its port is in
# FOLDER/port.  Request N is N.path, N.headers and N.body once it was taken; each one that came adds a byte to FOLDER/came.
#
# SPDX-License-Identifier: MIT

import http.server
import os
import sys
import time


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


folder = sys.argv[1]
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
server.taken = len([name for name in os.listdir(folder) if name.endswith(".body")])
with open(folder + "/port", "w", encoding="ascii") as file:
    file.write(str(server.server_port))
server.serve_forever()

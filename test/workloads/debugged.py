# A program that a debugger stops, and the debugger: a client of debugpy, by the Debug Adapter Protocol.  Prints each stop,
# with the line, the functions on the stack and the value of n there.
#
# usage: python3 debugged.py            runs it under debugpy and prints the stops
#        python3 debugged.py FILE PORT  the program itself, which listens, waits for the client, and works until it leaves
#
# SPDX-License-Identifier: MIT

import json
import os
import socket
import subprocess
import sys
import time


def inner(n):
    half = n // 2  # stop here: steps
    return half


def outer(n):
    total = inner(n)
    return total + 1


def squares(n):
    values = [i * i for i in range(n)]
    return sum(values)  # stop here: if n is a multiple of 5


def fails(n):
    try:
        return squares(n) // (n % 7)
    except ZeroDivisionError:
        return 0


def program(folder, port):
    import debugpy
    from debugpy.common import sockets

    # its adapter has ten seconds to connect, in which a busy machine may not have started it
    create_server = sockets.create_server
    sockets.create_server = lambda *rest, timeout=None, **words: create_server(*rest, timeout=timeout and 300, **words)
    debugpy.listen(("127.0.0.1", int(port)))
    print("listens", flush=True)
    debugpy.wait_for_client()
    for n in range(1, 31):
        outer(n) if n % 10 == 0 else fails(n)
        time.sleep(0.02)


class Client:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rwb")
        self.number = 0
        self.events = []

    def read(self):
        length = 0
        while True:
            line = self.file.readline()
            if not line:
                return {"type": "event", "event": "terminated"}
            if line == b"\r\n":
                return json.loads(self.file.read(length))
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])

    def send(self, command, **arguments):
        self.number += 1
        body = json.dumps({"seq": self.number, "type": "request", "command": command, "arguments": arguments}).encode()
        self.file.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.file.flush()
        return self.number

    def ask(self, command, **arguments):
        number = self.send(command, **arguments)
        while True:
            message = self.read()
            if message["type"] == "response" and message["request_seq"] == number:
                return message.get("body") or {}
            self.events.append(message)

    def event(self, *names):
        while True:
            message = self.events.pop(0) if self.events else self.read()
            if message["type"] == "event" and message["event"] in names:
                return message


def line_of(text):
    with open(__file__) as file:
        return [number for number, line in enumerate(file, 1) if "# stop here: " + text in line][0]


def debugger():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    target = subprocess.Popen([sys.executable, __file__, os.getcwd(), str(port)], stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "listens\n"
    client = Client(port)
    client.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, pathFormat="path")
    client.send("attach", justMyCode=False)
    client.event("initialized")
    client.ask("setBreakpoints", source={"path": __file__}, breakpoints=[
        {"line": line_of("steps")}, {"line": line_of("if"), "condition": "n % 5 == 0"}])
    client.ask("setExceptionBreakpoints", filters=["raised"])
    client.ask("configurationDone")
    steps = []
    while True:
        event = client.event("stopped", "terminated")
        if event["event"] == "terminated":
            break
        thread, reason = event["body"]["threadId"], event["body"]["reason"]
        frames = client.ask("stackTrace", threadId=thread)["stackFrames"]
        n = client.ask("evaluate", expression="n", frameId=frames[0]["id"]).get("result")
        print(reason, frames[0]["line"], [frame["name"] for frame in frames], n, flush=True)
        if reason == "breakpoint" and frames[0]["name"] == "inner":
            steps = ["next", "stepIn", "stepOut", "stepOut"]
        client.ask(steps.pop(0) if steps else "continue", threadId=thread)
    print("ended with", target.wait())


if __name__ == "__main__":
    program(*sys.argv[1:]) if sys.argv[1:] else debugger()

# causes.py flask CAUSE... | tasks CAUSE...: a service in two processes, of which six clients request twenty pages for each
# CAUSE, one CAUSE after the other; two of the twenty take longer, for that cause.  It is a Flask application under gunicorn, or
# one of asyncio's streams.  The service prints a line of JSON for each page, by its own clocks; the last line says how many
# requests failed.  For pyrequest's suite.
#
# SPDX-License-Identifier: MIT

import sys

sys.dont_write_bytecode = True
import asyncio
import ctypes
import fcntl
import http.client
import itertools
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import traceback

from requests import NAP, after_a_nap, computes, nothing
from requests import of_gil, of_lock, of_page_fault, of_run_queue, of_socket, of_timer

PORT = 8131
numbers = itertools.count()


# Each of_CAUSE() gets ready: what takes long then, and what ends it.  A storm: of eight pages.
def of_page_faults():
    return of_page_fault(8)


# By the thread's own clock, and more than all others in the service, whatever these do meanwhile.
def of_cpu():
    def uses():
        end = time.thread_time() + 3 * NAP
        while time.thread_time() < end:
            computes(0.01)

    return uses, nothing


def of_kernel():
    def used():
        return resource.getrusage(resource.RUSAGE_THREAD).ru_stime

    def uses():
        buffer, end = bytearray(1 << 22), used() + 3 * NAP
        with open("/dev/zero", "rb", buffering=0) as zero:
            while used() < end:
                zero.readinto(buffer)

    return uses, nothing


def of_pipe():
    ours, theirs = os.pipe()
    other = after_a_nap(os.write, theirs, b"x")
    other.start()
    return lambda: os.read(ours, 1), lambda: (other.join(), os.close(ours), os.close(theirs))


# Nobody opens the other end.
def of_file():
    folder = tempfile.TemporaryDirectory()
    fifo = folder.name + "/fifo"
    os.mkfifo(fifo)
    other = after_a_nap(lambda: os.close(os.open(fifo, os.O_WRONLY)))
    other.start()
    return lambda: os.close(os.open(fifo, os.O_RDONLY)), lambda: (other.join(), folder.cleanup())


def of_file_lock():
    file = tempfile.NamedTemporaryFile()
    again = open(file.name)  # which may be a wait for the file itself
    fcntl.flock(file, fcntl.LOCK_EX)
    other = after_a_nap(fcntl.flock, file, fcntl.LOCK_UN)
    other.start()
    return lambda: fcntl.flock(again, fcntl.LOCK_EX), lambda: (other.join(), file.close(), again.close())


def of_poll():
    pipes = os.pipe() + os.pipe()
    poll = select.poll()
    for end in pipes[::2]:
        poll.register(end, select.POLLIN)
    other = after_a_nap(os.write, pipes[1], b"x")
    other.start()
    return poll.poll, lambda: (other.join(), [os.close(end) for end in pipes])


def of_epoll():
    ours, theirs = os.pipe()
    epoll = select.epoll()
    epoll.register(ours, select.EPOLLIN)
    other = after_a_nap(os.write, theirs, b"x")
    other.start()
    return epoll.poll, lambda: (other.join(), epoll.close(), os.close(ours), os.close(theirs))


def of_child():
    return subprocess.Popen(["sleep", str(NAP)]).wait, nothing


def of_signal():
    return lambda: signal.sigtimedwait([signal.SIGUSR2], NAP), nothing


# The whole process.
def of_stopped():
    shell = "until grep -q '^State:.T' /proc/%d/status; do sleep 0.05; done; sleep %s; kill -CONT %d"
    other = subprocess.Popen(["sh", "-c", shell % (os.getpid(), NAP, os.getpid())])
    return lambda: signal.pthread_kill(threading.get_ident(), signal.SIGSTOP), other.wait


# A system call that is of no kind: semtimedop(2).
def of_other():
    libc = ctypes.CDLL(None)
    semaphores = libc.semget(0, 1, 0o600)
    less, limit = struct.pack("Hhh", 0, -1, 0), struct.pack("ll", 0, int(NAP * 1e9))
    return lambda: libc.semtimedop(semaphores, less, 1, limit), lambda: libc.semctl(semaphores, 0, 0)


# The time on the clock, and on a CPU.
def clocks():
    return time.perf_counter(), time.thread_time()


# What the view measures, and what is measured around it, in microseconds.
def said(path, within, around):
    one = {"path": path, "pid": os.getpid(), "tid": threading.get_native_id(), **within}
    one.update(us=(around[1][0] - around[0][0]) * 1e6, cpu_us=(around[1][1] - around[0][1]) * 1e6)
    os.write(1, (json.dumps(one) + "\n").encode())


def measured(is_slow, began, slow, ended, number):
    return {
        "slow": is_slow,
        "within_us": (ended[0] - began[0]) * 1e6,
        "cpu_within_us": (ended[1] - began[1]) * 1e6,
        "slow_us": (slow[1][0] - slow[0][0]) * 1e6,
        "slow_cpu_us": (slow[1][1] - slow[0][1]) * 1e6,
        "number": number,
    }


# ---- Flask


def application():
    import flask

    app = flask.Flask(__name__)

    @app.route("/<cause>")
    def page(cause):
        began = clocks()
        computes(0.001)
        slow = clocks()
        flask.request.environ["causes.slow"]()
        slow = slow, clocks()
        flask.request.environ["causes.within"] = measured(bool(flask.request.query_string), began, slow, clocks(), next(numbers))
        return cause

    # Around the application; the cause gets ready outside of the request.
    def around(environ, start_response, wsgi_app=app.wsgi_app):
        slow, ends = globals()["of_" + environ["PATH_INFO"][1:]]() if environ["QUERY_STRING"] else (nothing, nothing)
        environ["causes.slow"] = slow
        began = clocks()
        answer = wsgi_app(environ, start_response)
        ended = clocks()
        ends()
        if "causes.within" in environ:
            said(environ["PATH_INFO"], environ["causes.within"], (began, ended))
        return answer

    app.wsgi_app = around
    return app


def serve_flask():
    import gunicorn.app.base

    class Service(gunicorn.app.base.BaseApplication):
        def load_config(self):
            for name, value in {
                "bind": "127.0.0.1:%d" % PORT,
                "workers": 2,
                "threads": 4,
                "worker_tmp_dir": "/dev/shm",
                "timeout": 0,
            }.items():
                self.cfg.set(name, value)

        def load(self):
            return application()

    Service().run()


# ---- asyncio


# What is ready waits for the loop, which another callback blocks; a task waits for another one, or for a timer of the loop.
async def page(path, is_slow):
    began = clocks()
    await asyncio.sleep(0.001)
    slow = clocks()
    if is_slow and path == "/loop":
        asyncio.get_running_loop().call_soon(time.sleep, NAP)
        await asyncio.sleep(0)
    elif is_slow and path == "/task":
        await asyncio.ensure_future(asyncio.sleep(NAP))
    elif is_slow and path == "/future":
        await asyncio.sleep(NAP)
    elif is_slow:
        takes, ends = globals()["of_" + path[1:]]()
        takes()
        ends()
    return measured(is_slow, began, (slow, clocks()), clocks(), next(numbers))


async def answers(reader, writer):
    path, _, query = (await reader.readline()).split()[1].decode().partition("?")
    while (await reader.readline()).strip():
        pass
    if path != "/ready":
        began = clocks()
        within = await asyncio.ensure_future(page(path, bool(query)))
        said(path, within, (began, clocks()))
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
    await writer.drain()
    writer.close()


def serve_tasks(listener):
    async def serve():
        await (await asyncio.start_server(answers, sock=listener)).serve_forever()

    asyncio.run(serve())


# ---- clients


def ask(page):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=300)
    try:
        connection.request("GET", page)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except OSError:
        return 0
    finally:
        connection.close()


# One slow page at a time.
def client(path, pages, failed, one):
    for number in pages:
        if number % 10 == 9:
            with one:
                status = ask(path + "?slow")
        else:
            status = ask(path)
        if status != 200:
            failed.append(path)


def start(function, *arguments):
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            function(*arguments)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def main():
    kind, causes = sys.argv[1], sys.argv[2:]
    if kind == "flask":
        children = [start(serve_flask)]
    else:
        listener = socket.create_server(("127.0.0.1", PORT), backlog=100)
        children = [start(serve_tasks, listener) for _ in range(2)]
        listener.close()
    while ask("/ready") == 0:
        assert os.waitpid(-1, os.WNOHANG) == (0, 0), "the service has ended"
        time.sleep(0.2)
    failed, one = [], threading.Lock()
    for cause in causes:
        pages = iter(list(range(20)))
        clients = [threading.Thread(target=client, args=("/" + cause, pages, failed, one)) for _ in range(6)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
    for child in children:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    print(json.dumps({"failed": failed}), flush=True)


main()

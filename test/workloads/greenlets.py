# A service under gunicorn's gevent workers: a request for /N calls step() N times, each with two calls of leaf() and a
# switch to other greenlets between them.
#
# usage: python3 greenlets.py   serves it, asks for /0, then for /10 four times at once and once more, and ends it
#
# SPDX-License-Identifier: MIT

import os
import subprocess
import sys
import threading
import time
import urllib.request


def leaf():
    return 1


def step():
    import gevent

    leaf()
    gevent.sleep(0.01)
    return leaf()


def requested(n):
    for _ in range(n):
        step()
    return n


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d\n" % requested(int(environ["PATH_INFO"].strip("/")))]


def ask(place, n):
    while True:
        try:
            with urllib.request.urlopen("http://%s/%d" % (place, n)) as answer:
                return print(answer.read().decode(), end="", flush=True)
        except OSError:
            time.sleep(0.05)


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    port = 20000 + os.getpid() % 10000
    place = "127.0.0.1:%d" % port
    server = subprocess.Popen([sys.executable, "-m", "gunicorn", "-k", "gevent", "-w", "1", "-b", place, "--chdir", folder, "greenlets:app"], stderr=subprocess.DEVNULL)
    ask(place, 0)
    threads = [threading.Thread(target=ask, args=(place, 10)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask(place, 10)
    time.sleep(0.3)
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()

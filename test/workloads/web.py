# A web application under a prefork server with threads: pages from templates, JSON, errors that are handled,
# short waits.  test/long/load/run and test/long/soak/run trace it with the scripts.
#
# web.py [PORT]     serves on that port (8127)
# web.py pages N    asks itself for the first page N times, and prints the processor time of one in nanoseconds, at best of
#                   five times
#
# SPDX-License-Identifier: MIT

import gc
import sys
import time

import flask
import jinja2

app = flask.Flask(__name__)
app.jinja_loader = jinja2.DictLoader({
    "orders.html": """<!doctype html><title>{{ title }}</title><h1>{{ title }}</h1><table>
{% for order in orders %}<tr><td>{{ order.id }}<td>{{ order.item|title }}<td>{{ price(order.price) }}</tr>
{% endfor %}</table>"""
})
orders = [{"id": number, "item": "item %d" % number, "price": number * 7 % 101} for number in range(40)]


def price(cents):
    return "%d.%02d" % divmod(cents, 100)


def total(few):
    return sum(order["price"] for order in few)


@app.route("/")
def index():
    few = sorted(orders, key=lambda order: (order["price"], order["id"]))[:10]
    return flask.render_template("orders.html", title="Orders", orders=few, price=price)


@app.route("/orders")
def listing():
    return flask.jsonify(orders=orders[:5], total=price(total(orders)))


@app.route("/wait")
def wait():
    time.sleep(0.01)
    try:
        orders[len(orders)]
    except IndexError:
        gc.collect(0)
    return "waited\n"


def pages(count):
    client = app.test_client()
    took = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            client.get("/")
        took.append((time.process_time() - began) / count)
    print("%d ns" % (min(took) * 1e9))


if __name__ == "__main__" and sys.argv[1:2] == ["pages"]:
    pages(int(sys.argv[2]))
elif __name__ == "__main__":
    import gunicorn.app.wsgiapp

    port = sys.argv[1] if len(sys.argv) > 1 else "8127"
    sys.dont_write_bytecode = True
    sys.argv[1:] = "--workers 2 --threads 4 --worker-tmp-dir /dev/shm".split() + ["--bind", "127.0.0.1:" + port, "web:app"]
    gunicorn.app.wsgiapp.run()

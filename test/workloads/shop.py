# A web service without a framework, for any WSGI server: a page of a shop's prices.  test/long/packages has it run by
# gunicorn and by uwsgi.
#
# SPDX-License-Identifier: MIT

ITEMS = [("item %d" % number, number * 7 % 101) for number in range(20)]


def price_of(cents):
    return "%d.%02d" % divmod(cents, 100)


def row_of(item, cents):
    return "<tr><td>%s<td>%s</tr>\n" % (item, price_of(cents))


def page():
    return "<!doctype html><title>Shop</title><table>\n" + "".join([row_of(*item) for item in ITEMS]) + "</table>\n"


def application(_environ, start_response):
    text = page().encode()
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(text)))])
    return [text]

# SPDX-License-Identifier: MIT

import os
import sys

from counts import count
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from shop.models import Order, total_of

try:
    import no_such_module_of_ours
except ImportError:
    count("import no_such_module_of_ours")


def sql_of_ours(execute, sql, params, many, context):
    count("sql_of_ours")
    return execute(sql, params, many, context)


def counts_sql(get_response):
    def with_sql(request):
        count("with_sql")
        with connection.execute_wrapper(sql_of_ours):
            return get_response(request)

    return with_sql


def stamp():
    count("stamp")
    return os.getppid()


def allocates():
    count("allocates")
    return len(bytearray(1 << 20))


def ready(request):
    return HttpResponse("ready\n")


def index(request):
    count("index")
    orders = Order.objects.order_by("cents", "id")[:40]
    return render(request, "orders.html", {"orders": orders, "total": total_of(orders), "stamp": stamp()})


def order_page(request, number):
    count("order_page")
    sys.audit("service.order", number)
    order = get_object_or_404(Order, pk=number)
    return render(request, "order.html", {"order": order, "size": allocates()})

# SPDX-License-Identifier: MIT

from counts import count
from django.db import models


class Order(models.Model):
    item = models.CharField(max_length=40)
    cents = models.IntegerField()

    def price(self):
        count("price")
        return "%d.%02d" % divmod(self.cents, 100)


def total_of(orders):
    count("total_of")
    total = 0
    for order in orders:
        total += order.cents
    return total

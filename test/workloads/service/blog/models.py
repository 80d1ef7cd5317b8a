# SPDX-License-Identifier: MIT

from counts import count
from django.db import models


class Post(models.Model):
    title = models.CharField(max_length=40)
    body = models.TextField()

    def words(self):
        count("words")
        return len(self.body.split())

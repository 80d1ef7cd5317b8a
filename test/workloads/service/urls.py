# SPDX-License-Identifier: MIT

import blog.views
import shop.views
from django.urls import path

urlpatterns = [
    path("ready", shop.views.ready),
    path("", shop.views.index),
    path("order/<int:number>", shop.views.order_page),
    path("posts", blog.views.posts),
    path("slow", blog.views.slow_page),
]

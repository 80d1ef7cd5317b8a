# SPDX-License-Identifier: MIT

import gc
import time

from blog.models import Post
from counts import count
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render

# as an import statement in urls.py runs this
count("import blog.views")


# entered once, and again for each that it has yielded
def titles(posts):
    count("titles")
    for post in posts:
        yield post.title
        count("titles")


def posts(request):
    count("posts")
    every = list(Post.objects.all())
    if request.GET.get("as") == "json":
        return JsonResponse({"titles": list(titles(every))})
    return render(request, "posts.html", {"posts": every})


def waits():
    count("waits")
    time.sleep(0.4)


def slow_page(request):
    count("slow_page")
    waits()
    gc.collect(0)
    return HttpResponse("waited\n")

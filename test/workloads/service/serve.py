# A Django service of two apps, with templates and SQLite, under gunicorn: two processes of four threads.
#
# usage: serve.py FOLDER database   makes the database there
#        serve.py FOLDER            serves until SIGTERM; each process then writes FOLDER/counts.PID
#
# SPDX-License-Identifier: MIT

import sys

sys.dont_write_bytecode = True
import counts

import os

folder = sys.argv[1]
port = "8129"


def configure():
    import django
    from django.conf import settings

    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(folder, "db.sqlite3")}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        INSTALLED_APPS=["shop", "blog"],
        MIDDLEWARE=["django.middleware.common.CommonMiddleware", "shop.views.counts_sql"],
        ROOT_URLCONF="urls",
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    )
    django.setup()


def make_database():
    configure()
    from django.db import connection
    from shop.models import Order
    from blog.models import Post

    with connection.schema_editor() as editor:
        editor.create_model(Order)
        editor.create_model(Post)
    Order.objects.bulk_create(Order(item="item %d" % number, cents=number * 7 % 101) for number in range(40))
    Post.objects.bulk_create(Post(title="post %d" % number, body="text " * number) for number in range(12))


def serve():
    import gunicorn.app.base

    class Service(gunicorn.app.base.BaseApplication):
        def load_config(self):
            for name, value in {
                "bind": "127.0.0.1:" + port,
                "workers": 2,
                "threads": 4,
                "worker_tmp_dir": "/dev/shm",
                "timeout": 0,
                "graceful_timeout": 120,
                "post_fork": lambda arbiter, worker: counts.begin(),
                "worker_exit": lambda arbiter, worker: counts.end(folder),
                "on_exit": lambda arbiter: counts.end(folder),
            }.items():
                self.cfg.set(name, value)

        def load(self):
            configure()
            from django.core.wsgi import get_wsgi_application

            return get_wsgi_application()

    Service().run()


make_database() if sys.argv[2:] == ["database"] else serve()

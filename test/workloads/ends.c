/*
 * A program that ends CPython just after another thread has begun, keeps the GIL until then, does
 * without CPython for a while, and then starts it again.  If it has kept the GIL for too long, on a
 * machine that is busy, it says "too slow" and ends: probes/LIMITS.md has what happens then.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *);

static long long began;

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* The shim's thread waits for 250 ms before it asks for the GIL. */
static void end_if_late(int limit_ms)
{
    if (now_ms() - began < limit_ms)
        return;
    puts("too slow");
    fflush(stdout);
    _exit(0);
}

/* Not for ever: into a CPython 3.6 that has had one thread attach brings none. */
static void wait_for_threads(unsigned count)
{
    struct stat tasks;
    for (int i = 0; i < 2000; i++) {
        began = now_ms();
        usleep(2000);
        if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink == count + 2)
            break;
    }
}

static const char again[] = "import os, time\n"
                            "for i in range(20): (lambda: time.sleep(0.01))()\n"
                            "def name(thread):\n"
                            "    try: return open('/proc/self/task/%s/comm' % thread).read()\n"
                            "    except OSError: return None\n"
                            "has = 'python-stap\\n' in map(name, os.listdir('/proc/self/task'))\n"
                            "print('has the watcher:', has, flush=True)\n";

/* With an argument the shim's thread runs already. */
int main(int count, char **arguments)
{
    (void)arguments;
    Py_Initialize();
    puts("started");
    fflush(stdout);
    began = now_ms();
    if (count == 1) {
        wait_for_threads(1);
        wait_for_threads(2);
    }
    usleep(20000);
    end_if_late(100);
    Py_FinalizeEx();
    end_if_late(200);
    usleep(600000);
    Py_Initialize();
    int failed = PyRun_SimpleString(again);
    printf("%d %d\n", failed, Py_FinalizeEx());
    return 0;
}

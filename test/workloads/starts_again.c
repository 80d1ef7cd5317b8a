/*
 * A program that waits in CPython's start, when the interpreter has read the table of built-in modules, until the file GO is
 * there.  Then: "again" ends CPython and starts it again, which takes half a second; "sub" starts and ends a subinterpreter;
 * "fork" forks at once, and the child says its PID, and runs Python until the file END is there.  At last it says whether the
 * shim's thread runs.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
void Py_Initialize(void);
int Py_FinalizeEx(void);
int Py_IsInitialized(void);
int PyRun_SimpleString(const char *);
void *PyInterpreterState_Head(void);
void *PyThreadState_Get(void);
void *PyThreadState_Swap(void *);
void *Py_NewInterpreter(void);
void Py_EndInterpreter(void *);
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Child(void);
void PyOS_AfterFork_Parent(void);
extern int Py_NoSiteFlag;

static int starts = 1, calls;

/* CPython calls it three times in its start, for its three files.  */
int isatty(int fd)
{
    struct termios terminal;
    if (PyInterpreterState_Head() && ++calls == 3) {
        if (starts == 1) {
            int file = open(getenv("STARTS"), O_CREAT | O_WRONLY, 0600);
            dprintf(file, "%d", Py_IsInitialized());
            close(file);
            while (access(getenv("GO"), F_OK) != 0)
                usleep(2000);
        } else
            usleep(500000);
    }
    return ioctl(fd, TCGETS, &terminal) == 0;
}

static const char says[] = "import os, time\n"
                           "def name(thread):\n"
                           "    try: return open('/proc/self/task/%s/comm' % thread).read()\n"
                           "    except OSError: return None\n"
                           "def has(): return 'python-stap\\n' in map(name, os.listdir('/proc/self/task'))\n"
                           "end = time.time() + 20\n"
                           "while not has() and time.time() < end: (lambda: time.sleep(0.01))()\n"
                           "for i in range(30): (lambda: time.sleep(0.01))()\n"
                           "print('has the watcher:', has(), flush=True)\n";

static int in_child(void)
{
    static const char runs[] = "import os, time\n"
                               "print('child', os.getpid(), flush=True)\n"
                               "while not os.path.exists(os.environ['END']): (lambda: time.sleep(0.01))()\n";
    PyOS_AfterFork_Child();
    return PyRun_SimpleString(runs) || PyRun_SimpleString(says) || Py_FinalizeEx();
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    Py_NoSiteFlag = 1;
    Py_Initialize();
    if (strcmp(how, "fork") == 0) {
        int status;
        PyOS_BeforeFork();
        if (fork() == 0)
            return in_child();
        PyOS_AfterFork_Parent();
        return wait(&status) < 0 || status != 0;
    }
    if (strcmp(how, "again") == 0) {
        usleep(10000);
        Py_FinalizeEx();
        starts = 2, calls = 0;
        Py_Initialize();
    } else {
        void *main_thread = PyThreadState_Get();
        Py_EndInterpreter(Py_NewInterpreter());
        PyThreadState_Swap(main_thread);
    }
    int failed = PyRun_SimpleString(says);
    printf("%d %d\n", failed, Py_FinalizeEx());
    return 0;
}

/*
 * A program that starts and ends CPython TIMES times, and runs CODE in each.
 *
 * usage: embed TIMES [CODE]
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *);
int main(int count, char **arguments)
{
    const char *code = "import gc, os\ndef f(n):\n    return f(n - 1) if n else 0\n"
                       "for i in range(300):\n    f(20)\n    gc.collect(0)\n";
    if (count > 2)
        code = arguments[2];
    for (int i = 0; i < atoi(arguments[1]); i++) {
        Py_Initialize();
        int failed = PyRun_SimpleString(code);
        printf("%d %d\n", failed, Py_FinalizeEx());
        fflush(stdout);
    }
    return 0;
}

/*
 * A program that begins and ends CPython many times.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *);
int main(void)
{
    for (int i = 0; i < 20; i++) {
        Py_Initialize();
        int failed =
            PyRun_SimpleString("import gc, os\ndef f(n):\n    return f(n - 1) if n else 0\n"
                               "for i in range(300):\n    f(20)\n    gc.collect(0)\n");
        printf("%d %d\n", failed, Py_FinalizeEx());
    }
    return 0;
}

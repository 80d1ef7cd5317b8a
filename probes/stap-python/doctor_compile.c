/*
 * See doctor_compile.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_compile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_fix.h"
#include "doctor_kernel.h"
#include "doctor_report.h"
#include "doctor_stap.h"
#include "file.h"
#include "program.h"
#include "shim.h"
#include "text.h"

enum { SECONDS = 60 };

/* The first line of stap's that names an error; without one, the first. */
static char *first_error(char *said)
{
    static const char *const words[] = {"error: ", "ERROR: "};
    char *first = NULL;
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strstr(line, words[i]))
                return line;
        first = first ? first : line;
    }
    return first ? first : "stap says nothing";
}

/* stap's output, and its exit status as run_and_capture() gives it; what it takes long for is said
 * on a terminal meanwhile. */
static char *compile(const char *shim, int *status)
{
    static const char doing[] = "compiling a probe, which takes up to 60 s the first time ...";
    bool said = isatty(1) && isatty(2);
    /* stap leaves out a probe that does nothing. */
    char *script =
        format("probe process(\"%s\").mark(\"function__entry\") { println($arg3) }", shim);
    const char *const command[] = {stap_found(), "-p4", "-e", script, NULL};
    /* Its errors, and the compiler's, as first_error() knows them. */
    setenv("LC_ALL", "C", 1);
    fflush(stdout);
    if (said)
        fputs(doing, stderr);
    char *output = run_and_capture(command, SECONDS, status);
    if (said)
        fprintf(stderr, "\r%*s\r", (int)strlen(doing), "");
    return output;
}

void check_compile(void)
{
    int status;
    const char *shim = under_root(shim_file());
    if (!stap_found() || !has_headers() || !file_exists(shim))
        return;
    char *output = compile(shim, &status);
    if (status == 0)
        report(OK, "compile", NULL, "stap compiles a probe of a program for this kernel");
    else if (status == -1)
        report(NOTE, "compile", NULL,
               "stap takes more than %d s to compile a probe: the first run of a script does, too",
               SECONDS);
    else
        report(WRONG, "compile",
               format("install a newer SystemTap (Linux 6.12 needs 5.2 or later), or do without: "
                      "%sstap-python pyflow --backend bpftrace -c 'python3 PROGRAM.py'",
                      sudo_prefix()),
               "stap cannot compile a probe of a program for this kernel: %.300s",
               first_error(output));
}

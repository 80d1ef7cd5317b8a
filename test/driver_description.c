/*
 * Reads a description (see driver --help).  All of it is read before the first step runs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "driver_description.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step *steps;
size_t step_count;

enum { LONGEST_STRING = 1 << 30 };

static const size_t none = (size_t)-1;
static size_t open_block = none; /* the innermost BEGIN without its END */

/* What is being read. */
static const char *file;
static size_t line;
static char *at;

/* ---------------------------------------------------------------- the markers */

#define DECLARE(number, type, declaration) declaration = (type)(intptr_t)v[number];
#define FIRE_FUNCTION(name, parameters, ...) \
    static void fire_##name(const int64_t *v) \
    { \
        MARKER_PARAMETERS_##name(DECLARE) marker_##name(__VA_ARGS__); \
    }
MARKERS_LIST(FIRE_FUNCTION)

/* A marker with a parameter of another type does not compile: the driver must learn that first. */
#define LETTER(number, type, declaration) \
    _Generic((type)0, const char * : 's', PyObject * : 'p', void * : 'p', int : 'i', long : 'l'),
#define TEXT(number, type, declaration) #declaration,
#define KIND(name, ...) \
    {fire_##name, {MARKER_PARAMETERS_##name(LETTER)}, {MARKER_PARAMETERS_##name(TEXT)}},
const struct kind kinds[MARKERS] = {MARKERS_LIST(KIND)};

/* ---------------------------------------------------------------- errors */

_Noreturn void die(int status, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("driver: ", stderr);
    if (line)
        fprintf(stderr, "%s:%zu: ", file, line);
    /* The description's words reach no terminal as commands: C0, DEL, and C1 in UTF-8. */
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            *c = '?';
    fprintf(stderr, "%s\n", text);
    exit(status);
}

static void *checked(void *memory)
{
    if (!memory)
        die(1, "no memory is left: describe less");
    return memory;
}

/* ---------------------------------------------------------------- reading */

static void skip_blanks(void)
{
    at += strspn(at, " \t\r\n");
}

static bool take(char c)
{
    skip_blanks();
    if (*at != c)
        return false;
    at++;
    return true;
}

static bool at_end(void)
{
    skip_blanks();
    return *at == '\0' || *at == '#';
}

/* The length of what stands next, up to a blank; for messages, of what is worth showing. */
static int word(void)
{
    return (int)strcspn(at, " \t\r\n");
}

static int shown(void)
{
    return word() < 40 ? word() : 40;
}

static bool is_word(const char *text)
{
    size_t length = strlen(text);
    return (size_t)word() == length && memcmp(at, text, length) == 0;
}

/* Takes a decimal number.  False: there is none here. */
static bool take_number(int64_t *value)
{
    skip_blanks();
    if (!isdigit((unsigned char)at[*at == '-']))
        return false;
    char *end;
    errno = 0;
    *value = strtoll(at, &end, 10);
    if (!strchr(" \t\r\n*#", *end))
        return false;
    if (errno)
        die(2, "%.*s has more than 64 bits: give a smaller number", shown(), at);
    at = end;
    return true;
}

/* Takes NULL or an address. */
static bool take_pointer(int64_t *value)
{
    skip_blanks();
    char *end = at + 4;
    errno = 0;
    if (is_word("NULL"))
        *value = 0;
    else if (strncmp(at, "0x", 2) == 0 && isxdigit((unsigned char)at[2]))
        *value = (int64_t)strtoull(at, &end, 16);
    else
        return false;
    if (end != at + word())
        return false;
    if (errno)
        die(2, "%.*s has more than 64 bits: give a smaller address", shown(), at);
    at = end;
    return true;
}

/* Takes how often something is repeated, from before the "*" to behind it. */
static int64_t take_times(void)
{
    int64_t times = 1;
    if (take_number(&times) && !take('*'))
        die(2, "a count without its \"*\": write %lld * and what is repeated", (long long)times);
    if (times < 0)
        die(2, "%lld times: give a count of 0 or more", (long long)times);
    return times;
}

static char escaped(void)
{
    static const char plain[] = "n\nt\t\\\\\"\"";
    char c = *at++;
    for (const char *p = plain; *p; p += 2)
        if (c == p[0])
            return p[1];
    if (c != 'x' || !isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
        die(2, "an escape that is none of \\n \\t \\\\ \\\" \\xHH: write \\\\ for a backslash");
    char digits[] = {at[0], at[1], '\0'};
    at += 2;
    c = (char)strtol(digits, NULL, 16);
    if (c == '\0')
        die(2, "\\x00 would end the string: leave it out");
    return c;
}

/* Takes a string, after its first quote, into memory of its own. */
static int64_t take_string(Py_ssize_t *length)
{
    char *text = at, *end = at;
    while (*at != '"') {
        if (*at == '\0')
            die(2, "a string without its closing \": add it");
        char c = *at++;
        *end++ = c == '\\' ? escaped() : c;
    }
    at++;
    int64_t size = end - text, times = 1;
    if (take('*') && (!take_number(&times) || times < 0))
        die(2, "\"text\" * without a count: write a number of 0 or more behind the *");
    if (__builtin_mul_overflow(size, times, length) || *length > LONGEST_STRING)
        die(2, "a string of more than %d bytes: make it shorter", LONGEST_STRING);
    char *whole = checked(malloc((size_t)*length + 1));
    for (Py_ssize_t i = 0; i < *length; i += size)
        memcpy(whole + i, text, (size_t)size);
    whole[*length] = '\0';
    return (intptr_t)whole;
}

static void take_argument(struct step *step, int i)
{
    const struct kind *kind = &kinds[step->marker];
    int64_t *value = &step->values[i];
    char type = kind->types[i];
    bool number = type == 'i' || type == 'l';
    step->lengths[i] = -1;
    if (at_end())
        die(2, "%s lacks its argument %d, \"%s\": add it", marker_info[step->marker].name, i + 1,
            kind->parameters[i]);
    if (!isspace((unsigned char)at[-1]))
        die(2, "%.*s adjoins a string: write a blank between", shown(), at);
    if (type == 's' && take('"')) {
        *value = take_string(&step->lengths[i]);
    } else if (number ? !take_number(value) : !take_pointer(value)) {
        die(2, "%.*s is not \"%s\": give %s", shown(), at, kind->parameters[i],
            number        ? "a decimal number"
            : type == 's' ? "\"text\", NULL or 0xADDRESS"
                          : "NULL or 0xADDRESS");
    }
    if (type == 'i' && (*value < INT_MIN || *value > INT_MAX))
        die(2, "%lld does not fit \"%s\": give a number from %d to %d", (long long)*value,
            kind->parameters[i], INT_MIN, INT_MAX);
}

static void take_event(struct step *step)
{
    int marker = 0;
    while (marker < MARKERS && !is_word(marker_info[marker].name))
        marker++;
    if (marker == MARKERS)
        die(2, "%.*s is not a marker: driver --list shows them, driver --help the other steps",
            shown(), at);
    at += word();
    step->marker = (enum marker)marker;
    for (int i = 0; kinds[marker].types[i]; i++)
        take_argument(step, i);
}

static struct step *add_step(void)
{
    if ((step_count & (step_count - 1)) == 0)
        steps = checked(reallocarray(steps, step_count ? 2 * step_count : 1, sizeof *steps));
    struct step *step = &steps[step_count++];
    *step = (struct step){.times = 1};
    return step;
}

static void close_block(void)
{
    if (open_block == none)
        die(2, "a } without its {: remove it");
    struct step *step = add_step();
    step->what = END;
    step->other = open_block;
    open_block = steps[step->other].other;
    steps[step->other].other = step_count - 1;
}

static void read_line(void)
{
    if (at_end())
        return;
    if (take('}')) {
        close_block();
    } else {
        struct step *step = add_step();
        step->times = take_times();
        if (at_end())
            die(2, "a count with nothing behind its *: add what is repeated");
        if (take('{')) {
            step->what = BEGIN;
            step->other = open_block;
            step->values[0] = (int64_t)line;
            open_block = step_count - 1;
        } else if (is_word("sleep")) {
            at += word();
            step->what = SLEEP;
            if (!take_number(step->values) || step->values[0] < 0)
                die(2, "sleep without a time: give milliseconds, as in sleep 10");
        } else {
            take_event(step);
        }
    }
    if (!at_end())
        die(2, "%.*s is too much: end the line before it", shown(), at);
}

void read_file(const char *name)
{
    bool standard = strcmp(name, "-") == 0;
    FILE *stream = standard ? stdin : fopen(name, "r");
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    if (!stream)
        die(2, "%s can't be opened: %s", name, strerror(errno));
    file = standard ? "standard input" : name;
    for (line = 1; (length = getline(&text, &size, stream)) >= 0; line++) {
        at = text;
        if (strlen(text) != (size_t)length)
            die(2, "a byte 0: a description is text, remove it");
        read_line();
    }
    if (ferror(stream))
        die(2, "it can't be read: %s", strerror(errno));
    line = open_block == none ? 0 : (size_t)steps[open_block].values[0];
    if (line)
        die(2, "a { without its }: add a line with it");
    free(text);
    if (!standard)
        fclose(stream);
}

bool read_number(char *text, int64_t *value)
{
    at = text;
    return take_number(value) && at_end();
}

/*
 * SPDX-License-Identifier: MIT
 */

#include "lib/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared/characters.h"

/* ---------------------------------------------------------------- text */

char *format(const char *text, ...)
{
    char *result;
    va_list values;
    va_start(values, text);
    if (vasprintf(&result, text, values) < 0)
        abort();
    va_end(values);
    return result;
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    unsigned c;
    if (!result)
        abort();
    while (*text) {
        int length = utf8_character(text, &c);
        bool escaped = !length || is_control_character(c);
        length = length ? length : 1;
        if (escaped)
            for (int i = 0; i < length; i++)
                end += sprintf(end, "\\x%02x", (unsigned char)text[i]);
        else
            end = mempcpy(end, text, (size_t)length);
        text += length;
    }
    *end = '\0';
    return result;
}

char *json_string(const char *text)
{
    char *result = malloc(6 * strlen(text) + 3), *end = result;
    unsigned c;
    if (!result)
        abort();
    *end++ = '"';
    while (*text) {
        int length = utf8_character(text, &c);
        if (!length)
            end = stpcpy(end, "\\ufffd");
        else if (is_control_character(c))
            end += sprintf(end, "\\u%04x", c);
        else {
            if (c == '"' || c == '\\')
                *end++ = '\\';
            end = mempcpy(end, text, (size_t)length);
        }
        text += length ? length : 1;
    }
    strcpy(end, "\"");
    return result;
}

/* The entity that stands for the character, or U+FFFD for one that XML does not allow; NULL: none.
 */
static const char *xml_entity(unsigned c)
{
    static const struct {
        unsigned character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (c == entities[i].character)
            return entities[i].entity;
    return is_control_character(c) || c == 0xfffe || c == 0xffff ? "\ufffd" : NULL;
}

char *xml_text(const char *text)
{
    char *result = malloc(strlen("&quot;") * strlen(text) + 1), *end = result;
    unsigned c;
    if (!result)
        abort();
    while (*text) {
        int length = utf8_character(text, &c);
        const char *entity = length ? xml_entity(c) : "\ufffd";
        end = entity ? stpcpy(end, entity) : mempcpy(end, text, (size_t)length);
        text += length ? length : 1;
    }
    *end = '\0';
    return result;
}

bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), last = strlen(end);
    return length >= last && strcmp(text + length - last, end) == 0;
}

char *replaced(const char *text, const char *old, const char *new)
{
    char *made = "";
    for (const char *at; (at = strstr(text, old)); text = at + strlen(old))
        made = format("%s%.*s%s", made, (int)(at - text), text, new);
    return format("%s%s", made, text);
}

size_t utf8_length(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (unsigned char)*text >> 6 != 2;
    return count;
}

char *utf8_prefix(const char *text, size_t most)
{
    size_t length = 0;
    while (text[length] && (most || (unsigned char)text[length] >> 6 == 2)) {
        most -= (unsigned char)text[length] >> 6 != 2;
        length++;
    }
    return format("%.*s", (int)length, text);
}

char *status_field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line += strspn(line, "\n")) {
        if (strncmp(line, name, length) != 0 || line[length] != ':') {
            line += strcspn(line, "\n");
            continue;
        }
        line += length + 1;
        line += strspn(line, " \t");
        return strndup(line, strcspn(line, "\n"));
    }
    return NULL;
}

char *shell_quoted(const char *word)
{
    char *result = malloc(4 * strlen(word) + 3), *end = result;
    if (!result)
        abort();
    *end++ = '\'';
    for (; *word; word++)
        end = *word == '\'' ? stpcpy(end, "'\\''") : (*end = *word, end + 1);
    strcpy(end, "'");
    return result;
}

char *shell_word(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=@%.,:/";
    return *word && !word[strspn(word, plain)] ? format("%s", word) : shell_quoted(word);
}

void texts_add(struct texts *texts, const char *text)
{
    texts->all = reallocarray(texts->all, texts->count + 2, sizeof *texts->all);
    if (!texts->all)
        abort();
    /* execvp() and its like take a list without const. */
    texts->all[texts->count++] = (char *)text;
    texts->all[texts->count] = NULL;
}

void texts_add_two(struct texts *texts, const char *first, const char *second)
{
    texts_add(texts, first);
    texts_add(texts, second);
}

/* ---------------------------------------------------------------- command */

static void print_line(const char *text, va_list values) __attribute__((format(printf, 1, 0)));

static void print_line(const char *text, va_list values)
{
    char *line;
    fflush(stdout);
    if (vasprintf(&line, text, values) < 0)
        abort();
    fprintf(stderr, "stap-python: %s\n", printable(line));
}

void die(int status, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
    exit(status);
}

void warn(const char *text, ...)
{
    va_list values;
    /* The error is then that of stdout, which finish() reports. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return;
    va_start(values, text);
    print_line(text, values);
    va_end(values);
}

void finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        die(FAILED, "stdout: %s", strerror(errno));
    exit(status);
}

void help_if_asked(char **arguments, const char *usage)
{
    if (!arguments[0] || (strcmp(arguments[0], "--help") != 0 && strcmp(arguments[0], "-h") != 0))
        return;
    fputs(usage, stdout);
    finish(0);
}

/* ---------------------------------------------------------------- clock */

long long monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

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

/* The length of the UTF-8 character at text; 0 if the bytes are invalid, overlong, a surrogate, or
 * above U+10FFFF. */
static size_t character_at(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (text[i] >> 6 != 2)
            return 0;
    bool wrong = (*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] >= 0xa0) ||
                 (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] >= 0x90);
    return *text < 0xf5 && !wrong ? length : 0;
}

/* Whether a terminal could take the character for a command, C0, DEL, or C1 in UTF-8; or it ends a
 * line or changes the direction of the text beside it: U+061C, U+200E, U+200F, U+2028 to U+202E,
 * U+2066 to U+2069. */
static bool is_control(const unsigned char *text)
{
    const unsigned last = *text == 0xe2 ? text[2] : 0;
    return *text < ' ' || *text == 0x7f || (*text == 0xc2 && text[1] < 0xa0) ||
           (*text == 0xd8 && text[1] == 0x9c) ||
           (*text == 0xe2 && text[1] == 0x80 &&
            (last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae))) ||
           (*text == 0xe2 && text[1] == 0x81 && last >= 0xa6 && last <= 0xa9);
}

char *printable(const char *text)
{
    char *result = malloc(4 * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        bool escaped = !length || is_control(at);
        length = length ? length : 1;
        if (escaped)
            for (size_t i = 0; i < length; i++)
                end += sprintf(end, "\\x%02x", at[i]);
        else
            end = mempcpy(end, at, length);
        at += length;
    }
    *end = '\0';
    return result;
}

char *json_string(const char *text)
{
    char *result = malloc(6 * strlen(text) + 3), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    *end++ = '"';
    while (*at) {
        size_t length = character_at(at);
        if (!length)
            end = stpcpy(end, "\\ufffd");
        else if (is_control(at))
            end += sprintf(end, "\\u%04x",
                           length == 1   ? at[0]
                           : length == 2 ? (at[0] & 0x1f) << 6 | (at[1] & 0x3f)
                                         : 0x2000 | (at[1] & 1) << 6 | (at[2] & 0x3f));
        else {
            if (strchr("\"\\", *at))
                *end++ = '\\';
            end = mempcpy(end, at, length);
        }
        at += length ? length : 1;
    }
    strcpy(end, "\"");
    return result;
}

/* The entity that stands for the character, or U+FFFD for one that XML does not allow; NULL: none.
 */
static const char *xml_entity(const unsigned char *at, size_t length)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (*at == entities[i].character)
            return entities[i].entity;
    bool is_no_character = length == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
    return !length || is_control(at) || is_no_character ? "\ufffd" : NULL;
}

char *xml_text(const char *text)
{
    char *result = malloc(strlen("&quot;") * strlen(text) + 1), *end = result;
    const unsigned char *at = (const unsigned char *)text;
    if (!result)
        abort();
    while (*at) {
        size_t length = character_at(at);
        const char *entity = xml_entity(at, length);
        end = entity ? stpcpy(end, entity) : mempcpy(end, at, length);
        at += length ? length : 1;
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

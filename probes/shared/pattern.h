/*
 * Whether a pattern matches a function: for the shim, and for the tapset, which checks the patterns
 * of its own script.  The tapset's code runs in the kernel, so this file includes nothing.
 *
 *   app.views.*             module and function, if the pattern has a dot
 *   execute                 the function alone
 *   * /app/views.py:*       file and function, before and after the last colon (without the space)
 *   app/views.py:*          the same, by the end of the file's path
 *
 * A * matches any text, including dots and slashes; a ? matches any byte.  A missing name is "".
 * Patterns are separated by spaces, tabs or newlines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SHARED_PATTERN_H
#define SHARED_PATTERN_H

/* Of the buffer in which the shim collects the patterns of all tracers. */
enum { FILTER_SIZE = 4096 };

/* The text to match: its parts, one after the other, up to a NULL. */
struct pattern_text {
    const char *const *part;
    const char *at;
};

static inline char pattern_char(struct pattern_text *text)
{
    while (text->at && !*text->at)
        text->at = *++text->part;
    return (char)(text->at ? *text->at : 0);
}

/* A pattern with many stars takes up to its length times the text's length in steps, with the GIL
 * held; a program may have names of a megabyte.  After so many steps, counted over all patterns,
 * the rest of the patterns do not match. */
enum { PATTERN_MAX_STEPS = 1 << 18 };

static inline int pattern_glob(const char *pattern, const char *end, const char *const *parts,
                               int *steps)
{
    struct pattern_text text = {parts, *parts}, retry = text;
    const char *star = 0;
    while (--*steps > 0) {
        char character = pattern_char(&text);
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            retry = text;
            if (star == end)
                return 1;
        } else if (character && pattern < end && (*pattern == '?' || *pattern == character)) {
            pattern++;
            text.at++;
        } else if (!character && pattern == end) {
            return 1;
        } else if (!star || !pattern_char(&retry)) {
            return 0;
        } else {
            retry.at++;
            text = retry;
            pattern = star;
        }
    }
    return 0;
}

/* A pattern matches the whole path of a file, or the part of the path after any slash.  A "./" at
 * its start is skipped for the latter.  A pattern that then begins with a slash, a star or a "?"
 * matches only the whole path.  Users often type only the end of the path that CPython has. */
static inline int filter_file(const char *pattern, const char *end, const char *filename,
                              int *steps)
{
    const char *const whole[] = {filename, 0};
    if (pattern_glob(pattern, end, whole, steps))
        return 1;
    while (pattern + 1 < end && pattern[0] == '.' && pattern[1] == '/')
        pattern += 2;
    if (pattern == end || *pattern == '/' || *pattern == '*' || *pattern == '?')
        return 0;
    for (; *filename && *steps > 0; filename++, --*steps) {
        const char *const rest[] = {filename + 1, 0};
        if (*filename == '/' && pattern_glob(pattern, end, rest, steps))
            return 1;
    }
    return 0;
}

static inline int pattern_matches_function(const char *pattern, const char *end,
                                           const char *filename, const char *modulename,
                                           const char *funcname, int *steps)
{
    const char *colon = 0, *dot = 0, *at;
    const char *const function[] = {funcname, 0}, *const both[] = {modulename, ".", funcname, 0};
    for (at = pattern; at < end; at++) {
        if (*at == ':')
            colon = at;
        if (*at == '.')
            dot = at;
    }
    if (colon)
        return filter_file(pattern, colon, filename, steps) &&
               pattern_glob(colon + 1, end, function, steps);
    return pattern_glob(pattern, end, dot ? both : function, steps);
}

static inline int pattern_is_space(char character)
{
    return character == ' ' || character == '\t' || character == '\n';
}

/* Whether any of the patterns matches; true if there are no patterns. */
static inline int pattern_matches(const char *patterns, const char *filename,
                                  const char *modulename, const char *funcname)
{
    int none = 1, steps = PATTERN_MAX_STEPS;
    while (*patterns) {
        const char *begin;
        while (pattern_is_space(*patterns))
            patterns++;
        begin = patterns;
        while (*patterns && !pattern_is_space(*patterns))
            patterns++;
        if (patterns == begin)
            break;
        none = 0;
        if (pattern_matches_function(begin, patterns, filename, modulename, funcname, &steps))
            return 1;
    }
    return none;
}

#endif

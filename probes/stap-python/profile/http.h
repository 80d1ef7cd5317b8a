/*
 * HTTP POSTs by libcurl, one at a time, none of which blocks.
 *
 * libcurl is loaded when it is needed: it and what it needs in turn are 14 MB, and no other command
 * sends anything.  libcurl may have a thread that looks up the server's address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_HTTP_H
#define PROFILE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* Loads libcurl.  Exits with an error line that names its packages if it is not installed. */
void http_load(void);

/* What all requests have: header lines, which end with NULL, and "USER:PASSWORD" or NULL. */
void http_set(char *const *headers, const char *password);

/* Begins a POST.  url and body must stay until it has ended.  Ends a POST that has not ended. */
void http_post(const char *url, const void *body, size_t size);

/* Ends the POST that has not ended, if there is one. */
void http_cancel(void);

struct http_result {
    bool has_ended;
    long status;     /* 0: no answer */
    const char *why; /* there is no answer, or it does not begin with 2; NULL: all is well */
};

/* Waits at most so many milliseconds until there is something to read from fd, or the POST goes on.
 */
struct http_result http_wait(int fd, int ms);

#endif

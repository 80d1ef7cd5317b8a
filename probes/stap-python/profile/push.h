/*
 * `stap-python record --push`: sends the profile of each interval to Pyroscope, while pyprof
 * samples.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROFILE_PUSH_H
#define PROFILE_PUSH_H

struct push {
    const char *url;     /* of Pyroscope, without /ingest */
    const char *auth;    /* the file with the credentials, or NULL */
    const char *service; /* NULL: the name of each program */
};

/* Loads libcurl, and reads the credentials.  Exits with an error line if the URL, the service or
 * the credentials are wrong. */
void push_prepare(const struct push *push);

/* Runs stap's command line (ends with NULL), in which pyprof writes the intervals of every=N to the
 * FIFO at path, and sends them.  SIGINT, SIGTERM and SIGHUP are passed on to stap.  Says how many
 * profiles were sent, and how many were not.  Returns stap's exit status, or FAILED if stap
 * succeeds and profiles were not sent. */
int push_run(const struct push *push, char **stap, const char *path);

#endif

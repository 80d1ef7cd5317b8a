/*
 * The edits that correct the faults of SystemTap's runtime.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SYSTEMTAP_FAULTS_H
#define SYSTEMTAP_FAULTS_H

struct edit {
    unsigned fault;
    const char *file; /* below the runtime's folder; may be a glob pattern */
    const char *old;  /* each occurrence becomes new; NULL: new is put before the file's text */
    const char *new;
};

/* Ends with .fault 0. */
extern const struct edit runtime_edits[];

#endif

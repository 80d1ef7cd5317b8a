/*
 * See doctor_enabled.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "doctor_enabled.h"

#include <stddef.h>

#include "doctor_report.h"
#include "enabled.h"
#include "file.h"
#include "record.h"
#include "text.h"

/* Enables it again; or forgets it, if the interpreter is gone, too. */
static char *fix_of(const struct record *record)
{
    if (is_service(record))
        return format("stap-python enable --service %s", record->name);
    if (exists(record->name))
        return format("stap-python enable %s", record->name);
    return format("stap-python disable %s", record->path);
}

void check_enabled(void)
{
    struct record *all;
    size_t count = records_read(true, &all);
    for (size_t i = 0; i < count; i++) {
        const char *fault = enabled_fault(&all[i]);
        if (fault)
            report(NOTE, "enabled", fix_of(&all[i]), "%s no longer, by %s: %s", all[i].name,
                   all[i].path, fault);
        else
            report(OK, "enabled", NULL, "%s, by %s", all[i].name, all[i].path);
    }
}

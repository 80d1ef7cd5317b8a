/*
 * The audit marker, by a C audit hook (PEP 578), CPython 3.8 and later.  CPython can't take such a
 * hook out.  The hook is added when the marker is first enabled, and stays until Py_Finalize().
 * From then on each audited operation pays for making its arguments.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cpython/code.h"
#include "hooks/hook.h"
#include "os/process.h"
#include "os/thread.h"

#include <stddef.h>
#include <string.h>

static claim_flag added; /* the hook is in the runtime's list */

static bool fits(void)
{
    return py.PySys_AddAuditHook != NULL;
}

/* Any thread of any interpreter, with its GIL: the list is the runtime's, which CPython walks
 * before the interpreter's own hooks (Python/sysmodule.c: sys_audit_tstate()). */
static int on_audit(const char *event, PyObject *arguments, void *data)
{
    (void)data;
    if (strcmp(event, "cpython._PySys_ClearAuditHooks") == 0) /* Py_Finalize() empties the list */
        added = false;
    if (MARKER_ON(audit) && !thread_is_arming())
        marker_audit(probe_string(event, (Py_ssize_t)strlen(event)), arguments);
    return 0;
}

static enum hook_result set(struct interp *interp, unsigned enabled)
{
    (void)interp;
    /* Interpreters that have a GIL each may call this at once. */
    if (!enabled || atomic_exchange(&added, true))
        return HOOK_DONE;
    struct cpython_retries attempts = {0};
    bool done;
    do
        done = py.PySys_AddAuditHook(on_audit, NULL) == 0;
    while (cpython_retry(&attempts, done));
    if (!done) {
        added = false;
        debug_log("the program's own audit hook refused the shim's");
        return HOOK_NEVER;
    }
    return HOOK_DONE;
}

const struct hook hook_audit = {
    .name = "audit hook",
    .markers = MARKER_BIT(audit),
    .is_supported = fits,
    .set = set,
};

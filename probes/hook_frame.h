/*
 * The frame hook, by which interpreters are also knocked at.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOOK_FRAME_H
#define HOOK_FRAME_H

#include "hook.h"

extern const struct hook hook_frame;

/* Has the interpreter's threads call rearm_current(), each when it next calls a function.  again:
 * they were asked before, and have not.  The interpreter need not be the calling one, and may be of
 * any version.  GIL held, or no other thread in the process.  False: the hook can't be set. */
bool frame_eval_force_rearm(struct interp *interp, bool again);

/* The same for the main interpreter, without the GIL, where that can be done at once: up to 3.11,
 * and if the program has no evaluator of its own. */
bool frame_eval_force_rearm_nogil(struct interp *interp);

/* Sees to what the main thread lacks, if the hook is set.  On that thread, GIL held. */
void frame_eval_update_main_thread(void);

#endif

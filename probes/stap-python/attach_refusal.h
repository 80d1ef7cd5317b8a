/*
 * What `stap-python attach` refuses, and why.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ATTACH_REFUSAL_H
#define ATTACH_REFUSAL_H

#include <stdbool.h>

#include "process.h"

/* Whether this program has CAP_SYS_PTRACE. */
bool have_cap_sys_ptrace(void);

/* Why this user may not attach to the process of that PID without CAP_SYS_PTRACE: its real,
 * effective or saved user is another.  NULL: all three are ours. */
const char *user_refusal(pid_t pid);

/* Why the shim does nothing there although it is loaded: the process started with PYTHON_STAP=off.
 * NULL: it did not. */
const char *environment_refusal(const struct process *process);

/* Why a program with a shadow stack is refused. */
extern const char shadow_stack_refusal[];

/* All that forbids attaching to the process, whatever its root, as far as can be known without
 * trying; NULL: nothing. */
const char *attach_refusal(const struct process *process);

/* What forbids to ask the process to detach, but for its seccomp filters; NULL: nothing. */
const char *refusal_to_detach(const struct process *process);

#endif

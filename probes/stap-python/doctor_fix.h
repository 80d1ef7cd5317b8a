/*
 * The commands that fix what doctor finds, for this machine's distribution and user.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DOCTOR_FIX_H
#define DOCTOR_FIX_H

/* What precedes a command that needs root: "sudo ", or "" for root. */
const char *sudo_prefix(void);

/* Installs packages, by their names for apt, dnf and zypper. */
char *install_command(const char *apt, const char *dnf, const char *zypper);

/* Reinstalls the shim and the tapset, or makes them in a checkout. */
char *reinstall_command(void);

/* Boots the distribution's own kernel, with its headers; in a checkout instead a stap that runs in
 * a guest, which needs nothing of this kernel. */
char *stock_kernel_command(void);

#endif

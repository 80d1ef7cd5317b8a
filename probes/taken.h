/*
 * A word that is true or false, and that one of several threads may take: not an atomic_bool, whose
 * exchange is a function of libatomic's on riscv64 up to gcc 13, and no program has that for the
 * shim.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TAKEN_H
#define TAKEN_H

#include <stdatomic.h>

typedef atomic_int claim_flag;

#endif

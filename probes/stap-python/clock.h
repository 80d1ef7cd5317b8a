/*
 * Time in milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLOCK_H
#define CLOCK_H

/* The time on a clock that is never set back. */
long long monotonic_ms(void);

/* Sleeps so long; a signal may end that early. */
void sleep_ms(long ms);

#endif

/*
 * `stap-python enable --service` and `disable --service`: a drop-in by which systemd starts a
 * service with the shim preloaded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENABLE_SERVICE_H
#define ENABLE_SERVICE_H

/* Makes each start of the service load the shim; returns the exit status.  unit: its name, with
 * ".service" or without.  Exits with an error line if it can't. */
int enable_service(const char *unit);

/* Undoes that, in the same way. */
int disable_service(const char *unit);

/* Makes systemd, if it runs, read its units again.  Exits with an error line if that fails. */
void reload_services(void);

#endif

/*
 * pyenv's shims: scripts in PATH that start the interpreter of the version that is set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PYENV_H
#define PYENV_H

/* The interpreter that program, a file, would start if it is a shim of pyenv's, by PYENV_VERSION,
 * the .python-version of the working directory or one above, or pyenv's own file `version`; a copy
 * of program if it is not such a shim; NULL, and *why is the reason, if no version has that
 * program. Nothing is run. */
char *pyenv_target(const char *program, const char **why);

#endif

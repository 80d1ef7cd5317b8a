/*
 * pyenv's shims: scripts of Python's name in $PYENV_ROOT/shims, which start the interpreter of the
 * version that pyenv's own files choose.  None of them is run.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PYENV_H
#define PYENV_H

/* The interpreter that the program at path starts if that is a shim of pyenv's: of the version that
 * PYENV_VERSION names, the file .python-version of this directory or one above, or pyenv's own file
 * version; for "system" the next in PATH.  path itself if it is not such a shim; NULL, and *why is
 * the reason, if that version does not have the program. */
const char *pyenv_program(const char *path, const char **why);

#endif

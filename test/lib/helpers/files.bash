# shellcheck shell=bash
# The project's files, for checks of the sources.
#
# SPDX-License-Identifier: MIT

# The paths of all files in the project, one a line, in a checkout or an unpacked tarball.
project_files() {
  if [ -e "$top/.git" ]; then
    git -C "$top" -c core.quotePath=false ls-files --cached --others --exclude-standard
  else
    (cd "$top" && find . -path ./build -prune -o \( -type f -o -type l \) -print | sed 's,^\./,,')
  fi | while IFS= read -r file; do
    [ ! -e "$top/$file" ] || printf '%s\n' "$file"
  done | sort
}

# The shell scripts among them, suites included.
shell_files() {
  project_files | (cd "$top" && xargs grep -lE '^#!/bin/(ba)?sh|^# shellcheck shell=|^#!/bin/busybox sh')
  project_files | grep '\.bats$'
}

# include.awk: replaces each #include "..." in a tapset file with the contents of that file, because SystemTap
# compiles a script in another folder.
#
#   awk -v folder=probes -f include.awk python_objects.stp.in
#
# SPDX-License-Identifier: MIT

/^#include "/ {
  split($0, part, "\"")
  file = folder "/" part[2]
  lines = 0
  while ((getline line <file) > 0) {
    print line
    lines++
  }
  close(file)
  if (lines == 0) {
    print FILENAME ":" FNR ": can't read " file >"/dev/stderr"
    exit 1
  }
  next
}

{ print }

# include.awk: replaces each #include "..." in a tapset file with the contents of that file, because SystemTap
# compiles a script in another folder.
#
#   awk -v folders="probes tapset" -f include.awk python_objects.stp.in
#
# SPDX-License-Identifier: MIT

/^#include "/ {
  split($0, part, "\"")
  lines = 0
  count = split(folders, folder, " ")
  for (i = 1; i <= count && lines == 0; i++) {
    file = folder[i] "/" part[2]
    while ((getline line <file) > 0) {
      print line
      lines++
    }
    close(file)
  }
  if (lines == 0) {
    print FILENAME ":" FNR ": can't read " part[2] >"/dev/stderr"
    exit 1
  }
  next
}

{ print }

# include.awk: replaces each #include "..." in a tapset file with the contents of the file that it names, because
# SystemTap compiles a script in another folder.  A file is included only once.
#
#   awk -v folders="probes tapset" -f include.awk python_objects.stp.in
#
# SPDX-License-Identifier: MIT

function include(name, at, i, count, folder, file, line, lines) {
  if (name in included) return
  included[name]
  count = split(folders, folder, " ")
  for (i = 1; i <= count && lines == 0; i++) {
    file = folder[i] "/" name
    while ((getline line <file) > 0) {
      lines++
      put(line, file ":" lines)
    }
    close(file)
  }
  if (lines == 0) {
    print at ": can't read " name >"/dev/stderr"
    exit 1
  }
}

function put(line, at, part) {
  if (line ~ /^#include "/) {
    split(line, part, "\"")
    include(part[2], at)
  } else {
    print line
  }
}

{ put($0, FILENAME ":" FNR) }

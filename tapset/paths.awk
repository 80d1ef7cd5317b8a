# paths.awk: makes python_paths.stpm, the macros that tell the tapset which files to probe, from the
# list that the shim uses too.
#
#   awk -v shim=/usr/lib64/libpython-stap.so.0 -f paths.awk ../probes/native.list
#
# SPDX-License-Identifier: MIT

$1 == "live" {
  for (minor = $3; minor <= $4; minor++) {
    n[$2]++
    minors[$2, n[$2]] = minor
  }
}

$1 == "path" {
  paths[++path_count] = $2
}

END {
  print "// Made by paths.awk from " FILENAME "."
  print "// SPDX-License-Identifier: MIT"
  print "@define __python_shim_path %( \"" shim "\" %)"
  for (marker in n) {
    printf "@define __python_native_%s %%(", marker
    separator = ""
    for (i = 1; i <= n[marker]; i++)
      for (p = 1; p <= path_count; p++) {
        path = paths[p]
        sub(/%d/, minors[marker, i], path)
        printf "%s\n    process(\"%s\").mark(\"%s\")?", separator, path, marker
        separator = ","
      }
    print "\n%)"
  }
}

# paths.awk: makes python_paths.stpm, the macros with the files that the tapset probes.  It reads the newest
# supported CPython, and the list of native markers, from which the shim is built, too.
#
#   awk -v shim=/usr/lib64/libpython-stap.so.0 -f paths.awk probes/shared/versions.h probes/native.list
#
# @__python_native_MARKER: the files where the marker is live; @__python_native_partly_MARKER: where it is partly live.
#
# SPDX-License-Identifier: MIT

match($0, /CPYTHON_NEWEST_MINOR = [0-9]+/) {
  untried = substr($0, RSTART + 23, RLENGTH - 23) + 1
}

$1 == "live" || $1 == "partly" {
  macro = ($1 == "live" ? "" : "partly_") $2
  marker[macro] = $2
  for (minor = $3; minor <= ($4 == "-" ? untried : $4); minor++) {
    n[macro]++
    minors[macro, n[macro]] = minor
  }
}

$1 == "path" {
  paths[++path_count] = $2
}

END {
  print "// Made by paths.awk from " FILENAME "."
  print "// SPDX-License-Identifier: MIT"
  print "@define __python_shim_path %( \"" shim "\" %)"
  for (macro in n) {
    printf "@define __python_native_%s %%(", macro
    separator = ""
    for (i = 1; i <= n[macro]; i++)
      for (p = 1; p <= path_count; p++) {
        path = paths[p]
        sub(/%d/, minors[macro, i], path)
        printf "%s\n    process(\"%s\").mark(\"%s\")?", separator, path, marker[macro]
        separator = ","
      }
    print "\n%)"
  }
}

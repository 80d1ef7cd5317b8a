# native.awk: makes X-macros from the list of CPython's own markers (native.list).
#
#   awk -f native.awk native.list
#
#   NATIVE_LIST(NATIVE)   NATIVE(KIND, MARKER, FIRST, LAST) for each line of a marker
#   NATIVE_PATHS(PATH)    PATH("GLOB") for each path
#
# SPDX-License-Identifier: MIT

$1 == "live" || $1 == "partly" || $1 == "fires" {
  list = list " \\\n    NATIVE(" $1 ", " $2 ", " $3 ", " ($4 == "-" ? "CPYTHON_NEXT_MINOR" : $4) ")"
}

$1 == "path" {
  paths = paths " \\\n    PATH(\"" $2 "\")"
}

END {
  print "/* Made by native.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  print "#ifndef NATIVE_LIST_H\n#define NATIVE_LIST_H\n"
  print "#include \"shared/versions.h\"\n"
  print "#define NATIVE_LIST(NATIVE)" list "\n"
  print "#define NATIVE_PATHS(PATH)" paths "\n"
  print "#endif"
}

# native.awk: turns native.list into C.
#
#   awk -f native.awk native.list               the table of native.c
#   awk -v part=table -f native.awk native.list  that of stap-python, which has the kinds and paths too
#
# SPDX-License-Identifier: MIT

$1 == "live" || $1 == "partly" || $1 == "fires" {
  fires = fires "    {MARKER_" $2 ", " $3 ", " $4 "},\n"
  kinds = kinds "    {\"" $1 "\", \"" $2 "\", " $3 ", " $4 "},\n"
}

$1 == "path" {
  paths = paths "    \"" $2 "\",\n"
}

END {
  print "/* Made by native.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  if (part == "table") {
    print "static const struct {\n    const char *kind, *marker;\n    int first, last;\n} native[] = {\n" kinds "};"
    print "static const char *const native_paths[] = {\n" paths "};"
  } else
    print "static const struct {\n    enum marker marker;\n    int first, last;\n} fires[] = {\n" fires "};"
}

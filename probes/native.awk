# native.awk: turns native.list into the C tables of native.c.
#
# SPDX-License-Identifier: MIT

$1 == "live" {
  live = live "    {MARKER_" $2 ", " $3 ", " $4 "},\n"
}

$1 == "path" {
  paths = paths "    \"" $2 "\",\n"
}

END {
  print "/* Made by native.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  print "static const struct {\n    enum marker marker;\n    int first, last;\n} live[] = {\n" live "};"
  print "static const char *const paths[] = {\n" paths "};"
}

# native.awk: turns native.list into the C table of native.c.
#
# SPDX-License-Identifier: MIT

$1 == "live" || $1 == "partly" || $1 == "fires" {
  fires = fires "    {MARKER_" $2 ", " $3 ", " $4 "},\n"
}

END {
  print "/* Made by native.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  print "static const struct {\n    enum marker marker;\n    int first, last;\n} fires[] = {\n" fires "};"
}

# markers.awk: makes the list of the markers, as X-macros, from the provider definition (python.d).
#
#   awk -f markers.awk python.d
#
# It prints these, each of which applies the macro that it is given:
#
#   MARKERS_LIST(MARKER)                MARKER(NAME, (PARAMETERS), ARGUMENTS...) for each marker
#   MARKER_PARAMETERS_NAME(PARAMETER)   PARAMETER(NUMBER, TYPE, DECLARATION) for each parameter
#   MARKERS_MOST_PARAMETERS             how many parameters a marker has at most
#
# SPDX-License-Identifier: MIT

/^provider / {
  provider = $2
}

/^ *probe / {
  match($0, /\(.*\)/)
  parameters = substr($0, RSTART + 1, RLENGTH - 2)
  name = $2
  sub(/\(.*/, "", name)
  count = split(parameters, parameter, /, */)
  most = count > most ? count : most
  arguments = each = ""
  for (i = 1; i <= count; i++) {
    match(parameter[i], / ?[a-z_]+$/)
    type = substr(parameter[i], 1, RSTART - 1)
    argument = substr(parameter[i], RSTART)
    sub(/ /, "", argument)
    arguments = arguments ", " argument
    each = each " \\\n    PARAMETER(" i - 1 ", " type ", " parameter[i] ")"
  }
  list = list " \\\n    MARKER(" name ", (" parameters ")" arguments ")"
  lists = lists "\n#define MARKER_PARAMETERS_" name "(PARAMETER)" each "\n"
}

END {
  if (list == "" || provider != "python") {
    print "markers.awk: no provider python or no probe in " FILENAME > "/dev/stderr"
    exit 1
  }
  print "/* Made by markers.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  print "#ifndef MARKERS_LIST_H\n#define MARKERS_LIST_H\n"
  print "#define MARKERS_LIST(MARKER)" list
  print lists
  print "#define MARKERS_MOST_PARAMETERS " most "\n"
  print "#endif"
}

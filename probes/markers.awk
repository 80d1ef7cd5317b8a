# markers.awk: turns the provider definition (python.d) into C.
#
#   awk -v part=h -f markers.awk python.d   the header: ids, semaphores, fire functions
#   awk -v part=c -f markers.awk python.d   the sites and the semaphores themselves
#
# Every marker M gets its number MARKER_M, its semaphore python_M_semaphore (one for all sites of
# the name, in .probes, where tracers raise it) and a function marker_M(arguments...) that holds the
# one nop a tracer turns into a breakpoint.  STAP_PROBEn is in SystemTap's <sys/sdt.h>.
#
# SPDX-License-Identifier: MIT

/^provider / {
  provider = $2
}

/^ *probe / {
  match($0, /\(.*\)/)
  params = substr($0, RSTART + 1, RLENGTH - 2)
  name = $2
  sub(/\(.*/, "", name)
  n++
  names[n] = name
  parameters[n] = params
  count = split(params, parameter, /, */)
  counts[n] = count
  arguments[n] = ""
  for (i = 1; i <= count; i++) {
    argument = parameter[i]
    sub(/.*[ *]/, "", argument)
    arguments[n] = arguments[n] ", " argument
  }
}

function semaphore(i) {
  return provider "_" names[i] "_semaphore"
}

END {
  if (n == 0 || provider == "") {
    print "markers.awk: no provider or no probe in " FILENAME > "/dev/stderr"
    exit 1
  }
  print "/* Made by markers.awk from " FILENAME ". */"
  print "/* SPDX-License-Identifier: MIT */"
  if (part == "h") {
    print "#ifndef MARKERS_H\n#define MARKERS_H\n"
    print "#include \"cpython.h\"\n"
    print "enum marker {"
    for (i = 1; i <= n; i++)
      print "    MARKER_" names[i] ","
    print "    MARKERS\n};\n"
    print "struct marker_info {\n    const char *name;\n    const volatile unsigned short *semaphore;\n};"
    print "extern const struct marker_info marker_info[MARKERS];\n"
    for (i = 1; i <= n; i++) {
      print "extern unsigned short " semaphore(i) " __attribute__((visibility(\"hidden\")));"
      print "void marker_" names[i] "(" parameters[i] ");"
    }
    print "\n#endif"
  } else {
    print "#define _SDT_HAS_SEMAPHORES 1"
    print "#include <sys/sdt.h>"
    print "#include \"markers.h\"\n"
    for (i = 1; i <= n; i++) {
      print "unsigned short " semaphore(i) " __attribute__((section(\".probes\"), used, visibility(\"hidden\")));"
      print "__attribute__((noinline)) void marker_" names[i] "(" parameters[i] ")"
      print "{\n    STAP_PROBE" counts[i] "(" provider ", " names[i] arguments[i] ");\n}\n"
    }
    print "const struct marker_info marker_info[MARKERS] = {"
    for (i = 1; i <= n; i++)
      print "    {\"" names[i] "\", &" semaphore(i) "},"
    print "};"
  }
}

# markers.awk: turns the provider definition (python.d) into C.
#
#   awk -v part=h -f markers.awk python.d   the header: ids, semaphores, fire functions
#   awk -v part=c -f markers.awk python.d   the sites and the semaphores themselves
#   awk -v part=names -f markers.awk python.d   their names, for stap-python
#   awk -v part=table -f markers.awk python.d   for test/driver.c: how to fire each from an array
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

# The letter for a C type in struct kind.
function letter(type) {
  if (type ~ /\*/)
    return type == "const char *" ? "s" : "p"
  if (type == "int" || type == "long")
    return substr(type, 1, 1)
  print "markers.awk: no letter for the type " type ": test/driver.c must learn it" > "/dev/stderr"
  exit 1
}

function print_table(i, j, type, values, most) {
  for (i = 1; i <= n; i++) {
    count = split(parameters[i], parameter, /, */)
    most = count > most ? count : most
    values = ""
    for (j = 1; j <= count; j++) {
      type = parameter[j]
      sub(/ ?[a-z_]+$/, "", type)
      letters[i] = letters[i] letter(type)
      values = values (j > 1 ? ", " : "") "(" type ")v[" j - 1 "]"
      quoted[i] = quoted[i] (j > 1 ? ", " : "") "\"" parameter[j] "\""
    }
    print "static void fire_" names[i] "(const int64_t *v)"
    print "{\n    marker_" names[i] "(" values ");\n}\n"
  }
  print "enum { MAX_ARGUMENTS = " most " };"
  print "/* types: a letter for each argument, s: string, p: pointer, i: int, l: long. */"
  print "struct kind {\n    void (*fire)(const int64_t *);\n    const char *types;"
  print "    const char *parameters[MAX_ARGUMENTS];\n};"
  print "static const struct kind kinds[MARKERS] = {"
  for (i = 1; i <= n; i++)
    print "    {fire_" names[i] ", \"" letters[i] "\", {" quoted[i] "}},"
  print "};"
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
  } else if (part == "names") {
    print "static const char *const marker_names[] = {"
    for (i = 1; i <= n; i++)
      print "    \"" names[i] "\","
    print "};"
  } else if (part == "table") {
    print "#include \"markers.h\"\n"
    print_table()
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

# markers.awk: turns the provider definition (python.d) into C.
#
#   awk -v part=h -f markers.awk python.d   the header: ids, semaphores, fire functions
#   awk -v part=c -f markers.awk python.d   the sites and the semaphores themselves
#   awk -v part=names -f markers.awk python.d   their names, for stap-python
#   awk -v part=table -f markers.awk python.d   for test/driver.c: how to fire each from an array
#
# Every marker M gets its number MARKER_M, its semaphore python_M_semaphore (one for all sites of
# the name, in .probes, where tracers raise it) and a function marker_M(arguments...) with the nops
# that a tracer turns into breakpoints: two sites, of which the kernel's version says which one is
# passed.  STAP_PROBEn is in SystemTap's <sys/sdt.h>.
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

# A function for each marker that is no more than a site.
function print_sites(prefix, i) {
  for (i = 1; i <= n; i++) {
    print "static inline void " prefix "_" names[i] "(" parameters[i] ")"
    print "{\n    STAP_PROBE" counts[i] "(" provider ", " names[i] arguments[i] ");\n}\n"
  }
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
    print "\n/* Picks the sites for this kernel.  Before any marker fires. */"
    print "void markers_start(void);"
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
    print "#include <stdio.h>\n#include <sys/mman.h>\n#include <sys/utsname.h>\n"
    print "#ifndef MADV_WIPEONFORK /* glibc before 2.26; Linux 4.14 */\n#define MADV_WIPEONFORK 18\n#endif\n"
    for (i = 1; i <= n; i++)
      print "unsigned short " semaphore(i) " __attribute__((section(\".probes\"), used, visibility(\"hidden\")));"
    print "\n/* A nop of one byte is skipped by any kernel.  Linux 6.18 turns a breakpoint on one of five bytes"
    print " * into a call, at half the cost (7.2 was seen not to, both sites then costing the same); before that"
    print " * it runs out of line, which costs more (arch/x86/kernel/uprobes.c: can_optimize(), which wants it in"
    print " * one page; branch_setup_xol_ops())."
    print " * The call writes below the stack pointer: no red zone in this file. */"
    print_sites("narrow")
    print "#ifdef __x86_64__\n#undef _SDT_NOP\n#define _SDT_NOP .balign 8; 990: .nops 5\n#endif\n"
    print_sites("wide")
    print "/* A fork copies the calls, and not the page that they call (6.18: the child would end with SIGSEGV):"
    print " * so the word is in memory that is 0 again in any child with memory of its own. */"
    print "static const int never;"
    print "static const int *is_wide = &never;\n"
    print "void markers_start(void)\n{"
    print "    enum { PAGE = 4096 };"
    print "    struct utsname kernel;"
    print "    int major = 0, minor = 0;"
    print "    if (uname(&kernel) != 0 || sscanf(kernel.release, \"%d.%d\", &major, &minor) != 2 ||"
    print "        major < 6 || (major == 6 && minor < 18))"
    print "        return;"
    print "    int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
    print "    if (page == MAP_FAILED)\n        return;"
    print "    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {\n        munmap(page, PAGE);\n        return;\n    }"
    print "    *page = 1;\n    is_wide = page;\n}\n"
    for (i = 1; i <= n; i++) {
      print "__attribute__((noinline)) void marker_" names[i] "(" parameters[i] ")\n{"
      passed = substr(arguments[i], 3)
      print "    if (__builtin_expect(*is_wide, 0))\n        wide_" names[i] "(" passed ");"
      print "    else\n        narrow_" names[i] "(" passed ");\n}\n"
    }
    print "const struct marker_info marker_info[MARKERS] = {"
    for (i = 1; i <= n; i++)
      print "    {\"" names[i] "\", &" semaphore(i) "},"
    print "};"
  }
}

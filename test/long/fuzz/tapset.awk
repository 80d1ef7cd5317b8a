# tapset.awk: turns the embedded C of tapset files into a C file, which can be compiled with kernel.h in place
# of the kernel and SystemTap.
#
#   awk -f tapset.awk build/python_objects.stp build/python_stacks.stp
#
# A block %{ ... %} outside of a function stays as it is, without the kernel's headers; a function in C becomes
# one with the number of its parameters after its name, as names may be overloaded:
#
#   function f:string(a:long, b:string) %{ ... %}   static void f_2(char *, s64, const char *)
#   function f:long(a:long) %{ ... %}               static s64 f_1(s64)
#
# SPDX-License-Identifier: MIT

# The first line of a function: its head in C.
function open_function(line, name, type, list, count, i, part) {
  sub(/^function +/, "", line)
  match(line, /^[a-z_]+/)
  name = substr(line, 1, RLENGTH)
  line = substr(line, RLENGTH + 1)
  type = line ~ /^:string/ ? "string" : "long"
  sub(/^[^(]*\(/, "", line)
  sub(/\).*/, "", line)
  count = split(line, list, /, */)
  # Overloaded: by the number of parameters.
  name = name "_" count
  head = type == "string" ? "static void " name "(char *STAP_RETVALUE" : "static s64 " name "("
  for (i = 1; i <= count; i++) {
    split(list[i], part, ":")
    head = head (i > 1 || type == "string" ? ", " : "") (part[2] == "string" ? "const char *" : "s64 ") "STAP_ARG_" part[1]
  }
  head = head (count == 0 && type == "long" ? "void)" : ")")
  is_long = type == "long"
}

function begin_body() {
  print head "\n{"
  if (is_long)
    print "    s64 STAP_RETVALUE = 0;"
  print "#line " FNR " \"" FILENAME "\""
  inside = "function"
}

function end_body() {
  if (inside == "function")
    print (is_long ? "    return STAP_RETVALUE;\n" : "") "}"
  inside = ""
}

BEGIN {
  print "#include \"kernel.h\""
}

FNR == 1 { head = inside = "" }

/^function / && inside == "" {
  open_function($0)
  if (!sub(/.*%\{/, ""))
    next
  begin_body()
  last = sub(/%\}.*/, "")
  print
  if (last)
    end_body()
  head = ""
  next
}

/^%\{/ {
  if (head != "")
    begin_body()
  else {
    inside = "block"
    print "#line " FNR + 1 " \"" FILENAME "\""
  }
  head = ""
  next
}

/^%\}/ {
  end_body()
  next
}

/^\{/ { head = "" } # a function in SystemTap's language

inside != "" && /^#include </ {
  print ""
  next
}

inside != "" { print }

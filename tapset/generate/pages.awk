# pages.awk: writes the man pages from the tables that man.awk has filled in: awk -f man.awk -f pages.awk.
#
# SPDX-License-Identifier: MIT

BEGIN {
  # The variables that every public probe alias sets.
  general_count = split("name probestr", generals, " ")
  general["name"] = "the name of the probe point"
  general["probestr"] = "the event as text"
}

function replaced(text, from, to,  at, result) {
  while ((at = index(text, from)) > 0) {
    result = result substr(text, 1, at - 1) to
    text = substr(text, at + length(from))
  }
  return result text
}

# A line of roff that shows the text.
function roff(text) {
  text = replaced(text, "\\", "\\e")
  text = replaced(text, "-", "\\-")
  text = replaced(text, "'", "\\(aq")
  text = replaced(text, "`", "\\(ga")
  text = replaced(text, "^", "\\(ha")
  text = replaced(text, "~", "\\(ti")
  return (text ~ /^\./ ? "\\&" : "") text
}

function out(line) {
  print line >page
}

# A paragraph, each sentence on a line of its own.
function fill(text) {
  gsub(/[ \n]+/, " ", text)
  sub(/^ /, "", text)
  while (match(text, /[.?!]\)? [A-Z]/)) {
    out(roff(substr(text, 1, RSTART + RLENGTH - 3)))
    text = substr(text, RSTART + RLENGTH - 1)
  }
  out(roff(text))
}

function verbatim(text,  lines, n, i) {
  out(".RS 4")
  out(".nf")
  n = split(text, lines, /\n/)
  for (i = 1; i <= n; i++)
    out(roff(lines[i]))
  out(".fi")
  out(".RE")
}

function paragraphs(text,  lines, n, i, kind, last, held, begun) {
  n = split(text, lines, /\n/)
  for (i = 1; i <= n + 1; i++) {
    kind = i > n || lines[i] == "" ? "" : lines[i] ~ /^  / ? "verbatim" : "fill"
    if (kind != last) {
      if (last == "fill") {
        if (begun++)
          out(".PP")
        fill(held)
      } else if (last == "verbatim") {
        begun++
        verbatim(held)
      }
      held = ""
    }
    if (kind != "")
      held = held (held == "" ? "" : "\n") (kind == "verbatim" ? substr(lines[i], 3) : lines[i])
    last = kind
  }
}

# The title is the name without the prefix that all have: in a page's first line it stands twice, with the
# manual's name between, within 80 columns.
function begin_page(name,  heading) {
  page = dir "/" name ".3stap"
  heading = toupper(name)
  sub(/^(PROBE::PYTHON\.(FILTERED\.)?|FUNCTION::)/, "", heading)
  out(".\\\" Made by man.awk.")
  out(".\\\" SPDX-License-Identifier: MIT")
  out(".TH \"" heading "\" 3stap \"" date "\" \"systemtap\\-cpython " version "\" \"SystemTap Tapset\"")
  out(".nh")
  out(".ad l")
}

function page_name(id) {
  return replaced(id, ":", "::")
}

function variable(id, name) {
  out(".TP")
  out(".I " roff(name))
  fill((id, "@" name) in texts ? text_of(id, "@" name) : general[name])
}

function print_synopsis(id,  lines, n, i) {
  out(".SH SYNOPSIS")
  out(".nf")
  n = split(id in signature ? signature[id] : name_of(id), lines, "\n")
  for (i = 1; i <= n; i++)
    out(".B \"" roff(lines[i]) "\"")
  out(".fi")
}

function print_variables(id,  names, n, i) {
  out(".SH " (id ~ /^probe:/ ? "VALUES" : "ARGUMENTS"))
  n = split(variables[id], names, " ")
  for (i = 1; i <= n; i++)
    variable(id, names[i])
  for (i = 1; i <= general_count && id ~ /^probe:/; i++)
    if (!((id, "@" generals[i]) in texts))
      variable(id, generals[i])
  if (id ~ /^function:/ && !n)
    out("None")
}

function print_section(id, word) {
  if (!((id, word) in texts))
    return
  out(".SH " toupper(word))
  paragraphs(text_of(id, word))
}

function print_see_also(id,  i) {
  out(".SH SEE ALSO")
  for (i = 1; i <= public_count; i++)
    if (related(id, public[i]))
      out(".BR " roff(page_name(public[i])) " (3stap),")
  out(".BR tapset::python (3stap),")
  out(".BR stap (1)" (id ~ /^probe:/ ? "," : ""))
  if (id ~ /^probe:/)
    out(".BR stapprobes (3stap)")
}

function print_page(id) {
  begin_page(page_name(id))
  out(".SH NAME")
  out(roff(page_name(id)) " \\- " roff(summary[id]))
  print_synopsis(id)
  print_variables(id)
  print_section(id, "Description")
  print_section(id, "Context")
  if ((id, "Example") in texts) {
    out(".SH EXAMPLE")
    verbatim(texts[id, "Example"])
  }
  print_see_also(id)
  close(page)
}

# Whether two probe points are of the same event, or differ only in the last part of an event of several parts.
function related(a, b) {
  if (a == b || a !~ /^probe:/ || b !~ /^probe:/)
    return 0
  return event(a) == event(b) || (event(a) ~ /\./ && family(a) == family(b))
}

# The event of a probe point: function.entry of probe:python.shim.function.entry.
function event(id) {
  sub(/^probe:[^.]*\./, "", id)
  sub(/^(shim|native)\./, "", id)
  return id
}

function family(id) {
  sub(/\.[^.]*$/, "", id)
  return id
}

function group(heading, pattern, not,  i, begun) {
  for (i = 1; i <= public_count; i++)
    if (public[i] ~ pattern && public[i] !~ not) {
      if (!begun++)
        out(".SS " heading)
      out(".TP")
      out(".BR " roff(page_name(public[i])) " (3stap)")
      out(roff(summary[public[i]]))
    }
}

function print_overview(  line, status) {
  begin_page("tapset::python")
  while ((status = (getline line < overview)) > 0)
    if (line == ".\\\" LIST") {
      group("\"python.*: from whichever source there is\"", "^probe:", "^probe:python[.](shim|native)[.]")
      group("\"python.shim.*: from the shim only\"", "^probe:python[.]shim[.]", "^$")
      group("\"python.native.*: from CPython\\(aqs own markers only\"", "^probe:python[.]native[.]", "^$")
      group("Functions", "^function:", "^$")
    } else if (line !~ /^\.\\"/)
      out(line)
  if (status < 0)
    fail("pages.awk", "can't read overview=" overview)
  close(page)
}

END {
  if (part != "examples") {
    for (i = 1; i <= public_count; i++)
      print_page(public[i])
    print_overview()
  }
}

# man.awk: reads the doc comments of the tapset's probe aliases and functions, from which the man pages are made.
# Rejects (exit 1, "file:line: message") a comment that does not fit the definition after it.
#
#   LC_ALL=C awk -v dir=DIR -v version=0.1.0 -v date=2026-01-31 -v overview=overview.3stap \
#     -f man.awk -f pages.awk *.stp
#     writes DIR/probe::NAME.3stap, DIR/function::NAME.3stap and DIR/tapset::python.3stap; date may be ""
#   LC_ALL=C awk -v part=examples -v dir=DIR -f man.awk *.stp
#     writes DIR/NAME.stp for each example; prints NAME, the file and the command line, with tabs between
#
# A block is a comment in SystemTap's kernel-doc form, in printable ASCII.  Between a block and its alias or
# function, only other comments and private definitions may stand:
#
#   block     "/**", then lines that begin with " * " or are " *", then " */", each from column 1
#             title {blank line | variable} {blank line} [description] [context] [example]
#   title     "probe NAME - SUMMARY", "sfunction NAME - SUMMARY" or "function NAME - SUMMARY"
#   variable  "@NAME: TEXT", and further lines up to a blank line or the next "@"
#   description, context
#             "Description: TEXT", "Context: TEXT": paragraphs, with blank lines between; lines that
#             begin with two more spaces are shown unchanged
#   example   "Example:", then a whole script, each line indented by two spaces; it may begin with a line
#             "# stap ... SCRIPT ...", the command line that runs it
#
# A line that begins with a capitalised word and a colon must begin one of these three sections.  If the TEXT
# of a variable, a description or a context is "as in NAME", the text is taken from NAME's block.
#
# A probe alias or function is public, unless a part of its name begins with "_" or it is declared private.
# Each public one needs a block, and gets a page.  A function's block documents all its parameters; if the
# function is defined several times, with different parameters, one block at the first definition serves all.
# stap checks the variables that an alias sets (test/fast/man.bats).  A block need not have name and probestr,
# which every public alias sets.
#
# The macros of python_events.stp define several probe points: "@__python_event(NAME, ..." python.NAME,
# python.shim.NAME and python.native.NAME; "@__python_shim_event(NAME, ..." and "@__python_sum_event(NAME, ..."
# the first two; "@__python_filtered_event(NAME, ..." only python.filtered.NAME.  The block before a macro is
# python.NAME's (or python.filtered.NAME's); the other pages show the same variables.
#
# SPDX-License-Identifier: MIT

BEGIN {
  if (dir == "")
    fail("man.awk", "give -v dir=DIR")
}

function fail(at, message) {
  print at ": " message > "/dev/stderr"
  failed = 1
  exit 1
}

function here() {
  return FILENAME ":" FNR
}

FNR == 1 {
  end_of_file()
  file = FILENAME
}

!lexical && /^\/\*\*[ \t]*$/ {
  if (depth)
    fail(here(), "a block within a definition")
  if (pending != "")
    fail(where[pending], "no definition follows the block of " title(pending))
  block = ""
  section = "title"
  block_line = here()
  lexical = "block"
  next
}

lexical == "block" {
  if (/^ \*\/[ \t]*$/)
    end_block()
  else if ($0 != " *" && !/^ \* /)
    fail(here(), "a line in a block begins with \" * \"")
  else if (/[^ -~]/)
    fail(here(), "a character that is not printable ASCII")
  else
    block_text(substr($0, 4))
  next
}

!depth && /^@__python_((shim|sum|filtered)_)?event\(/ {
  define_event($0)
  next
}

{
  code(without_comments($0))
}

# ---- blocks

function title(id) {
  return substr(id, 1, index(id, ":") - 1) " " name_of(id)
}

function name_of(id) {
  return substr(id, index(id, ":") + 1)
}

function is_private(id) {
  return name_of(id) ~ /(^|\.)_/ || (id in declared_private)
}

# Reads a line of a block.  section: the section to which the line may belong; "" between two sections.
function block_text(line,  word) {
  sub(/ +$/, "", line)
  if (section == "title")
    begin_block(line)
  else if (section == "Example" && (line == "" || line ~ /^  /))
    add(substr(line, 3))
  else if (line == "")
    if (section ~ /^@/)
      section = ""
    else
      add("")
  else if (line ~ /^@/)
    begin_variable(line)
  else if (match(line, /^[A-Z][a-z]*:/)) {
    word = substr(line, 1, RLENGTH - 1)
    if (word != "Description" && word != "Context" && word != "Example")
      fail(here(), "no section is called \"" word "\"; there are Description, Context and Example")
    if ((block, word) in texts)
      fail(here(), "a second " word)
    if (order(word) < order(section))
      fail(here(), word " stands after " section)
    if (word == "Example" && line != "Example:")
      fail(here(), "an example begins in the line after \"Example:\"")
    begin_section(word, substr(line, RLENGTH + 1))
  } else if (section == "" || section == "Example")
    fail(here(), section == "" ? "text that belongs to no variable and no section" : "a line of an example begins with two spaces")
  else
    add(line)
}

function order(word) {
  return word == "Example" ? 3 : word == "Context" ? 2 : word == "Description"
}

function begin_block(line,  kind, name) {
  if (line !~ /^(probe|s?function)( |$)/)
    fail(here(), "a block begins with \"probe NAME - SUMMARY\", \"sfunction ...\" or \"function ...\"")
  kind = line ~ /^probe/ ? "probe" : "function"
  sub(/^[a-z]+ */, "", line)
  name = line
  sub(/ .*/, "", name)
  if (name !~ /^[A-Za-z_][A-Za-z0-9_.]*$/)
    fail(here(), "a block without a name")
  line = substr(line, length(name) + 1)
  if (!sub(/^ - +/, "", line) || line == "")
    fail(here(), "no summary: \"" kind " " name " - SUMMARY\"")
  block = kind ":" name
  if (block in where)
    fail(here(), "a second block of " title(block) "; the first is at " where[block])
  where[block] = here()
  summary[block] = line
  variables[block] = ""
  section = ""
}

function begin_variable(line,  name) {
  if (!match(line, /^@[A-Za-z_][A-Za-z0-9_]*:/))
    fail(here(), "a variable is documented as \"@NAME: TEXT\"")
  name = substr(line, 2, RLENGTH - 2)
  if (order(section))
    fail(here(), "@" name " stands after " section)
  if ((block, "@" name) in texts)
    fail(here(), "@" name " is documented twice")
  variables[block] = variables[block] " " name
  begin_section("@" name, substr(line, RLENGTH + 1))
}

function begin_section(name, text) {
  section = name
  sub(/^ +/, "", text)
  texts[block, section] = text
  text_where[block, section] = here()
}

function add(line) {
  if (section != "")
    texts[block, section] = texts[block, section] (texts[block, section] == "" ? "" : "\n") line
}

function end_block(  names, n, i) {
  if (section == "title")
    fail(block_line, "a block without a name")
  n = split(variables[block], names, " ")
  for (i = 1; i <= n; i++)
    end_section("@" names[i])
  end_section("Description")
  end_section("Context")
  end_section("Example")
  if (command_line(block) !~ /^$|SCRIPT/)
    fail(text_where[block, "Example"], "the command line of an example names SCRIPT")
  pending = block
  lexical = ""
}

function end_section(name,  text) {
  if (!((block, name) in texts))
    return
  text = texts[block, name]
  sub(/\n+$/, "", text)
  if (text == "")
    fail(text_where[block, name], "an empty " (name ~ /^@/ ? "description of " name : tolower(name)))
  texts[block, name] = text
}

# ---- code

# The line without comments; strings become "", and C code from %{ to %} becomes {}.
function without_comments(line,  result, mark) {
  for (;;) {
    if (lexical != "") {
      mark = lexical == "comment" ? "*/" : "%}"
      if (!index(line, mark))
        return result
      line = substr(line, index(line, mark) + 2)
      result = result (lexical == "comment" ? " " : "}")
      lexical = ""
    }
    if (!match(line, /"|\/\/|#|\/\*|%[{]/))
      return result line
    mark = substr(line, RSTART, RLENGTH)
    if (mark == "#" && substr(line, RSTART - 1, 1) ~ /[$@]/) {
      result = result substr(line, 1, RSTART)
      line = substr(line, RSTART + 1)
      continue
    }
    result = result substr(line, 1, RSTART - 1)
    line = substr(line, RSTART + RLENGTH)
    if (mark == "//" || mark == "#")
      return result
    if (mark == "\"") {
      if (!match(line, /^([^"\\]|\\.)*"/))
        fail(here(), "a string that doesn't end in its line")
      line = substr(line, RLENGTH + 1)
      result = result "\"\""
    } else {
      lexical = mark == "/*" ? "comment" : "C"
      result = result (lexical == "C" ? "{" : "")
    }
  }
}

# Collects definitions, each from its first word to its closing brace.
function code(line,  brace) {
  if (!depth && line ~ /^[ \t]*(private|probe|function|global)[ \t]/) {
    definition = ""
    definition_where = here()
  }
  while (match(line, /[{}]/)) {
    brace = substr(line, RSTART, 1)
    definition = definition substr(line, 1, RSTART)
    line = substr(line, RSTART + 1)
    depth += brace == "{" ? 1 : -1
    if (depth < 0)
      fail(here(), "a brace too many")
    if (brace == "}" && !depth) {
      define(definition)
      definition = ""
    }
  }
  definition = definition line " "
}

function define(text,  id, head, pieces) {
  gsub(/[ \t]+/, " ", text)
  sub(/^ /, "", text)
  head = substr(text, 1, index(text, "{") - 1)
  if (head !~ /(^| )(probe|function) /)
    return
  if (head ~ /(^|[?] )probe (never|begin\(-?[0-9]+\)|__python[a-z_.]* \?) ?$/) # a handler, which defines no name
    return
  if (head ~ /^probe [A-Za-z_][A-Za-z0-9_.]* ?\+?= ?[^= ][^=]*$/) {
    split(head, pieces, / ?\+?= ?/)
    id = "probe:" substr(pieces[1], 7)
  } else if (head ~ /^(private )?function [A-Za-z_][A-Za-z0-9_]* ?(: ?[a-z]+ ?)?\([^()]*\) ?$/) {
    id = head
    sub(/^(private )?function /, "", id)
    sub(/ ?[:(].*/, "", id)
    id = "function:" id
    if (head ~ /^private /)
      declared_private[id] = 1
    sub(/^(private )?function /, "", head)
    gsub(/ /, "", head)
    gsub(/,/, ", ", head)
    take(id, head)
    if (id in signature)
      head = signature[id] "\n" head
    signature[id] = head
  } else
    fail(definition_where, "neither \"probe NAME = ...\" nor \"function NAME(...)\"")
  add_definition(id)
}

function add_definition(id) {
  if (pending != "" && (id == pending || !is_private(id))) {
    if (id != pending)
      fail(where[pending], "the block is of " title(pending) ", but " title(id) " follows")
    pending = ""
  }
  definitions[++definition_count] = id
  definition_at[definition_count] = definition_where
}

# Adds the probe points that an event's macro defines; only the first has a block.
function define_event(line,  name) {
  definition_where = here()
  if (!match(line, /\([A-Za-z0-9_.]+,/))
    fail(here(), "the macro of an event without its name")
  name = substr(line, RSTART + 1, RLENGTH - 2)
  if (line ~ /^@__python_filtered/) {
    add_definition("probe:python.filtered." name)
    return
  }
  add_definition("probe:python." name)
  add_source(name, "shim", "from the shim only")
  if (line ~ /^@__python_event/)
    add_source(name, "native", "from CPython's own marker only")
}

# Adds python.SOURCE.NAME, with a block that has the summary and the variables of python.NAME.
function add_source(name, source, what,  all, id, names, n, i) {
  all = "probe:python." name
  id = "probe:python." source "." name
  add_definition(id)
  if (!(all in where))
    return
  where[id] = where[all]
  summary[id] = summary[all] ": " what
  variables[id] = variables[all]
  n = split(variables[all], names, " ")
  for (i = 1; i <= n; i++) {
    texts[id, "@" names[i]] = texts[all, "@" names[i]]
    text_where[id, "@" names[i]] = text_where[all, "@" names[i]]
  }
}

# Adds the parameters' names of a signature to takes[id], which has the form " a b ".
function take(id, head,  n, i, parameters) {
  if (!(id in takes))
    takes[id] = " "
  sub(/^[^(]*\(/, "", head)
  sub(/\)$/, "", head)
  n = split(head, parameters, /, /)
  for (i = 1; i <= n; i++) {
    sub(/:.*/, "", parameters[i])
    if (!index(takes[id], " " parameters[i] " "))
      takes[id] = takes[id] parameters[i] " "
  }
}

function end_of_file() {
  if (lexical != "" || depth)
    fail(file, "ends within a " (lexical == "block" || lexical == "comment" ? "comment" : "definition"))
  if (pending != "")
    fail(where[pending], "no definition follows the block of " title(pending))
  definition = ""
}

# ---- blocks against code

function check(i,  id, names, n, j) {
  id = definitions[i]
  if (!(id in where)) {
    if (!is_private(id))
      fail(definition_at[i], title(id) " has no block")
    return
  }
  if (id in takes) {
    n = split(variables[id], names, " ")
    for (j = 1; j <= n; j++)
      if (!index(takes[id], " " names[j] " "))
        fail(text_where[id, "@" names[j]], title(id) " doesn't take " names[j])
    n = split(takes[id], names, " ")
    for (j = 1; j <= n; j++)
      if (!((id, "@" names[j]) in texts))
        fail(where[id], "@" names[j] " of " title(id) " is not documented")
  }
  n = split(variables[id] " Description Context", names, " ")
  for (j = 1; j <= n; j++)
    text_of(id, (j <= n - 2 ? "@" : "") names[j])
}

# The text of a section; for "as in NAME", the text of this section in NAME's block.
function text_of(id, name,  text, there) {
  text = (id, name) in texts ? texts[id, name] : ""
  if (text !~ /^as in [A-Za-z0-9_.]+$/)
    return text
  there = (id ~ /^probe:/ ? "probe:" : "function:") substr(text, 7)
  if (!((there, name) in texts))
    fail(text_where[id, name], title(there) " documents no " name)
  if (texts[there, name] ~ /^as in [A-Za-z0-9_.]+$/)
    fail(text_where[id, name], title(there) " refers to another block itself")
  return texts[there, name]
}

# ---- examples

# The command line in the block's example, or "".
function command_line(id,  lines) {
  if (!((id, "Example") in texts) || texts[id, "Example"] !~ /^# stap /)
    return ""
  split(texts[id, "Example"], lines, "\n")
  return substr(lines[1], 3)
}

function print_example(id) {
  page = dir "/" name_of(id) ".stp"
  print texts[id, "Example"] >page
  close(page)
  print name_of(id) "\t" page "\t" command_line(id)
}

# Checks all definitions, and sorts the public ones into public[1] to public[public_count].
function sort_public(  i, j, id) {
  for (i = 1; i <= definition_count; i++) {
    check(i)
    id = definitions[i]
    if (is_private(id) || id in listed)
      continue
    listed[id] = 1
    for (j = ++public_count; j > 1 && public[j - 1] > id; j--)
      public[j] = public[j - 1]
    public[j] = id
  }
  if (!public_count)
    fail("man.awk", "no probe and no function")
}

END {
  if (failed)
    exit 1
  end_of_file()
  sort_public()
  if (part == "examples")
    for (i = 1; i <= public_count; i++)
      if ((public[i], "Example") in texts)
        print_example(public[i])
}

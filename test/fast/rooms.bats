# How the project is divided, how long its parts may be, and plain English.  Each check names the offenders,
# one a line.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  cd "$top" || return
}

# Fails if there is anything on stdin, and prints it.
nothing() {
  refute grep .
}

# ---------------------------------------------------------------- who uses whom

# What the files of probes/ and probes/stap-python/ use of each other, a line each: "USER USED WHY".  A file
# is arm.c with arm.h; what is generated counts as a file of probes/ too.
uses() {
  local generated=() header
  while read -r header; do
    [ -e "probes/$header" ] || [ -e "probes/stap-python/$header" ] || generated+=("build/probes/$header")
  done < <(sed -n 's/^#include "\(.*\)"/\1/p' probes/*.[ch] probes/stap-python/*.[ch] | sort -u)
  awk -F'"' '
    function stem(file) { sub(/^(build\/)?probes\//, "", file); sub(/\.[ch]$/, "", file); return file }
    FNR == 1 { folder = stem(FILENAME); sub(/[^\/]*$/, "", folder); known[stem(FILENAME)] }
    /^#include "/ { user[++n] = stem(FILENAME); beside[n] = stem(folder $2); header[n] = $2; in_file[n] = FILENAME }
    END {
      for (i = 1; i <= n; i++) {
        used = beside[i] in known ? beside[i] : stem(header[i])
        if (used != user[i]) print user[i], used, in_file[i] " includes " header[i]
      }
    }' probes/*.[ch] probes/stap-python/*.[ch] "${generated[@]}"
  used_symbols probes/*.c "${generated[@]/%.h/.c}"
  used_symbols probes/stap-python/*.c
}

# The same of the objects of these sources that are there, by nm.
used_symbols() {
  local source objects=()
  for source; do
    source=build/${source#build/}
    [ ! -e "${source%.c}.o" ] || objects+=("${source%.c}.o")
  done
  nm -A -P -g "${objects[@]}" | awk '
    { stem = $1; sub(/^build\/probes\//, "", stem); sub(/\.o:$/, "", stem) }
    $3 == "U" { user[++n] = stem; wanted[n] = $2 }
    $3 != "U" { definer[$2] = stem }
    END {
      for (i = 1; i <= n; i++)
        if (wanted[i] in definer && definer[wanted[i]] != user[i])
          print user[i], definer[wanted[i]], user[i] ".o needs " wanted[i]
    }'
}

# The circles in such lines, a line each, with why.
circles() {
  awk '
    function visit(file, i, used) {
      open[file] = ++depth
      path[depth] = file
      for (i = 1; i <= count[file]; i++) {
        used = uses[file, i]
        if (used in open) report(used, file)
        else if (!(used in done)) visit(used)
      }
      done[file]
      delete open[file]
      depth--
    }
    function report(first, last, i, text) {
      for (i = open[first]; i < depth; i++) text = text path[i] " -> " path[i + 1] " (" why[path[i], path[i + 1]] "), "
      print "circle: " text last " -> " first " (" why[last, first] ")"
    }
    ($1, $2) in why { next }
    {
      uses[$1, ++count[$1]] = $2
      files[++n] = $1
      why[$1, $2] = $0
      sub(/^[^ ]+ [^ ]+ /, "", why[$1, $2])
    }
    END { for (i = 1; i <= n; i++) if (!(files[i] in done)) visit(files[i]) }'
}

@test "the files of the shim and of stap-python use each other in no circle" {
  need nm
  local source
  for source in probes/*.c probes/stap-python/*.c; do
    [ -e "build/${source%.c}.o" ] || { echo "there is no build/${source%.c}.o: make" && return 1; }
  done
  uses >"$BATS_TEST_TMPDIR/uses"
  # by both ways
  grep -q ' includes ' "$BATS_TEST_TMPDIR/uses"
  grep -q '\.o needs ' "$BATS_TEST_TMPDIR/uses"
  circles <"$BATS_TEST_TMPDIR/uses" | nothing
}

# ---------------------------------------------------------------- CPython's layouts

# The statements of C files, without comments: "FILE:LINE: STATEMENT" with the line in which it begins.
statements() {
  awk '
    FNR == 1 { statement = ""; comment = 0 }
    {
      line = $0
      if (comment && !sub(/^.*\*\//, "", line)) next
      comment = 0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
      comment = sub(/\/\*.*/, "", line)
      gsub(/^ +| +$/, "", line)
    }
    line == "" || line ~ /^#/ { next }
    {
      if (statement == "") start = FNR
      statement = statement (statement == "" ? "" : " ") line
    }
    line ~ /[;{}]$/ { print FILENAME ":" start ": " statement; statement = "" }' "$@"
}

# The only file that knows CPython's memory.
layout=probes/cpython_layout.h

@test "CPython's structs and offsets are in probes/cpython_layout.h alone" {
  [ -e "$layout" ] || { echo "there is no $layout" && return 1; }
  local others patterns
  mapfile -t others < <(printf '%s\n' probes/*.[ch] | grep -vxF "$layout")
  statements "${others[@]}" >"$BATS_TEST_TMPDIR/statements"
  # (char *)state + 24, (void **)module + 2, ((void **)own)[2]
  patterns=(-e '\([a-zA-Z_ ]+\*+\) ?\(?[a-z_>.()-]+ [+-] [1-9]|\*\*\)[a-z_>.-]+\)\[[1-9]')
  # py.minor == 7 ? 16 : 24
  patterns+=(-e 'minor [=<>!]+ [0-9]+ \? \(?-?[1-9]')
  # page.frame_back = 24, offset = 24
  patterns+=(-e '(\bpage\.[a-z_]+|[a-z_]*offset) = ([^;]*[^<>=!;][=?:+] )?\(?[1-9]')
  # a struct of a version of CPython
  patterns+=(-e ' (typedef )?struct [a-z_]+_3[0-9]+ \{')
  # a header of CPython's that only its own sources include
  {
    grep -E "${patterns[@]}" "$BATS_TEST_TMPDIR/statements" || true
    grep -nE 'Include/internal/|pycore_[a-z]+\.h' "${others[@]}" || true
  } | nothing
}

@test "the supported versions of CPython are named in probes/cpython_layout.h alone, and the documents have the same" {
  [ -e "$layout" ] || { echo "there is no $layout" && return 1; }
  local oldest newest document
  oldest=$(grep -oE 'CPYTHON_OLDEST_MINOR[ =]+[0-9]+' "$layout" | grep -oE '[0-9]+$')
  newest=$(grep -oE 'CPYTHON_NEWEST_MINOR[ =]+[0-9]+' "$layout" | grep -oE '[0-9]+$')
  echo "from 3.$oldest to 3.$newest"
  [ "$oldest" -ge 6 ]
  [ "$newest" -ge "$oldest" ]
  statements probes/*.[ch] probes/stap-python/*.[ch] | grep -v "^$layout:" >"$BATS_TEST_TMPDIR/statements"
  # minor < 6, minor >= 6, minor > 15, minor <= 15, minor < 16; LAST_MINOR = 15
  refute grep -E -e "minor (<|>=) $oldest\b|minor (>|<=) $newest\b|minor (<|>=) $((newest + 1))\b" \
    -e '\b[A-Z_]*(OLDEST|NEWEST|FIRST_MINOR|LAST_MINOR)[A-Z_]* = [0-9]' "$BATS_TEST_TMPDIR/statements"
  for document in README.md {packaging,probes}/README.md packaging/{debian/control,rpm/systemtap-cpython.spec} tapset/overview.3stap \
    probes/stap-python/stap-python.8; do
    tr -s ' \n' ' ' <"$document" | grep -qE "3\.$oldest to 3\.$newest\b" || echo "$document lacks \"3.$oldest to 3.$newest\""
  done | nothing
}

@test "the packages are for the architectures that the checks run on, and the documents have the same" {
  local document
  {
    echo amd64
    test/long/architectures/run --list | sed '1,/^package$/d'
  } | sort >"$BATS_TEST_TMPDIR/architectures"
  sed -n 's/^Architecture: //p' packaging/debian/control | grep -vx all | sort -u >"$BATS_TEST_TMPDIR/packages"
  diff "$BATS_TEST_TMPDIR/architectures" <(tr ' ' '\n' <"$BATS_TEST_TMPDIR/packages" | sort)
  # what RPM calls them: %{ix86} is a list of its own
  sed -e s/amd64/x86_64/ -e s/arm64/aarch64/ -e s/armhf/armv7hl/ -e 's/i386/%{ix86}/' -e s/ppc64el/ppc64le/ \
    "$BATS_TEST_TMPDIR/architectures" | sort |
    diff - <(sed -n 's/^ExclusiveArch: *//p' packaging/rpm/systemtap-cpython.spec | tr ' ' '\n' | sort)
  for document in packaging/README.md test/README.md; do
    sed -n '/^### Architectures/,/^##* [^A]/p' "$document" | grep '^|' | cut -d'|' -f2 | grep -oE '[a-z][a-z0-9_-]+' |
      sed -e s/x86-64/amd64/ -e s/aarch64/arm64/ | grep -vx -e architecture -e ebian | sort -u | diff "$BATS_TEST_TMPDIR/architectures" -
  done
}

# ---------------------------------------------------------------- lengths

# The files that match PATTERN and have more lines than MOST.
# usage: longer_files MOST PATTERN
longer_files() {
  project_files | grep -E "$2" | xargs wc -l | awk -v most="$1" '$2 != "total" && $1 > most { print $2 ": " $1 " lines" }'
}

# The functions of more than 60 lines, from their first line to their closing brace, in files of C, shell,
# SystemTap or awk, unless their head comment says "long because".
longer_functions() {
  awk '
    FNR == 1 { name = head = heredoc = "" }
    # shell: the text of a here-document is not code
    heredoc != "" { if ($0 == heredoc) heredoc = ""; next }
    FILENAME !~ /\.([ch]|stp|stpm|in|awk)$/ && match($0, /<<-?["'\'']?[A-Z_]+/) {
      heredoc = substr($0, RSTART, RLENGTH)
      gsub(/[^A-Z_]/, "", heredoc)
    }
    name == "" && /^$/ { head = ""; first = 0; next }
    name == "" && /^(\/\*| \*|\/\/|#)/ { head = head $0; first = 0; next }
    name == "" && !first { first = FNR; signature = $0 }
    name == "" && FILENAME ~ /\.[ch]$/ && /^\{/ { name = signature }
    name == "" && FILENAME ~ /\.(stp|stpm|in|awk)$/ && /^(private )?function / { name = $0; first = FNR }
    name == "" && FILENAME !~ /\.([ch]|stp|stpm|in|awk)$/ && /^[a-z_A-Z0-9]+\(\) *[{(]/ { name = $0; first = FNR }
    name != "" && (/^(}|%}|\))/ || (FNR == first && /[^{%]}$/)) {
      if (FNR - first + 1 > 60 && head !~ /long because/)
        print FILENAME ":" first ": " FNR - first + 1 " lines: " name
      name = head = ""
      first = 0
    }' "$@"
}

@test "C files have 500 lines at most, suites 600" {
  {
    longer_files 500 '\.([ch]|stp\.in)$'
    longer_files 600 '\.bats$'
  } | nothing
}

@test "functions have 60 lines at most, or say in their head comment that they are long because" {
  local sources
  mapfile -t sources < <(
    project_files | grep -E '\.([ch]|stp|stpm|stp\.in|awk)$'
    shell_files
  )
  longer_functions "${sources[@]}" | nothing
}

# ---------------------------------------------------------------- plain English

# What not to write, a Perl regular expression a line, in lower case; behind the tab, what to write instead.
tics() {
  cat <<'LIST'
\b(no|some)body\b	say who: no tracer, another program; or "if"
\b(is|are|was|be|been|being) told of\b	reports, names, knows
\b(mend(s|ed|ing)?)\b	fix, correct
\btracers? (that |which )?(come|comes|came|go|goes|leaves?)\b	attaches, detaches
\b(tracers?|it|they|which|that) (comes and goes|come and go|came and went|comes or goes|come or go)\b	attaches and detaches
\bhas it(?=[.,;:)]|$)	say what it has
(?<!there )\b(is|are) no (?!longer\b|more\b|other\b|such\b|less\b|better\b|different\b|doubt\b)[a-z]+\b	is not a
LIST
}

# The paragraphs of documents, a line each: "FILE:LINE: TEXT".  In headers and in sources of the tapset, with
# $1, those of comments that begin so.
paragraphs() {
  awk -v begin="$1" '
    function flush() { if (text != "") print file ":" start ": " text; text = "" }
    FNR == 1 { flush(); file = FILENAME; inside = begin == "" }
    begin != "" && index($0, begin) { flush(); inside = 1 }
    begin != "" && !inside { next }
    {
      line = $0
      last = begin != "" && sub(/\*\/.*/, "", line)
      if (begin != "" && !sub(/^.*\/\*\*?/, "", line)) sub(/^ *\*/, "", line)
      sub(/^ +/, "", line)
    }
    line ~ /^ *$/ || line ~ /^([-*|#.@]|[0-9]+\. )/ { flush() }
    line !~ /^ *$/ { if (text == "") start = FNR; text = text (text == "" ? "" : " ") line }
    last { flush(); inside = 0 }
    END { flush() }' "${@:2}"
}

# The texts between double quotes, adjacent ones of C as one.  With $1, only those behind that pattern.
strings() {
  awk -v behind="$1" '
    function flush() { if (text != "") print file ":" start ": " text; text = "" }
    FNR == 1 { flush(); file = FILENAME }
    {
      line = $0
      if (!(text != "" && line ~ /^ *"/)) flush()
      if (behind != "" && !match(line, behind)) next
      if (behind != "") line = substr(line, RSTART)
      while (match(line, /"([^"\\]|\\.)*"/)) {
        if (text == "") start = FNR
        text = text substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        if (line !~ /^ *$/) flush()
      }
    }
    END { flush() }' "${@:2}"
}

# The comments at the heads of programs, which their --help prints.
heads() {
  awk '
    /SPDX/ || !/^#/ { if (text != "") print FILENAME ":" start ": " text; text = ""; nextfile }
    FNR > 1 { sub(/^# ?/, ""); if (text == "") start = FNR; text = text " " $0 }' "$@"
}

# All that a user reads.
prose() {
  local all messages='(^|[ \t({;|&])(echo|printf|die|say|fail|skip|need_time|skipped|wrong) '
  mapfile -t all < <(project_files)
  of() { printf '%s\n' "${all[@]}" | grep -E "$1"; }
  # shellcheck disable=SC2046 # no file has a space in its name
  {
    paragraphs '' $(of '\.md$|\.8$|\.3stap$|\.meta$|_example\.txt$|^packaging/debian/control$|\.spec$')
    paragraphs '/*' $(of '\.h$|^scripts/.*\.(stp|bt|d)$')
    paragraphs '/**' $(of '^tapset/.*\.stp(\.in)?$')
    strings '' $(of '^(probes|test)/.*\.[ch]$|\.(stp|stpm|stp\.in)$' | grep -v '^test/long/fuzz/\|^test/workloads/')
    strings "$messages" $(shell_files) Makefile
    strings '(description|help)=' $(grep -l '^import argparse' $(of '^test/'))
    heads $(of '^test/(bench|long/[a-z]*)/run$|^test/lib/(run|setup|nightly)$|^test/(demo|installcheck|vm/stap)$|^packaging/')
  }
}

@test "what users read is plain English" {
  local pattern better file line text
  prose >"$BATS_TEST_TMPDIR/prose"
  # of each kind
  for file in README.md probes/stap-python/stap-python.8 probes/arm.h tapset/python_events.stp scripts/pycalls.stp test/lib/setup \
    scripts/pycalls.meta scripts/pycalls_example.txt scripts/bpftrace/pytop.bt packaging/debian/control test/bench/run; do
    grep -q "^$file:" "$BATS_TEST_TMPDIR/prose" || { echo "nothing of $file is looked at" && return 1; }
  done
  while IFS=$'\t' read -r pattern better; do
    while IFS=: read -r file line text; do
      echo "$file:$line: $(grep -aoiP ".{0,40}($pattern).{0,20}" <<<"$text" | head -n 1 | sed 's/^ *//'): $better"
    done < <(grep -aiP "$pattern" "$BATS_TEST_TMPDIR/prose" || true)
  done < <(tics) | sort -u | nothing
}

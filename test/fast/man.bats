# The man pages of the tapset are complete and well-formed, and man.awk refuses comments that contradict the code.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  pages=$BATS_TEST_TMPDIR/man
}

# Makes the pages of this tree in $pages or $1/man, with a date, because mandoc warns of a page without one.
make_pages() {
  SOURCE_DATE_EPOCH=1700000000 make -s -C "$top" BUILD="${1:-$BATS_TEST_TMPDIR}" man
}

# The commands of the installed awks, one a line.
awks() {
  local awk
  for awk in mawk gawk 'busybox awk'; do
    ! type -P "${awk% *}" >/dev/null || echo "$awk"
  done
}

# The public probe aliases and functions of the tapset, as the names of their pages.
public() {
  sed -nE 's/^probe ([a-zA-Z0-9_.]+) *=.*/probe::\1/p; s/^function ([a-zA-Z0-9_]+).*/function::\1/p
    s/^@__python_event\(([a-z.]+),.*/probe::python.\1\nprobe::python.shim.\1\nprobe::python.native.\1/p
    s/^@__python_filtered_event\(([a-z.]+),.*/probe::python.filtered.\1/p
    s/^@__python_(shim|sum)_event\(([a-z.]+),.*/probe::python.\2\nprobe::python.shim.\2/p' "${tapset_sources[@]}" |
    grep -vE '(::|\.)_' | sort -u
}

# The sections of a page, in order, on one line.
sections() {
  sed -n 's/^\.SH //p' "$1" | paste -sd ,
}

# A tapset with two probes and two functions, in which each form of the grammar occurs.  It is one text, because tests
# contain its line numbers.
fixture() {
  cat <<'STP'
// probe python.x = not code
global __seen

/**
 * probe python.a.start - One begins
 *
 * @file: the first line. Its path, of
 * more than one line
 * @n: from -1 to 'many' \ ~all
 *
 * Description: One paragraph. Of two sentences.
 *
 *   verbatim  text
 *
 * .A third one.
 *
 * Context: The thread.
 *
 * Example:
 *   # stap SCRIPT -c 'true'
 *   probe python.a.start {
 *
 *       println("}\n", n)
 *   }
 */
probe python.a.start = python.shim.a.start ?, python._private.a !
{
    name = "python.a.start"
}

/**
 * probe python.shim.a.start - The same
 *
 * @file: as in python.a.start
 * @n: the other
 */
probe python.shim.a.start = process("/x{y").mark("a"), process("/z").mark("a")
{
    name = "python.shim.a.start" # /* { no comment "
    file = user_string2($arg1, "\"=") /* other = 1
      { */
%( $# > 0 %?
    n = $arg2
%:
    n = n == 1 ? 1 : _n
%)
    _n = 2
    __seen[n] = 1
    probestr = file
}

probe python._private.a = never
{
    _unseen = 1
}

%{
#include "x" /* } */
%}

/**
 * sfunction python_f - What it gives
 *
 * @a: the number
 * @b: the text
 *
 * Description: as in python_g
 */
function python_f:long(a:long, b:string)
%{ /* pure */
    a = b[0] == '}';
/**
 * probe python.z - no block
 */
%}

/**
 * function python_g - What it takes
 *
 * Description: Nothing.
 */
function python_g () { x = 1 }

private function hidden(c) { return c }
STP
}

# usage: generate AWK [-v ...] FILE...
generate() {
  mkdir -p "$pages"
  # shellcheck disable=SC2086 # "busybox awk" is two words
  command $1 -v dir="$pages" -v version=9.9 -v date=2026-01-31 -v overview="$top/tapset/overview.3stap" \
    -f "$top"/tapset/generate/man.awk -f "$top"/tapset/generate/pages.awk "${@:2}"
}

# Checks that every awk refuses the fixture, changed by a sed script, with this message, and makes no page.
# usage: refused SED LINE-AND-MESSAGE
refused() {
  local awk file=$BATS_TEST_TMPDIR/bad.stp
  fixture | sed -E "$1" >"$file"
  refute cmp -s <(fixture) "$file"
  while read -r awk; do
    rm -rf "$pages"
    run generate "$awk" "$file"
    echo "$awk, $1: $output"
    [ "$status" = 1 ]
    [ "$output" = "$file:$2" ]
    [ -z "$(ls "$pages")" ]
  done < <(awks)
}

@test "a page is made of a block as it should be, with every awk" {
  local awk
  fixture >"$BATS_TEST_TMPDIR/good.stp"
  while read -r awk; do
    echo "$awk"
    rm -rf "$pages"
    generate "$awk" "$BATS_TEST_TMPDIR/good.stp"
    diff <(ls "$pages") - <<'EXPECTED'
function::python_f.3stap
function::python_g.3stap
probe::python.a.start.3stap
probe::python.shim.a.start.3stap
tapset::python.3stap
EXPECTED
    diff "$pages/probe::python.a.start.3stap" - <<'EXPECTED'
.\" Made by man.awk.
.\" SPDX-License-Identifier: MIT
.TH "A.START" 3stap "2026-01-31" "systemtap\-cpython 9.9" "SystemTap Tapset"
.nh
.ad l
.SH NAME
probe::python.a.start \- One begins
.SH SYNOPSIS
.nf
.B "python.a.start"
.fi
.SH VALUES
.TP
.I file
the first line.
Its path, of more than one line
.TP
.I n
from \-1 to \(aqmany\(aq \e \(tiall
.TP
.I name
the name of the probe point
.TP
.I probestr
the event as text
.SH DESCRIPTION
One paragraph.
Of two sentences.
.RS 4
.nf
verbatim  text
.fi
.RE
.PP
\&.A third one.
.SH CONTEXT
The thread.
.SH EXAMPLE
.RS 4
.nf
# stap SCRIPT \-c \(aqtrue\(aq
probe python.a.start {

    println("}\en", n)
}
.fi
.RE
.SH SEE ALSO
.BR probe::python.shim.a.start (3stap),
.BR tapset::python (3stap),
.BR stap (1),
.BR stapprobes (3stap)
EXPECTED
    grep -A 1 -x '.I file' "$pages/probe::python.shim.a.start.3stap" | grep -x 'the first line.'
    diff <(sed '1,/^.SH SYNOPSIS/d' "$pages/function::python_f.3stap") - <<'EXPECTED'
.nf
.B "python_f:long(a:long, b:string)"
.fi
.SH ARGUMENTS
.TP
.I a
the number
.TP
.I b
the text
.SH DESCRIPTION
Nothing.
.SH SEE ALSO
.BR tapset::python (3stap),
.BR stap (1)
EXPECTED
  done < <(awks)
}

@test "the pages are the same whichever awk and folder they are made with" {
  [ "$(awks | wc -l)" -ge 2 ] || skip "needs two of mawk, gawk and busybox"
  local awk first=$BATS_TEST_TMPDIR/first/man
  make_pages "$BATS_TEST_TMPDIR/first"
  make_pages
  diff -r "$first" "$pages"
  grep -q '^\.TH .* "2023-11-14" "systemtap.*'"$(cat "$top/VERSION")" "$first/tapset::python.3stap"
  rm -r "$pages"
  generate awk "${tapset_sources[@]}"
  rm -r "$first"
  mv "$pages" "$first"
  while read -r awk; do
    echo "$awk"
    rm -rf "$pages"
    generate "$awk" "${tapset_sources[@]}"
    diff -r "$first" "$pages"
  done < <(awks)
}

@test "every public probe and function has its page, its line in the overview, and nothing else has" {
  make_pages
  public >"$BATS_TEST_TMPDIR/public"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/public")" -ge 7 ]
  (cd "$pages" && printf '%s\n' *) | sed -n 's/\.3stap$//p' | grep -vx tapset::python | sort |
    diff "$BATS_TEST_TMPDIR/public" -
  sed -nE 's/^\.BR (.*::.*) \(3stap\)$/\1/p' "$pages/tapset::python.3stap" | sort |
    diff "$BATS_TEST_TMPDIR/public" -
}

@test "the page of each probe has the variables that stap sees" {
  need stap
  make_pages
  local probe variables count=0
  tapset=$(tapset_with_native_python) stap_with_tapset -L 'python.**' >"$BATS_TEST_TMPDIR/seen"
  while read -r probe variables; do
    echo "$probe"
    diff <(tr ' ' '\n' <<<"$variables" | sed -n 's/^\([a-z][a-z_0-9]*\):.*/\1/p' | sort) \
      <(sed -n '/^.SH VALUES/,/^.SH [^V]/s/^\.I //p' "$pages/probe::$probe.3stap" | sort)
    count=$((count + 1))
  done <"$BATS_TEST_TMPDIR/seen"
  [ "$count" = "$(public | grep -c '^probe::')" ]
}

@test "the pages have SystemTap's sections in order, and every page that they name exists" {
  make_pages
  local page other
  for page in "$pages"/*; do
    echo "$page: $(sections "$page")"
    case ${page##*/} in
      probe::*) [[ $(sections "$page") =~ ^NAME,SYNOPSIS,VALUES(,DESCRIPTION)?(,CONTEXT)?(,EXAMPLE)?,SEE\ ALSO$ ]] ;;
      function::*) [[ $(sections "$page") =~ ^NAME,SYNOPSIS,ARGUMENTS(,DESCRIPTION)?(,CONTEXT)?(,EXAMPLE)?,SEE\ ALSO$ ]] ;;
      *) [ "$(sections "$page")" = "NAME,SYNOPSIS,DESCRIPTION,ENVIRONMENT,SEE ALSO" ] ;;
    esac
    grep -A 1 -x '\.SH NAME' "$page" | grep -qE "^$(basename "$page" .3stap)"' \\- [^ ].*[^ .]$'
    while read -r other; do
      [ -e "$pages/$other.3stap" ]
    done < <(sed -nE 's/^\.BR (.*::.*) \(3stap\),?$/\1/p' "$page")
  done
  [ "$(sections "$pages/probe::python.function.entry.3stap")" = "NAME,SYNOPSIS,VALUES,DESCRIPTION,CONTEXT,EXAMPLE,SEE ALSO" ]
}

@test "mandoc and groff find nothing, and the title fits the page" {
  need mandoc groff
  make_pages
  local page
  for page in "$pages"/*; do
    echo "$page"
    mandoc -T lint -W warning "$page"
    run groff -man -ww -z "$page"
    echo "$output"
    [ -z "$output" ]
    groff -man -Tascii -rLL=78n "$page" | head -n 1 | grep -E '^([A-Z0-9_.:]+\(3stap\)) +SystemTap Tapset +\1$'
  done
}

@test "every example resolves" {
  need stap
  examples "$BATS_TEST_TMPDIR/examples" >"$BATS_TEST_TMPDIR/list"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/list")" = "$(grep -cx ' \* Example:' "${tapset_sources[@]}" | awk -F: '{ n += $NF } END { print n }')" ]
  [ -s "$BATS_TEST_TMPDIR/list" ]
  local name file command
  while IFS=$'\t' read -r name file command; do
    echo "$name: $command"
    grep -qF "$name" "$file"
    stap -p2 "$file" >/dev/null </dev/null
  done < <(some 8 <"$BATS_TEST_TMPDIR/list")
}

@test "an example is printed as it is written, with the command line that it names" {
  fixture >"$BATS_TEST_TMPDIR/good.stp"
  generate awk -v part=examples "$BATS_TEST_TMPDIR/good.stp" >"$BATS_TEST_TMPDIR/list"
  printf 'python.a.start\t%s\tstap SCRIPT -c '"'true'"'\n' "$pages/python.a.start.stp" | diff - "$BATS_TEST_TMPDIR/list"
  diff "$pages/python.a.start.stp" - <<'STP'
# stap SCRIPT -c 'true'
probe python.a.start {

    println("}\n", n)
}
STP
}

@test "a block that is not of the form is refused" {
  refused '5s/python.a.start //' '5: a block without a name'
  refused '4,25{/^\/|^ \*\/$/!d}' '4: a block without a name'
  refused '5s/probe/macro/' '5: a block begins with "probe NAME - SUMMARY", "sfunction ..." or "function ..."'
  refused '5s/ - .*//' '5: no summary: "probe python.a.start - SUMMARY"'
  refused '5s/ - .*/ - /' '5: no summary: "probe python.a.start - SUMMARY"'
  refused '9s/@n/@file/' '9: @file is documented twice'
  refused '9s/:.*/:/' '9: an empty description of @n'
  refused '9s/@n:/@n -/' '9: a variable is documented as "@NAME: TEXT"'
  refused '11s/One.*//;13,15d' '11: an empty description'
  refused '17s/: .*/:/' '17: an empty context'
  refused '20,24d' '19: an empty example'
  refused '20s/SCRIPT/x.stp/' '19: the command line of an example names SCRIPT'
  refused '19s/$/ probe/' '19: an example begins in the line after "Example:"'
  refused '23s/  println/println/;23s/     / /' '23: a line of an example begins with two spaces'
  refused '11s/Description/Note/' '11: no section is called "Note"; there are Description, Context and Example'
  refused '17s/Context/Description/' '17: a second Description'
  refused '11s/Description/Context/;17s/Context/Description/' '17: Description stands after Context'
  refused '17s/^/ * @late: x\n/' '17: @late stands after Description'
  refused '10s/$/\n * lost/' '11: text that belongs to no variable and no section'
  refused '10s/ .*//' '10: a line in a block begins with " * "'
  refused '9s/many/\tmany/' '9: a character that is not printable ASCII'
}

@test "a block that does not fit the code is refused" {
  refused '4,25d' '4: probe python.a.start has no block'
  refused '61,68d' '61: function python_f has no block'
  refused '31s/$/\n * probe python.a.stop - No such probe\n *\/\n\/**/' '32: no definition follows the block of probe python.a.stop'
  refused '84s/$/\n\/**\n * probe python.a.stop - No such probe\n *\/\n/' '86: no definition follows the block of probe python.a.stop'
  refused '32s/shim/native/' '32: the block is of probe python.native.a.start, but probe python.shim.a.start follows'
  refused '78s/_g/_f/' '78: a second block of function python_f; the first is at '"$BATS_TEST_TMPDIR/bad.stp:62"
  refused '65s/$/\n * @c: what it never takes/' "66: function python_f doesn't take c"
  refused '65d' '62: @b of function python_f is not documented'
  refused '34s/a.start/a.stop/' '34: probe python.a.stop documents no @file'
  refused '35s/:.*/: as in python.shim.a.start/' '35: probe python.shim.a.start refers to another block itself'
  refused '67s/_g/_h/' '67: function python_h documents no Description'
  refused '82s/_g ()/_g ( /' '82: neither "probe NAME = ..." nor "function NAME(...)"'
  refused '26s/= .*//' '26: neither "probe NAME = ..." nor "function NAME(...)"'
  refused '82s/$/\nfunction python_g(a) { }/' '78: @a of function python_g is not documented'
  refused '28s/.$//' "28: a string that doesn't end in its line"
  refused '50s/$/ }/' '50: a brace too many'
  refused '84s/}//' ' ends within a definition'
}

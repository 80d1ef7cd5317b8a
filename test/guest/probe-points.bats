# The tapset's probe points: on every kind of hook, on CPython's own markers and on the driver.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_live_stap
  program=$top/test/workloads/call_stack.py
}

# A script that prints each event as expect.py does, with the file before the function's name.
all_points() {
  cat <<'STP'
probe python.function.entry, python.function.return {
  printf("%s %s %s %d %s %d\n", name == "python.function.entry" ? ">" : "<", filename, funcname, lineno, modulename, frameptr != 0)
}
probe python.cfunction.entry, python.cfunction.return {
  printf("%s %s %s %d %s\n", name == "python.cfunction.entry" ? "(" : ")", filename, funcname, lineno, modulename)
}
probe python.line { printf(". %s %s %d\n", filename, funcname, lineno) }
probe python.gc.start, python.gc.done, python.import.start, python.import.done, python.audit {
  printf("%s %s\n", name, probestr)
}
STP
}

@test "every probe point is the event of CPython that it says, on every kind of hook" {
  local python mark output=$BATS_TEST_TMPDIR/output expected
  local semantics=$top/test/workloads/semantics.py
  cat >"$BATS_TEST_TMPDIR/events.py" <<'PY'
import gc
import sys

gc.disable()
gc.collect()
garbage = []
garbage.append(garbage)
del garbage
gc.collect(1)
try:
    import no_such_module
except ImportError:
    pass
import colorsys
open("/dev/null").close()
if hasattr(sys, "audit"):
    sys.audit("own", 1, ("two", None))
PY
  for python in $(guest_pythons); do
    echo "$python"
    all_points | from_shim_for "$python" >"$BATS_TEST_TMPDIR/points.stp"
    expect_events "$python" "$semantics"
    stap -o "$output" "$BATS_TEST_TMPDIR/points.stp" \
      -c "env LD_PRELOAD=$shim sh -c '$python $semantics; $python $BATS_TEST_TMPDIR/events.py'"
    for mark in '<>' '()'; do
      diff <(grep "^[$mark]" "$expected") <(awk -v file="$semantics" '$2 == file { print $1, $3, $4 }' "$output" | grep "^[$mark]")
    done
    diff "$expected.lines" <(awk -v file="$semantics" '$1 == "." && $2 == file { print $1, $3, $4 }' "$output")
    # functions of the program's own module
    grep -qE "^> $semantics [a-z_]+ [0-9]+ __main__ 1$" "$output"
    refute grep -E '^[<>] .* 0$' "$output"
    grep -qxF "( $BATS_TEST_TMPDIR/events.py collect 9 gc" "$output"
    diff - <(sed 's/^python\.shim/python/' "$output" | grep -xE 'python\.(gc\.(start generation 1|done collected 1)|import\.(start|done) (no_such_module|colorsys).*)' | uniq) <<'EVENTS'
python.gc.start generation 1
python.gc.done collected 1
python.import.start no_such_module
python.import.done no_such_module not found
python.import.start colorsys
python.import.done colorsys found
EVENTS
    case $(version_of "$python") in
      3.[67]) ;;
      *)
        [ "$(grep -cxE "python\.(shim\.)?audit own\(1, \('two', None\)\)" "$output")" = 1 ]
        [ "$(grep -cE "^python\.(shim\.)?audit open\('/dev/null', 'r', [0-9]+\)$" "$output")" = 1 ]
        ;;
    esac
  done
}

@test "CPython's own function and line markers give the same, with the shim and without it" {
  local python file preload found='' output=$BATS_TEST_TMPDIR/output expected
  cat >"$BATS_TEST_TMPDIR/native.stp" <<'STP'
probe python.function.entry { printf("> %s %s %d %d\n", filename, funcname, lineno, frameptr) }
probe python.function.return { printf("< %s %s %d %d\n", filename, funcname, lineno, frameptr) }
probe python.line { printf(". %s %s %d\n", filename, funcname, lineno) }
STP
  for python in $(pythons); do
    file=$(own_file "$python")
    grep -qx line <(own_markers "$python" "$file") && [ "$(version_of "$python")" != 3.11 ] || continue
    found=1
    tapset=$tapsets/tapset
    if [[ $file != /usr/bin/* ]]; then
      tapset=$BATS_TEST_TMPDIR/tapset
      cp -a "$tapsets/tapset" "$tapset"
      rm "$tapset/python_local.stp"
      echo "@python_interpreter_310(\"$file\")" >"$tapset/python_local.stp"
    fi
    expect_events "$python" "$program"
    for preload in "$shim" ''; do
      echo "$python $preload"
      stap_with_tapset -o "$output" "$BATS_TEST_TMPDIR/native.stp" \
        -c "env LD_PRELOAD=$preload $python $program"
      diff "$expected.functions" <(awk -v file="$program" '/^[<>]/ && $2 == file { print $1, $3, $4 }' "$output")
      diff "$expected.lines" <(awk -v file="$program" '/^[.]/ && $2 == file { print $1, $3, $4 }' "$output")
      refute grep -E '^[<>] .* [^0]$' "$output"
    done
  done
  [ -n "$found" ] || skip "needs a CPython 3.6 to 3.10 with markers of its own, as Debian 11 has it (make check-distros)"
}

# A script that prints the variables of each event of python.$1*.
all_variables() {
  cat <<STP
global lines
probe python.$1function.entry, python.$1function.return {
  printf("%s|%s|%s|%d|%d|%x|%s|\\n", name, filename, substr(funcname, 0, 6), strlen(funcname) > 500, lineno, frameptr, modulename)
}
probe python.$1cfunction.entry, python.$1cfunction.return { printf("%s|%s|%s|%d|%s|%s|\\n", name, filename, funcname, lineno, modulename, probestr) }
probe python.$1line {
  if (filename == "/b.py") lines[funcname, lineno]++
  else printf("%s|%s|%s|%d|%s|\\n", name, filename, funcname, lineno, probestr)
}
probe python.$1gc.start { printf("%s|%d|%s|\\n", name, generation, probestr) }
probe python.$1gc.done { printf("%s|%d|%s|\\n", name, collected, probestr) }
probe python.$1import.start { printf("%s|%s|%s|\\n", name, modulename, probestr) }
probe python.$1import.done { printf("%s|%s|%d|%s|\\n", name, modulename, found, probestr) }
probe python.$1audit { printf("%s|%s|%x|%s|%s|\\n", name, event, args, argstr, probestr) }
probe end { foreach ([f, l] in lines) println(f, l, " ", lines[f, l]) }
STP
}

@test "the tapset shows the driver's events as they are described, odd ones too" {
  local output=$BATS_TEST_TMPDIR/output events=$BATS_TEST_TMPDIR/events
  cat >"$events" <<'EVENTS'
function__entry "/a.py" "f" 3 0x7f0000001230 "\xc3\xa4\t"
function__entry NULL "" -1 NULL 0xdead
function__entry 0xffffffff81000000 "x" * 10000 -2147483648 0xffffffffffffffff NULL
function__return "/\xff\xfe.py" "\x1b[31m\n" 2147483647 0x1 "m" NULL NULL
cfunction__entry "/a.py" "len" 7 "builtins"
cfunction__return "/a.py" "upper" -7 NULL
cfunction__return 0xdead "append" 8 0xdead
line "/a.py" "f" 4
line NULL NULL 0
gc__start -2147483648
gc__start 2
gc__done 9223372036854775807
gc__done -9223372036854775808
import__find__load__start "a.b"
import__find__load__start NULL
import__find__load__done "a.b" 1
import__find__load__done 0xdead 0
audit "open" NULL
audit 0xdead 0xdead
audit "e" 0xffffffff81000000
10000 * line "/b.py" "g" 5
EVENTS
  for source in '' shim.; do
    tapset=$tapsets/test/tapset stap_with_tapset -o "$output" -c "$driver $events" -e "$(all_variables "$source")"
    diff "$output" - <<EXPECTED
python.${source}function.entry|/a.py|f|0|3|7f0000001230|$(printf '\xc3\xa4\t')|
python.${source}function.entry|||0|-1|0||
python.${source}function.entry||xxxxxx|1|-2147483648|ffffffffffffffff||
python.${source}function.return|$(printf '/\xff\xfe.py|\x1b[31m\n')
|0|2147483647|1|m|
python.${source}cfunction.entry|/a.py|len|7|builtins|builtins.len(/a.py:7)|
python.${source}cfunction.return|/a.py|upper|-7||.upper(/a.py:-7)|
python.${source}cfunction.return||append|8||.append(:8)|
python.${source}line|/a.py|f|4|f(/a.py:4)|
python.${source}line|||0|(:0)|
python.${source}gc.start|-2147483648|generation -2147483648|
python.${source}gc.start|2|generation 2|
python.${source}gc.done|9223372036854775807|collected 9223372036854775807|
python.${source}gc.done|-9223372036854775808|collected -9223372036854775808|
python.${source}import.start|a.b|a.b|
python.${source}import.start|||
python.${source}import.done|a.b|1|a.b found|
python.${source}import.done||0| not found|
python.${source}audit|open|0||open|
python.${source}audit||dead|<unknown>|<unknown>|
python.${source}audit|e|ffffffff81000000|<unknown>|e<unknown>|
g5 10000
EXPECTED
  done
}

@test "each handler of a probe point runs, whatever the others do" {
  local output=$BATS_TEST_TMPDIR/output events=$BATS_TEST_TMPDIR/events
  printf '5 * gc__start 0\n2 * gc__start 1\n' >"$events"
  tapset=$tapsets/test/tapset stap_with_tapset -o "$output" -c "$driver $events" -e 'global n
    probe python.gc.start { n["left by next"]++; next }
    probe python.gc.start { n["second"]++; if (generation) n["second, generation 1"]++ }
    probe python.gc.start { try { error("caught") } catch { n["caught"]++ } }
    probe python.gc.* { n["by a wildcard"]++ }
    probe end { foreach (which in n) println(which, " ", n[which]) }'
  diff <(sort "$output") - <<'COUNTS'
by a wildcard 7
caught 7
left by next 7
second 7
second, generation 1 2
COUNTS
}

@test "a string on a page that isn't in memory is empty, and the session goes on" {
  local folder=$BATS_TEST_TMPDIR output=$BATS_TEST_TMPDIR/output
  cat >"$folder/pages.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <fcntl.h>
int main(int argc, char **argv)
{
    int file = open(argv[1], O_RDONLY);
    char *untouched = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE, file, 0);
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *audited = strdup("untouched"), *end = strdup("the end");
    memset(two, 'x', 4096); /* a string that goes on in a page that was never touched */
    STAP_PROBE1(python, import__find__load__start, untouched);
    STAP_PROBE1(python, import__find__load__start, forbidden);
    STAP_PROBE1(python, import__find__load__start, two + 4000);
    STAP_PROBE1(python, import__find__load__start, two + 4096);
    STAP_PROBE2(python, audit, audited, untouched);
    STAP_PROBE1(python, import__find__load__start, end);
    return argc < 0;
}
C
  gcc -o "$folder/pages" "$folder/pages.c"
  printf 'contents' >"$folder/file"
  cp -a "$tapsets/tapset" "$folder/tapset"
  awk -v shim="$folder/pages" -f "$top/tapset/generate/paths.awk" "$top"/probes/{shared/versions.h,native.list} >"$folder/tapset/python_paths.stpm"
  tapset=$folder/tapset stap_with_tapset -o "$output" -c "$folder/pages $folder/file" -e '
    probe python.import.start { println("[", modulename, "]") }
    probe python.audit { println(probestr) }'
  diff "$output" - <<'EXPECTED'
[]
[]
[]
[]
untouched<unknown>
[the end]
EXPECTED
}

@test "the examples of the man pages run" {
  local name file command folder=$BATS_TEST_TMPDIR/examples output=$BATS_TEST_TMPDIR/output count=0
  examples "$folder" >"$BATS_TEST_TMPDIR/list"
  while IFS=$'\t' read -r name file command <&9; do
    echo "$name: $command"
    # as it is written, but for how the shim is loaded; python3 is the system's
    command=${command//SCRIPT/$file}
    command=${command//stap-python run/env LD_PRELOAD=$shim}
    PATH=/usr/bin:$PATH eval "$command" </dev/null >"$output" 2>"$output.err"
    cat "$output" "$output.err" | head -n 20
    # SystemTap says these of itself, the second in Debian 13 of each syscall.*
    refute grep -vE 'WARNING: (Kernel function symbol table missing|cannot find module kernel debuginfo)' <(grep -E 'ERROR|WARNING' "$output.err")
    [ "$name" = python.import.done ] || [ "$name" = python.cfunction.return ] || [ -s "$output" ]
    count=$((count + 1))
  done 9< <(some 24 <"$BATS_TEST_TMPDIR/list")
  [ "$count" -ge 2 ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -ge 12 ]
}

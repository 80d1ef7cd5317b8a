# The scripts that tell of events, from pygc to pytrace, live on programs of which the
# numbers are known.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  need_live_stap
  counted=$top/test/workloads/counted.py
  system=$(system_python)
  output=$BATS_TEST_TMPDIR/output
  STAP_TIMEOUT=180
}

# Runs a script on a command, all markers of which are counted; the session must lose nothing.
# usage: traces SCRIPT COMMAND [STAP'S ARGUMENTS...]
traces() {
  stap -DSTP_NO_OVERLOAD -o "$output" "$top/scripts/$1.stp" \
    -c "env LD_PRELOAD=$shim $2" "${@:3}" >"$BATS_TEST_TMPDIR/printed" 2>"$BATS_TEST_TMPDIR/said"
  cat "$BATS_TEST_TMPDIR/said"
  diff <(grep -v 'Kernel function symbol table' "$BATS_TEST_TMPDIR/said") /dev/null
}

# A script refuses its argument, in one line.
refuses() {
  run stap "$top/scripts/$1.stp" -c true "$2"
  echo "$output"
  [ "$status" != 0 ]
  [ "$(grep -c "$3" <<<"$output")" = 1 ]
}

@test "pygc prints each collection with its generation and what it found, and sums them up" {
  traces pygc "$system $counted"
  cat "$output"
  # the program's own, of one object each
  [ "$(awk 'NF == 6 && $6 == 1 { printf "%d", $4 }' "$output")" = 000111112222222 ]
  sed '/^$/,$d' "$output" | tail -n +2 | awk '{ n[$4]++; us[$4] += $5; objects[$4] += $6 }
    $5 > longest[$4] { longest[$4] = $5 }
    END { for (g = 0; g < 3; g++) print g, n[g], us[g], int(us[g] / n[g]), longest[g], objects[g] }' >"$BATS_TEST_TMPDIR/sums"
  diff "$BATS_TEST_TMPDIR/sums" <(sed '1,/^GENERATION /d; /^$/,$d' "$output" | awk '{ $1 = $1; print }')
  # the histograms have them all
  diff <(cut -d' ' -f1,2 "$BATS_TEST_TMPDIR/sums") \
    <(awk '/^pauses of generation/ { g = $4 + 0 } $2 ~ /^[|]/ && NF > 1 && $NF ~ /^[0-9]+$/ { n[g] += $NF }
      END { for (g = 0; g < 3; g++) print g, n[g] }' "$output")
}

@test "pygc tells the pause, with the finalizers in it, and leaves out the short ones" {
  cat >"$BATS_TEST_TMPDIR/slow.py" <<'PY'
import gc
import time


class Slow:
    def __del__(self):
        time.sleep(0.7)


gc.disable()
gc.collect()
slow = Slow()
slow.own = slow
del slow
gc.collect(1)
PY
  traces pygc "$system $BATS_TEST_TMPDIR/slow.py" 700000
  cat "$output"
  sed '/^$/,$d' "$output" | tail -n +2 >"$BATS_TEST_TMPDIR/lines"
  awk '$4 != 1 || $5 < 700000 || $5 > 7000000 || $6 < 1 { exit 1 } END { exit NR != 1 }' "$BATS_TEST_TMPDIR/lines"
  # the table has the others too
  [ "$(sed '1,/^GENERATION /d; /^$/,$d' "$output" | awk '{ n += $2 } END { print n }')" -gt 2 ]
  refuses pygc 7x 'pygc: MIN_US is a number of microseconds, not 7x'
}

@test "pyimport prints the tree that -X importtime prints, and the misses" {
  cat >"$BATS_TEST_TMPDIR/program.py" <<'PY'
import package.slow
for _ in range(2):
    try:
        import no_such_module
    except ImportError:
        pass
PY
  mkdir "$BATS_TEST_TMPDIR/package"
  cat >"$BATS_TEST_TMPDIR/package/__init__.py" <<'PY'
import colorsys
try:
    import package.raises
except ValueError:
    pass
PY
  cat >"$BATS_TEST_TMPDIR/package/slow.py" <<'PY'
import time
import package.slower
time.sleep(0.2)
PY
  echo 'import time; time.sleep(0.5)' >"$BATS_TEST_TMPDIR/package/slower.py"
  echo 'raise ValueError' >"$BATS_TEST_TMPDIR/package/raises.py"
  traces pyimport "sh -c '$system -X importtime $BATS_TEST_TMPDIR/program.py 2>$BATS_TEST_TMPDIR/importtime'"
  cat "$output"
  # from the first one after site on, what is imported and by whom
  sed '/^$/,$d' "$output" | sed '1,/  site$/d' >"$BATS_TEST_TMPDIR/tree"
  diff <(sed 's/^.\{50\}//; s/ (miss)$//' "$BATS_TEST_TMPDIR/tree") \
    <(sed '1,/| site$/d; s/^.* | //' "$BATS_TEST_TMPDIR/importtime")
  diff <(awk '{ print $5, $6, $7 }' "$BATS_TEST_TMPDIR/tree" | grep miss) - <<'MISSES'
package.raises (miss) 
no_such_module (miss) 
no_such_module (miss) 
MISSES
}

@test "pyimport's times are those of the sleeps, inclusive is self and what is in it, and the table adds them up" {
  mkdir "$BATS_TEST_TMPDIR/package"
  printf 'import time\ntime.sleep(0.3)\nimport package.inner\n' >"$BATS_TEST_TMPDIR/package/__init__.py"
  printf 'import time\ntime.sleep(1.5)\n' >"$BATS_TEST_TMPDIR/package/inner.py"
  printf 'import package\n' >"$BATS_TEST_TMPDIR/program.py"
  traces pyimport "$system $BATS_TEST_TMPDIR/program.py"
  cat "$output"
  sed '/^$/,$d' "$output" | tail -n +2 >"$BATS_TEST_TMPDIR/tree"
  awk '$5 == "package" { self = $3; all = $4 } $5 == "package.inner" { inner = $4; if ($3 != $4) exit 1 }
    END { exit !(inner >= 1500000 && self >= 300000 && self < 30000000 && all - self - inner >= -2 && all - self - inner <= 2) }' \
    "$BATS_TEST_TMPDIR/tree"
  # the sum of self is the sum of the outermost ones, up to what is rounded
  awk '/all modules$/ { n = $1; sum = $3 } FILENAME ~ /tree$/ { lines++; self += $3 }
    END { exit !(n == lines && sum >= self && sum <= self + lines) }' "$BATS_TEST_TMPDIR/tree" "$output"
  refuses pyimport 5ms 'pyimport: MIN_US is a number of microseconds, not 5ms'
}

@test "pyaudit prints the events that match, with flags and families by name, and counts them" {
  cat >"$BATS_TEST_TMPDIR/program.py" <<PY
import os
import socket
import subprocess
import sys
folder = "$BATS_TEST_TMPDIR"
sys.audit("own.begin")
open(folder + "/a", "w").close()
os.close(os.open(folder + "/a", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK))
os.close(os.open("/dev/null", os.O_RDONLY | os.O_SYNC))
socket.socket().close()
both = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
both.bind(("::1", 0))
both.close()
one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
try:
    one.connect("/no such\tsocket")
except OSError:
    pass
one.close()
subprocess.call(["/bin/true", "it's"])
exec("1")
sys.audit("opener.not", 1)
for _ in range(3):
    sys.audit("own.event", None, b"x")
os.execv("/bin/true", ["true", "-x"])
PY
  cat >"$BATS_TEST_TMPDIR/expected" <<EXPECTED
python3 own.begin()
python3 open('$BATS_TEST_TMPDIR/a', 'w', O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC)
python3 open('$BATS_TEST_TMPDIR/a', None, O_RDWR|O_CREAT|O_APPEND|O_NONBLOCK|O_CLOEXEC)
python3 open('/dev/null', None, O_RDONLY|O_DSYNC|O_CLOEXEC|04000000)
python3 socket.__new__(<socket>, AF_INET, SOCK_STREAM, 0)
python3 socket.__new__(<socket>, AF_INET6, SOCK_DGRAM, 0)
python3 socket.bind(<socket>, ('::1', 0))
python3 socket.__new__(<socket>, AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0)
python3 socket.connect(<socket>, '/no such\tsocket')
python3 subprocess.Popen('/bin/true', ['/bin/true', 'it\'s'], None, None)
python3 exec(<code>,)
python3 own.event(None, b'x')
python3 own.event(None, b'x')
python3 own.event(None, b'x')
python3 os.exec('/bin/true', ['true', '-x'], None)
EXPECTED
  traces pyaudit "$system $BATS_TEST_TMPDIR/program.py" '^(open$|socket[.]|subprocess|exec$|own[.]|os[.]exec)'
  cat "$output"
  sed '/^$/,$d' "$output" | tail -n +2 >"$BATS_TEST_TMPDIR/events"
  sed '1,/ own\.begin()$/{/own\.begin/!d}' "$BATS_TEST_TMPDIR/events" | sed -E 's/^ *[0-9]+\.[0-9]+ +[0-9]+ ([^ ]+) +/\1 /' |
    diff "$BATS_TEST_TMPDIR/expected" -
  # the table is the count of the lines, sorted
  sed -E 's/^ *[0-9]+\.[0-9]+ +[0-9]+ +[^ ]+ +//; s/\(.*//' "$BATS_TEST_TMPDIR/events" | sort | uniq -c |
    awk '{ print $1, $2 }' | sort >"$BATS_TEST_TMPDIR/counts"
  sed '1,/^ *COUNT  EVENT$/d' "$output" | awk '{ print $1, $2 }' >"$BATS_TEST_TMPDIR/table"
  diff "$BATS_TEST_TMPDIR/counts" <(sort "$BATS_TEST_TMPDIR/table")
  sort -s -c -k1,1nr "$BATS_TEST_TMPDIR/table"
  refuses pyaudit '(' 'regex compilation error'
}

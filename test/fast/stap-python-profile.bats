# stap-python: the formats of record, with a fake stap, and diff.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031,SC2154 # said: test/lib/launcher.bash

load ../lib/helper
load ../lib/launcher

dir() {
  echo "$BATS_TEST_TMPDIR"
}

# Makes a fake stap that writes $SAMPLES to the file of its option -o.  Beside it: "where" gets its arguments, and if
# "waits" exists, it writes a second line as it is interrupted, and ends with 3.
fake_samples() {
  cat >"$BATS_TEST_TMPDIR/stap" <<'SH'
#!/bin/sh
printf '<%s> ' "$@" >"${STAP%/*}/arguments"
while [ "$1" != -o ]; do shift; done
trap 'echo "python3;f (x.py) 2" >>"$2"; exit 3' INT
cat "$SAMPLES" >"$2"
echo "$2" >"${STAP%/*}/where"
[ ! -e "${STAP%/*}/waits" ] || while :; do sleep 0.1; done
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap SAMPLES=$BATS_TEST_TMPDIR/samples TMPDIR=$BATS_TEST_TMPDIR
  printf 'python3;main (x.py) 1\n' >"$SAMPLES"
}

profiles() {
  "$(system_python)" "$top/test/lib/profiles.py" "$@"
}

@test "each format of record has the same numbers, whatever is in the names" {
  local file format
  fake_samples
  profiles make "$SAMPLES"
  for file in x.svg x.html x.json x.pb.gz; do
    run quietly record -r 199 -o "$(dir)/$file" -- python3 x.py
    echo "$file: $status $output $(cat "$said")"
    [ "$status" = 0 ] && [ -z "$output" ] && [ ! -s "$said" ]
    profiles check "$SAMPLES" 199 "$(dir)/$file"
  done
  for format in svg:svg flamegraph:svg html:html speedscope:json pprof:pb.gz; do
    launcher record -f "${format%:*}" -r 199 -- python3 x.py >"$(dir)/y.${format#*:}"
    profiles check "$SAMPLES" 199 "$(dir)/y.${format#*:}"
    cmp "$(dir)/x.${format#*:}" "$(dir)/y.${format#*:}"
  done
  # --format comes before the suffix
  launcher record -f html -r 199 -o "$(dir)/z.svg" -- python3 x.py
  cmp "$(dir)/x.html" "$(dir)/z.svg"
  # the samples are only in the new file
  [ ! -e "$(cat "$(dir)/where")" ] && [ ! -e "$(dirname "$(cat "$(dir)/where")")" ]
}

@test "a flame graph has title, rate and samples, a colour for each kind of name, and stands on its head with --reverse" {
  local svg
  fake_samples
  profiles make "$SAMPLES"
  svg=$(launcher record -f svg -r 199 -- python3 'a <b>.py')
  grep -qF '>python3 &#39;a &lt;b&gt;.py&#39;</text>' <<<"$svg"
  grep -qF '>199 Hz, 106 samples</text>' <<<"$svg"
  # a process's command line, which may be a megabyte, is cut
  LD_PRELOAD=$shim /usr/bin/python3 -c 'import time; time.sleep(600)' "$(printf 'x%.0s' {1..20000})" &
  programs+=($!)
  wait_for thread_has "$!" comm python-stap
  svg=$(launcher record -f svg -p "$!")
  grep -qE ">/usr/bin/python3 .{980}\.\.\. \(PID $!\)</text>" <<<"$svg"
  svg=$(launcher record -f svg --title 'A & B' -- python3)
  grep -qF '>A &amp; B</text>' <<<"$svg"
  [ "$(grep -oE '>(Python|C|kernel|gc|no function|other)<' <<<"$svg" | head -n 6 | paste -sd' ')" = ">Python< >C< >kernel< >gc< >no function< >other<" ]
  # each kind is of its own colours, and a name of the same one everywhere
  "$(system_python)" - "$top/test/lib" <(printf %s "$svg") <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import profiles
colours = {}
for depth, start, total, name, values, colour, y in profiles.from_svg(open(sys.argv[2]).read()):
    assert colours.setdefault(name, colour) == colour
red, green, blue = (lambda kind: [int(colours[kind][i:i + 2], 16) for i in (1, 3, 5)]), None, None
assert red("f (a.py)")[0] > red("f (a.py)")[2] + 100 and red("f (a.py)")[1] > 180
assert red("[libz.so.1]")[1] == max(red("[libz.so.1]")) and red("[libcrypto.so.3] SHA1_Init")[1] == max(red("[libcrypto.so.3] SHA1_Init"))
assert red("copy_[k]")[0] > red("copy_[k]")[1] + 50
assert red("<GC>")[2] > red("<GC>")[1] + 30 and red("[GIL]")[2] == max(red("[GIL]"))
assert len(set(red("python3"))) == 1
assert colours["f (a.py)"] != colours["g (b.py)"]
PY
  # g and inner stand below "all", and what called them below these
  launcher record -f svg --reverse -- python3 >"$(dir)/r.svg"
  "$(system_python)" - "$top/test/lib" "$(dir)/r.svg" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import profiles
frames = profiles.from_svg(open(sys.argv[2], "rb").read())
stacks = profiles.stacks_of_frames(frames)
assert stacks["g (b.py)", "f (a.py)", "<module> (a.py)", "python3"] == 40, stacks
assert sum(stacks.values()) == 106
assert all(y == 64 + 16 * depth for depth, *_, y in frames)
PY
  # a page's table is the same
  launcher record -f html --reverse -- python3 >"$(dir)/r.html"
  launcher record -f html -- python3 >"$(dir)/x.html"
  cmp <(sed -n '/<table/,$p' "$(dir)/r.html") <(sed -n '/<table/,$p' "$(dir)/x.html")
  refuses 2 'record: --reverse is for the formats svg and html' record --reverse -- python3
  refuses 2 'record: --reverse is for the formats svg and html' record --reverse -o x.pb.gz -- python3
  refuses 2 'record: --title is for the formats svg, html, sources and speedscope' record --title x -- python3
  refuses 2 'top: unknown option, or one without its value' top --title x -p 1
}

@test "frames narrower than a tenth of a pixel are not drawn, and counted" {
  local svg
  fake_samples
  printf 'p;wide 1000000\np;narrow 1\np;thin 2\n' >"$SAMPLES"
  svg=$(launcher record -f svg -- python3)
  grep -qF '1000003 samples; 2 frames are too narrow to be drawn<' <<<"$svg"
  [ "$(grep -c 'class="f"' <<<"$svg")" = 3 ]
}

@test "pprof's samples have process, thread, lines and time" {
  fake_samples
  printf '# 199 1764190000123456789 5000000000\npython3 (12/13);main (x.py:7);f (a b.py:3) [jit] 3\n' >"$SAMPLES"
  printf '%s\n' 'python3 (12/12);main (x.py:9);[libz.so.1] crc32;copy_[k] 2' >>"$SAMPLES"
  launcher record -n -r 199 -o "$(dir)/x.pb.gz" -- python3
  grep -F '<-G> <native=1> <-c> ' "$(dir)/arguments" | grep -qF '<-G> <record=1> <-G> <lines=1> <-o> '
  run profiles raw "$(dir)/x.pb.gz"
  echo "$output"
  [ "$output" = 'samples/count cpu/nanoseconds
time 1764190000123456789 duration 5000000000 period 5025125 cpu/nanoseconds
main x.py:7;f a b.py:3 3 15075376 pid=12 program=python3 tid=13
main x.py:9;crc32 libz.so.1:0;copy :0 2 10050251 pid=12 program=python3 tid=12' ]
}

@test "go's pprof reads them" {
  need go
  fake_samples
  profiles make "$SAMPLES"
  launcher record -r 199 -o "$(dir)/x.pb.gz" -- python3
  run go tool pprof -top -sample_index=samples "$(dir)/x.pb.gz"
  echo "$output"
  [ "$status" = 0 ]
  grep -qE '^ *47 44\.34% +44\.34% +47 44\.34% +g$' <<<"$output"
  grep -qE '^ *10 .* 65 61\.32% +f$' <<<"$output"
  run go tool pprof -raw "$(dir)/x.pb.gz"
  [ "$status" = 0 ]
  grep -qF '*.so.3' <<<"${output//libcrypto/*}"
}

# What pyheap prints for pprof, by hand: of g nothing lives.
memory_samples() {
  cat >"$SAMPLES" <<'FOLDED'
# 524288 1764190000123456789 5000000000
python3 (12/0);main (x.py:9);f (a b.py:3) 3000 3 9000 8
python3 (12/0);main (x.py:7) 500 2 500 2
python3 (12/0);main (x.py:9);g (x.py:4) 0 0 70000 7
other (13/0);[no Python] 1000 1 1000 1
FOLDED
}

@test "record --memory writes the four values of Go's heap profiles" {
  fake_samples
  memory_samples
  launcher record --memory -d 5 -o "$(dir)/x.pb.gz" -- python3
  cat "$(dir)/arguments"
  grep -qF "/scripts/pyheap.stp> " "$(dir)/arguments"
  grep -qF ' <-G> <seconds=5> ' "$(dir)/arguments"
  grep -qF ' <-G> <record=1> <-G> <lines=1> <-o> ' "$(dir)/arguments"
  refute grep -F bytes= "$(dir)/arguments"
  run profiles raw "$(dir)/x.pb.gz"
  echo "$output"
  [ "$output" = 'alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes
time 1764190000123456789 duration 5000000000 period 524288 space/bytes inuse_space
main x.py:9;f a b.py:3 8 9000 3 3000 pid=12 program=python3
main x.py:7 2 500 2 500 pid=12 program=python3
main x.py:9;g x.py:4 7 70000 0 0 pid=12 program=python3
[no Python] :0 1 1000 1 1000 pid=13 program=other' ]
  # diff has what is in use
  run quietly diff -f folded "$(dir)/x.pb.gz" "$(dir)/x.pb.gz"
  echo "$output"
  [ "$output" = 'python3;main (x.py) 500 500
python3;main (x.py);f (a b.py) 3000 3000
other;[no Python] 1000 1000' ]
  # all was freed
  printf '# 524288 1 1\npython3 (12/0);f (x.py:3) 0 0 9000 8\n' >"$SAMPLES"
  launcher record --memory -f pprof -- python3 >"$(dir)/freed.pb.gz"
  profiles raw "$(dir)/freed.pb.gz" | grep -xF 'f x.py:3 8 9000 0 0 pid=12 program=python3'
  printf 'python3 (12/0);f (x.py:3) 9000 8\n' >"$SAMPLES"
  refuses 1 'line 1 does not end with a blank and a number' record --memory -f pprof -- python3
}

@test "go's pprof has each of these values" {
  need go
  fake_samples
  memory_samples
  launcher record --memory -o "$(dir)/x.pb.gz" -- python3
  # usage: has TYPE "FLAT CUM FUNCTION"..., without shares and the unit of bytes
  has() {
    run go tool pprof -top -unit=B -sample_index="$1" "$(dir)/x.pb.gz"
    echo "$output"
    [ "$status" = 0 ]
    diff <(printf '%s\n' "${@:2}") <(awk 'found { print $1 + 0, $4 + 0, $6 $7 } /flat%/ { found = 1 }' <<<"$output")
  }
  has inuse_space '3000 3000 f' '1000 1000 [noPython]' '500 3500 main'
  has inuse_objects '3 3 f' '2 5 main' '1 1 [noPython]'
  has alloc_space '70000 70000 g' '9000 9000 f' '1000 1000 [noPython]' '500 79500 main'
  has alloc_objects '8 8 f' '7 7 g' '2 17 main' '1 1 [noPython]'
  run go tool pprof -top "$(dir)/x.pb.gz"
  grep -qx 'Type: inuse_space' <<<"$output"
}

@test "record --memory has the bytes in use in the other formats" {
  local format message bytes
  fake_samples
  printf 'python3;main (x.py) 500\npython3;main (x.py);f (x.py) 3000\n' >"$SAMPLES"
  for format in svg html speedscope; do
    launcher record --memory -f $format -- python3 >"$(dir)/x"
    grep -qF ' <-G> <folded=1> <-o> ' "$(dir)/arguments"
    [ $format = speedscope ] || grep -qF '>estimated from samples: 3500 bytes in use<' "$(dir)/x"
    [ $format = speedscope ] || grep -qF '3000 bytes, 85.71 %' "$(dir)/x"
  done
  "$(system_python)" - "$(dir)/x" <<'PY'
import json, sys
profile, = json.load(open(sys.argv[1]))["profiles"]
assert (profile["unit"], profile["weights"], profile["endValue"]) == ("bytes", [500, 3000], 3500), profile
PY
  printf '# 524288 1764190000123456789 5000000000\npython3 (12/0);main (x.py:9);f (x.py:3) 3000\nother (13/0);[no Python] 7\n' >"$SAMPLES"
  launcher record --memory -f sources -- python3 >"$(dir)/x"
  grep -qF ' <-G> <record=2> <-G> <lines=1> <-o> ' "$(dir)/arguments"
  grep -qF '<p>estimated from samples: 3007 bytes in use</p>' "$(dir)/x"
  grep -qF 'the first number: bytes in use that were allocated in it' "$(dir)/x"
  grep -qF '7 bytes are in no line.' "$(dir)/x"
  : >"$SAMPLES"
  refuses 1 'record: there were no samples of memory in use: nothing is written' record --memory -f svg -- python3
  message='record: --memory samples allocations, and not threads on CPUs: leave out --rate, --native, --threads and --wall'
  refuses 2 "$message" record --memory -r 99 -- python3
  refuses 2 "$message" record --memory -n -- python3
  refuses 2 "$message" record -t --memory -- python3
  refuses 2 "$message" record --memory --wall -- python3
  refuses 2 'top: unknown option, or one without its value' top --memory -- python3
  refuses 2 'record: --push sends profiles of the CPU: leave out .*--memory' record --memory --push http://localhost -- python3
  for bytes in 1 65536 1073741824; do
    printf 'python3;main (x.py) 500\n' >"$SAMPLES"
    launcher record --bytes $bytes --memory -f svg -- python3 >"$(dir)/x"
    grep -qF " <-G> <bytes=$bytes> " "$(dir)/arguments"
  done
  for bytes in '' 0 064 -1 64k 1e6 1073741825 4294967297 100000000000000000000; do
    refuses 2 "record: the mean distance of samples must be 1 to 1073741824 bytes, not '$bytes'" record --memory --bytes "$bytes" -- python3
  done
  refuses 2 'record: --bytes is for --memory' record --bytes 4096 -- python3
  refuses 2 'record: --bytes is for --memory' record --bytes 4096 --push http://localhost -- python3
  refuses 2 'top: unknown option, or one without its value' top --bytes 4096 -- python3
}

@test "samples are converted after Ctrl-C too, and stap's status remains" {
  local status=0
  fake_samples
  echo 'something that is longer than the graph' >"$(dir)/x.json"
  touch "$(dir)/waits"
  env --default-signal=INT "$launcher" record -o "$(dir)/x.json" -- python3 &
  programs+=($!)
  wait_for test -s "$(dir)/where"
  kill -INT $!
  wait $! || status=$?
  [ "$status" = 3 ]
  grep -qF '"f (x.py)"' "$(dir)/x.json"
  grep -qF '"weights":[10101,20202]' "$(dir)/x.json"
  rm "$(dir)/waits"
  : >"$SAMPLES"
  refuses 1 'record: there were no samples: nothing is written' record -f svg -- python3
  [ ! -e "$(cat "$(dir)/where")" ]
}

@test "a signal that comes before stap has started leaves no folder of samples, and ends record" {
  local status=0
  fake_samples
  cat >"$STAP" <<'SH'
#!/bin/sh
: >"${STAP%/*}/asked"
exec sleep 100
SH
  mkdir "$(dir)/temporary"
  TMPDIR=$(dir)/temporary "$launcher" record -o "$(dir)/x.svg" -- python3 &
  programs+=($!)
  wait_for test -e "$(dir)/asked"
  kill -TERM $!
  wait $! || status=$?
  [ "$status" = 143 ]
  [ -z "$(ls -A "$(dir)/temporary")" ]
}

@test "samples that can't be converted or written are kept, and record says where" {
  local format
  fake_samples
  for format in svg html speedscope pprof; do
    refuses 1 'record: cannot write /dev/full: No space left on device: the samples are in /.*/folded' record -f $format -o /dev/full -- python3
    cmp "$SAMPLES" "$(cat "$(dir)/where")"
    run bash -c '"$@" >/dev/full' bash "$launcher" record -f $format -- python3
    [ "$status" = 1 ]
    [ "$output" = "stap-python: record: cannot write stdout: No space left on device: the samples are in $(cat "$(dir)/where")" ]
    cmp "$SAMPLES" "$(cat "$(dir)/where")"
  done
  printf 'python3;main (x.py) 1\npython3;ma' >"$SAMPLES"
  refuses 1 'record: /.*/folded: the last line has no end: the file is truncated' record -f svg -- python3
  cmp "$SAMPLES" "$(cat "$(dir)/where")"
}

# A: 100 samples; B: 200.  f itself 30 % to 50 %, g 70 % to 25 %, h new with 25 %; f in total 100 % to 75 %.
two_profiles() {
  printf 'p;f (x.py) 30\np;f (x.py);g (x.py) 50\np;f (x.py);f (x.py);g (x.py) 20\n' >"$(dir)/a"
  printf 'p;f (x.py) 100\np;f (x.py);g (x.py) 50\np;h (y.py) 50\n' >"$(dir)/b"
}

@test "record and diff write to nothing that another user has put into a folder where all make files" {
  local kind shared=$BATS_TEST_TMPDIR/shared
  [ "$(id -u)" = 0 ] || skip "needs root, to give files to another user"
  fake_samples
  mkdir "$shared"
  chmod 1777 "$shared"
  echo kept >"$(dir)/kept"
  ln -s "$(dir)/kept" "$shared/link"
  echo kept >"$shared/file"
  mkfifo "$shared/fifo"
  chown -h 65534 "$shared"/*
  for kind in link file fifo; do
    for way in "record -f svg -o $shared/$kind -- true" "diff -f svg -o $shared/$kind $SAMPLES $SAMPLES"; do
      # shellcheck disable=SC2086 # words
      run timeout 20 "$launcher" $way
      echo "$way: $status $output"
      [ "$status" = 1 ]
      [ "$output" = "stap-python: ${way%% *}: cannot write $shared/$kind: Permission denied" ]
    done
  done
  [ "$(cat "$(dir)/kept" "$shared/file")" = $'kept\nkept' ]
  # a link that comes between two looks
  need gcc
  gcc -shared -fPIC -o "$(dir)/comes.so" -x c - <<'C'
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int open(const char *path, int flags, ...)
{
    if (strcmp(path, getenv("OUTPUT")) == 0) {
        if (flags & O_EXCL)
            unlink(path);
        else if (!(flags & O_NOFOLLOW) && symlink(getenv("KEPT"), path) == 0)
            (void)!lchown(path, 65534, 65534);
        if (flags & O_EXCL && !getenv("SEEN")) {
            setenv("SEEN", "1", 1);
            errno = EEXIST;
            return -1;
        }
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
C
  OUTPUT=$shared/comes KEPT=$(dir)/kept LD_PRELOAD=$(dir)/comes.so \
    launcher diff -f svg -o "$shared/comes" "$SAMPLES" "$SAMPLES"
  grep -q '^<svg' "$shared/comes"
  [ ! -L "$shared/comes" ]
  # a second name of a file of root's; in folders where others can replace what is root's
  ln "$(dir)/kept" "$shared/hard"
  ln -s "$(dir)/kept" "$shared/roots"
  refuses 1 ': Permission denied' diff -f svg -o "$shared/hard" "$SAMPLES" "$SAMPLES"
  rm "$shared/hard"
  chmod 777 "$shared"
  for kind in link file fifo roots; do
    refuses 1 ': Permission denied' diff -f svg -o "$shared/$kind" "$SAMPLES" "$SAMPLES"
  done
  chown 65534 "$shared"
  chmod 1777 "$shared"
  refuses 1 ': Permission denied' diff -f svg -o "$shared/roots" "$SAMPLES" "$SAMPLES"
  chown 0 "$shared"
  [ "$(cat "$(dir)/kept" "$shared/file")" = $'kept\nkept' ]
  # what is root's, and in folders of others
  ln -s "$(dir)/kept" "$shared/own"
  launcher diff -f svg -o "$shared/own" "$SAMPLES" "$SAMPLES"
  grep -q '^<svg' "$(dir)/kept"
  ln -s "$(dir)/new" "$shared/dangling"
  launcher diff -f svg -o "$shared/dangling" "$SAMPLES" "$SAMPLES"
  grep -q '^<svg' "$(dir)/new"
  chmod 755 "$shared"
  chown 65534 "$shared"
  launcher record -f svg -o "$shared/file" -- true
  grep -q '^<svg' "$shared/file"
  launcher diff -o /dev/stdout "$SAMPLES" "$SAMPLES" | grep -q .
}

@test "diff has the changes in percent points, the largest first" {
  two_profiles
  run quietly diff "$(dir)/a" "$(dir)/b"
  echo "$output"
  [ "$status" = 0 ]
  [ "$output" = 'OWN(points) TOTAL(points)  FUNCTION
     -45.00        -45.00  g (x.py)
     +25.00        +25.00  h (y.py)
     +20.00        -25.00  f (x.py)' ]
  run quietly diff "$(dir)/a" "$(dir)/a"
  [ "$status $output" = "0 OWN(points) TOTAL(points)  FUNCTION
no function's share changed by 0.01 points" ]
  # whatever the ids of process and thread
  printf 'p (12);f 1\np (12/13);f 2\np (x);f 3\n' >"$(dir)/c"
  printf 'p (9);f 3\np (x);f 3\n' >"$(dir)/d"
  run quietly diff -f folded "$(dir)/c" "$(dir)/d"
  [ "$output" = $'p;f 3 3\np (x);f 3 3' ]
  run quietly diff -f folded "$(dir)/a" "$(dir)/b"
  [ "$output" = 'p;f (x.py) 60 100
p;f (x.py);g (x.py) 100 50
p;f (x.py);f (x.py);g (x.py) 40 0
p;h (y.py) 0 50' ]
  # names of a file that another program has made
  printf 'p;a\033\342\200\256b 3\n' >"$(dir)/c"
  run quietly diff -f folded "$(dir)/c" "$(dir)/c"
  [ "$output" = 'p;a\x1b\xe2\x80\xaeb 3 3' ]
  launcher diff -o "$(dir)/d.json" "$(dir)/a" "$(dir)/b"
  "$(system_python)" - "$(dir)/d.json" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["a"]["total"] == 100 and found["b"] == {"file": sys.argv[1].replace("d.json", "b"), "total": 200}
assert found["functions"][2] == {"name": "f (x.py)", "own": {"a": 30, "b": 50, "change": 20},
                                 "total": {"a": 100, "b": 75, "change": -25}}, found
assert [one["name"] for one in found["functions"]] == ["g (x.py)", "h (y.py)", "f (x.py)"]
PY
}

@test "diff draws B, red what grew itself and blue what shrank" {
  two_profiles
  launcher diff -o "$(dir)/d.svg" "$(dir)/a" "$(dir)/b"
  grep -qF 'not drawn: stacks of the other profile alone, 20.00 % of it<' "$(dir)/d.svg"
  "$(system_python)" - "$top/test/lib" "$(dir)/d.svg" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import profiles
frames = {name: rest for depth, start, *rest_ in profiles.from_svg(open(sys.argv[2], "rb").read()) for rest in [rest_] for name in [rest_[1]]}
assert frames["f (x.py)"][0] == 150 and frames["h (y.py)"][0] == 50 and frames["all"][0] == 200
assert frames["g (x.py)"][2] == "25.00 %, before 50.00 %; itself -25.00 points", frames
colour = {name: frames[name][3] for name in frames}
assert colour["f (x.py)"].startswith("#ff") and colour["f (x.py)"] != "#ffffff"
assert colour["h (y.py)"] == "#ff6464" and colour["g (x.py)"] == "#6464ff", colour
assert colour["p"] == colour["all"] == "#ebebeb"
PY
}

@test "diff reads what record writes, and what Go does, without lines" {
  fake_samples
  profiles make "$SAMPLES"
  launcher record -o "$(dir)/x.pb.gz" -- python3
  run quietly diff "$SAMPLES" "$(dir)/x.pb.gz"
  echo "$output"
  # the names that pprof's texts can't have are others
  [ "$(grep -vcE 'FUNCTION|x..?py|\\x' <<<"$output")" -le 2 ]
  printf 'python3 (1/2);f (x.py:3) 1\npython3 (1/2);f (x.py:4) 1\n' >"$SAMPLES"
  launcher record -o "$(dir)/x.pb.gz" -- python3
  run quietly diff -f folded "$(dir)/x.pb.gz" "$(dir)/x.pb.gz"
  [ "$output" = 'python3;f (x.py) 20202020 20202020' ]
  profiles go >"$(dir)/go.pb.gz"
  run quietly diff -f folded "$(dir)/go.pb.gz" "$(dir)/go.pb.gz"
  echo "$output"
  [ "$output" = 'main.main (/go/main.go) 10 10
main.main (/go/main.go);main.main (/go/main.go);main.inlined (/go/main.go) 30 30' ]
}

@test "diff refuses what is no profile, in one line" {
  local file
  two_profiles
  cd "$(dir)"
  : >empty
  printf 'p;f 0\n' >zero
  printf 'p;f 1\np;g' >truncated
  printf 'hello\nworld\n' >text
  head -c 3000 "$launcher" >program
  printf 'p;f 9007199254740991\np;g 1\n' >large
  printf 'p;f 1\np;f 99999999999999999999\n' >long
  echo hello | gzip >other.gz
  mkdir folder
  refuses 1 'diff: empty: the file is empty$' diff empty a
  refuses 1 'diff: zero: there are no samples in it$' diff a zero
  refuses 1 'diff: truncated: the last line has no end: the file is truncated$' diff a truncated
  refuses 1 'diff: text: neither folded stacks nor a gzipped pprof profile: line 1 does not end with a blank and a number$' diff text a
  refuses 1 'diff: program: neither folded stacks nor a gzipped pprof profile$' diff program a
  refuses 1 'diff: large: line 2: the sum of all is beyond 2\^53$' diff large a
  refuses 1 'diff: long: neither .*: line 2 does not' diff long a
  refuses 1 'diff: other.gz: this pprof profile is damaged$' diff other.gz a
  refuses 1 'diff: cannot read folder: not a regular file$' diff folder a
  refuses 1 'diff: cannot read nothing: No such file or directory$' diff nothing a
  refuses 1 'diff: cannot write /nonexistent/x: No such file or directory$' diff -o /nonexistent/x a b
  refuses 1 'diff: cannot write /dev/full: No space left on device$' diff -o /dev/full a b
  refuses 2 'diff: name two profiles \(see stap-python diff --help\)' diff a
  refuses 2 'diff: name two profiles' diff a b a
  refuses 2 "diff: the format is table, json, svg or folded, not 'html'" diff -f html a b
  refuses 2 'diff: unknown option, or one without its value' diff -x a b
  run launcher diff --help
  [[ $status == 0 && $output == "usage: stap-python diff "* ]]
}

@test "a pprof file that is cut anywhere, packed or not, is refused" {
  local length message at
  fake_samples
  printf 'python3 (12/13);main (x.py:7);[libz.so.1] crc32;copy_[k] 2\n' >"$SAMPLES"
  cd "$(dir)"
  launcher record -o x.pb.gz -- python3
  gzip -cd x.pb.gz >x.pb
  length=$(stat -c %s x.pb.gz)
  for ((at = 2; at < length; at++)); do
    head -c $at x.pb.gz >cut.pb.gz
    run "$launcher" diff x.pb.gz cut.pb.gz
    [ "$status $output" = "1 stap-python: diff: cut.pb.gz: this gzipped file is truncated" ]
  done
  length=$(stat -c %s x.pb)
  for ((at = 0; at < length; at++)); do
    head -c $at x.pb | gzip >cut.pb.gz
    run "$launcher" diff x.pb.gz cut.pb.gz
    [ "$status $output" = "1 stap-python: diff: cut.pb.gz: this pprof profile is damaged" ] || message="$at: $output"
  done
  echo "$message"
  [ -z "$message" ]
}

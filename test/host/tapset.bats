# The tapset in SystemTap's passes 1 to 4: every probe point resolves with each of its variables, every function
# compiles, and wrong scripts are refused.  Nothing runs.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  need_stap
}

# The probe points and their variables, a line each: the markers' arguments, with frameptr for frame, and argstr of
# audit.  Those of the shim or, with $1, those of CPython 3.$1's native markers.
points() {
  "$top/test/lib/probe-points" ${1:+--native "$1"} | sed 's/ frame / frameptr /; s/^audit .*/& argstr/'
}

# How many probe points CPython 3.$1's native markers have.
own_points() {
  points "$1" | wc -l
}

# How many probes python.* has at these: function__entry serves python.function.count, too, in a process without the shim.
used_points() {
  points "$1" | awk '$1 == "function.entry" { n++ } { n++ } END { print n }'
}

# A script that uses each variable of each probe point.
# usage: use_all PREFIX [MINOR]
use_all() {
  points "${2:-}" | awk -v prefix="$1" 'prefix != "python.shim." || !/^filtered/ {
    printf "probe %s%s { println(name, probestr", prefix, $1
    for (i = 2; i <= NF; i++) printf ", %s", $i
    print ") }" }'
}

# Resolves the script $1 without a warning of a variable that is never set.
resolves() {
  stap_with_tapset -p2 -e "$1" >"$BATS_TEST_TMPDIR/resolved" 2>&1 || { cat "$BATS_TEST_TMPDIR/resolved" && return 1; }
  refute grep -E 'never-assigned|semantic' "$BATS_TEST_TMPDIR/resolved"
}

# How many handlers the probes of the resolved script have in the file $1.  SystemTap 5.6 combines the handlers of one place
# into one probe, with a variable __error_0__ for the first of them, and so on.
probes_in() {
  awk -v file="$1" '
    /^[^ ]/ { here = index($0, "process(\"" file "\")") == 1; handlers += here }
    here && /^ +__error_[1-9][0-9]*__:/ { handlers++ }
    END { print handlers + 0 }' "$BATS_TEST_TMPDIR/resolved"
}

# How many markers these are in the shim's file $1, where a marker may have two sites.
shim_probes_in() {
  local sites each
  sites=$(probes_in "$1")
  each=$(sites_of_each)
  echo $((sites % each ? -1 : sites / each))
}

# Checks that stap refuses the script $1 with a semantic error that names $2.
refused() {
  run stap -p2 -e "$1"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"semantic error"*$2* ]]
}

@test "every probe point resolves with every variable, from the shim and from CPython" {
  tapset=$(tapset_with_native_python)
  local native=$BATS_TEST_TMPDIR/native/bin
  resolves "$(use_all python.)"
  [ "$(shim_probes_in "$shim")" = "$(markers | grep -vc memory__period)" ]
  [ "$(probes_in "$native/python3.10")" = "$(used_points 10)" ]
  [ "$(probes_in "$native/python3.11")" = "$(used_points 11)" ]
}

@test "python.shim.* and python.native.* have the same variables, each from its source alone" {
  tapset=$(tapset_with_native_python)
  local native=$BATS_TEST_TMPDIR/native/bin
  resolves "$(use_all python.shim.)"
  [ "$(shim_probes_in "$shim")" = "$(markers | grep -vcE '^(filter|memory__period)')" ]
  [ "$(probes_in "$native/python3.10")" = 0 ]
  resolves "$(use_all python.native. 10)"
  [ "$(shim_probes_in "$shim")" = 0 ]
  [ "$(probes_in "$native/python3.10")" = "$(own_points 10)" ]
  [ "$(probes_in "$native/python3.11")" = "$(own_points 11)" ]
}

@test "CPython 3.15's own function markers, which don't pair, are those of python.native.* alone" {
  tapset=$(tapset_with_native_python)
  local native=$BATS_TEST_TMPDIR/native/bin
  cp "$native/python3.10" "$native/python3.15"
  resolves "$(use_all python.)"
  [ "$(probes_in "$native/python3.15")" = "$(used_points 15)" ]
  resolves 'probe python.function.entry, python.function.return { println(name, funcname) }'
  [ "$(shim_probes_in "$shim")" = 2 ]
  [ "$(probes_in "$native/python3.15")" = 0 ]
  resolves 'probe python.native.function.entry, python.native.function.return { println(name, funcname) }'
  [ "$(probes_in "$native/python3.15")" = 2 ]
}

@test "CPython is found in all the places where distributions and make install put it" {
  local folder=$BATS_TEST_TMPDIR/places file files="usr/bin/python3.10 usr/local/bin/python3.10
    usr/lib/libpython3.10.so.1.0 usr/lib64/libpython3.10d.so.1.0 usr/lib/x86_64-linux-gnu/libpython3.10m.so.1.0
    usr/local/lib/libpython3.10.so.1.0 usr/local/lib64/libpython3.10.so.1.0"
  tapset=$(tapset_with_native_python)
  for file in $files; do
    mkdir -p "$(dirname "$folder/$file")"
    cp "$BATS_TEST_TMPDIR/native/bin/python3.10" "$folder/$file"
  done
  sed "s,^path /,path $folder/," "$top/probes/native.list" |
    awk -v shim="$shim" -f "$top/tapset/generate/paths.awk" "$top/probes/shared/versions.h" - >"$tapset/python_paths.stpm"
  resolves "$(use_all python.)"
  for file in $files; do
    echo "$file"
    [ "$(probes_in "$folder/$file")" = "$(used_points 10)" ]
  done
}

@test "wildcards resolve, and python.shim.** is each marker of the shim" {
  tapset=$(tapset_with_native_python)
  resolves 'probe python.function.* { println(probestr, frameptr) }'
  [ "$(shim_probes_in "$shim")" = 4 ]
  resolves 'probe python.shim.** { println(name) }'
  [ "$(shim_probes_in "$shim")" = "$(markers | grep -vcE '^(filter|memory__period)')" ]
  # and the marker by which the shim requests patterns
  resolves 'probe begin { python_filter("f") } probe python.filtered.** { println(name) }'
  [ "$(shim_probes_in "$shim")" = "$(markers | grep -c '^filter')" ]
}

@test "interpreters and shims of python_local.stp are probed as well" {
  tapset=$(tapset_with_native_python)
  local folder=$BATS_TEST_TMPDIR/native file
  for file in bin/own-3.10 bin/own-3.12; do
    cp "$folder/bin/python3.10" "$folder/$file"
  done
  cp "$shim" "$folder/own-shim.so"
  rm -f "$tapset/python_local.stp"
  cat >"$tapset/python_local.stp" <<STP
@python_interpreter_310("$folder/bin/own-3.10")
@python_interpreter("$folder/bin/own-3.12")
@python_interpreter("$folder/bin/not-there")
@python_shim("$folder/own-shim.so")
STP
  resolves "$(use_all python.)"
  [ "$(probes_in "$folder/bin/own-3.10")" = "$(used_points 10)" ]
  [ "$(probes_in "$folder/bin/own-3.12")" = "$(used_points 11)" ]
  [ "$(shim_probes_in "$folder/own-shim.so")" = "$(markers | grep -vc memory__period)" ]
  [ "$(shim_probes_in "$shim")" = "$(markers | grep -vc memory__period)" ]
  [ "$(probes_in "$folder/bin/python3.10")" = "$(used_points 10)" ]
}

@test "where there is neither shim nor native marker, every probe point names stap-python doctor" {
  tapset=$(tapset_with_nothing)
  local point
  for point in $(probe_points) $(probe_points | sed '/^filtered/d; s/^/shim./') $(points 10 | sed 's/ .*//; s/^/native./'); do
    run stap_with_tapset -p2 -e "probe python.$point { println(name) }"
    echo "python.$point: $output"
    [ "$status" = 1 ]
    [[ $output == *"run stap-python doctor"* ]]
  done
}

@test "function markers that are partly live have macros of their own, and what is never probed has none" {
  awk -v shim="$shim" -f "$top/tapset/generate/paths.awk" "$top"/probes/{shared/versions.h,native.list} | awk '
    /^@define/ { macro = $2 }
    match($0, /python3\.[0-9]+/) { print macro, substr($0, RSTART, RLENGTH) }' | sort -uV >"$BATS_TEST_TMPDIR/macros"
  # shellcheck disable=SC2046 # numbers
  diff - <(grep -e function -e line "$BATS_TEST_TMPDIR/macros") <<EOF
$(printf '__python_native_function__entry python3.%d\n' {6..10})
$(printf '__python_native_function__return python3.%d\n' {6..10})
$(printf '__python_native_line python3.%d\n' {6..10})
$(printf '__python_native_partly_function__entry python3.%d\n' $(seq 15 "$(untried_minor)"))
$(printf '__python_native_partly_function__return python3.%d\n' $(seq 15 "$(untried_minor)"))
EOF
}

@test "every function compiles" {
  run stap -p4 -e 'probe begin {
    println(python_in_target(), python_version(), python_argstr(0), __python_json(python_version()))
    println(python_backtrace(0), python_backtrace(0, 1))
    print_python_backtrace(0)
    print_python_backtrace(0, 1)
  }'
  echo "$output"
  [ "$status" = 0 ]
}

# SystemTap 5.6 does not always begin with the file of which a script uses a function first.
@test "the files of the tapset compile in any order" {
  local order calls
  for order in '' -r; do
    # the first function of each file
    calls=$(find -L "$tapsets/test/tapset" -name 'python_*.stp' -type f | sort $order | xargs awk '
      FNR == 1 { done = 0 }
      /^function / && !done {
        done = 1
        sub(/^function /, "")
        sub(/\).*/, ")")
        sub(/:[a-z]+\(/, "(")
        gsub(/[a-z_]+:long/, "0")
        gsub(/[a-z_]+:string/, "\"\"")
        print
      }')
    echo "$calls"
    run stap -p4 -e "probe begin { $calls }"
    echo "$output"
    [ "$status" = 0 ]
  done
}

@test "the benchmark's script resolves" {
  need_live_stap
  stap_with_tapset -p2 "$top/test/bench/instructions.stp" >/dev/null
}

@test "every handler compiles" {
  need_live_stap
  tapset=$(tapset_with_native_python)
  run stap_with_tapset -p4 -e "$(use_all python.)"
  echo "$output"
  [ "$status" = 0 ]
}

# shellcheck disable=SC2016 # $nosuch is stap's
@test "an unknown variable, probe point or source, and a wrong argument are refused" {
  refused 'probe python.function.entry { println($nosuch) }' nosuch
  refused 'probe python.function.nosuch { println(1) }' nosuch
  refused 'probe python.nosuch { println(1) }' nosuch
  refused 'probe python.native.cfunction.entry { println(1) }' cfunction
  refused 'probe python.line { println(frameptr . "x") } probe python.gc.start { print_python_backtrace("x") }' 'type mismatch'
  refused 'probe python.audit { println(python_argstr(event)) }' 'type mismatch'
  refused 'probe python.function.entry { println(python_backtrace(frameptr, 1, 2)) }' 'python_backtrace'
}

@test "a variable of another probe point is warned of" {
  run stap -p2 -e 'probe python.line { println(generation) }'
  echo "$output"
  [[ $output == *"never-assigned local variable 'generation'"* ]]
}

@test "every script resolves, its .meta names it, and it has an example and a row in the README" {
  local script
  for script in "$top"/scripts/{,exporter/}*.stp; do
    echo "$script"
    stap -p2 "$script" >/dev/null
    stap -p2 "$script" 'some.*file' >/dev/null
    [ -x "$script" ]
    grep -qx "name: ${script##*/}" "${script%.stp}.meta"
    grep -q '^title: .' "${script%.stp}.meta"
    [ -s "${script%.stp}_example.txt" ] || [[ $script == */exporter/* ]]
    grep -qF "](${script#"$top/scripts/"})" "$top/scripts/README.md"
  done
}

@test "pytrace without system has the probes of functions alone" {
  local words probes=$BATS_TEST_TMPDIR/probes others='^perf|^process\.(syscall|end)|generation:|typename:'
  for words in '' x.y system 'system x.y'; do
    # shellcheck disable=SC2086
    stap -p2 "$top/scripts/pytrace.stp" $words | sed -n '/^# probes/,$p' >"$probes"
    grep -q funcname: "$probes"
    case $words in
      system*) [ "$(grep -oE "$others" "$probes" | sort -u | wc -l)" = 5 ] ;;
      *) refute grep -E "$others" "$probes" ;;
    esac
  done
}

@test "pyaudit has the flags of open() that this machine has, and those of others by their architecture" {
  "$top/test/lib/kernel-tree" "$BATS_TEST_TMPDIR/tree"
  open_flags "$BATS_TEST_TMPDIR/tree" | sort -k2 >"$BATS_TEST_TMPDIR/flags"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/flags")" = 13 ]
  python3 -c '
import os
for line in open(os.sys.argv[1]):
    number, name = line.split()
    print(getattr(os, name), name)' "$BATS_TEST_TMPDIR/flags" | diff "$BATS_TEST_TMPDIR/flags" -
  # Linux, arch/arm64/include/uapi/asm/fcntl.h, arch/powerpc/include/uapi/asm/fcntl.h
  [ "$(open_flags "$BATS_TEST_TMPDIR/tree" -a arm64 | grep -E "O_(DIRECT|NOF)" | paste -sd" ")" = "16384 O_DIRECTORY 32768 O_NOFOLLOW 65536 O_DIRECT" ]
  [ "$(open_flags "$BATS_TEST_TMPDIR/tree" -a powerpc | grep -E "O_(DIRECT|NOF)" | paste -sd" ")" = "16384 O_DIRECTORY 32768 O_NOFOLLOW 131072 O_DIRECT" ]
}

@test "stapsys may use every script; who is in stapusr alone none, but the probe points and functions for his own processes" {
  local script
  for script in "$top"/scripts/{,exporter/}*.stp; do
    echo "$script"
    stap --privilege=stapsys -p2 "$script" >/dev/null
    run stap --privilege=stapusr -p2 "$script"
    [ "$status" = 1 ]
    # SystemTap 5.1 and 5.6 name the last thing they tried for a probe point, which is the hint
    [[ $output == *"function may not be used when --privilege=stapusr is specified"* || $output == *"run stap-python doctor"* ||
      $output == *"probe point is not allowed for --privilege=stapusr"* ]]
  done
  stap --privilege=stapusr -p2 -e 'probe python.function.entry { println(funcname, python_version()) print_python_backtrace(frameptr) }
    probe python.audit { println(python_argstr(args)) }' >/dev/null
}

# The tapset as SystemTap's passes 1 to 4 see it: every probe point resolves with
# each of its variables, every function compiles, and what is wrong is refused.  Nothing runs.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  need_stap
}

# The probe points and their variables, as the contract has them.
points() {
  cat <<'EOF_POINTS'
function.entry filename funcname lineno frameptr modulename
function.return filename funcname lineno frameptr modulename
cfunction.entry filename funcname lineno modulename
cfunction.return filename funcname lineno modulename
line filename funcname lineno
gc.start generation
gc.done collected
import.start modulename
import.done modulename found
audit event args argstr
EOF_POINTS
}

# A script that uses each variable of each of them.
# usage: use_all PREFIX [PATTERN-OF-THOSE-LEFT-OUT]
use_all() {
  points | grep -v "${2:-^$}" | awk -v prefix="$1" '{
    printf "probe %s%s { println(name, probestr", prefix, $1
    for (i = 2; i <= NF; i++) printf ", %s", $i
    print ") }" }'
}

# Resolves the script $1 without a warning of a variable that nobody sets.
resolves() {
  stap_with_tapset -p2 -e "$1" >"$BATS_TEST_TMPDIR/resolved" 2>&1 || { cat "$BATS_TEST_TMPDIR/resolved" && return 1; }
  refute grep -E 'never-assigned|semantic' "$BATS_TEST_TMPDIR/resolved"
}

# How many probes of the resolved script are in the file $1.
probes_in() {
  grep -c "^process(\"$1\")" "$BATS_TEST_TMPDIR/resolved" || true
}

# In a file of the shim, where each marker has two sites.
shim_probes_in() {
  local sites
  sites=$(probes_in "$1")
  echo $((sites % 2 ? -1 : sites / 2))
}

# A script that is wrong, and what stap says of it.
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
  [ "$(shim_probes_in "$shim")" = 10 ]
  [ "$(probes_in "$native/python3.10")" = 8 ]
  # never the function and line markers of 3.11
  [ "$(probes_in "$native/python3.11")" = 5 ]
}

@test "python.shim.* and python.native.* have the same variables, each from its source alone" {
  tapset=$(tapset_with_native_python)
  local native=$BATS_TEST_TMPDIR/native/bin
  resolves "$(use_all python.shim.)"
  [ "$(shim_probes_in "$shim")" = 10 ]
  [ "$(probes_in "$native/python3.10")" = 0 ]
  resolves "$(use_all python.native. ^cfunction)"
  [ "$(shim_probes_in "$shim")" = 0 ]
  [ "$(probes_in "$native/python3.10")" = 8 ]
  [ "$(probes_in "$native/python3.11")" = 5 ]
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
    awk -v shim="$shim" -f "$top/tapset/paths.awk" >"$tapset/python_paths.stpm"
  resolves "$(use_all python.)"
  for file in $files; do
    echo "$file"
    [ "$(probes_in "$folder/$file")" = 8 ]
  done
}

@test "wildcards resolve" {
  tapset=$(tapset_with_native_python)
  resolves 'probe python.function.* { println(probestr, frameptr) }'
  [ "$(shim_probes_in "$shim")" = 2 ]
  resolves 'probe python.shim.** { println(name) }'
  [ "$(shim_probes_in "$shim")" = 10 ]
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
@python_interpreter("$folder/bin/nobody-has-it")
@python_shim("$folder/own-shim.so")
STP
  resolves "$(use_all python.)"
  [ "$(probes_in "$folder/bin/own-3.10")" = 8 ]
  [ "$(probes_in "$folder/bin/own-3.12")" = 5 ]
  [ "$(shim_probes_in "$folder/own-shim.so")" = 10 ]
  [ "$(shim_probes_in "$shim")" = 10 ]
  [ "$(probes_in "$folder/bin/python3.10")" = 8 ]
}

@test "where there is neither shim nor native marker, every probe point names stap-python doctor" {
  tapset=$(tapset_with_nothing)
  local point source
  for source in '' shim. native.; do
    for point in $(points | cut -d' ' -f1); do
      [ "$source$point" != native.cfunction.entry ] && [ "$source$point" != native.cfunction.return ] || continue
      run stap_with_tapset -p2 -e "probe python.$source$point { println(name) }"
      echo "python.$source$point: $output"
      [ "$status" = 1 ]
      [[ $output == *"run stap-python doctor"* ]]
    done
  done
}

@test "function markers that are partly live have macros of their own, and what is never probed has none" {
  awk -v shim="$shim" -f "$top/tapset/paths.awk" "$top/probes/native.list" | awk '
    /^@define/ { macro = $2 }
    match($0, /python3\.[0-9]+/) { print macro, substr($0, RSTART, RLENGTH) }' | sort -uV >"$BATS_TEST_TMPDIR/macros"
  diff - <(grep -e function -e line "$BATS_TEST_TMPDIR/macros") <<EOF
$(printf '__python_native_function__entry python3.%d\n' {6..10})
$(printf '__python_native_function__return python3.%d\n' {6..10})
$(printf '__python_native_line python3.%d\n' {6..10})
$(printf '__python_native_partly_function__entry python3.%d\n' 15 16)
$(printf '__python_native_partly_function__return python3.%d\n' 15 16)
EOF
}

@test "every function compiles" {
  run stap -p4 -e 'probe begin {
    println(python_in_target(), python_version(), python_argstr(0))
    println(python_backtrace(0), python_backtrace(0, 1))
    print_python_backtrace(0)
    print_python_backtrace(0, 1)
  }'
  echo "$output"
  [ "$status" = 0 ]
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

@test "every script resolves, and its .meta names it" {
  local script
  for script in "$top"/scripts/{,exporter/}*.stp; do
    echo "$script"
    stap -p2 "$script" >/dev/null
    stap -p2 "$script" 'some.*file' >/dev/null
    grep -qx "name: ${script##*/}" "${script%.stp}.meta"
    grep -q '^title: .' "${script%.stp}.meta"
  done
}

@test "stapsys may use every script; who is in stapusr alone none, but the probe points and functions for his own processes" {
  local script
  for script in "$top"/scripts/{,exporter/}*.stp; do
    echo "$script"
    stap --privilege=stapsys -p2 "$script" >/dev/null
    run stap --privilege=stapusr -p2 "$script"
    [ "$status" = 1 ]
    # SystemTap 5.1 and 5.6 tell of the last that they tried for a probe point, which is the hint
    [[ $output == *"function may not be used when --privilege=stapusr is specified"* || $output == *"run stap-python doctor"* ]]
  done
  stap --privilege=stapusr -p2 -e 'probe python.function.entry { println(funcname, python_version()) print_python_backtrace(frameptr) }
    probe python.audit { println(python_argstr(args)) }' >/dev/null
}

# The tapset as SystemTap's passes 1 to 4 see it: every probe point resolves with
# each of its variables, and what is wrong is refused.  Nothing runs.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  need_stap
}

@test "python.function.entry and .return resolve with every variable, from the shim" {
  local point
  for point in entry return; do
    run stap -p2 -e "probe python.function.$point {
      println(name, probestr, filename, funcname, lineno, frameptr, modulename) }"
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"process(\"$shim\")"* ]]
  done
}

@test "python.shim.* and python.native.* have the same variables" {
  local source point
  for source in shim native; do
    for point in entry return; do
      tapset=$(tapset_with_native_python) run stap_with_tapset -p2 -e "probe python.$source.function.$point {
        println(name, probestr, filename, funcname, lineno, frameptr, modulename) }"
      echo "$output"
      [ "$status" = 0 ]
    done
  done
}

# A tapset that looks for native markers in a folder of this test, in which there is a python3.10
# that has them with three arguments, as CPython's own have.
tapset_with_native_python() {
  local folder=$BATS_TEST_TMPDIR/native
  mkdir -p "$folder/bin"
  cat >"$folder/python.c" <<'C'
#include <sys/sdt.h>
int main(int argc, char **argv)
{
    STAP_PROBE3(python, function__entry, "native.py", argv[0], argc);
    STAP_PROBE3(python, function__return, "native.py", argv[0], argc);
    return 0;
}
C
  gcc -o "$folder/bin/python3.10" "$folder/python.c"
  cp "$folder/bin/python3.10" "$folder/bin/python3.11"
  cp -a "$tapsets/tapset" "$folder/tapset"
  sed "s,^path /usr/bin/,path $folder/bin/," "$top/probes/native.list" |
    awk -v shim="$shim" -f "$top/tapset/paths.awk" >"$folder/tapset/python_paths.stpm"
  echo "$folder/tapset"
}

@test "native function markers are probed where they are live, and never in 3.11" {
  tapset=$(tapset_with_native_python) run stap_with_tapset -p2 -e 'probe python.function.entry { println(funcname) }'
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *"$BATS_TEST_TMPDIR/native/bin/python3.10"* ]]
  [[ $output == *"process(\"$shim\")"* ]]
  [[ $output != *python3.11* ]]
}

@test "where there is neither shim nor native marker, the probe point does not match" {
  local folder=$BATS_TEST_TMPDIR/tapset
  cp -a "$tapsets/tapset" "$folder"
  sed "s,^path /,path /nonexistent/," "$top/probes/native.list" |
    awk -v shim=/nonexistent/libpython-stap.so.0 -f "$top/tapset/paths.awk" >"$folder/python_paths.stpm"
  tapset=$folder run stap_with_tapset -p2 -e 'probe python.function.entry { println(funcname) }'
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"no match"* ]]
}

@test "every function compiles" {
  run stap -p4 -e 'probe begin { println(python_in_target()) }'
  echo "$output"
  [ "$status" = 0 ]
}

@test "an unknown variable and an unknown probe point are refused" {
  # shellcheck disable=SC2016 # it is stap's $nosuch
  run stap -p2 -e 'probe python.function.entry { println($nosuch) }'
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"semantic error"*nosuch* ]]
  run stap -p2 -e 'probe python.function.nosuch { println(1) }'
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"semantic error"* ]]
}

@test "every script resolves, and its .meta names it" {
  local script
  for script in "$top"/scripts/*.stp; do
    echo "$script"
    stap -p2 "$script" >/dev/null
    stap -p2 "$script" 'some.*file' >/dev/null
    grep -qx "name: ${script##*/}" "${script%.stp}.meta"
    grep -q '^title: .' "${script%.stp}.meta"
  done
}

# Names in markers are UTF-8, or NULL if they can't be encoded.  The shim keeps them no longer than the code object.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
}

@test "names are UTF-8, NULL with lone surrogates, whole when empty or long" {
  local python line
  line=$(grep -n 'lambda' "$top/test/workloads/names.py")
  for python in $(pythons); do
    echo "$python"
    # prints a 1 for a pointer that is NULL; of the long name the last letter and the NUL
    bpftrace_while "
      usdt:$shim:python:function__entry /arg2 == ${line%%:*}/
      { printf(\"%d%d%d %s|%s|%s\n\", arg0 == 0, arg1 == 0, arg4 == 0, str(arg0), str(arg1, 12), str(arg4)); }
      usdt:$shim:python:function__return /arg2 == ${line%%:*} && *(uint8 *)arg1 == 108 && *(uint8 *)(arg1 + 4) == 108/
      { printf(\"%c %d\n\", *(uint8 *)(arg1 + 9999), *(uint8 *)(arg1 + 10000)); }" \
      env LD_PRELOAD="$shim" "$python" "$top/test/workloads/names.py"
    # functions of the library may begin on this line, too
    diff - <(grep . "$trace" | grep -v '^000 [/<]' | sed 's/long[long]*/long.../') <<'EVENTS'
000 names|plain|module_of_names
000 names|café|module_of_names
000 names|日本|module_of_names
000 names|🐍|module_of_names
000 names||module_of_names
010 names||module_of_names
010 names||module_of_names
000 names|nul|module_of_names
000 names|long...|module_of_names
g 0
000 dir/🐍.py|f|module_of_dir/🐍.py
101 |f|
000 |f|module_of_
000 names|f|café
001 names|f|
001 names|f|
001 names|f|
001 names|f|
EVENTS
  done
}

@test "what is kept of names goes with the code objects" {
  local python without
  for python in $(pythons); do
    bpftrace_while "usdt:$shim:python:function__entry { @=count(); }" \
      env LD_PRELOAD="$shim" "$python" "$top/test/workloads/names.py" churn >"$BATS_TEST_TMPDIR/megabytes"
    # a free-threaded CPython keeps all names of functions (Objects/unicodeobject.c, intern_common())
    without=$("$python" "$top/test/workloads/names.py" churn)
    echo "$python: $(cat "$BATS_TEST_TMPDIR/megabytes") MB more after 100 MB of names were made and freed, without the shim $without"
    [ "$(cat "$BATS_TEST_TMPDIR/megabytes")" -lt $((without + 20)) ]
    [ "$(sed -n 's/^@: //p' "$trace")" -gt 11000 ]
  done
}

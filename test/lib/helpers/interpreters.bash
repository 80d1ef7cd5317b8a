# shellcheck shell=bash
# Finds the CPythons of this machine, and chooses those in which a test runs.
#
# SPDX-License-Identifier: MIT

# The installed CPythons that the shim supports, a path a line, the system's first.  With EVERY=1 (make check-every)
# all; otherwise one for each way in which the shim hooks and reads CPython: up to 3.8, 3.9 and 3.10, 3.11, each
# version from 3.12 on, and each free-threaded version.  PYTHONS: more interpreters to test; ONLY_PYTHONS: test
# only these.  Each is the path of an interpreter or of a wrapper script.
pythons() {
  interpreters | sed -n 's/^supported //p' | gated
}

# A condition in Python: a free-threaded build that the shim refuses (probes/shared/versions.h).
refused='"t" in sys.abiflags and (sys.version_info < (3, 14, 4) or (3, 15) < sys.version_info < (3, 15, 0, "b"))'

# The installed CPythons of such builds; there may be none.
refused_pythons() {
  interpreters | sed -n 's/^refused [^ ]* //p'
}

# An expression in Python: its minor version, of a free-threaded build with a t: 14t.
minor='"%d%s" % (sys.version_info[1], "t" * ("t" in sys.abiflags))'

# The installed CPythons from 3.6 on, a line each: "supported 14t PATH" or "refused 13t PATH".  All are started for
# this, so a run of bats caches the list.
interpreters() {
  local python kept=''
  # shellcheck disable=SC2086
  set -- ${ONLY_PYTHONS:-/usr/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3 "${FREETHREADED:-$top/build/freethreaded}"/*/bin/python3.*t ${PYTHONS:-}}
  [ ! "${BATS_RUN_TMPDIR:-}" ] || kept=$BATS_RUN_TMPDIR/interpreters.$(cksum <<<"$*" | tr ' ' .)
  if [ -e "$kept" ]; then
    cat "$kept"
    return
  fi
  for python; do
    [ ! -x "$python" ] || "$python" -c "import sys
if sys.version_info >= (3, 6):
    print('refused' if $refused else 'supported', $minor, sys.argv[1])" "$python" || true
  done >"${kept:-/dev/stdout}${kept:+.$BASHPID}"
  [ ! "$kept" ] || { mv "$kept.$BASHPID" "$kept" && cat "$kept"; }
}

# The installed CPythons for which a condition in Python is true.
which_pythons() {
  local python
  interpreters | while read -r _ _ python; do
    ! "$python" -c "import sys; sys.exit(not ($1))" </dev/null || echo "$python"
  done
}

# Each path on stdin, with its minor version before it: 14, of a free-threaded build 14t.
with_minor() {
  local python known path
  local -A minors=()
  while read -r _ known path; do minors[$path]=$known; done < <(interpreters)
  while read -r python; do
    echo "${minors[$python]:-$("$python" -c "import sys; print($minor)")} $python"
  done
}

# The first path of each kind, from lines of with_minor.  Kinds are: versions up to 3.$1; later ones up to 3.10; each
# version from 3.11 on; and each free-threaded version.
first_of_each() {
  awk -v oldest="$1" '{ minor = $1 + 0; kind = minor > 10 ? $1 : minor > oldest ? 10 : oldest; if (!seen[kind]++) print $2 }'
}

# The paths that pythons() prints, from lines of with_minor.
gated() {
  if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then sed 's/[^ ]* //'; else first_of_each 8; fi
}

# One of pythons(), or of the paths given, for each way in which the shim hooks: up to 3.10, 3.11, each version from
# 3.12 on, because sys.monitoring changes in each, and each free-threaded version.
pythons_by_hook() {
  # shellcheck disable=SC2046
  [ $# -gt 0 ] || set -- $(pythons)
  printf '%s\n' "$@" | with_minor | first_of_each 10
}

# For tests that take long: pythons_by_hook(), but all of pythons() with EVERY or ONLY_PYTHONS.
few_pythons() {
  if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then pythons; else pythons_by_hook; fi
}

# The system's Python, on this machine and in the guest.
system_python() {
  pythons | head -n 1
}

# The interpreters for a test in the guest: the system's, because stap treats a marker alike in all interpreters; with
# EVERY pythons_by_hook().
guest_pythons() {
  if [ -n "${EVERY:-}" ]; then pythons_by_hook; else system_python; fi
}

# The version of an interpreter, without the t of a free-threaded build: 3.11.
version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# The version with the t of a free-threaded build, 3.14t: it follows "python" in the names of its files.
abi_of() {
  "$1" -c 'import sys; print("%d.%d%s" % (sys.version_info[:2] + ("t" * ("t" in sys.abiflags),)))'
}

is_free_threaded() {
  [[ $(abi_of "$1") == *t ]]
}

# The free-threaded builds of pythons().
free_threaded_pythons() {
  pythons | with_minor | awk '$1 ~ /t$/ { print $2 }'
}

# The last minor version that stap-python and the tapset search for: one more than the newest supported.
untried_minor() {
  sed -n 's/.*CPYTHON_NEWEST_MINOR = \([0-9]*\),$/\1/p' "$top/probes/shared/versions.h" | awk '{ print $1 + 1 }'
}

# "${each_python[@]}" "PYTHON..." ARGUMENT... runs each of these interpreters with the arguments.
# shellcheck disable=SC2016,SC2034
each_python=(bash -c 'for python in $0; do "$python" "$@"; done')

# The installed libpython files, chosen as pythons() chooses interpreters.  Without those of free-threaded builds,
# because their names don't show whether the shim supports them.
libpythons() {
  local library minor
  for library in "$HOME"/.pyenv/versions/3.*/lib/libpython3.*.so.1.0 /usr/lib/*/libpython3.*.so.1.0; do
    minor=${library##*/libpython3.}
    [[ ! -e $library || $minor == *t.* ]] || echo "${minor%%[!0-9]*} $library"
  done | gated
}

# Compiles workloads/embed.c, which is run with the library's PYTHONHOME.
# usage: embed LIBRARY PROGRAM
embed() {
  gcc -o "$2" "$top/test/workloads/embed.c" "$1" -Wl,-rpath,"$(dirname "$1")"
}

# Replaces $file, which holds the code of $python, by a copy for this test: a tracer of its native markers then
# traces no other program.  Does nothing if $python is a script that starts a Python elsewhere.
own_copy() {
  local original=$file folder=$BATS_TEST_TMPDIR/copy
  mkdir -p "$folder"
  if [[ $file == *.so* ]]; then
    export LD_LIBRARY_PATH=$folder
  elif [ "$(readlink -f "$python")" = "$file" ]; then
    PYTHONHOME=$("$python" -c 'import sys; print(sys.prefix)')
    export PYTHONHOME
    python=$folder/${file##*/}
  else
    return 0
  fi
  file=$folder/${file##*/}
  cp "$original" "$file"
}

# The file with the code of an interpreter: libpython or the program itself.  Its path is the one in this root, even
# if the interpreter runs in another root.
own_file() {
  local pid file
  exec 9< <(exec "$1" -c 'import os, time; print(os.getpid(), flush=True); time.sleep(600)')
  read -r pid <&9
  file=$(awk '$6 ~ /\/libpython3[^\/]*$/ { print $6; exit }' "/proc/$pid/maps")
  echo "${file:-$(readlink "/proc/$pid/exe")}"
  kill "$pid"
  exec 9<&-
}

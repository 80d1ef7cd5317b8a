# shellcheck shell=bash
# Runs the scripts of scripts/ with stap, on workloads with known counts and times.
#
# SPDX-License-Identifier: MIT

# setup() of the scripts' suites: sets the two workloads and the file for a script's output.
scripts_setup() {
  need_live_stap
  system=$(system_python)
  export counted=$top/test/workloads/counted.py timed=$top/test/workloads/timed.py
  printed=$BATS_TEST_TMPDIR/printed
}

# Runs scripts/NAME.stp: its output is in $printed, stap's messages are in $printed.said, the target's output goes
# to stdout.  Fails if stap reports a loss: the only messages allowed are that there are no kernel symbols, or none of
# libc, and that the guest is being made.  A machine under load may stop the guest within a handler, so handlers may wait longer
# for a lock than usual, and are not measured for overload.
# usage: script NAME STAP'S ARGUMENTS...
script() {
  script_says "$@" || return
  refute grep -vE 'Kernel function symbol table|No DWARF information found|similar warning messages|^Rerun with -v|^test/vm/prepare: ' "$printed.said"
}

# As script, for a script that prints warnings.
script_says() {
  local status=0 began=$SECONDS
  stap -o "$printed" "$top/scripts/$1.stp" "${@:2}" 2>"$printed.said" || status=$?
  head -n 300 "$printed"
  cat "$printed.said"
  [ "$status" = 0 ] || echo "stap ended with $status after $((SECONDS - began)) s"
  return "$status"
}

# As script with json=1, on parts of a workload that prints what it does as lines of JSON: the rows are in $printed, those
# lines in $said.
# usage: script_beside NAME WORKLOAD OPTIONS... -- PYTHON PART...
script_beside() {
  local name=$1 workload=$2 settings=() python
  shift 2
  while [ "$1" != -- ]; do
    settings+=("$1")
    shift
  done
  python=$2
  shift 2
  said=$BATS_TEST_TMPDIR/said
  script "$name" -G json=1 "${settings[@]}" -c "env LD_PRELOAD=$shim $python $workload $*" >"$said.all" || {
    cat "$said.all"
    echo "the workload's last line: $(grep '^{"function"' "$said.all" | tail -n 1)"
    return 1
  }
  grep '^{"function"' "$said.all" >"$said"
}

# Checks that the script refuses these arguments, with TEXT in exactly one line on stderr.
# usage: refuses TEXT NAME STAP'S ARGUMENTS...
refuses() {
  refute stap -o "$printed" "$top/scripts/$2.stp" "${@:3}" -c true 2>"$printed.said"
  cat "$printed.said"
  [ "$(grep -cF "$1" "$printed.said")" = 1 ]
}

# Starts Python programs with the shim in the guest's background; prints their PIDs, one a line.
# usage: start_in_guest PROGRAM...
start_in_guest() {
  # shellcheck disable=SC2016
  in_guest sh -c 'shim=$1 python=$2; shift 2
    for program; do
      LD_PRELOAD=$shim setsid timeout --foreground '$((300 * SLOW))' "$python" "$program" >/dev/null 2>&1 &
    done
    for program; do
      for try in $(seq '$((15 * SLOW))'); do
        sleep 1
        pid=$(pgrep -f "^[^ ]*python[^ ]* $program") && grep -q stap "/proc/${pid%%[!0-9]*}/task/"*/comm && break
      done
      echo "$pid"
    done' sh "$shim" "$system" "$@"
}

end_in_guest() {
  in_guest kill "$@"
}

# The flags of open(2) that pyaudit names, a line each: NUMBER NAME.  Uses this machine's stap, because a stap that runs
# scripts in a guest assumes the guest's architecture.
# usage: open_flags FOLDER STAP'S ARGUMENTS..., where FOLDER has a kernel's build tree (test/lib/kernel-tree)
open_flags() {
  command stap -p1 -r "$1" "${@:2}" "$top/scripts/pyaudit.stp" 2>/dev/null |
    sed -n 's/^(flag_names\[\([0-9]*\)\]) = ("\(O_[A-Z]*\)");$/\1 \2/p'
}

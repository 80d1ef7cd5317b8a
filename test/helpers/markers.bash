# shellcheck shell=bash
# The markers: the shim's, their probe points, and those built into a CPython.
#
# SPDX-License-Identifier: MIT

# The shim's markers, one a line.
markers() {
  sed -n 's/.* probe \([a-z_]*\)(.*/\1/p' "$top/probes/python.d"
}

# Their probe points, without "python.", one a line.
probe_points() {
  "$top/test/probe-points" | cut -d' ' -f1
}

# How many sites each marker has in the shim: two on x86-64, else one.
sites_of_each() {
  readelf --wide --notes "${1:-$shim}" | grep -c 'Name: gc__start$'
}

# The markers built into the file $2 that fire in the version of $1, a path of pythons(), by
# probes/native.list.
own_markers() {
  local version
  version=$(version_of "$1")
  readelf --wide --notes "$2" |
    awk -v minor="${version#3.}" '
      FILENAME == "-" { if (/Provider: python$/) ours = 1; else if (ours && /Name: /) { there[$2]; ours = 0 } next }
      /^(live|partly|fires) / && $3 <= minor && ($4 == "-" || minor <= $4) && ($2 in there) { print $2 }' - "$top/probes/native.list"
}

# The events of PROGRAM as PYTHON itself sees them, without the shim (expect.py): all are in $expected,
# entries and returns of functions in $expected.functions, lines in $expected.lines, and what the program
# printed in $expected.printed.
# usage: expect_events PYTHON PROGRAM
expect_events() {
  expected=$BATS_TEST_TMPDIR/expected
  EXPECT=$expected "$1" "$top/test/expect.py" "$2" >"$expected.printed"
  LINES=1 EXPECT=$expected.lines "$1" "$top/test/expect.py" "$2" >/dev/null
  grep '^[<>]' "$expected" >"$expected.functions"
  cat "$expected.lines" >>"$expected"
}

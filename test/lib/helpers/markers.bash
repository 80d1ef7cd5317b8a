# shellcheck shell=bash
# Lists the shim's markers, their probe points, and a CPython's native markers.
#
# SPDX-License-Identifier: MIT

# The shim's markers, one a line.
markers() {
  sed -n 's/.* probe \([a-z_]*\)(.*/\1/p' "$top/probes/python.d"
}

# The markers in the ELF notes of a file, a line for each site: provider, name, and the size and sign of each argument.
# Leaves out the argument's register or address, which the compiler chooses: -4@%edi on x86-64, -4@[sp, #8] on ARM.
marker_notes() {
  readelf --wide --notes "$1" | awk '
    /Provider:/ { provider = $NF }
    /Name:/ { name = $NF }
    /Arguments:/ {
      gsub(/@(\[[^]]*\]|[^ ]*)/, "")
      print provider, name, substr($0, index($0, ":") + 2)
    }'
}

# The probe points of the shim's markers, without "python.", one a line.
probe_points() {
  "$top/test/lib/probe-points" | cut -d' ' -f1
}

# How many sites each marker has in the shim: two on x86-64, else one.
sites_of_each() {
  readelf --wide --notes "${1:-$shim}" | grep -c 'Name: gc__start$'
}

# The native markers in the file $2 that fire in the version of the interpreter $1, by probes/native.list.  $3: only
# those of these kinds, live|fires.
own_markers() {
  local version
  version=$(version_of "$1")
  readelf --wide --notes "$2" |
    awk -v minor="${version#3.}" -v kinds="^(${3:-live|partly|fires})\$" '
      FILENAME == "-" { if (/Provider: python$/) ours = 1; else if (ours && /Name: /) { there[$2]; ours = 0 } next }
      $1 ~ kinds && $3 <= minor && ($4 == "-" || minor <= $4) && ($2 in there) { print $2 }' - "$top/probes/native.list"
}

# The events of PROGRAM as PYTHON itself reports them, without the shim (expect.py): all in $expected, entries and
# returns of functions in $expected.functions, lines in $expected.lines; the program's output in $expected.printed.
# usage: expect_events PYTHON PROGRAM
expect_events() {
  expected=$BATS_TEST_TMPDIR/expected
  EXPECT=$expected "$1" "$top/test/lib/expect.py" "$2" >"$expected.printed"
  LINES=1 EXPECT=$expected.lines "$1" "$top/test/lib/expect.py" "$2" >/dev/null
  grep '^[<>]' "$expected" >"$expected.functions"
  cat "$expected.lines" >>"$expected"
}

# Makes taker.so in the folder $1.  Preloaded behind the shim, it maps a page at each of these addresses before the shim
# reads them, because the constructors of the last library run first.
# usage: make_taker FOLDER ADDRESS...
make_taker() {
  gcc -shared -fPIC -DADDRESSES="$(printf '%s,' "${@:2}")" -o "$1/taker.so" -x c - <<'C'
#include <sys/mman.h>
__attribute__((constructor)) static void take(void)
{
    static const unsigned long addresses[] = {ADDRESSES};
    for (int i = 0; i < (int)(sizeof addresses / sizeof *addresses); i++) {
        char *page = mmap((void *)addresses[i], 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        page[0] = 'x';
    }
}
C
}

# The folders of the sources include each other in one order only, and each struct of CPython is in one file only.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  cd "$top" || return
}

@test "a folder includes itself and folders below it, nothing else" {
  local folder below bad=''
  while IFS=: read -r folder below; do
    compgen -G "$folder/*" >/dev/null || bad+="there is no $folder"$'\n'
    bad+=$(grep -nH '^#include "' "$folder"/*.[ch] "$folder"/*.in 2>/dev/null |
      grep -vE "\"(generated/|${below// /|})" || true)
  done <<'ORDER'
probes/shared:shared/
probes/shim/os:shared/ os/
probes/shim/cpython:shared/ os/ cpython/
probes/shim/markers:shared/ os/ cpython/ markers/
probes/shim/sums:shared/ os/ cpython/ markers/ sums/
probes/shim/hooks:shared/ os/ cpython/ markers/ sums/ hooks/
probes/shim/core:shared/ os/ cpython/ markers/ sums/ hooks/ core/
probes/stap-python/lib:shared/ lib/
probes/stap-python/systemtap:shared/ lib/ systemtap/
probes/stap-python/attach:shared/ lib/ attach/
probes/stap-python/script:shared/ lib/ systemtap/ attach/ script/
probes/stap-python/doctor:shared/ lib/ systemtap/ attach/ doctor/
probes/stap-python:shared/ lib/ systemtap/ attach/ script/ profile/ doctor/ commands.h
tapset/embedded:shared/ embedded/
tapset:shared/ embedded/
ORDER
  [ -z "$bad" ] || {
    echo "$bad"
    false
  }
}

@test "each source is in a folder that the order names" {
  local others
  others=$(find probes -name '*.[ch]' | grep -vE '^probes/(shared|shim/(os|cpython|markers|sums|hooks|core)|stap-python(/(lib|systemtap|attach|script|profile|doctor))?)/[a-z0-9_]+\.[ch]$' || true)
  [ -z "$others" ] || {
    echo "$others"
    false
  }
}

@test "the structs of CPython, and which version has which, are in probes/shared alone" {
  local found
  found=$(grep -nE '^struct Py[A-Z]\w* \{|\bminor *([<>]=?|[!=]=) *[0-9]' -r tapset --include='*.c' --include='*.h' --include='*.stp' --include='*.in' || true)
  [ -z "$found" ] || {
    echo "$found"
    false
  }
}

@test "a newer CPYTHON_NEWEST_MINOR does not compile before each table and struct has been compared" {
  need gcc
  local shared=$BATS_TEST_TMPDIR/shared compared named
  cp -r probes/shared "$shared"
  sed -i -E 's/(CPYTHON_NEWEST_MINOR = )[0-9]+,/\199,/' "$shared/versions.h"
  grep -q 'CPYTHON_NEWEST_MINOR = 99,' "$shared/versions.h"
  compared=$(grep -hc '^COMPARED_WITH(' "$shared"/cpython_{objects,structs}.h | awk '{ n += $1 } END { print n }')
  run env LC_ALL=C gcc -std=c11 -D_GNU_SOURCE -fsyntax-only -fmax-errors=0 -I"$BATS_TEST_TMPDIR" -x c -include "$shared/cpython_structs.h" /dev/null
  [ "$status" != 0 ]
  named=$(grep -c 'error: static assertion failed: "compare with the newest CPython, and adapt: ' <<<"$output")
  echo "$compared to compare, $named named"
  [ "$compared" -gt 20 ] && [ "$named" = "$compared" ]
  run gcc -std=c11 -D_GNU_SOURCE -fsyntax-only -Iprobes -x c -include probes/shared/cpython_structs.h /dev/null
  [ "$status" = 0 ]
}

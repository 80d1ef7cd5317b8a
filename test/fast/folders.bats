# The folders of the sources, in the order in which they use each other, and what is in one place alone.
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
probes/stap-python/attach:shared/ lib/ attach/
probes/stap-python/script:shared/ lib/ attach/ script/
probes/stap-python/doctor:shared/ lib/ attach/ doctor/
probes/stap-python:shared/ lib/ attach/ script/ doctor/ commands.h
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
  others=$(find probes -name '*.[ch]' | grep -vE '^probes/(shared|shim/(os|cpython|markers|sums|hooks|core)|stap-python(/(lib|attach|script|doctor))?)/[a-z0-9_]+\.[ch]$' || true)
  [ -z "$others" ] || {
    echo "$others"
    false
  }
}

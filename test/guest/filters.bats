# python.filtered.*: a script has the functions that it names, whatever others ask for.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  need_live_stap
}

@test "a script has the functions that it names, the shim is asked for these, and others have theirs" {
  local python script=$BATS_TEST_TMPDIR/filter.stp
  cat >"$BATS_TEST_TMPDIR/filtered.py" <<'EOF'
import math

def area(n):
    return math.sqrt(n)

def total(n):
    return sum(area(i) for i in range(n))

def fails():
    raise ValueError("on purpose")

total(3)
try:
    fails()
except ValueError:
    pass
EOF
  cat >"$script" <<'EOF'
probe begin { python_filter(@1) }
probe python.filtered.function.entry { printf("> %s %s\n", funcname, modulename) }
probe python.filtered.function.return { printf("< %s %s %s\n", funcname, resultstr, exceptionstr) }
probe python.filtered.line { printf(". %s %d\n", funcname, lineno) }
probe python.filtered.cfunction.entry { printf("( %s by %s\n", funcname, caller) }
probe python.filtered.cfunction.return { printf(") %s by %s\n", funcname, caller) }
probe python.filtered.exception { printf("! %s in %s\n", exceptionstr, funcname) }
EOF
  for python in $(guest_pythons); do
    echo "$python"
    # the process's own patterns are for other functions: these are not the script's
    run stap "$script" '__main__.area */filtered.py:fails' -c "env PYTHON_STAP_DEBUG=1 PYTHON_STAP_FILTER=total \
      LD_PRELOAD=$shim $python $BATS_TEST_TMPDIR/filtered.py"
    echo "$output"
    [ "$status" = 0 ]
    diff - <(grep '^[<>.()!] ' <<<"$output") <<'EOF'
> area __main__
. area 4
( sqrt by area
) sqrt by area
< area 0.0 
> area __main__
. area 4
( sqrt by area
) sqrt by area
< area 1.0 
> area __main__
. area 4
( sqrt by area
) sqrt by area
< area 1.4142135623730951 
> fails __main__
. fails 10
! ValueError('on purpose') in fails
< fails  ValueError('on purpose')
EOF
    grep -F 'filter: total  __main__.area */filtered.py:fails' <<<"$output"
  done
}

@test "without python_filter() it is all functions, and too many patterns are refused in a line" {
  run stap -e 'probe python.filtered.function.entry { printf("> %s\n", funcname) }' \
    -c "env PYTHON_STAP_FILTER=total LD_PRELOAD=$shim $(system_python) $top/test/workloads/call_stack.py"
  [ "$(grep -c '^> area' <<<"$output")" = 2 ]
  [ "$(grep -c '^> sum_up' <<<"$output")" = 3 ]
  run stap -e 'probe begin { for (i = 0; i < 12; i++) python_filter("app.views.patterns_that_are_as_long_as_can_be_*") }
    probe python.filtered.function.entry { printf("> %s\n", funcname) }'
  echo "$output"
  [ "$status" != 0 ]
  [[ $output == *"python_filter(): the patterns are longer than a string may be (-DMAXSTRINGLEN=1024)"* ]]
}

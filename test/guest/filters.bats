# python.filtered.*: a script has the functions that it names, whatever others ask for.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

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
  need_time
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

@test "five scripts with patterns of their own that come and go for a minute have each call of their functions, and no other" {
  need_time
  local number session pids output seen=0
  cat >"$BATS_TEST_TMPDIR/rounds.py" <<'EOF'
import time

def f_1(number): pass
def f_2(number): pass
def f_3(number): pass
def f_4(number): pass
def f_5(number): pass
def other(): pass

number = 0
while True:
    number += 1
    for of, function in enumerate((f_1, f_2, f_3, f_4, f_5), 1):
        for _ in range(3 * of):
            function(number)
            other()
    time.sleep(0.02)
EOF
  cat >"$BATS_TEST_TMPDIR/counts.stp" <<'EOF'
global entries[20000], returns[20000]
probe begin { python_filter(@1) }
probe python.filtered.function.entry { entries[python_local_int(frameptr, "number"), funcname]++ }
probe python.filtered.function.return { returns[python_local_int(frameptr, "number"), funcname]++ }
probe timer.s(6) { exit() }
probe end { foreach ([number+, name] in entries) printf("%d %s %d %d\n", number, name, entries[number, name], returns[number, name]) }
EOF
  # shellcheck disable=SC2034 # for start_in_guest
  system=$(system_python)
  pids=$(start_in_guest "$BATS_TEST_TMPDIR/rounds.py")
  for number in 1 2 3 4 5; do
    for session in 1 2 3 4 5 6; do
      sleep 0.$((number * 2 - 1))
      stap "$BATS_TEST_TMPDIR/counts.stp" "*/rounds.py:f_$number" \
        >"$BATS_TEST_TMPDIR/counts.$number.$session"
    done &
  done
  wait
  end_in_guest "$pids"
  for output in "$BATS_TEST_TMPDIR"/counts.?.?; do
    number=${output%.*} number=${number##*.}
    echo "$output: $(wc -l <"$output") rounds, $(head -n 1 "$output") to $(tail -n 1 "$output")"
    # a round in which it came or went may be there in part
    sed '1d; $d' "$output" | awk -v name="f_$number" -v each=$((3 * number)) '
      { rounds++; first = first ? first : $1; last = $1 }
      $2 != name || $3 != each || $4 != each { print "wrong:", $0; wrong++ }
      END { exit wrong || rounds < 20 || rounds != last - first + 1 }'
    seen=$((seen + 1))
  done
  [ "$seen" = 30 ]
}

# The program says where the tracer is to write: what it asks for, and the distance of samples.
@test "a handler writes nowhere but into the program's own memory, and not far" {
  local folder=$BATS_TEST_TMPDIR output=$BATS_TEST_TMPDIR/output
  need gcc
  gcc -shared -fPIC -o "$folder/memory.so" -x c - <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define AT ((char *)0x20000000)
__attribute__((constructor)) static void make(void)
{
    mmap(AT, 0x10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(AT, 0, 0x10000);
    memset(AT + 0x8000, 'x', 5000);
}
__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "<%s> <%s> %ld\n", AT, AT + 0x8000 + 5000, *(long *)(AT + 0x4000));
}
C
  cat >"$folder/victim.stp" <<'EOF_STP'
%{ static struct { s64 number; char text[4096]; } victim; %}
function address:long() %{ STAP_RETVALUE = (unsigned long)&victim; %}
function untouched:long() %{ STAP_RETVALUE = victim.number == 0 && memchr_inv(victim.text, 0, sizeof victim.text) == NULL; %}
probe procfs("victim").read { $value = sprintf("%d", address()) }
probe begin { python_filter("named"); python_memory_period(4096) }
probe python.filtered.function.entry, python.memory.sample {}
probe end { println("the kernel's memory: ", untouched() ? "untouched" : "written to") }
EOF_STP
  cat >"$folder/command" <<EOF_SH
at=\$(cat /proc/systemtap/*/victim)
{
  printf 'memory__period 0x%x\nfilter 0x%x 4096\n' \$at \$((at + 8))
  # the ends of both halves of the address space, and what is in neither
  for at in 0x7ffffffffff9 0x7ffffffff000 0x7fffffffffff 0x8000000000000000 0xfffffffffffffff9 0xffffffffffffffff; do
    printf 'memory__period %s\nfilter %s 4096\nfilter %s -1\n' \$at \$at \$at
  done
  printf 'memory__period 0x20004000\nfilter 0x20000000 4096\nfilter 0x20008000 32768\n'
} >$folder/events
dmesg | grep -c 'WARNING\|BUG' >$folder/before
LD_PRELOAD=$folder/memory.so $driver $folder/events
dmesg | grep -c 'WARNING\|BUG' >$folder/after
:
EOF_SH
  SYSTEMTAP_TAPSET=$tapsets/test/tapset stap -g -o "$output" -c "sh $folder/command" "$folder/victim.stp" 2>"$folder/errors"
  cat "$output" "$folder/errors" "$folder/events"
  grep -qx "the kernel's memory: untouched" "$output"
  grep -qx '< named > <> 4096' "$folder/errors"
  diff "$folder/before" "$folder/after"
}

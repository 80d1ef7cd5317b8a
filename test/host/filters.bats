# The filtered markers fire for the functions that match a pattern, and the plain markers for all functions.
#
# copy of the shim
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
  # enough for the lines that run while a Python starts; bpftrace drops further keys without a message
  export BPFTRACE_MAP_KEYS_MAX=30000
}

teardown() {
  kill_jobs
}

# A bpftrace program that counts the events of each function, of the markers with the prefix $1.
counts() {
  cat <<EOF
usdt:$shim:python:${1:-}function__entry { @entries[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:${1:-}function__return { @returns[str(arg0), str(arg1)] = count(); }
usdt:$shim:python:${1:-}line { @lines[str(arg0), str(arg1), arg2] = count(); }
usdt:$shim:python:${1:-}exception__raise { @raises[str(arg0), str(arg1), arg2, str(arg4)] = count(); }
EOF
}

# A bpftrace program that counts the calls of C functions by file and line, of the markers with the prefix $1.
c_counts() {
  cat <<EOF
usdt:$shim:python:$1cfunction__entry { @calls[str(arg0), str(arg1), arg2] = count(); }
usdt:$shim:python:$1cfunction__return { @ends[str(arg0), str(arg1), arg2] = count(); }
EOF
}

# The sorted lines of the trace about the workload; with $1 only those that match this regular expression.
of_workload() {
  grep -F "$BATS_TEST_TMPDIR/" "$trace" | grep -E "${1:-.}" | sort
}

@test "a pattern names functions by module, by file or alone" {
  cat >"$BATS_TEST_TMPDIR/match.c" <<'EOF'
#include <stdio.h>
#include "shared/pattern.h"
int main(int count, char **words)
{
    (void)count;
    puts(pattern_matches(words[1], words[2], words[3], words[4]) ? "yes" : "no");
}
EOF
  cc -Wall -Wextra -Werror -I"$top/probes" -o "$BATS_TEST_TMPDIR/match" "$BATS_TEST_TMPDIR/match.c"
  local says patterns filename module function
  while read -r says patterns filename module function; do
    [ "$module" != - ] || module=
    echo "$says $patterns $filename $module $function"
    [ "$("$BATS_TEST_TMPDIR/match" "${patterns//,/ }" "$filename" "$module" "$function")" = "$says" ]
  done <<'EOF'
yes , /app/views.py app.views index
yes * /app/views.py app.views index
yes app.views.* /app/views.py app.views index
no app.views.* /app/viewsets.py app.viewsets index
yes app.* /app/viewsets.py app.viewsets index
yes *.execute /db.py db.cursor execute
yes *.execute /db.py - execute
no *.execute /db.py db.cursor execute_many
yes execute /db.py db.cursor execute
no execute /db.py execute run
yes exec* /db.py db execute_many
yes *ec?t* /db.py db execute
no ?xec /db.py db execute
yes */app/views.py:* /srv/app/views.py __main__ index
no */app/views.py:* /srv/app/views.pyc __main__ index
yes */views.py:index /srv/app/views.py __main__ index
no */views.py:index /srv/app/views.py __main__ indexes
yes a:b:c a:b m c
yes views.py:index /srv/app/views.py __main__ index
yes ./app/views.py:index /srv/app/views.py __main__ index
yes app/views.py:* app/views.py __main__ index
yes ./views.py:* ./views.py __main__ index
yes vi*.py:* /srv/app/views.py __main__ index
no iews.py:index /srv/app/views.py __main__ index
no /app/views.py:index /srv/app/views.py __main__ index
no ?iews.py:index /srv/app/views.py __main__ index
yes x,,index,y /app/views.py app.views index
no x,app.index,y /app/views.py app.views index
yes *a*a*b /f.py m aaaaaaaaaaaaaaab
no *a*a*b /f.py m aaaaaaaaaaaaaaac
yes <lambda> /f.py m <lambda>
EOF
  # nothing at all
  [ "$("$BATS_TEST_TMPDIR/match" '' f m g)" = yes ]
}

@test "a name of a megabyte and a pattern of many stars take no time that a program would notice" {
  cat >"$BATS_TEST_TMPDIR/long.c" <<'EOF'
#include <stdio.h>
#include <string.h>
#include "shared/pattern.h"
static char name[1 << 20], pattern[4000];
int main(void)
{
    memset(name, 'a', sizeof name - 1);
    memset(pattern, 'a', sizeof pattern - 1);
    pattern[0] = '*';
    pattern[sizeof pattern - 2] = 'b';
    printf("%d", pattern_matches(pattern, "f", "m", name));
    for (unsigned i = 0; i + 3 < sizeof pattern; i += 3)
        memcpy(pattern + i, "*x ", 3);
    printf("%d", pattern_matches(pattern, "f", "m", name));
    printf("%d\n", pattern_matches("x *", "f", "m", name));
}
EOF
  cc -O2 -Wall -Wextra -Werror -I"$top/probes" -o "$BATS_TEST_TMPDIR/long" "$BATS_TEST_TMPDIR/long.c"
  # without a limit some ten seconds
  [ "$(timeout -k 1 $((2 * SLOW)) "$BATS_TEST_TMPDIR/long")" = 001 ]
}

@test "what is filtered is what the plain markers say of those functions" {
  local python name
  for name in semantics ${EVERY:+call_stack}; do
    cp "$top/test/workloads/$name.py" "$BATS_TEST_TMPDIR"
    for python in $(few_pythons); do
      echo "$python $name"
      LD_PRELOAD=$shim bpftrace_while "$(counts)" "$python" "$BATS_TEST_TMPDIR/$name.py" >/dev/null
      of_workload '\.py, [a-m]' >"$BATS_TEST_TMPDIR/expected"
      of_workload >"$BATS_TEST_TMPDIR/all"
      [ "$(wc -l <"$BATS_TEST_TMPDIR/expected")" -ge 5 ]
      [ "$(wc -l <"$BATS_TEST_TMPDIR/all")" -gt "$(wc -l <"$BATS_TEST_TMPDIR/expected")" ]
      # alone: the other functions' events are switched off
      LD_PRELOAD=$shim PYTHON_STAP_FILTER=$(printf '%s* ' {a..m}) \
        bpftrace_while "$(counts filtered__)" "$python" "$BATS_TEST_TMPDIR/$name.py" >/dev/null
      diff "$BATS_TEST_TMPDIR/expected" <(of_workload)
      # without patterns
      LD_PRELOAD=$shim bpftrace_while "$(counts filtered__)" "$python" "$BATS_TEST_TMPDIR/$name.py" >/dev/null
      diff "$BATS_TEST_TMPDIR/all" <(of_workload)
    done
  done
}

@test "so it is for calls of C functions, by the function that calls" {
  local python
  for python in $(few_pythons); do
    echo "$python"
    cat >"$BATS_TEST_TMPDIR/c.py" <<'EOF'
import math

def chosen():
    for i in range(30):
        math.sqrt(i)
    try:
        math.sqrt(-1)
    except ValueError:
        pass

def other():
    for i in range(20):
        math.sqrt(i)

for _ in range(3):
    chosen()
    other()
EOF
    LD_PRELOAD=$shim PYTHON_STAP_FILTER='*/c.py:chosen' bpftrace_while "$(c_counts filtered__)" "$python" "$BATS_TEST_TMPDIR/c.py"
    diff - <(grep -F /c.py, "$trace" | grep -F sqrt | sort) <<EOF
@calls[$BATS_TEST_TMPDIR/c.py, sqrt, 5]: 90
@calls[$BATS_TEST_TMPDIR/c.py, sqrt, 7]: 3
@ends[$BATS_TEST_TMPDIR/c.py, sqrt, 5]: 90
@ends[$BATS_TEST_TMPDIR/c.py, sqrt, 7]: 3
EOF
  done
}

@test "stap-python filter changes them while the program runs, and entries stay even with returns" {
  local python phase
  cat >"$BATS_TEST_TMPDIR/turns.py" <<'EOF'
import os, subprocess, sys, threading, time

def one():
    pass

def two():
    pass

def inner():
    while not ended:
        one()
        two()
        time.sleep(0.002)

def outer():
    inner()

def phase(*arguments):
    "What the thread does between two marks has these patterns."
    subprocess.check_call([sys.argv[1], "filter"] + list(arguments), env={})
    time.sleep(0.3)
    mark()
    time.sleep(0.2)
    mark()

def mark():
    try:
        import mark_that_is_not_there
    except ImportError:
        pass

ended = []
thread = threading.Thread(target=outer)
thread.start()
pid = str(os.getpid())
phase(pid, "one")
phase(pid, "outer", "two")
phase(pid, "*/turns.py:inner", "one", "outer")
phase("--all", pid)
ended.append(1)
thread.join()
EOF
  for python in $(few_pythons); do
    echo "$python"
    LD_PRELOAD=$shim PYTHON_STAP_FILTER=none bpftrace_while "
usdt:$shim:python:filtered__function__entry { printf(\"%lu > %s %s\\n\", nsecs, str(arg1), str(arg0)); }
usdt:$shim:python:filtered__function__return { printf(\"%lu < %s %s\\n\", nsecs, str(arg1), str(arg0)); }
usdt:$shim:python:import__find__load__start { printf(\"%lu %s\\n\", nsecs, str(arg0)); }" "$python" "$BATS_TEST_TMPDIR/turns.py" "$top/build/stap-python"
    sort -n -o "$trace" "$trace" # each processor has a buffer of its own
    for phase in 1:one 3:two 5:one 7:one,two; do
      diff <(tr , '\n' <<<"${phase#*:}") \
        <(awk '/mark_that/ { n++ } n == '"${phase%:*}"' && /turns.py/ { print $3 }' "$trace" | grep -vx mark | sort -u)
    done
    for phase in outer inner; do
      [ "$(grep -c "> $phase " "$trace")" = 1 ]
      [ "$(grep -c "< $phase " "$trace")" = 1 ]
    done
    # each is no longer named once, perhaps while it runs
    for phase in one two; do
      [[ $(($(grep -c "> $phase " "$trace") - $(grep -c "< $phase " "$trace"))) == [01] ]]
    done
    refute grep '> <module> .*turns.py' <(sed '/> outer/q' "$trace")
  done
}

@test "a tracer without patterns beside one with them, that comes and goes, has everything" {
  local python plain
  cat >"$BATS_TEST_TMPDIR/beside.py" <<'EOF'
import os, sys, time

def chosen():
    pass

def other():
    pass

while not os.path.exists(sys.argv[1]):
    for _ in range(50):
        chosen()
        other()
    time.sleep(0.01)
EOF
  # the newest, for which what was switched off must come back
  for python in $(pythons_by_hook | tail -n 1); do
    echo "$python"
    # what has come and gone by itself, with the filtered one alone before and after
    cat >"$BATS_TEST_TMPDIR/comes" <<'SH'
rm -f "$BATS_TEST_TMPDIR/end"
LD_PRELOAD=$shim "$python" "$BATS_TEST_TMPDIR/beside.py" "$BATS_TEST_TMPDIR/end" &
sleep 0.9
bpftrace -q -e "usdt:$shim:python:function__entry { @[str(arg1)] = count(); if (str(arg1) == \"other\") { @others = @others + 1; if (@others == 200) { exit(); } } }" >"$BATS_TEST_TMPDIR/plain"
sleep 0.5
touch "$BATS_TEST_TMPDIR/end"
wait $!
SH
    export python
    PYTHON_STAP_FILTER='*/beside.py:chosen' bpftrace_while "
usdt:$shim:python:filtered__function__entry { @[str(arg1)] = count(); }
usdt:$shim:python:filtered__function__return { @ends[str(arg1)] = count(); }" bash "$BATS_TEST_TMPDIR/comes"
    cat "$BATS_TEST_TMPDIR/plain" "$trace"
    plain=$(sed -n 's/^@\[other\]: //p' "$BATS_TEST_TMPDIR/plain")
    [ "$plain" -gt 100 ]
    [ $((plain - $(sed -n 's/^@\[chosen\]: //p' "$BATS_TEST_TMPDIR/plain"))) -le 1 ]
    refute grep -e other -e module "$trace"
    [ "$(sed -n 's/^@\[chosen\]: //p' "$trace")" -gt "$plain" ]
    [ "$(sed -n 's/^@\[chosen\]: //p' "$trace")" = "$(sed -n 's/^@ends\[chosen\]: //p' "$trace")" ]
  done
}

@test "from 3.12 on functions that no pattern names call the shim once for each place, and the others each time" {
  local python pythons callback counts
  pythons=$(pythons | with_minor | awk '$1 + 0 >= 12 { print $2 }')
  [ "$pythons" ] || skip "needs a CPython from 3.12 on"
  cat >"$BATS_TEST_TMPDIR/places.py" <<'EOF'
def chosen():
    pass

def other():
    for i in range(3):
        len("x")
    yield

def calls_no_function_in_c():
    chosen_by_none()

def chosen_by_none():
    pass

for _ in range(500):
    chosen()
for _ in range(2000):
    list(other())
    calls_no_function_in_c()
EOF
  for python in $pythons; do
    echo "$python"
    # by the code objects that sys.monitoring calls them for
    LD_PRELOAD=$shim PYTHON_STAP_FILTER='*/places.py:chosen' bpftrace_while "
$(markers | sed -n "s|^filtered__.*|usdt:$shim:python:& { @events = count(); }|p")
$(for callback in start resume return line jump call; do
      echo "uprobe:$shim:on_$callback { @${callback}[*(uint64 *)arg1] = count(); }"
    done)" "$python" -I -S "$BATS_TEST_TMPDIR/places.py"
    for callback in start resume return line jump call; do
      counts=$(sed -nE "s/^@$callback\[[0-9]+\]: ([0-9]+)$/\1/p" "$trace" | sort -n)
      echo "$callback: ${counts//$'\n'/ }"
      case $callback in
        # a few more than once, where patterns or markers have changed
        start | return) [ "$(tail -n 1 <<<"$counts") $(($(tail -n 2 <<<"$counts" | head -n 1) < 100))" = '500 1' ] ;;
        resume) [ "$(tail -n 1 <<<"$counts")" -lt 100 ] ;;
        # few of the thousands in other(), but a code object may have hundreds of instructions with this event
        *) [ "$(tail -n 1 <<<"$counts")" -lt 2000 ] ;;
      esac
    done
    # without the markers of functions, for which all functions are compared with the patterns
    LD_PRELOAD=$shim PYTHON_STAP_FILTER='*/places.py:chosen' bpftrace_while "
usdt:$shim:python:filtered__cfunction__entry { @events = count(); }
uprobe:$shim:on_call { @call[*(uint64 *)arg1] = count(); }" "$python" -I -S "$BATS_TEST_TMPDIR/places.py"
    counts=$(sed -nE 's/^@call\[[0-9]+\]: ([0-9]+)$/\1/p' "$trace" | sort -n | tail -n 1)
    echo "call alone: $counts"
    [ "$counts" -gt 0 ] && [ "$counts" -lt 2000 ]
  done
}

@test "stap-python filter says what is wrong, in one line" {
  run "$top/build/stap-python" filter
  [ "$status" = 2 ]
  run "$top/build/stap-python" filter $$ x
  echo "$output"
  [ "$status" = 1 ]
  [ "${#lines[@]}" = 1 ]
  run "$top/build/stap-python" filter 1 'a b'
  [ "$status" = 2 ]
  [[ $output == *"'a b' is empty or contains a space"* ]]
  run "$top/build/stap-python" filter 1 "$(printf '%05000d' 1)"
  [ "$status" = 2 ]
  [[ $output == *"more than 4071 bytes"* ]]
}

@test "a CPython that starts anew in its process has the functions that are named, where others were before" {
  need gcc
  local library name=places.of.$$
  for library in $(libpythons); do
    echo "$library"
    embed "$library" "$BATS_TEST_TMPDIR/embed"
    # the same text but for the names, so that much of it has the same addresses
    LD_PRELOAD=$shim PYTHONHOME=${library%/lib/*} PYTHON_STAP_FILTER="$name:chosen_*" \
      bpftrace_while "usdt:$shim:python:filtered__function__entry { @[str(arg0)] = count(); }" "$BATS_TEST_TMPDIR/embed" 6 "
import os
turn = int(os.environ.get('TURN', '0')) + 1
os.environ['TURN'] = str(turn)
names = {}
exec(compile('\n'.join('def %s_%03d(): pass' % ('chosen' if turn % 2 == 0 else 'others', i) for i in range(500)), '$name', 'exec'), names)
for _ in range(3):
    for i in range(500):
        names['%s_%03d' % ('chosen' if turn % 2 == 0 else 'others', i)]()
" >/dev/null
    [ "$(sed -n "s/^@\[$name\]: //p" "$trace")" = 4500 ]
  done
}

@test "a filtered marker fires for nothing else while the hooks of others are there and its own are not" {
  local python program
  cat >"$BATS_TEST_TMPDIR/lines.py" <<'EOF'
import time

def other():
    x = 1

end = time.time() + 4
while time.time() < end:
    other()
EOF
  for python in $(few_pythons); do
    echo "$python"
    LD_PRELOAD=$shim PYTHON_STAP_FILTER=none "$python" "$BATS_TEST_TMPDIR/lines.py" 3>&- &
    program=$!
    bpftrace_beside "usdt:$shim:python:line { @ = count(); }"
    sleep 0.3
    bpftrace_while "usdt:$shim:python:filtered__line { @[str(arg1)] = count(); }
      usdt:$shim:python:filtered__function__return { @ends[str(arg1)] = count(); }" sleep 0.5
    cat "$trace"
    refute grep '@' "$trace"
    end_bpftrace "$stays"
    wait "$program"
  done
}

@test "patterns are written to the page's second address if the program has its own use for the first" {
  make_taker "$BATS_TEST_TMPDIR" 0x5500707a0000
  LD_PRELOAD="$shim $BATS_TEST_TMPDIR/taker.so" /usr/bin/python3 -c 'import time; time.sleep(30)' 3>&- &
  for _ in {1..50}; do ! grep -q '^20707a0000-' /proc/$!/maps || break && sleep 0.1; done
  "$top/build/stap-python" filter $! 'app.*' chosen
  [ "$("$top/build/stap-python" filter $!)" = 'app.* chosen' ]
  kill $!
}

@test "patterns that were written in part, by a command that was killed, are used after a second" {
  local python
  cat >"$BATS_TEST_TMPDIR/odd.py" <<'EOF'
import os, sys, time

def chosen():
    pass

with open("/proc/self/mem", "r+b", 0) as memory:
    memory.seek(0x5500707a0004)  # filter_page.h, generation
    memory.write(b"\1")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
time.sleep(0.5 + int(os.environ["SLOW"]))
for _ in range(100):
    chosen()
time.sleep(0.2)
EOF
  for python in $(few_pythons); do
    echo "$python"
    rm -f "$BATS_TEST_TMPDIR/go"
    LD_PRELOAD=$shim PYTHON_STAP_FILTER=chosen "$python" "$BATS_TEST_TMPDIR/odd.py" "$BATS_TEST_TMPDIR/go" 3>&- &
    wait_for thread_has "$!" comm python-stap
    bpftrace_while "usdt:$shim:python:filtered__function__entry { @[str(arg1)] = count(); }" \
      bash -c "touch $BATS_TEST_TMPDIR/go; tail --pid=$! -f /dev/null"
    cat "$trace"
    grep -qx '@\[chosen\]: 100' "$trace"
  done
}

@test "from 3.12 on a tracer without patterns has everything also if it has followed another one at once" {
  local python pythons semaphore
  pythons=$(pythons | with_minor | awk '$1 + 0 >= 12 { print $2 }')
  [ "$pythons" ] || skip "needs a CPython from 3.12 on"
  semaphore=$(semaphore "$shim" function__entry)
  cat >"$BATS_TEST_TMPDIR/follows.py" <<'EOF'
import os, sys, time

def other():
    pass

for _ in range(50):
    other()
    time.sleep(0.005)
with open("/proc/self/maps") as maps:
    start = next(int(line.split("-")[0], 16) for line in maps if sys.argv[1] in line)
with open("/proc/self/mem", "r+b", 0) as memory:
    # as if one tracer of it ended and the next one began
    memory.seek(start + int(sys.argv[2], 16))
    before = memory.read(2)
    memory.seek(start + int(sys.argv[2], 16))
    memory.write(b"\0\0")
    for _ in range(10):
        other()
        time.sleep(0.001)
    memory.seek(start + int(sys.argv[2], 16))
    memory.write(before)
time.sleep(2 * int(os.environ["SLOW"]))  # the shim may have seen that there was none
for _ in range(100):
    other()
EOF
  for python in $pythons; do
    echo "$python"
    LD_PRELOAD=$shim PYTHON_STAP_FILTER=none bpftrace_while "usdt:$shim:python:function__entry { @[str(arg1)] = count(); }
      usdt:$shim:python:filtered__function__entry { @filtered[str(arg1)] = count(); }" \
      "$python" "$BATS_TEST_TMPDIR/follows.py" "$shim" "$semaphore"
    grep other "$trace"
    [ "$(sed -n 's/^@\[other\]: //p' "$trace")" -ge 150 ]
    refute grep @filtered "$trace"
  done
}

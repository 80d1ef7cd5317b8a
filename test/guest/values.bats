# Values in the kernel: arguments, variables, results and exceptions of a traced program.  test/host/library.bats
# has objects of all kinds, without a kernel.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  scripts_setup
}

# What each function of workloads/outcomes.py ends with.
outcomes() {
  cat <<'TEXT'
yields: 'first'
yields: 2
yields: None
returns: {'a': [1, 2.5]}
returns_none: None
raises: ! ValueError("it's", 3)
raises_in_c: ! ValueError("invalid literal for int() with base 10: 'x'")
raises_class: ! KeyError()
raises: ! ValueError("it's", 3)
passes_on: ! ValueError("it's", 3)
raises_own: ! Own('own', 7)
divides: ! ZeroDivisionError('integer division or modulo by zero')
loses: ! KeyError('key')
TEXT
}

@test "a return has what the function returned or yielded, or the exception that left it" {
  local python output=$BATS_TEST_TMPDIR/output
  for python in $(pythons_by_hook); do
    echo "LD_PRELOAD=$shim $python $top/test/workloads/outcomes.py"
    outcomes >>"$BATS_TEST_TMPDIR/expected"
  done >"$BATS_TEST_TMPDIR/all.sh"
  cat >"$BATS_TEST_TMPDIR/outcomes.stp" <<'STP'
probe python.shim.function.return {
  if (filename =~ "/outcomes.py$" && funcname !~ "^[<_O]")
    printf("%s: %s%s%s\n", funcname, resultstr, exception ? "! " : "", exceptionstr)
}
STP
  stap -o "$output" "$BATS_TEST_TMPDIR/outcomes.stp" -c "sh $BATS_TEST_TMPDIR/all.sh"
  # as 3.14 says it
  sed -i 's/integer division or modulo by zero/division by zero/' "$BATS_TEST_TMPDIR/expected" "$output"
  diff "$BATS_TEST_TMPDIR/expected" "$output"
}

@test "arguments, variables and what is found from them are read at entries, returns, and without a marker" {
  local python output=$BATS_TEST_TMPDIR/output
  cat >"$BATS_TEST_TMPDIR/values.py" <<'PY'
import os

class Request:
    def __init__(self, path):
        self.path = path
        self.headers = {"Host": "x.example", 5: [1, 2]}

    @property
    def secret(self):
        raise SystemExit("code of the program ran")

def view(request, pk=42, *rest, key, **more):
    query = "select '%d'" % pk
    os.getppid()
    return query

view(Request("/a"), 7, "z", key=2.5, other=None)
PY
  for python in $(pythons_by_hook); do
    echo "LD_PRELOAD=$shim $python $BATS_TEST_TMPDIR/values.py"
    cat >>"$BATS_TEST_TMPDIR/expected" <<'TEXT'
view(request=<__main__.Request>, pk=7, *('z',), key=2.5, **{'other': None})
'/a' 'x.example' 1 <computed> <not there> <unset>
getppid pk=7 "select '7'"
select '7' 7 request=<__main__.Request>, pk=7, key=2.5, rest=('z',), more={'other': None}, query="select '7'"
TEXT
  done >"$BATS_TEST_TMPDIR/all.sh"
  cat >"$BATS_TEST_TMPDIR/values.stp" <<'STP'
probe python.function.entry {
  if (funcname == "view")
    printf("view(%s)\n%s %s %s %s %s %s\n", python_args(frameptr), python_local(frameptr, "request.path"),
           python_local(frameptr, "request.headers['Host']"), python_local(frameptr, "request.headers[5][-2]"),
           python_local(frameptr, "request.secret"), python_local(frameptr, "request.none"), python_local(frameptr, "query"))
}
probe process.syscall {
  if (syscall_name($syscall) == "getppid" && python_funcname() == "view")
    printf("getppid pk=%d %s\n", python_local_int("pk"), python_local("query"))
}
probe python.function.return {
  if (funcname == "view")
    printf("%s %d %s\n", python_local_str(frameptr, "query"), python_local_int(frameptr, "pk"), python_locals(frameptr))
}
STP
  stap -o "$output" "$BATS_TEST_TMPDIR/values.stp" -c "sh $BATS_TEST_TMPDIR/all.sh"
  diff "$BATS_TEST_TMPDIR/expected" "$output"
}

watched_program() {
  cat >"$BATS_TEST_TMPDIR/watched.py" <<'PY'
import time

class Shop:
    def __init__(self, names):
        self.names = names

    @property
    def secret(self):
        raise SystemExit("code of the program ran")

def price(shop, item, *, rate=1.5):
    sleeps(0.05)
    found = shop.names[item]
    return found * rate

def sleeps(seconds):
    time.sleep(seconds)

def counts(n):
    yield from range(n)

shop = Shop(["tea", 8, {'k': "caf\u00e9\n"}])
price(shop, 1)
for item in 0, 7:
    try:
        price(shop, item, rate=2.5)
    except Exception:
        pass
list(counts(1))
PY
}

@test "pywatch prints each call with its arguments or what is asked for, what it ends with, and its time" {
  watched_program
  script pywatch -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py" '^(price|counts)$'
  sed -E 's/^[0-9]+[.][0-9]{6} python[0-9.]+\([0-9]+\): //; s/ <[0-9.]+>$//' "$printed" | diff - <(
    cat <<'TEXT'
price(shop=<__main__.Shop>, item=1, rate=1.5) = 12.0
price(shop=<__main__.Shop>, item=0, rate=2.5) ! TypeError("can't multiply sequence by non-int of type 'float'")
price(shop=<__main__.Shop>, item=7, rate=2.5) ! IndexError('list index out of range')
counts(n=1) = 0
counts(n=1) = None
TEXT
  )
  awk '/price/ && !/<0[.]0[5-9][0-9]+>$|<[0-9]+[.][1-9][0-9]+>$|<[1-9]/ { bad = 1 } END { exit bad || NR != 5 }' "$printed"
  script pywatch -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py" \
    '^price$' found shop.names "shop.names[2]['k']" shop.secret nothing
  sed -E 's/^.*price/price/; s/ <[0-9.]+>$//' "$printed" | head -n 2 | diff - <(
    cat <<'TEXT'
price(found=8, shop.names=['tea', 8, {'k': 'café\n'}], shop.names[2]['k']='café\n', shop.secret=<computed>, nothing=<not there>) = 12.0
price(found='tea', shop.names=['tea', 8, {'k': 'café\n'}], shop.names[2]['k']='café\n', shop.secret=<computed>, nothing=<not there>) ! TypeError("can't multiply sequence by non-int of type 'float'")
TEXT
  )
  grep -F 'price(found=<unset>, ' "$printed"
  script pywatch -G json=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py" '^price$' item "shop.names[2]['k']"
  jq -r '"\(.function) \(.values.item) \(.values["shop.names[2][\u0027k\u0027]"]) \(.result) \(.exception) \(.took_us > 50000)"' "$printed" |
    diff - <(
      cat <<'TEXT'
price 1 'café\n' 12.0 null true
price 0 'café\n' null TypeError("can't multiply sequence by non-int of type 'float'") true
price 7 'café\n' null IndexError('list index out of range') true
TEXT
    )
}

@test "pywatch refuses to watch nothing, and more than it can" {
  refuses "pywatch: REGEX is missing" pywatch
  refuses 'pywatch: six EXPRESSIONs at most; the next one is "g"' pywatch f a b c d e f g
}

@test "pyslow and pytrace have the arguments of calls" {
  watched_program
  script pyslow -G args=1 40 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py"
  grep -E '^[0-9.]+ ms python[0-9.]+\([0-9]+\) price\(shop=<__main__.Shop>, item=1, rate=1.5\)$' "$printed"
  script pyslow -G args=1 -G json=1 40 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py"
  jq -r 'select(.function == "sleeps") | .arguments' "$printed" | diff - <(yes seconds=0.05 | head -n 3)
  script pytrace -G args=1 -c "env LD_PRELOAD=$shim $system $BATS_TEST_TMPDIR/watched.py" watched.py
  jq -r '.[] | select(.name == "price") | .args.arguments, .args.result, .args.exception | select(.)' "$printed" | diff - <(
    cat <<'TEXT'
shop=<__main__.Shop>, item=1, rate=1.5
12.0
shop=<__main__.Shop>, item=0, rate=2.5
TypeError("can't multiply sequence by non-int of type 'float'")
shop=<__main__.Shop>, item=7, rate=2.5
IndexError('list index out of range')
TEXT
  )
}

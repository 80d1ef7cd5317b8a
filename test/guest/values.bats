# Values in the kernel: arguments, variables, results and exceptions of a traced program.  test/host/library.bats
# has objects of all kinds, without a kernel.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  need_live_stap
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

# Processes, threads and interpreters, and programs that embed CPython: each is seen, and does what
# it does without the shim.
#
# SPDX-License-Identifier: MIT

load helper

setup() {
  can_bpftrace
}

marked() {
  cat <<EOF
usdt:$shim:python:function__entry
/str(arg1) == "marked" || str(arg1) == "marked_inside" || str(arg1) == "marked_there"/
{ printf("> %s %s\n", str(arg0), str(arg1)); }
usdt:$shim:python:function__return
/str(arg1) == "marked" || str(arg1) == "marked_inside" || str(arg1) == "marked_there"/
{ printf("< %s %s\n", str(arg0), str(arg1)); }
EOF
}

@test "fork, exec, multiprocessing, threads and subinterpreters are seen from their start, and as without the shim" {
  local python name cases output=$BATS_TEST_TMPDIR/output
  cases=$(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$top/test/workloads/processes.py" | grep -vx -e marked -e executed)
  [ "$(wc -w <<<"$cases")" -ge 12 ]
  # A case is a file of its own, so that its events can be told from the others'.
  for name in $cases; do
    cp "$top/test/workloads/processes.py" "$BATS_TEST_TMPDIR/$name.py"
  done
  cat >"$BATS_TEST_TMPDIR/all" <<'SH'
for name in $cases; do
  timeout -k 1 30 "$python" -W ignore "$folder/$name.py" "$name" >"$folder/$name$1" 2>&1 || echo "status $?" >>"$folder/$name$1"
done
SH
  export cases python folder=$BATS_TEST_TMPDIR
  for python in $(pythons); do
    echo "$python"
    bash "$folder/all" .plain
    LD_PRELOAD=$shim bash "$folder/all" .loaded
    LD_PRELOAD=$shim TRACE_TIMEOUT=120 bpftrace_while "$(marked)" bash "$folder/all" .traced
    for name in $cases; do
      echo "$name: $(cat "$folder/$name.plain")"
      diff "$folder/$name".{plain,loaded}
      diff "$folder/$name".{plain,traced}
      case $name in
        interpreters) set -- ' .* marked_inside$' ;;
        interpreters_on_threads) set -- ' .* marked_there$' ;;
        *) set -- " $folder/$name.py marked$" ;;
      esac
      [ "$(grep -c "^>$1" "$trace")" = "$(grep -v status "$folder/$name.plain" | tail -1)" ]
      [ "$(grep -c "^<$1" "$trace")" = "$(grep -c "^>$1" "$trace")" ]
    done
  done
}

# The tasks of asyncio: which of them runs, and where and for what the others wait.
#
# SPDX-License-Identifier: MIT

load ../helper

setup() {
  scripts_setup
}

# The system's; with EVERY, and with those of a release, all that have tasks with names.
task_pythons() {
  local python
  for python in $(if [ -n "${EVERY:-}${ONLY_PYTHONS:-}" ]; then pythons; else system_python; fi); do
    ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || echo "$python"
  done
}

@test "python_task() and print_python_tasks() say what Python itself does of its tasks and their coroutines" {
  local python expected=$BATS_TEST_TMPDIR/expected
  cat >"$BATS_TEST_TMPDIR/tasks.stp" <<'STP'
probe process.syscall {
  if (syscall_name($syscall) != "getppid" || python_funcname() != "trigger") next
  print_python_tasks()
  printf("current: %s\n\n", python_task())
}
STP
  for python in $(task_pythons); do
    echo "$python"
    stap -o "$printed" "$BATS_TEST_TMPDIR/tasks.stp" -c "env LD_PRELOAD=$shim $python $top/test/workloads/tasks.py $expected"
    run "$system" "$top/test/workloads/tasks.py" check "$expected" "$printed"
    echo "$output"
    [[ $output =~ ([0-9]+)" tasks compared" ]]
    [ "${BASH_REMATCH[1]}" -gt 330 ]
  done
}

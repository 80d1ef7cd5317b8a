# The rules for code that tools can check.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  cd "$top" || return
}

# The C files of the shim and of stap-python.
c_files() {
  find probes -name '*.[ch]' | sort
}

@test "no script, and nothing of the tapset, calls execname(), of which the kernel may panic in an interrupt" {
  local code
  code=$(grep -nE '(^|[^_[:alnum:]])(execname|task_execname|pid2execname)\(' scripts/*.stp scripts/exporter/*.stp tapset/*.stp tapset/*.in |
    grep -vE '^[^:]*:[0-9]*:( *\*| *//|%? ?/\*)' || true)
  echo "$code"
  [ -z "$code" ]
}

# bats test_tags=slow
@test "ShellCheck finds nothing" {
  need shellcheck
  shell_files | xargs shellcheck
}

@test "shfmt has nothing to change" {
  need shfmt
  shell_files | grep -v '\.bats$' | xargs shfmt -i 2 -ci -d
  shell_files | grep '\.bats$' | xargs shfmt -ln bats -i 2 -ci -d
}

@test "clang-format has nothing to change" {
  need clang-format
  [[ $(clang-format --version) == *"version 14."* ]] ||
    skip "needs clang-format 14, with which the code is formatted: others differ in details"
  c_files | xargs clang-format --dry-run -Werror test/*.[ch] test/long/fuzz/*.[ch] test/long/stress/*.c test/long/cpython/*.c test/long/freethreaded/*.c test/tapset/*.c
}

@test "no function has more than 60 lines, or five levels (.clang-tidy)" {
  need clang-tidy
  local long sources
  mapfile -t sources < <(c_files | grep 'c$')
  long=$(clang-tidy --quiet "${sources[@]}" test/*.c -- -std=c11 -D_GNU_SOURCE -Iprobes -Iprobes/shim -Iprobes/stap-python -Ibuild 2>&1 |
    grep -E ': (warning|error): ' || true)
  [ -z "$long" ] || {
    echo "$long"
    false
  }
}

# bats test_tags=slow
@test "the shim, the launcher and the driver compile without a warning with gcc and with clang" {
  need gcc clang
  local compiler build sources
  mapfile -t sources < <(c_files | grep 'c$')
  for compiler in gcc clang; do
    # what other suites use is not made anew
    build=$BATS_TEST_TMPDIR/$compiler
    make -s CC=$compiler BUILD="$build" "$build"/generated/{markers_list,native_list,installed,flamegraph_js,functions_js}.h
    for file in "${sources[@]}" test/*.c test/long/stress/*.c test/long/cpython/*.c; do
      "$compiler" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wshadow -Werror -Iprobes -Iprobes/shim -Iprobes/stap-python -I"$build" \
        -fsyntax-only "$file"
    done
  done
}

# Compares names alone: one of an atomic_bool in one file, exchanged in another, is found too.
@test "the shim exchanges no atomic_bool, which needs libatomic on riscv64 (claim_flag, os/thread.h)" {
  local bools exchanged
  bools=$(c_files | xargs sed -nE 's/.*\batomic_bool ([a-z_, ]+).*/\1/p' | tr -d ' ' | tr , '\n' | sort -u)
  exchanged=$(c_files | xargs sed -nE 's/.*atomic_(exchange|compare_exchange_strong|compare_exchange_weak|fetch_or|fetch_and)(_explicit)?\(&([^,]*),.*/\3/p' |
    sed 's/.*[>.]//' | sort -u)
  grep -qx offsets_decided <<<"$bools"
  grep -qx arming <<<"$exchanged"
  diff <(comm -12 <(echo "$bools") <(echo "$exchanged")) /dev/null
}

@test "every source file names its licence" {
  local missing
  missing=$(project_files | grep -E '\.(c|h|d|awk|stp|bt|py|sh|bash|bats|list)$|^Makefile$' | xargs grep -L 'SPDX-License-Identifier: MIT') || true
  echo "$missing"
  [ -z "$missing" ]
}

# The shell expands such a name once, before wait_for runs, to the files that exist then.
@test "no test waits for a name with * that the shell has replaced already" {
  local found
  found=$(shell_files | grep '^test/' | xargs grep -nE 'wait_for .*/\*' || true)
  echo "$found"
  [ -z "$found" ]
}

@test "codespell knows every word" {
  need codespell
  project_files | xargs codespell
}

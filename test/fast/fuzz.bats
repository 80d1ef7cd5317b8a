# The fuzzers, each for some seconds, from its seeds.  "make check-fuzz" runs them longer.
#
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0
load ../lib/helper

setup() {
  need clang gcc objcopy python3
  compgen -G "$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer*.a" >/dev/null ||
    skip "needs clang's libFuzzer (Debian: libclang-rt-dev)"
}

# bats test_tags=slow
@test "fuzzing finds nothing in what reads ELF files, profiles, descriptions, /proc, command lines, the memory of processes and their sleeps" {
  timeout -k 5 $((300 * SLOW)) "$top/test/long/fuzz/run" --seconds 1 elf profiles calls sleeps ${EVERY:+proc objects descriptions words}
}

# bats test_tags=slow
@test "fuzzing finds nothing in the shim: names of all kinds arrive as they are" {
  compgen -G '/usr/lib/*/libpython3.*.so.1.0' >/dev/null || compgen -G '/usr/lib*/libpython3.*.so.1.0' >/dev/null ||
    skip "needs a libpython"
  timeout -k 5 $((300 * SLOW)) "$top/test/long/fuzz/run" --seconds 2 names
}

@test "hostile arguments stay text in the scripts, and hostile words in the completion" {
  need_stap
  timeout -k 5 $((300 * SLOW)) "$top/test/long/fuzz/run" --seconds 3 arguments
}

@test "test/long/fuzz/run refuses what it doesn't know" {
  run -2 "$top/test/long/fuzz/run" nothing
  [[ $output == *"there is no fuzzer 'nothing': take some of elf "* ]]
  run -2 "$top/test/long/fuzz/run" --seconds x
  [[ $output == *"--seconds takes a number"* ]]
  run -0 "$top/test/long/fuzz/run" --help
  [[ $output == *"usage: test/long/fuzz/run"* ]]
}

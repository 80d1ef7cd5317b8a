# The shim under ASan, UBSan and ThreadSanitizer, with all markers armed; "make check-memory" does the same in
# every interpreter, and also under valgrind, and "test/long/freethreaded/run tsan" with more workloads.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

# bats test_tags=slow
@test "ASan and UBSan find nothing in the shim while the workloads run" {
  need gcc
  [ -e "$(gcc -print-file-name=libasan.so)" ] || skip "needs gcc's libasan"
  [ -e "$(gcc -print-file-name=libubsan.so)" ] || skip "needs gcc's libubsan"
  local interpreters
  mapfile -t interpreters < <(pythons_by_hook | some 6)
  timeout -k 5 $((300 * SLOW)) "$top/test/long/memory/run" asan "${interpreters[@]}"
}

# bats test_tags=slow
@test "ThreadSanitizer finds nothing in the shim while threads call, raise, import, collect and fork without the GIL" {
  need gcc setarch
  [ -d "${FREETHREADED:-$top/build/freethreaded}/tsan" ] || skip "needs the CPython that test/long/freethreaded/build tsan makes"
  timeout -k 5 $((300 * SLOW)) "$top/test/long/freethreaded/tsan" in_threads.all in_threads.sums hostile.subinterpreters
}

@test "the functions of the shim that are named with ThreadSanitizer's known reports are there" {
  local name names
  mapfile -t names < <("$top/test/long/freethreaded/tsan" --known | cut -f 1 | grep -oE '[a-z][a-z0-9]*_[a-z0-9_]+' | grep -v '^pthread_')
  [ ${#names[@]} -ge 7 ]
  for name in "${names[@]}"; do
    grep -rqE "^[a-z][^;]*\\b$name\\([^;]*$" --include='*.[ch]' "$top/probes/shim" "$top/probes/shared" || { echo "there is no function $name" && return 1; }
  done
}

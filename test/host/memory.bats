# The shim under ASan and UBSan, with all markers armed; "make check-memory" does the same in every
# interpreter, and also under valgrind.
#
# SPDX-License-Identifier: MIT

load ../helper

@test "ASan and UBSan find nothing in the shim while the workloads run" {
  need gcc
  [ -e "$(gcc -print-file-name=libasan.so)" ] || skip "needs gcc's libasan"
  [ -e "$(gcc -print-file-name=libubsan.so)" ] || skip "needs gcc's libubsan"
  local interpreters
  mapfile -t interpreters < <(pythons_by_hook)
  timeout -k 5 300 "$top/test/memory/run" asan "${interpreters[@]}"
}

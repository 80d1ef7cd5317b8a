# make check-arm64, as far as it can be tried without a guest.
#
# SPDX-License-Identifier: MIT

load ../helper

@test "the list of make check-arm64 names suites that are there, and words of their tests" {
  local guest release suite filter words count=0
  while read -r guest release suite filter; do
    echo "$guest $release $suite $filter"
    [ -e "$top/test/$suite" ]
    while read -r words; do
      [ "$(bats --count --filter "${words:-.}" "$top/test/$suite")" -gt 0 ]
    done < <(tr '|' '\n' <<<"$filter")
    count=$((count + 1))
  done < <("$top/test/arm64/run" --list)
  [ "$count" -gt 10 ]
}

@test "make check-arm64 refuses what it doesn't know" {
  refuses_arguments test/arm64/run "--quickly" "no_such_suite"
}

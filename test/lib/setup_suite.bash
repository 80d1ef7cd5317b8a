# shellcheck shell=bash
# For each run of bats: an interpreter that PYTHONS or ONLY_PYTHONS names must be there, or tests would try none and pass.
# For suites that bats runs without test/lib/run: if they can't run at the tree's path, they use a copy, $TREE.
#
# SPDX-License-Identifier: MIT

setup_suite() {
  local tree python
  for python in ${ONLY_PYTHONS:-} ${PYTHONS:-}; do
    [ -x "$python" ] || { echo "there is no $python (PYTHONS, ONLY_PYTHONS)" >&2 && return 1; }
  done
  tree=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
  # shellcheck source=test/lib/helpers/place.bash
  source "$tree/test/lib/helpers/place.bash"
  [ ! "$(unfit_place "$tree")" ] || TREE=$(copy_tree "$tree") || return
  export TREE
}

teardown_suite() {
  [ ! "${TREE:-}" ] || drop_tree "$TREE"
}

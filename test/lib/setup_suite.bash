# shellcheck shell=bash
# For suites that bats runs without test/lib/run: if they can't run at the tree's path, they use a copy, $TREE.
#
# SPDX-License-Identifier: MIT

setup_suite() {
  local tree
  tree=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
  # shellcheck source=test/lib/helpers/place.bash
  source "$tree/test/lib/helpers/place.bash"
  [ ! "$(unfit_place "$tree")" ] || TREE=$(copy_tree "$tree") || return
  export TREE
}

teardown_suite() {
  [ ! "${TREE:-}" ] || drop_tree "$TREE"
}

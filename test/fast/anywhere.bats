# The tree builds, and its suites run, at any path: with a space, below a home that others can't read, in a folder
# that others can write to, and after the tree has moved.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

teardown() {
  [ ! "${place:-}" ] || rm -rf "$place"
}

# Runs a command without the variables of the bats that runs this suite.
outside_of_bats() {
  local name unset=()
  for name in "${!BATS_@}"; do unset+=(-u "$name"); done
  env "${unset[@]}" -u TREE "$@"
}

# The paths of a tree in the files that are built in it.
paths_of() {
  grep -h '^usdt:' "$1"/build/bpftrace/*
  sed -n 's/^@define __python_shim_path //p' "$1"/build{,/test}/tapset/python_paths.stpm
  find "$1"/build{,/test}/tapset -maxdepth 1 -name 'python_*.stp' -printf '%l\n'
}

@test "make in a folder with a space in its name, and again where the tree is moved to" {
  local name path
  for name in "first tree" second; do
    path=$BATS_TEST_TMPDIR/$name
    if [ "$name" = "first tree" ]; then make_tree_in "$path"; else mv "$BATS_TEST_TMPDIR/first tree" "$path"; fi
    outside_of_bats make -C "$path" -j"$(nproc)" >"$BATS_TEST_TMPDIR/log" 2>&1 || { tail "$BATS_TEST_TMPDIR/log" && return 1; }
    [ -x "$path/build/stap-python" ]
    [ "$(find "$path/build/man" -name '*.3stap' | wc -l)" -gt 20 ]
    if [ -e "$path/build/tapset" ]; then
      paths_of "$path" | grep -v /python_local.stp >"$BATS_TEST_TMPDIR/paths"
      [ "$(wc -l <"$BATS_TEST_TMPDIR/paths")" -gt 20 ]
      refute grep -vF "$path/" "$BATS_TEST_TMPDIR/paths"
      [ ! "$(find "$path/build/tapset" -xtype l ! -name python_local.stp)" ]
    fi
  done
}

@test "the paths that no suite runs in are told from the others" {
  [ "$(id -u)" = 0 ] || skip "needs root, for folders that others can't enter"
  place=$(mktemp -d "$(fit_folder)/place.XXXXXX")
  mkdir -p "$place"/{fit,"with space",colon:here,open,closed/below,theirs}
  chmod -R 755 "$place"
  chmod 777 "$place/open"
  chmod 700 "$place/closed"
  chown 65534 "$place/theirs"
  [ ! "$(unfit_place "$place/fit")" ]
  [[ $(unfit_place "$place/with space") == *"special character"* ]]
  [[ $(unfit_place "$place/colon:here") == *"special character"* ]]
  [ "$(unfit_place "$place/open")" = "$place/open is writable by others" ]
  [ "$(unfit_place "$place/closed/below")" = "$place/closed can't be read by others" ]
  [ "$(unfit_place "$place/theirs")" = "$place/theirs is owned by another user" ]
}

@test "suites run in a copy of a tree in such a path: by test/lib/run, and by bats alone" {
  local tree="$BATS_TEST_TMPDIR/a tree" own=own-$BASHPID.bats
  make_tree_in "$tree"
  outside_of_bats make -C "$tree" -j"$(nproc)" >/dev/null 2>&1
  # "@test" here would be a test of this suite
  sed 's/^TEST/@test/' >"$tree/test/host/$own" <<'BATS'
load ../lib/helper
load ../lib/launcher

TEST "the shim is there, and its launcher" {
  [[ $top != *" "* ]]
  [ "$(threads_of env LD_PRELOAD="$shim" /usr/bin/python3)" = 2 ]
  [ "$(threads_of "$launcher" run /usr/bin/python3)" = 2 ]
  setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" --version
}
BATS
  [ "$(id -u)" = 0 ] || sed -i /setpriv/d "$tree/test/host/$own"
  outside_of_bats "$tree/test/lib/run" "test/host/$own" 2>&1 | tee "$BATS_TEST_TMPDIR/out"
  grep -q '^test/lib/run: runs in a copy of this tree: its path has a space' "$BATS_TEST_TMPDIR/out"
  [[ $(tail -n 1 "$BATS_TEST_TMPDIR/out") == "1 passed, 0 failed, 0 skipped in "*" s" ]]
  grep -q '^ok the shim is there' "$tree/build/check.tap"
  outside_of_bats bats --formatter tap "$tree/test/host/$own" | tee "$BATS_TEST_TMPDIR/out"
  grep -q '^ok 1' "$BATS_TEST_TMPDIR/out"
  # a failure is one
  sed -i 's/= 2 ]/= 3 ]/' "$tree/test/host/$own"
  refute outside_of_bats "$tree/test/lib/run" "test/host/$own"
  # nothing stays behind
  refute compgen -G "$(fit_folder)/systemtap-cpython.*/test/host/$own"
}

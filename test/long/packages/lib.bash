# shellcheck shell=bash
# What the suites of the packages share: roots that tests may change, and checks in them.
#
# SPDX-License-Identifier: MIT

# By their names, these are in SystemTap's tapset folder of a root.
export stp=/usr/share/systemtap/tapset/python.stp

# usage: is_ours FILE
is_ours() {
  cmp "$top/tapset/python.stp" "$1"
}

# Makes $root: the root of a release, in which changes last until the end of the test.  uprobes don't
# work in it, because it is an overlay.
use_root() {
  local work=$BATS_TEST_TMPDIR/overlay
  mkdir -p "$work"
  mount -t tmpfs packages "$work"
  mkdir "$work/upper" "$work/work" "$work/root"
  root=$work/root
  mount -t overlay overlay -o "lowerdir=$top/build/packages/roots/$1,upperdir=$work/upper,workdir=$work/work" "$root"
  # makes the folders that it mounts
  in_root true
}

drop_root() {
  [ -z "${root:-}" ] || umount "$root" "${root%/*}"
  root=
}

in_root() {
  STAP_VM_ROOT=$root timeout -k 5 300 "$top/test/vm/in-root" env -u SYSTEMTAP_TAPSET DEBIAN_FRONTEND=noninteractive \
    HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# Every file of the root but for the package managers' own.
files() {
  find "$root" -xdev \( -path "$root/var/lib/dpkg" -o -path "$root/var/lib/apt" -o -path "$root/var/cache" -o -path "$root/var/log" -o \
    -path "$root/var/lib/rpm" -o -path "$root/var/lib/dnf" -o -path "$root/root" -o -path "$root/run" \) -prune -o -printf '%P %l\n' | sort
}

# Resolves a probe of python.$1 in the root, with plain stap and no setting of ours.
resolve() {
  local kernel=$BATS_TEST_TMPDIR/kernel
  "$top/test/lib/kernel-tree" "$kernel"
  in_root stap -r "$kernel" -p2 -e "probe python.$1 { println(probestr) }"
}

# Checks that every probe point resolves, in the shim $1.
all_resolve_in() {
  local point
  for point in $(probe_points); do
    resolve "$point" >"$BATS_TEST_TMPDIR/resolved" 2>&1 || { cat "$BATS_TEST_TMPDIR/resolved" && return 1; }
    grep -F "process(\"$1\")" "$BATS_TEST_TMPDIR/resolved" || { cat "$BATS_TEST_TMPDIR/resolved" && return 1; }
  done
}

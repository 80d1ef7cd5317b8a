# shellcheck shell=bash
# Where the suites run: in the tree itself, or in a copy of it, if the tree's path is not fit for them.  They
# preload the shim (LD_PRELOAD can't hold a space), name it to bpftrace, load it as root (from no folder that
# others can write to), and run Pythons as another user, who must be able to read it.
#
# SPDX-License-Identifier: MIT

# Why the suites can't run in the folder $1; nothing if they can.
unfit_place() {
  local folder=$1 mode owner
  [[ $folder =~ ^[A-Za-z0-9/._+=@%~-]+$ ]] || { echo "its path has a space or another special character" && return; }
  [ "$(id -u)" = 0 ] || return 0
  for (( ; ; )); do
    mode=$(stat -c %a "$folder") owner=$(stat -c %u "$folder")
    [ "$owner" = 0 ] || { echo "$folder is owned by another user" && return; }
    [ $((8#$mode & 8#022)) = 0 ] || { echo "$folder is writable by others" && return; }
    [ $((8#$mode & 8#055)) = $((8#055)) ] || { echo "$folder can't be read by others" && return; }
    [ "$folder" != / ] || return 0
    folder=$(dirname "$folder")
  done
}

# A folder for such copies.
fit_folder() {
  local folder
  for folder in /opt /var/lib /usr/local "${TMPDIR:-/tmp}" /tmp; do
    if [ -w "$folder" ] && [ ! "$(unfit_place "$folder")" ]; then echo "$folder" && return; fi
  done
  echo "no folder for a copy of this tree: none of /opt, /var/lib and /usr/local is only root's" >&2
  return 1
}

# Makes such a copy of the tree $1, with what is made in it, and prints its path.  The folders that are long in the
# making are links to the tree's.
copy_tree() {
  local folder copy made
  folder=$(fit_folder) || return
  copy=$(mktemp -d "$folder/systemtap-cpython.XXXXXX")
  chmod 755 "$copy"
  # Modes of a umask of 077 are not kept: others must read it.
  tar -C "$1" --exclude=./build -c . | tar -C "$copy" --no-same-owner -x
  mkdir -p "$copy/build/test" "$1/build/vm-image"
  find "$1/build" -maxdepth 1 -type f -exec cp -p {} "$copy/build" \;
  cp -pr "$1"/build/{generated,probes} "$copy/build"
  cp -p "$1"/build/test/*.[do] "$copy/build/test"
  chmod -R u+rwX,go+rX,go-w "$copy"
  for made in vm-image freethreaded; do
    [ ! -d "$1/build/$made" ] || ln -s "$1/build/$made" "$copy/build"
  done
  # The jobs of a make that runs this are not for this one.
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$copy" -j"$(nproc)" --no-print-directory all >"$copy/build/make.log" 2>&1 ||
    { tail -n 20 "$copy/build/make.log" >&2 && return 1; }
  echo "$copy"
}

# Removes a copy, and ends its guest.
drop_tree() {
  "$1/test/vm/guest" stop
  rm -rf --one-file-system "$1"
}

# Runs SCRIPT of the tree $1 with the arguments in a copy, if the tree is not fit for it, and exits with its status;
# what it leaves in build/check.tap is in the tree's then.  Returns if the tree is fit.
# usage: in_fit_tree TREE SCRIPT ARGUMENTS...
in_fit_tree() {
  local why copy status=0
  why=$(unfit_place "$1")
  [ "$why" ] || return 0
  echo "$2: runs in a copy of this tree: $why" >&2
  copy=$(copy_tree "$1") || exit
  # shellcheck disable=SC2064
  trap "drop_tree '$copy'" EXIT
  (cd "$copy" && "$2" "${@:3}") || status=$?
  [ ! -e "$copy/build/check.tap" ] || cp "$copy/build/check.tap" "$1/build"
  exit "$status"
}

# For a test of the tree's place: a tree of its own, with what is made in this one but for what holds its path.
# usage: make_tree_in FOLDER
make_tree_in() {
  mkdir -p "$1/build"
  tar -C "$top" --exclude=./build --exclude=./.git -c . | tar -C "$1" --no-same-owner -x
  cp -pr "$top"/build/{generated,probes} "$1/build"
}

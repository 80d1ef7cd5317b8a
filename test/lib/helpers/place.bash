# shellcheck shell=bash
# Runs the suites in the tree itself or, if they can't run at its path, in a copy.  They preload the shim
# (LD_PRELOAD can't hold a space), name it to bpftrace, load it as root (from no folder that others can write
# to), and run Pythons as another user, who must be able to read it.
#
# SPDX-License-Identifier: MIT

# The reason why the suites can't run in the folder $1; "": they can.
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

# A folder for copies of the tree.
fit_folder() {
  local folder
  for folder in /opt /var/lib /usr/local "${TMPDIR:-/tmp}" /tmp; do
    if [ -w "$folder" ] && [ ! "$(unfit_place "$folder")" ]; then echo "$folder" && return; fi
  done
  echo "no folder for a copy of this tree: none of /opt, /var/lib and /usr/local is only root's" >&2
  return 1
}

# Makes a copy of the tree $1 and of what is built in it, and prints the copy's path.  Folders that take long to build
# are links to the tree's.
copy_tree() {
  local folder copy made
  folder=$(fit_folder) || return
  copy=$(mktemp -d "$folder/systemtap-cpython.XXXXXX")
  chmod 755 "$copy"
  # Others must be able to read the copy, whatever the umask was when the tree was made.
  tar -C "$1" --exclude=./build -c . | tar -C "$copy" --no-same-owner -x
  mkdir -p "$copy/build/test" "$1/build/vm-image"
  find "$1/build" -maxdepth 1 -type f -exec cp -p {} "$copy/build" \;
  cp -pr "$1"/build/{generated,probes} "$copy/build"
  cp -p "$1"/build/test/*.[do] "$copy/build/test"
  chmod -R u+rwX,go+rX,go-w "$copy"
  for made in vm-image freethreaded; do
    [ ! -d "$1/build/$made" ] || ln -s "$1/build/$made" "$copy/build"
  done
  # This make must not use the job server of a make that runs this function.
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$copy" -j"$(nproc)" --no-print-directory all >"$copy/build/make.log" 2>&1 ||
    { tail -n 20 "$copy/build/make.log" >&2 && return 1; }
  echo "$copy"
}

# Ends the guest of a copy, and removes the copy.
drop_tree() {
  "$1/test/vm/guest" stop
  rm -rf --one-file-system "$1"
}

# Returns if the suites can run in the tree.  Otherwise runs SCRIPT of the tree with the arguments in a copy, copies
# its build/check.tap to the tree, and exits with its status.
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

# Makes a tree for a test of the tree's path, with what is built in this tree, except files that contain the path.
# usage: make_tree_in FOLDER
make_tree_in() {
  mkdir -p "$1/build"
  tar -C "$top" --exclude=./build --exclude=./.git -c . | tar -C "$1" --no-same-owner -x
  cp -pr "$top"/build/{generated,probes} "$1/build"
}

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Makes root folders of Debian's releases in $roots, with mmdebstrap.  Sourced by checks, after test/vm/lib.sh.

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# Unpacks packages, also of another architecture, into a new folder.  Configures none, so that none of their programs
# runs.
# usage: extract RELEASE ARCHITECTURE FOLDER PACKAGES [OPTION OF MMDEBSTRAP...]
extract() {
  # a mirror or a proxy may keep lists of sid that have expired
  mmdebstrap --variant=extract --architectures="$2" --include="$4" --aptopt='Acquire::Check-Valid-Until "false"' "${@:5}" \
    "$1" "$3" "$mirror"
}

# The options with which a compiler uses the headers and the C library of a root of its architecture, even if it has
# others, which a package that is recommended with it may bring.
# usage: flags_for ROOT
flags_for() {
  local libraries
  libraries=$(echo "$1"/usr/lib/*-linux-gnu*)
  echo "--sysroot=$1 -B$libraries/ -isystem $1/usr/include/${libraries##*/} -isystem $1/usr/include"
}

# Installs packages in a mount namespace of its own, so that apt's scripts find /proc and leave nothing mounted.
install_into() {
  local root=$1
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  DEBIAN_FRONTEND=noninteractive STAP_VM_ROOT=$root "$vm/in-root" sh -ec "cd /
    apt-get -q update
    { $2
    } | xargs apt-get -q -y --no-install-recommends install
    apt-get clean"
}

# Makes $roots/RELEASE, unless it is there, with the packages that the shell commands RECIPE print.  They run in the
# root, after apt-get update.
# usage: bootstrap RELEASE RECIPE
bootstrap() {
  local release=$1 recipe=$2 root=$roots/$1 log=$roots/$1.log
  [ "$(cat "$root.packages" 2>/dev/null)" != "$recipe" ] || [ ! -d "$root" ] || return 0
  type -P mmdebstrap >/dev/null || die 1 "needs mmdebstrap (Debian: apt-get install mmdebstrap)"
  say "$release: fetching it from $mirror, a minute or more (log: ${log#"$top"/})"
  rm -rf --one-file-system "$root.new" "$root.stap" "$root.packages"
  # a mirror or a proxy may keep lists of sid that have expired
  if ! {
    [ -d "$root" ] || {
      mmdebstrap --mode=root --variant=apt --include=python3 \
        --aptopt='Acquire::Check-Valid-Until "false"' "$release" "$root.new" "$mirror" &&
        mv "$root.new" "$root"
    } && install_into "$root" "$recipe"
  } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    rm -rf --one-file-system "$root.new"
    die 1 "$release could not be fetched from $mirror (no network? DEBIAN_MIRROR names another mirror)"
  fi
  echo "$recipe" >"$root.packages"
}

# From now on test/vm's guest has eight processors, by Debian 13's QEMU, which is fetched into build/processors, once: with
# QEMU before 8.1 it has one.
guest_of_eight() {
  [ "$architecture" = x86_64 ] || die 1 "needs a machine of x86-64, not $architecture"
  roots=$build/processors
  mkdir -p "$roots/bin"
  bootstrap trixie "echo qemu-system-x86"
  # QEMU of that root, with its own C library, libraries and firmware, on this machine's files.
  cat >"$roots/bin/qemu-system-x86_64" <<SH
#!/bin/sh
root=$(printf %q "$roots/trixie")
exec "\$root/lib64/ld-linux-x86-64.so.2" --library-path "\$root/usr/lib/x86_64-linux-gnu" \\
  "\$root/usr/bin/qemu-system-x86_64" -L "\$root/usr/share/qemu" -L "\$root/usr/share/seabios" "\$@"
SH
  chmod +x "$roots/bin/qemu-system-x86_64"
  export PATH=$roots/bin:$PATH STAP_VM=always STAP_VM_CPUS=8 STAP_VM_DIR=$roots/vm
}

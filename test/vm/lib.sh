# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What test/vm/stap, test/vm/guest, test/vm/prepare and test/vm/bin/ssh share:
# where things are, and whether this machine needs the guest at all.

set -euo pipefail

vm=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
top=$(dirname "$(dirname "$vm")")
build=$top/build
state=$(readlink -m "${STAP_VM_DIR:-$build/vm}")
# An ordinary user's PATH lacks modprobe and dropbear's neighbours.
tools_path=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
  say "$2"
  exit "$1"
}

# Where stap can run as it is: the kernel loads modules and has its build tree.
needs_guest() {
  case ${STAP_VM:-auto} in
    always) ;;
    never) return 1 ;;
    auto) ! [ -e /proc/modules ] || ! [ -e "/lib/modules/$(uname -r)/build" ] ;;
    *) die 2 "STAP_VM is '$STAP_VM', not auto, always or never" ;;
  esac
}

# The kernel stap compiles for: the running one, or in the guest the newest
# whose headers are installed, a cloud kernel if there is one (it boots fastest).
kernel_version() {
  local found
  needs_guest || { uname -r && return; }
  [ -z "${STAP_VM_KVER:-}" ] || { echo "$STAP_VM_KVER" && return; }
  found=$(cd /lib/modules && find . -mindepth 2 -maxdepth 2 -name build | cut -d/ -f2 | sort -V)
  grep -e -cloud- <<<"$found" | tail -n 1 | grep . || tail -n 1 <<<"$found" | grep . ||
    die 1 "no kernel headers in /lib/modules (Debian: apt-get install linux-headers-cloud-amd64)"
}

# The program NAME that PATH leads to, leaving out our own stand-ins.
real() {
  local found
  while read -r found; do
    case $(readlink -f "$found") in "$vm"/*) ;; *) echo "$found" && return ;; esac
  done < <(PATH=$tools_path type -aP "$1")
  die 127 "$1 is not installed"
}

# A folder for one run, that the guest sees too; the guest's processes get the
# working directory and the environment of whoever called us.
new_run() {
  local old
  mkdir -p "$state/run"
  chmod 700 "$state"
  # What runs that were killed left behind.
  for old in "$state"/run/*.*; do
    old=${old##*/}
    [ -e "/proc/${old%.*}" ] || rm -rf "$state/run/$old"
  done
  run=$(mktemp -d "$state/run/$$.XXXXXX")
  cat /proc/$$/environ >"$run/env"
  printf %s "$PWD" >"$run/cwd"
}

# The command line for sshd in the guest: session, in the current run's folder.
guest_command() {
  printf 'exec setpriv --pdeathsig HUP'
  printf ' %q' "$vm/session" "$run" "$@"
}

# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What test/vm/stap, test/vm/guest, test/vm/prepare and test/vm/bin/ssh share:
# where things are, and whether this machine needs the guest at all.
#
# STAP_VM_ROOT names another root folder (test/long/distros/run makes some): then that
# root's stap runs, for that root's kernel, in a guest with that root.

set -euo pipefail
# SystemTap 5.1 runs with umask 0, and hands it on to test/vm/bin/ssh, which starts the guest: sshd there refuses a key
# that others can write to.
[ $((8#$(umask) & 2)) != 0 ] || umask 022

vm=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
top=$(dirname "$(dirname "$vm")")
build=$top/build
root=${STAP_VM_ROOT:+$(readlink -f "$STAP_VM_ROOT")}
# The folder for what is made for one stap: its tapset, the guest's image and state.
made=${root:+$root.stap}
made=${made:-$build}
case ${STAP_VM_CLOCK:-time} in
  time) state=${STAP_VM_DIR:-$made/vm} ;;
  instructions) state=${STAP_VM_DIR:-$made/vm}-instructions ;;
  *) echo "$me: STAP_VM_CLOCK is '$STAP_VM_CLOCK', not time or instructions" >&2 && exit 2 ;;
esac
state=$(readlink -m "$state")
# An ordinary user's PATH lacks modprobe and dropbear's neighbours.
tools_path=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# The guest's architecture, as uname -m has it there.  For another one than this machine's, this machine's stap
# compiles (test/vm/stap), and the guest has what QEMU emulates.
if [ -e "$root/lib/ld-linux-aarch64.so.1" ]; then
  architecture=aarch64
else
  architecture=$(uname -m)
fi

is_foreign() { [ "$architecture" != "$(uname -m)" ]; }

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
  say "$2"
  exit "$1"
}

# Whether stap needs the guest: it doesn't if the kernel loads modules and has its build tree.
needs_guest() {
  [ -z "$root" ] || return 0
  case ${STAP_VM:-auto} in
    always) ;;
    never) return 1 ;;
    auto) ! [ -e /proc/modules ] || ! [ -e "/lib/modules/$(uname -r)/build" ] ;;
    *) die 2 "STAP_VM is '$STAP_VM', not auto, always or never" ;;
  esac
}

# The kernel for which stap compiles: the running one, or for the guest the newest
# whose headers are installed, preferably a cloud kernel, which boots fastest.
kernel_version() {
  local found
  needs_guest || { uname -r && return; }
  [ -z "${STAP_VM_KVER:-}" ] || { echo "$STAP_VM_KVER" && return; }
  found=$(cd "$root/lib/modules" && find . -mindepth 2 -maxdepth 2 -name build | cut -d/ -f2 | sort -V)
  grep -e -cloud- <<<"$found" | tail -n 1 | grep . || tail -n 1 <<<"$found" | grep . ||
    die 1 "no kernel headers in $root/lib/modules (Debian: apt-get install linux-headers-cloud-amd64)"
}

# In a mount namespace of our own: mounts the kernel's file systems, this checkout
# and the suites' working folders into the root $1, at the same places.  Bind mounts
# keep the inode, to which uprobes are attached.
mount_into() {
  local folder
  for folder in /proc /sys /dev /dev/pts "${TMPDIR:-/tmp}" "$top"; do
    mkdir -p "$1$folder"
    mount --bind "$folder" "$1$folder"
  done
}

# The program $1 of PATH that is not one of our own stand-ins.
real() {
  local found all
  # All of them first: who still writes when we return would say so where SIGPIPE is ignored.
  mapfile -t all < <(PATH=$tools_path type -aP "$1")
  for found in "${all[@]}"; do
    case $(readlink -f "$found") in "$vm"/*) ;; *) echo "$found" && return ;; esac
  done
  die 127 "$1 is not installed"
}

# Makes a folder for one run, which the guest sees too: the guest's processes take
# the working directory and the environment of our caller from it.
new_run() {
  local old
  mkdir -p "$state/run"
  chmod 700 "$state"
  # Removes what killed runs left behind.
  for old in "$state"/run/*.*; do
    old=${old##*/}
    [ -e "/proc/${old%.*}" ] || rm -rf "$state/run/$old"
  done
  run=$(mktemp -d "$state/run/$$.XXXXXX")
  cat /proc/$$/environ >"$run/env"
  printf %s "$PWD" >"$run/cwd"
}

# In brackets, why the guest was ended, if test/vm/guest did that by itself.
cause() { [ ! -s "$state/why" ] || printf ' (%s)' "$(<"$state/why")"; }

# The command line for sshd in the guest: session, in the current run's folder.
guest_command() {
  printf 'exec setpriv --pdeathsig HUP'
  printf ' %q' "$vm/session" "$run" "$@"
}

# shellcheck shell=bash
# What first-minutes.bats types, and where: on the "machine" of a release, a root folder of Debian with two web services
# and without SystemTap. What changes its files is typed in that root, on this kernel; what looks at processes or runs
# probes, in a guest with that root, which is restarted after each change. What is typed and printed goes to
# build/first-minutes-RELEASE.txt.
#
# SPDX-License-Identifier: MIT

# usage: on_machine RELEASE
on_machine() {
  export root=$top/build/packages/first-$1 transcript=$top/build/first-minutes-$1.txt
  export STAP_VM_ROOT=$root STAP_VM_KVER
  STAP_VM_KVER=$(basename "$(find "$top/build/packages/first/$1/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)" | sed 's/^vmlinuz-//')
  export typed_seconds=$root.seconds jobs=/tmp/first-minutes.$1
}

# Makes the machine, as it is before anything of ours is installed.
make_machine() {
  drop_machine
  cp -a "$top/build/packages/first/$1" "$root"
  # what apt would fetch
  mv "$root"/srv/archives/*.deb "$root/var/cache/apt/archives/"
  rm -r "$root/srv/archives"
  mkdir -p "$root/srv/shop"
  cp "$top"/test/workloads/{shop,ticking}.py "$root/srv/shop"
  cp "$top"/build/deb/{systemtap-cpython,systemtap-cpython-tapset,python3-stap}_*.deb "$root/srv"
  in_machine python3 -m venv --system-site-packages /srv/shop/venv
  echo "(Debian $1, kernel $STAP_VM_KVER, with gunicorn and uwsgi; seconds in an emulated machine but for apt-get)" >"$transcript"
}

drop_machine() {
  guest_off
  rm -rf --one-file-system "$root" "$root.stap" "$typed_seconds"
}

# A new administrator's shell.  stap's folder is where the guest and run_outside's programs see it.
clean() {
  env -i PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root SHELL=/bin/bash TERM=dumb LC_ALL=C SYSTEMTAP_DIR="$jobs/systemtap" \
    DEBIAN_FRONTEND=noninteractive STAP_VM_ROOT="$root" STAP_VM_KVER="$STAP_VM_KVER" "$@"
}

in_machine() {
  (cd / && clean timeout -k 5 600 "$top/test/vm/in-root" "$@")
}

in_guest() {
  (cd / && clean timeout -k 5 900 "$top/test/vm/guest" exec -- "$@")
}

guest_on() {
  (cd / && clean timeout -k 5 200 "$top/test/vm/guest" start)
  # where stap keeps what it has compiled
  in_guest mount -t tmpfs home /root
  run_outside make
  run_outside apt-get
}

guest_off() {
  rm -rf --one-file-system "$jobs"
  [ ! -d "$root.stap" ] || clean timeout -k 5 60 "$top/test/vm/guest" stop
}

# Has a program of the guest run on this processor, in the same root: stap's make, for which an emulated one takes ten
# minutes, and apt-get, which also needs a network and a root that can be written to.
# usage: run_outside PROGRAM
run_outside() {
  in_guest test -x "/usr/bin/$1" || return 0
  mkdir -p "$jobs/bin"
  cat >"$jobs/bin/$1" <<SH
#!/bin/sh
job=\$(mktemp -d "$jobs/job.XXXXXX")
printf '%s\\0' $1 "\$@" >"\$job/new"
mv "\$job/new" "\$job/asked"
until [ -e "\$job/status" ]; do sleep 0.1; done
cat "\$job/out"
cat "\$job/err" >&2
exit "\$(cat "\$job/status")"
SH
  chmod +x "$jobs/bin/$1"
  in_guest mount --bind "$jobs/bin/$1" "/usr/bin/$1"
  [ ! -e "$jobs/served" ] || return 0
  : >"$jobs/served"
  export -f serve in_machine clean
  setsid bash -c serve >/dev/null 2>&1 </dev/null 3>&- &
}

# Runs what run_outside's programs ask for; ends with the folder.
serve() {
  local job arguments status
  while [ -d "$jobs/bin" ]; do
    for job in "$jobs"/job.*; do
      [ -e "$job/asked" ] || continue
      mapfile -d '' arguments <"$job/asked"
      rm "$job/asked"
      status=0
      in_machine "${arguments[@]}" >"$job/out" 2>"$job/err" || status=$?
      echo "$status" >"$job/status.new"
      mv "$job/status.new" "$job/status"
    done
    sleep 0.1
  done
}

# Adds a line to the transcript that nobody typed.
remark() {
  printf '(%s)\n' "$*" >>"$transcript"
}

# Types the command on a terminal, and puts it with all that it prints into the transcript; sets $output, $status and
# $seconds.
# usage: typed in_machine|in_guest COMMAND [--until REGEX [--then SECONDS]]
typed() {
  local place=$1 command=$2 file=$BATS_TEST_TMPDIR/typed began=$SECONDS
  printf '# %s\n' "$command" | tee -a "$transcript"
  status=0
  typing "$place" "${@:3}" script -qec "stty cols 140; $command" /dev/null >"$file" || status=$?
  seconds=$((SECONDS - began))
  cat "$file"
  # shellcheck disable=SC2034 # by the tests
  output=$(cat "$file")
  echo "$seconds" >>"$typed_seconds"
  {
    cat "$file"
    [ "$status" = 0 ] || echo "(exit status $status)"
    echo "($seconds s)"
  } >>"$transcript"
}

# usage: typing PLACE OPTIONS... script ...
typing() {
  local place=$1 options=()
  shift
  while [[ $1 == --* ]]; do
    options+=("$1" "$2")
    shift 2
  done
  export -f in_machine in_guest clean
  python3 "$top/test/long/packages/typed.py" "${options[@]}" bash -c '"$@"' typed "$place" "$@"
}

# Starts a program in the guest that runs on.
# usage: runs NAME COMMAND
runs() {
  remark "$1 runs: $2"
  in_guest sh -c "exec setsid sh -c \"\$0\" >/tmp/first-minutes.$1.log 2>&1 </dev/null &" "$2"
}

# Waits until the command succeeds in the guest.
# usage: until_guest SECONDS COMMAND
until_guest() {
  # shellcheck disable=SC2016 # for that shell
  in_guest sh -c 'for i in $(seq "$0"); do eval "$1" >/dev/null 2>&1 && exit; sleep 1; done; exit 1' "$1" "$2"
}

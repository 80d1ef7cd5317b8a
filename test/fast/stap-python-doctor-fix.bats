# stap-python: doctor --fix, on fake machines, with fake commands that record how they are run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2030,SC2031,SC2317

load ../lib/helper
load ../lib/launcher

release=6.1.0-7-amd64

# Prefix of the commands for a user other than root.
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo '
unattended="${sudo}env DEBIAN_FRONTEND=noninteractive apt-get install -y"

# Makes a machine whose commands are fakes.  Each appends its name and arguments to the file $ran, and then does what
# does() says.
make_machine_of_fakes() {
  local name
  unset DEBIAN_FRONTEND
  make_machine
  # not one of this machine's own
  export STAP=$machine/bin/stap
  ran=$BATS_TEST_TMPDIR/ran
  : >"$ran"
  chmod a+w "$ran"
  for name in apt-get dnf zypper sudo usermod reboot make chmod rm mv su; do
    cat >"$machine/bin/$name" <<FAKE
#!/bin/bash
echo "\${0##*/} \$*\${DEBIAN_FRONTEND:+ (\$DEBIAN_FRONTEND)}" >>$ran
export PATH=/usr/bin:/bin
[ ! -e "\$0.does" ] || . "\$0.does"
FAKE
    command chmod +x "$machine/bin/$name"
  done
  # as sudo does, without the environment's variables
  does sudo 'exec env -i PATH="$(dirname "$0"):$PATH" "$@"'
}

# usage: does COMMAND LINES-OF-SHELL
does() {
  printf '%s\n' "$2" >"$machine/bin/$1.does"
}

# Takes stap and the headers away; apt-get brings them.
without_stap_and_headers() {
  mv "$machine/bin/stap" "$machine/stap"
  rm -r "$machine/lib/modules/$release/build"
  does apt-get "case \" \$* \" in
    *' install '*' systemtap '*) cp -p $machine/stap $machine/bin ;;&
    *' install '*' linux-headers-$release '*) mkdir $machine/lib/modules/$release/build && : >$machine/lib/modules/$release/build/Makefile ;;
  esac"
}

# usage: doctor ARGUMENTS...
doctor() {
  env STAP_PYTHON_ROOT="$machine" HOME=/home XDG_STATE_HOME="$BATS_TEST_TMPDIR/state" PATH="$machine/bin:/usr/bin:/bin" \
    timeout -k 5 $((60 * SLOW)) "$launcher" doctor "$@" </dev/null
}

# Runs doctor --fix on a terminal, and types a yes before any question, and then an answer after each.
# usage: answered ANSWER...
answered() {
  cat >"$BATS_TEST_TMPDIR/answers.py" <<'PY'
import os, pty, select, sys

end = sys.argv.index("--")
answers = [answer.encode() for answer in sys.argv[1:end]]
pid, terminal = pty.fork()
if pid == 0:
    select.select([0], [], [])  # until the yes is typed
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
os.write(terminal, b"y\n")
said = b""
while True:
    try:
        said += os.read(terminal, 4096)
    except OSError:
        break
    if said.endswith(b"[y/N] "):
        os.write(terminal, answers.pop(0))
sys.stdout.write(said.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
  env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" TERM=dumb \
    timeout -k 5 $((60 * SLOW)) /usr/bin/python3 "$BATS_TEST_TMPDIR/answers.py" "$@" -- "$launcher" doctor --fix
}

# Checks that exactly these commands were run; what sudo ran is recorded without it.
# usage: ran COMMAND...
ran() {
  diff <(printf '%s\n' "$@" | grep .) <(grep -v '^sudo ' "$ran")
}

@test "doctor --fix --yes downloads the lists, installs all packages at once, and then all is well" {
  make_machine_of_fakes
  without_stap_and_headers
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 0 ]
  ran 'apt-get update' "apt-get install -y systemtap linux-headers-$release (noninteractive)"
  # all are shown before the first runs
  grep -A 1 -xF "  ${sudo}apt-get update" <<<"$output" | grep -qxF "  $unattended systemtap linux-headers-$release"
  [ "$(grep '^+ ' <<<"$output")" = "+ ${sudo}apt-get update
+ $unattended systemtap linux-headers-$release" ]
  [ "$(grep -c '^wrong ' <<<"$output")" = 2 ]
  [ "$(grep -n '^+ ' <<<"$output" | tail -n 1 | cut -d: -f1)" -lt "$(grep -n '^no problems' <<<"$output" | cut -d: -f1)" ]
  refute grep -E 'y/N|by hand' <<<"$output"
}

@test "doctor --fix asks on the terminal, and runs nothing without a yes" {
  local answer
  make_machine_of_fakes
  without_stap_and_headers
  for answer in $'n\n' $'\n' $'maybe\n' $'\4'; do
    run answered "$answer"
    echo "$output"
    [ "$status" = 1 ]
    grep -qF 'Run these 2 commands? [y/N] ' <<<"$output"
    grep -qx 'nothing of this was run' <<<"$output"
    ran ''
  done
  run answered $'y\n'
  echo "$output"
  [ "$status" = 0 ]
  grep -q '^no problems' <<<"$output"
  ran 'apt-get update' "apt-get install -y systemtap linux-headers-$release (noninteractive)"
}

@test "doctor --fix needs a terminal or --yes, and --yes needs --fix" {
  make_machine_of_fakes
  without_stap_and_headers
  run doctor --fix
  [ "$status $output" = '2 stap-python: doctor: --fix needs a terminal, on which it asks, or --yes' ]
  run doctor --yes
  [ "$status $output" = '2 stap-python: doctor: --yes is only for --fix (see stap-python doctor --help)' ]
  run doctor --fix -y --no
  [ "$status" = 2 ]
  [[ $output == "stap-python: doctor: unexpected argument '--no' "* ]]
  ran ''
}

@test "doctor names --fix where that would run something, and how much" {
  make_machine_of_fakes
  # usage: last_is TEXT
  last_is() {
    run doctor
    echo "$output"
    [ "${lines[-1]}" = "$1" ]
  }
  last_is "no problems; try: stap-python pyflow -c 'python3 PROGRAM.py'"
  rm -r "$machine/lib/modules/$release/build"
  last_is 'stap-python doctor --fix runs this command'
  mv "$machine/bin/stap" "$machine/stap"
  last_is 'stap-python doctor --fix runs these commands'
  echo 1 >"$machine/proc/sys/kernel/modules_disabled"
  last_is 'stap-python doctor --fix runs 2 of these commands'
  mkdir "$machine/lib/modules/$release/build"
  : >"$machine/lib/modules/$release/build/Makefile"
  mv "$machine/stap" "$machine/bin/stap"
  last_is '1 problem; fix it and rerun'
}

@test "doctor --fix with nothing to do says so, and never reboots" {
  make_machine_of_fakes
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 0 ]
  grep -q '^no problems' <<<"$output"
  refute grep -E '^\+|by hand' <<<"$output"
  echo 1 >"$machine/proc/sys/kernel/modules_disabled"
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  [ "$(tail -n 2 <<<"$output")" = "left to do by hand:
  modules: ${sudo}reboot" ]
  # nor with a command before the reboot; nor what only a package manager that is not known could do
  echo 0 >"$machine/proc/sys/kernel/modules_disabled"
  echo '[integrity]' >"$machine/sys/kernel/security/lockdown"
  rm "$machine/etc/os-release"
  mv "$machine/bin/stap" "$machine/stap"
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  [ "$(tail -n 3 <<<"$output")" = "left to do by hand:
  stap: install systemtap with this system's package manager
  modules: ${sudo}mokutil --disable-validation && ${sudo}reboot" ]
  ran ''
}

@test "the first command of doctor --fix that fails ends it, and its status is said" {
  make_machine_of_fakes
  without_stap_and_headers
  printf '/* x */\nprobe python.function.entry = process("python").mark("function__entry") {}\n' >"$machine/usr/share/systemtap/tapset/other.stp"
  does apt-get 'case $1 in update) exit 7 ;; esac'
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  ran 'apt-get update'
  grep -qxF "stap-python: doctor: '${sudo}apt-get update' failed with exit status 7" <<<"$output"
  [ "$(tail -n 2 <<<"$output")" = "not run: $unattended systemtap linux-headers-$release
not run: ${sudo}mv /usr/share/systemtap/tapset/other.stp /usr/share/systemtap/tapset/other.stp.off" ]
  refute grep -E 'no such package|^no problems' <<<"$output"
  does apt-get 'case $1 in install) kill -TERM $$ ;; esac'
  run doctor --fix --yes
  [ "$status" = 1 ]
  grep -qE "^stap-python: doctor: .*apt-get install .* (was ended by signal 15|failed with exit status 143)$" <<<"$output"
}

@test "doctor --fix says what to do if the running kernel's headers are gone from the archive" {
  make_machine_of_fakes
  without_stap_and_headers
  does apt-get 'case "$*" in *linux-headers*) echo "E: Unable to locate package" >&2; exit 100 ;; esac'
  # usage: advises TEXT
  advises() {
    run doctor --fix --yes
    echo "$output"
    [ "$status" = 1 ]
    grep -A 1 'failed with exit status 100$' <<<"$output" | grep -qxF "if there is no such package any more$1"
  }
  advises ", a newer kernel has it: ${sudo}apt-get install linux-image-amd64 linux-headers-amd64 && ${sudo}reboot"
  : >"$machine/boot/vmlinuz-$release"
  : >"$machine/boot/vmlinuz-6.1.0-5-amd64"
  advises ", a newer kernel has it: ${sudo}apt-get install linux-image-amd64 linux-headers-amd64 && ${sudo}reboot"
  : >"$machine/boot/vmlinuz-6.1.0-10-cloud-amd64"
  : >"$machine/boot/vmlinuz-6.1.0-9-amd64"
  advises ": ${sudo}reboot (the kernel 6.1.0-10-cloud-amd64 is installed, and newer than the running one), then ${sudo}apt-get install linux-headers-cloud-amd64"
  mkdir -p "$machine/lib/modules/6.12.38+deb13-amd64"
  : >"$machine/lib/modules/6.12.38+deb13-amd64/vmlinuz"
  advises ": ${sudo}reboot (the kernel 6.12.38+deb13-amd64 is installed, and newer than the running one), then ${sudo}apt-get install linux-headers-amd64"
  refute grep '^reboot' "$ran"
}

@test "doctor --fix runs no command twice, and says which did not help" {
  make_machine_of_fakes
  without_stap_and_headers
  does apt-get "case \"\$*\" in *systemtap*) cp $machine/stap $machine/bin ;; esac"
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  ran 'apt-get update' "apt-get install -y systemtap linux-headers-$release (noninteractive)"
  [ "$(tail -n 2 <<<"$output")" = "left to do by hand:
  headers: ${sudo}apt-get install linux-headers-$release (it was run, and did not help)" ]
}

@test "doctor --fix checks again, asks again and runs what only then is needed" {
  make_machine_of_fakes
  without_stap_and_headers
  # the installation of stap brings a second problem, and that of python3 a third
  does apt-get "case \" \$* \" in
    *' systemtap '*) cp -p $machine/stap $machine/bin; mkdir $machine/lib/modules/$release/build; : >$machine/lib/modules/$release/build/Makefile; mv $machine/usr/bin/python3.11 $machine/python ;;
    *' python3 '*) cp $machine/python $machine/usr/bin/python3.11; mkdir -p $machine/home/.systemtap/cache; chmod o+w $machine/home/.systemtap/cache ;;
  esac"
  does chmod "chmod \"\$1\" \"$machine\$2\""
  run answered $'y\n' $'Yes\n' $'y\n'
  echo "$output"
  [ "$status" = 0 ]
  ran 'apt-get update' "apt-get install -y systemtap linux-headers-$release (noninteractive)" \
    'apt-get install -y python3 (noninteractive)' 'chmod go-w /home/.systemtap' 'rm -rf /home/.systemtap/cache'
  [ "$(grep -oE 'Run .*\?' <<<"$output")" = 'Run these 2 commands?
Run this command?
Run this command?' ]
  # all of these are true of the last checks
  [ "$(grep -E '^(no|[0-9]+) problem' <<<"$output" | cut -d' ' -f1-2)" = '2 problems;
1 problem;
no problems;
no problems;' ]
}

@test "doctor --fix installs with dnf and with zypper, which ask nothing" {
  make_machine_of_fakes
  without_stap_and_headers
  printf 'ID=fedora\n' >"$machine/etc/os-release"
  run doctor --fix --yes
  echo "$output"
  ran "dnf install -y systemtap kernel-devel-$release"
  printf 'ID_LIKE="suse opensuse"\n' >"$machine/etc/os-release"
  : >"$ran"
  run doctor --fix --yes
  ran '' "zypper --non-interactive install systemtap kernel-default-devel=6.1.0-7"
}

@test "doctor --fix makes the shim of a checkout, or reinstalls the packages" {
  make_machine_of_fakes
  cp "$machine$shim" "$machine/shim"
  rm "$machine$shim"
  does make "[ \"\$*\" = '-C $top' ] && cp $machine/shim $machine$shim"
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 0 ]
  # of two lines
  ran "make -C $top"
  # installed
  mkdir "$BATS_TEST_TMPDIR/bin"
  cp "$launcher" "$BATS_TEST_TMPDIR/bin/stap-python"
  : >"$ran"
  launcher=$BATS_TEST_TMPDIR/bin/stap-python
  run doctor --fix --yes
  echo "$output"
  ran 'apt-get update' 'apt-get install -y --reinstall systemtap-cpython systemtap-cpython-tapset (noninteractive)'
  [ "$status" = 1 ]
}

@test "doctor --fix enables again, whatever the path is, with this stap-python" {
  local folder="$BATS_TEST_TMPDIR/a \$(touch $BATS_TEST_TMPDIR/made);'" file
  make_machine_of_fakes
  rm "$machine"/bin/{rm,mv,chmod}
  mkdir -p "$folder/bin" "$folder/lib/python$(abi_of /usr/bin/python3)/site-packages"
  ln -s /usr/bin/python3 "$folder/bin/python3"
  echo 'home = /usr/bin' >"$folder/pyvenv.cfg"
  file=$folder/lib/python$(abi_of /usr/bin/python3)/site-packages/python_stap.pth
  export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
  launcher enable "$folder/bin/python3"
  [ -e "$file" ]
  rm "$file"
  run doctor --fix --yes
  echo "$output"
  [ "$status" = 0 ]
  [ -e "$file" ]
  [ ! -e "$BATS_TEST_TMPDIR/made" ]
  grep -q "^+ $launcher enable " <<<"$output"
}

@test "doctor --fix runs no command that a terminal can't show as it is" {
  local folder=$'/data/\e[2J'
  make_machine_of_fakes
  mkdir -p "$machine$folder/systemtap/tapset"
  printf '/* x */\nprobe python.function.entry = process("python").mark("function__entry") {}\n' >"$machine$folder/systemtap/tapset/other.stp"
  XDG_DATA_DIRS=$folder run doctor --fix --yes
  echo "$output"
  ran ''
  grep -A 1 '^left to do by hand' <<<"$output" | grep -qF '\x1b[2J'
}

@test "the commands of doctor --fix have the umask of their caller" {
  make_machine_of_fakes
  without_stap_and_headers
  echo "umask >>$BATS_TEST_TMPDIR/umask" >>"$machine/bin/apt-get.does"
  # stap is there, so that its check sets the umask
  cp "$machine/stap" "$machine/bin/stap"
  umask 0
  run doctor --fix --yes
  umask 022
  echo "$output"
  [ "$(cat "$BATS_TEST_TMPDIR/umask")" = $'0000\n0000' ]
}

@test "doctor --fix of a user other than root: sudo, the groups, and a new login" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  make_machine_of_fakes
  without_stap_and_headers
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  chmod -R a+rwX "$machine/bin" "$machine/lib" "$machine/etc" "$machine/stap"
  doctor_of_nobody() {
    env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) \
      setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" doctor "$@" </dev/null
  }
  # SystemTap's package makes the groups
  : >"$machine/etc/group"
  echo "[ \$1 = update ] || { echo stapusr:x:106: && echo stapdev:x:105:; } >$machine/etc/group" >>"$machine/bin/apt-get.does"
  does usermod "grep -q stapdev $machine/etc/group && sed -i 's/:\$/:nobody/' $machine/etc/group"
  run doctor_of_nobody --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  diff - "$ran" <<RAN
sudo apt-get update
apt-get update
sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y systemtap linux-headers-$release
apt-get install -y systemtap linux-headers-$release (noninteractive)
sudo usermod -aG stapusr,stapdev nobody
usermod -aG stapusr,stapdev nobody
RAN
  # all at once, as the package makes the groups
  [ "$(grep -cE '^[0-9]+ problem' <<<"$output")" = 2 ]
  [ "$(tail -n 2 <<<"$output")" = 'left to do by hand:
  rights: log in again, for the groups; or for one session: su - nobody' ]
  # without the groups usermod would fail
  : >"$machine/etc/group"
  : >"$ran"
  run doctor_of_nobody --fix --yes
  echo "$output"
  [ "$status" = 1 ]
  ran ''
  grep -qx '  rights: sudo usermod -aG stapusr,stapdev nobody && su - nobody' <<<"$output"
}

@test "doctor --fix of a program with more rights than its caller's runs nothing" {
  [ "$(id -u)" = 0 ] || skip "needs root, to make a program set-user-ID"
  need setpriv
  make_machine_of_fakes
  mkdir "$BATS_TEST_TMPDIR/bin"
  cp "$launcher" "$BATS_TEST_TMPDIR/bin/stap-python"
  chmod u+s "$BATS_TEST_TMPDIR/bin/stap-python"
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  run env PATH="$machine/bin:/usr/bin:/bin" timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/bin/stap-python" doctor --fix --yes
  echo "$output"
  [ "$status $output" = '1 stap-python: doctor: --fix runs nothing with more rights than its caller has' ]
  ran ''
}

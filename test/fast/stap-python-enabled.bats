# stap-python: the list of enabled interpreters and services; disable --all.
#
# SPDX-License-Identifier: MIT

load ../lib/helper
load ../lib/launcher

# Makes a virtual environment: $python; $pth is the .pth file that enable would make, $listed the list of enabled files.
one_environment() {
  python=$(environments "$(system_python)")
  pth=$(site_of "$python")/python_stap.pth
  listed=$BATS_TEST_TMPDIR/machine/var/lib/systemtap-cpython/enabled
  [ "$(id -u)" = 0 ] || listed=$BATS_TEST_TMPDIR/machine${XDG_STATE_HOME:-$HOME/.local/state}/systemtap-cpython/enabled
}

# Makes $1 virtual environments: the array $pythons.
some_environments() {
  local i same=()
  for ((i = 0; i < $1; i++)); do
    same+=("$(system_python)")
  done
  mapfile -t pythons < <(environments "${same[@]}")
}

@test "enable lists what it creates, once, disable removes that, and the list with its last path" {
  local python pth listed second
  one_environment
  second=${pth%/site*}/second
  [ "$(launcher enable --list)" = "nothing is enabled" ]
  launcher enable "$python"
  launcher enable "$python"
  [ "$(launcher enable --list)" = "$pth" ]
  [ "$(wc -l <"$listed")" = 1 ]
  [ "$(stat -c %a "$listed" "${listed%/*}" | paste -sd' ')" = "$([ "$(id -u)" = 0 ] && echo 644 711 || echo 600 700)" ]
  mkdir -p "$BATS_TEST_TMPDIR/second/bin" "$BATS_TEST_TMPDIR/second/lib"
  cp -a "$(dirname "$(dirname "$python")")/." "$BATS_TEST_TMPDIR/second"
  rm "$BATS_TEST_TMPDIR/second/lib/"*/site-packages/*
  second=$BATS_TEST_TMPDIR/second/bin/python3
  launcher enable "$second"
  [ "$(launcher enable --list | wc -l)" = 2 ]
  launcher disable "$python"
  [ "$(launcher enable --list)" = "$(site_of "$second")/python_stap.pth" ]
  launcher disable "$second"
  [ ! -e "${listed%/*}" ]
  # what is not in the list gets into it
  launcher enable "$python"
  rm -r "${listed%/*}"
  [[ $(launcher enable "$python") == "already enabled: $pth" ]]
  [ "$(launcher enable --list)" = "$pth" ]
}

@test "disable --all undoes all that is listed, and names and leaves what was changed since" {
  local one pythons changed
  some_environments 4
  for one in "${pythons[@]}"; do
    launcher enable "$one"
  done
  changed=$(site_of "${pythons[1]}")/python_stap.pth
  echo '# mine' >>"$changed"
  # one that is gone, with its environment, and one whose .pth alone is gone
  rm -r "$BATS_TEST_TMPDIR/env3"
  rm "$(site_of "${pythons[3]}")/python_stap.pth"
  run launcher disable --all
  echo "$output"
  [ "$status" = 1 ]
  [ "$(grep -c '^disabled: ' <<<"$output")" = 3 ]
  grep -qx "stap-python: $changed: it was changed since stap-python enable created it: check and remove it yourself" <<<"$output"
  [ "$(tail -n 1 "$changed")" = '# mine' ]
  [ -L "${changed%pth}so" ]
  for one in "${pythons[0]}" "${pythons[3]}"; do
    [ -z "$(ls -A "$(site_of "$one")")" ]
  done
  [ "$(launcher enable --list)" = "$changed: broken: it was changed since stap-python enable created it" ]
  rm "$changed"
  [ "$(launcher disable --all)" = "disabled: $changed" ]
  [ ! -L "${changed%pth}so" ]
  [ ! -e "$BATS_TEST_TMPDIR/machine/var/lib/systemtap-cpython" ]
  run launcher disable --all
  [ "$status $output" = "0 nothing is enabled" ]
}

@test "disable --all works in a root without /proc, as the removal of a package may run it" {
  [ "$(id -u)" = 0 ] || skip "needs root, to hide /proc"
  need unshare
  local python pth listed
  one_environment
  launcher enable "$python"
  # shellcheck disable=SC2016
  run env STAP_PYTHON_ROOT="$BATS_TEST_TMPDIR/machine" unshare -m sh -c 'mount -t tmpfs none /proc && exec "$0" disable --all' "$launcher"
  [ "$status $output" = "0 disabled: $pth" ]
  [ -z "$(ls -A "${pth%/*}")" ]
}

@test "disable takes a file that is listed, when its interpreter is gone" {
  local python pth listed
  one_environment
  launcher enable "$python"
  rm "$python"
  refuses 1 'no such program' disable "$python"
  [ "$(launcher disable "$pth")" = "disabled: $pth" ]
  [ -z "$(ls -A "${pth%/*}")" ]
}

# bats test_tags=slow
@test "many at a time are all listed" {
  local pythons
  some_environments 12
  printf '%s\n' "${pythons[@]}" >"$BATS_TEST_TMPDIR/all"
  export -f launcher
  export launcher BATS_TEST_TMPDIR
  # shellcheck disable=SC2016
  xargs -P 12 -I {} bash -c 'launcher enable "$1"' - {} <"$BATS_TEST_TMPDIR/all"
  [ "$(launcher enable --list | grep -c '^/.*/python_stap.pth$')" = 12 ]
  # shellcheck disable=SC2016
  xargs -P 12 -I {} bash -c 'launcher disable "$1"' - {} <"$BATS_TEST_TMPDIR/all"
  [ "$(launcher enable --list)" = "nothing is enabled" ]
}

@test "lines of the list that have no path stay, and what can't be listed is not enabled" {
  local python pth listed
  one_environment
  mkdir -p "${listed%/*}"
  echo 'of a later version' >"$listed"
  launcher enable "$python"
  [ "$(launcher enable --list)" = "$pth" ]
  launcher disable "$python"
  [ "$(cat "$listed")" = 'of a later version' ]
  rm "$listed"
  mkdir "$listed"
  refuses 1 "$listed: cannot record what is enabled: " enable "$python"
  [ -z "$(ls -A "${pth%/*}")" ]
}

@test "a list of an older version is read: SUM, PATH and NAME with tabs between" {
  local python pth listed drop_in=$BATS_TEST_TMPDIR/machine/etc/systemd/system/web.service.d/50-systemtap-cpython.conf
  one_environment
  [ "$(id -u)" = 0 ] || skip "needs root, which enables services"
  mkdir -p "$BATS_TEST_TMPDIR/machine/etc/systemd/system" "$BATS_TEST_TMPDIR/machine${shim%/*}"
  ln -s "$shim" "$BATS_TEST_TMPDIR/machine$shim"
  launcher enable "$python"
  launcher enable --service web
  old_list() {
    printf '%s\t%s\t%s\n' ab996286f195ceb2 "$pth" "$python" 8ab7550d1e02fe42 "$drop_in" web.service >"$listed"
  }
  old_list
  [ "$(launcher enable --list)" = "$pth"$'\n'"$drop_in" ]
  # enabled again it is a path alone
  [ "$(launcher enable "$python")" = "already enabled: $pth" ]
  diff "$listed" <(printf '8ab7550d1e02fe42\t%s\tweb.service\n%s\n' "$drop_in" "$pth")
  old_list
  echo '# mine' >>"$drop_in"
  run launcher disable --all
  echo "$output"
  [ "$status" = 1 ]
  grep -qx "disabled: $pth" <<<"$output"
  grep -q "^stap-python: $drop_in: it was changed since " <<<"$output"
  [ -z "$(ls -A "${pth%/*}")" ]
  diff "$listed" <(printf '8ab7550d1e02fe42\t%s\tweb.service\n' "$drop_in")
  sed -i '$d' "$drop_in"
  [ "$(launcher disable "$drop_in")" = "disabled: $drop_in" ]
  [ ! -e "${listed%/*}" ]
}

@test "disable leaves a .pth file whose link leads to something else" {
  local python pth listed
  one_environment
  launcher enable "$python"
  ln -sfn /etc/passwd "${pth%pth}so"
  [ "$(launcher enable --list)" = "$pth: broken: it was changed since stap-python enable created it" ]
  refuses 1 "$pth: it was changed since stap-python enable created it" disable --all
  refuses 1 "$pth: it was changed since stap-python enable created it" disable "$pth"
  [ "$(readlink "${pth%pth}so")" = /etc/passwd ]
  [ -e "$pth" ]
}

@test "root reads no list, and undoes nothing, where another user may write" {
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  local python pth listed
  one_environment
  launcher enable "$python"
  chmod o+w "${pth%/*}"
  run launcher disable --all
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == "stap-python: $pth: ${pth%/*} is writable by others: run chmod go-w ${pth%/*}" ]]
  [ -e "$pth" ]
  chmod o-w "${pth%/*}"
  chmod o+w "${listed%/*}"
  refuses 1 "is writable by others" disable "$python"
  refuses 1 "is writable by others" enable "$python"
  chmod o-w "${listed%/*}"
  chown 65534 "$listed"
  refuses 1 "is owned by another user" disable --all
}

@test "other users read root's list, and can't lock it, so that root waits for no one" {
  local folder=$BATS_TEST_TMPDIR/machine/var/lib/systemtap-cpython other
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv flock
  other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  some_environments 2
  launcher enable "${pythons[0]}"
  # an older version's
  chmod 755 "$folder"
  launcher enable "${pythons[1]}"
  [ "$("${other[@]}" wc -l <"$folder/enabled")" = 2 ]
  "${other[@]}" test -r "$folder/enabled"
  run "${other[@]}" flock --nonblock "$folder" true
  echo "$output"
  [[ $output == *"Permission denied" ]]
  launcher disable --all
}

@test "another user's list is in the state folder, and shows root's too" {
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  local of_root mine state=$BATS_TEST_TMPDIR/home/state pythons
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  [ -x "$top" ] || skip "needs a checkout that others can read"
  some_environments 2
  of_root=${pythons[0]} mine=${pythons[1]}
  mkdir -p "$BATS_TEST_TMPDIR/home" "$BATS_TEST_TMPDIR/machine/$BATS_TEST_TMPDIR"
  chown -R 65534 "$BATS_TEST_TMPDIR/env2" "$BATS_TEST_TMPDIR/home"
  launcher enable "$of_root"
  other() {
    local variable=$1
    shift
    timeout $((20 * SLOW)) env -u XDG_STATE_HOME HOME="$BATS_TEST_TMPDIR/home" ${variable:+"$variable"} \
      setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" "$@"
  }
  other '' enable "$mine"
  [ -e "$BATS_TEST_TMPDIR/home/.local/state/systemtap-cpython/enabled" ]
  [ "$(other '' enable --list | grep -F "$BATS_TEST_TMPDIR")" = "$(site_of "$mine")/python_stap.pth" ]
  other '' disable --all
  [ -z "$(ls -A "$BATS_TEST_TMPDIR/home/.local/state")" ]
  other "XDG_STATE_HOME=$state" enable "$mine"
  [ "$(stat -c %a "$state/systemtap-cpython" "$state/systemtap-cpython/enabled" | paste -sd' ')" = "700 600" ]
  other "XDG_STATE_HOME=$state" disable "$mine"
  [ ! -e "$state/systemtap-cpython" ]
  # without a folder for the list
  run other XDG_STATE_HOME=/nonexistent enable "$mine"
  [ "$status $output" = "1 stap-python: /nonexistent/systemtap-cpython: cannot record what is enabled: Permission denied: set XDG_STATE_HOME to a directory of yours" ]
  [ -z "$(ls -A "$(site_of "$mine")")" ]
  # root's
  mkdir -p "$BATS_TEST_TMPDIR/machine$BATS_TEST_TMPDIR/home"
  chown 65534 "$BATS_TEST_TMPDIR/machine$BATS_TEST_TMPDIR/home"
  chmod -R a+rX "$BATS_TEST_TMPDIR/machine"
  run other "STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/machine" enable --list
  echo "$output"
  [ "$output" = "$(site_of "$of_root")/python_stap.pth" ]
  run other "STAP_PYTHON_ROOT=$BATS_TEST_TMPDIR/machine" disable --all
  [ "$output" = "nothing is enabled" ]
}

@test "doctor says what is enabled, and which of it is broken, with the command that repairs it" {
  local command one pythons file state=${XDG_STATE_HOME:-$HOME/.local/state}
  make_machine
  some_environments 4
  for one in "${pythons[@]}"; do
    launcher enable "$one"
  done
  file=lib/python$(abi_of "$(system_python)")/site-packages/python_stap.pth
  rm "$BATS_TEST_TMPDIR/env2/$file"
  ln -sfn /nonexistent/libpython-stap.so.0 "$BATS_TEST_TMPDIR/env3/${file%pth}so"
  rm -r "$BATS_TEST_TMPDIR/env4"
  run env STAP_PYTHON_ROOT="$machine" HOME=/home XDG_STATE_HOME="$state" PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) "$launcher" doctor
  echo "$output"
  [ "$status" = 0 ]
  grep -qE "^ok +enabled +$BATS_TEST_TMPDIR/env1/$file$" <<<"$output"
  # usage: broken FOLDER FAULT FIX
  broken() {
    grep -E -A 1 "^note +enabled +$BATS_TEST_TMPDIR/$1/$file loads the shim no longer: $2" <<<"$output" | grep -qE "^ +fix: $3$"
  }
  broken env2 'No such file' "stap-python enable ${pythons[1]}"
  broken env3 'the link .*/env3/.*/python_stap.so leads to no shim' "stap-python enable ${pythons[2]}"
  broken env4 'No such file' "stap-python disable $BATS_TEST_TMPDIR/env4/$file"
  # and these commands do so
  for command in "enable ${pythons[1]}" "enable ${pythons[2]}" "disable $BATS_TEST_TMPDIR/env4/$file"; do
    # shellcheck disable=SC2086
    launcher $command
  done
  run env STAP_PYTHON_ROOT="$machine" HOME=/home XDG_STATE_HOME="$state" PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) "$launcher" doctor
  [ "$(grep -cE '^ok +enabled' <<<"$output")" = 3 ]
  refute grep '^note' <<<"$output"
}

@test "doctor's command enables the interpreter whose site-packages the file was in" {
  local one folder folders=()
  [ "$(id -u)" = 0 ] || skip "needs root, whose list this is"
  make_machine
  mkdir -p "$machine/var/lib/systemtap-cpython"
  for one in $(pythons); do
    folder=$("$one" -IS -c 'import site; print(site.getsitepackages()[0])')
    [ ! -e "$folder/python_stap.pth" ] || continue
    folders+=("$folder")
    echo "$folder/python_stap.pth" >>"$machine/var/lib/systemtap-cpython/enabled"
  done
  run env STAP_PYTHON_ROOT="$machine" HOME=/home PATH="$machine/bin:/usr/bin:/bin" timeout -k 5 $((60 * SLOW)) "$launcher" doctor
  echo "$output"
  for folder in "${folders[@]}"; do
    one=$(grep -F -A 1 " $folder/python_stap.pth loads the shim no longer: " <<<"$output" | sed -n 's/^ *fix: stap-python enable //p')
    [ "$("$one" -IS -c 'import site; print(site.getsitepackages()[0])')" = "$folder" ]
  done
}

@test "what a package has installed is enabled already, and disable names the package" {
  local python pth listed
  one_environment
  cp "$top/probes/stap-python/python_stap.pth" "$pth"
  ln -sr "$shim" "${pth%pth}so"
  [ "$(threads_of "$python")" = 2 ]
  run launcher enable "$python"
  [ "$status $output" = "0 already enabled, by a package or make install: $pth" ]
  [ "$(launcher enable --list)" = "nothing is enabled" ]
  refuses 1 "$pth was installed by a package or make install: remove that package" disable "$python"
}

# stap-python: enable and disable.  stap itself is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../helper
load launcher

# Makes a virtual environment of each of these Pythons, as the module venv does but faster, and prints
# its interpreter.
environments() {
  local python folder number=0
  for python; do
    folder=$BATS_TEST_TMPDIR/env$((++number))
    mkdir -p "$folder/bin" "$folder/lib/python$(version_of "$python")/site-packages"
    ln -s "$python" "$folder/bin/python3"
    echo "home = $(dirname "$python")" >"$folder/pyvenv.cfg"
    echo "$folder/bin/python3"
  done
}

# How many threads a program starts with: with the shim one more.
threads_of() {
  "$@" -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0])'
}

@test "enable lets every start of an interpreter load the shim, disable ends that, each any number of times" {
  local python site files
  # shellcheck disable=SC2046
  environments $(pythons) >"$BATS_TEST_TMPDIR/environments"
  [ -s "$BATS_TEST_TMPDIR/environments" ]
  while read -r python; do
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    files=$(ls -A "$site")
    [ "$(threads_of "$python")" = 1 ]
    run launcher disable "$python"
    [ "$status $output" = "0 not enabled: there is no $site/python_stap.pth" ]
    run launcher enable "$python"
    echo "$output"
    [ "$status $output" = "0 enabled: $site/python_stap.pth" ]
    [ "$(threads_of "$python")" = 2 ]
    [ "$(threads_of "$python" -I)" = 2 ]
    [ "$(threads_of "$python" -S)" = 1 ]
    run launcher enable "$python"
    [ "$status $output" = "0 already enabled: $site/python_stap.pth" ]
    run launcher list "$python"
    grep -qx "  the shim: loaded at each start, by $site/python_stap.pth" <<<"$output"
    run launcher disable "$python"
    [ "$status $output" = "0 disabled: $site/python_stap.pth" ]
    [ "$(threads_of "$python")" = 1 ]
    [ "$(ls -A "$site")" = "$files" ]
  done <"$BATS_TEST_TMPDIR/environments"
}

@test "an enabled interpreter starts silently when the shim is missing, broken or another file" {
  local python site broken
  # shellcheck disable=SC2046
  environments $(pythons_by_hook) >"$BATS_TEST_TMPDIR/environments"
  while read -r python; do
    run launcher enable "$python"
    [ "$status" = 0 ]
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    for broken in /nonexistent/libpython-stap.so.0 /etc/passwd /bin/true ''; do
      rm "$site/python_stap.so"
      [ -z "$broken" ] || ln -s "$broken" "$site/python_stap.so"
      run "$python" -X dev -c 'print("started")'
      echo "$python $broken: $output"
      [ "$status $output" = "0 started" ]
      ln -sf "$shim" "$site/python_stap.so"
    done
    # enable repairs what is broken
    ln -sf /nonexistent/libpython-stap.so.0 "$site/python_stap.so"
    [ "$(threads_of "$python")" = 1 ]
    run launcher enable "$python"
    [[ $output == enabled:* ]]
    [ "$(threads_of "$python")" = 2 ]
  done <"$BATS_TEST_TMPDIR/environments"
}

@test "enable and disable touch nothing that they haven't created" {
  local python site
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo '# mine' >"$site/python_stap.pth"
  refuses 1 'python_stap.pth was not created by stap-python enable' enable "$python"
  refuses 1 'python_stap.pth was not created by stap-python enable' disable "$python"
  [ "$(cat "$site/python_stap.pth")" = '# mine' ]
  rm "$site/python_stap.pth"
  ln -s /etc/passwd "$site/python_stap.so"
  refuses 1 'python_stap.so was not created by stap-python enable' enable "$python"
  refuses 1 'python_stap.so was not created by stap-python enable' disable "$python"
  [ "$(readlink "$site/python_stap.so")" = /etc/passwd ]
  [ ! -e "$site/python_stap.pth" ]
}

@test "enable refuses politely without permission, and leaves nothing behind" {
  local python site
  [ "$(id -u)" = 0 ] || skip "needs root, to run as another user"
  need setpriv
  chmod a+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" enable "$python"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: $site/python_stap.so: Permission denied: run this as the owner of that directory" ]
  [ -z "$(ls "$site")" ]
  launcher enable "$python"
  run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" disable "$python"
  [ "$status" = 1 ]
  [[ $output == *"python_stap.pth: Permission denied"* ]]
  [ "$(threads_of "$python")" = 2 ]
  # other users can read what root has enabled
  [ "$(threads_of setpriv --reuid=65534 --regid=65534 --clear-groups "$python")" = 2 ]
}

@test "enable and disable as root don't start an interpreter that another user can change" {
  local python folder way
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  folder=$BATS_TEST_TMPDIR/others
  python=$folder/bin/python3
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\necho "$0" >"%s/started"\n' "$BATS_TEST_TMPDIR" >"$python"
  chmod 755 "$folder" "$folder/bin" "$python"
  refuses 1 'not a working Python' enable "$python"
  rm "$BATS_TEST_TMPDIR/started"
  chown 65534 "$python"
  refuses 1 "$python: $python is owned by another user \(uid 65534\): run this as that user" enable "$python"
  refuses 1 "uid 65534" disable "$python"
  PATH=$folder/bin:$PATH refuses 1 'uid 65534' enable
  ln -s "$python" "$BATS_TEST_TMPDIR/python3"
  (cd "$BATS_TEST_TMPDIR" && refuses 1 'uid 65534' enable ./python3)
  (cd "$folder" && refuses 1 'uid 65534' enable bin/../bin/python3)
  chown 0 "$python"
  chown 65534 "$folder"
  refuses 1 'uid 65534' enable "$python"
  chown 0 "$folder"
  for way in g+w o+w; do
    chmod "$way" "$folder/bin"
    refuses 1 "$folder/bin is writable by others: run chmod go-w $folder/bin" enable "$python"
    chmod go-w "$folder/bin"
  done
  chmod 1777 "$folder/bin"
  refuses 1 "$python may be another user's" enable "$python"
  chmod 755 "$folder/bin"
  # the path that a link of /proc says may be another file here
  need unshare
  mkdir "$BATS_TEST_TMPDIR/mounted"
  unshare -m sh -c 'mount --bind "$1" "$2" && echo >"$1/mounted" && exec sleep 60' sh "$folder" "$BATS_TEST_TMPDIR/mounted" &
  programs+=($!)
  soon test -e "$folder/mounted"
  cp -r "$folder/bin" "$BATS_TEST_TMPDIR/mounted"
  refuses 1 "cannot tell who can change it" enable "/proc/$!/root$BATS_TEST_TMPDIR/mounted/bin/python3"
  [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "enable and disable as root run and write nothing where another user may write" {
  local python site library
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  python=$(environments "$(system_python)")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  # files in site-packages do not run while the interpreter is asked for their directory
  echo "import sys; open('$BATS_TEST_TMPDIR/run', 'w')" >"$site/others.pth"
  launcher enable "$python"
  launcher disable "$python"
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
  rm "$site/others.pth"
  for way in 'chmod o+w' 'chmod g+w' 'chown 65534'; do
    $way "$site"
    refuses 1 "$site: $site is (owned by another user|writable by others)" enable "$python"
    refuses 1 "$site: $site is (owned by another user|writable by others)" disable "$python"
    chown 0 "$site"
    chmod 755 "$site"
  done
  [ -z "$(ls -A "$site")" ]
  # the interpreter is root's, its library another user's
  mkdir -p "$BATS_TEST_TMPDIR/other/bin" "$BATS_TEST_TMPDIR/other/lib/python$(version_of "$(system_python)")/encodings"
  library=$BATS_TEST_TMPDIR/other/lib/python$(version_of "$(system_python)")
  cp "$(readlink -f "$(system_python)")" "$BATS_TEST_TMPDIR/other/bin/python3"
  # it is imported before there is an open()
  echo "import posix; posix.close(posix.open('$BATS_TEST_TMPDIR/run', 65))" >"$library/encodings/__init__.py"
  : >"$library/os.py"
  chown 65534 "$library"
  refuses 1 'uid 65534' enable "$BATS_TEST_TMPDIR/other/bin/python3"
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
  chown 0 "$library"
  refuses 1 'not a working Python' enable "$BATS_TEST_TMPDIR/other/bin/python3"
  [ -e "$BATS_TEST_TMPDIR/run" ]
}

@test "enable refuses a Python that the shim does not support" {
  local python version why
  python=$BATS_TEST_TMPDIR/python
  while IFS=: read -r version why; do
    printf '#!/bin/sh\nprintf "\\nsite: %s /tmp\\n"\n' "$version" >"$python"
    chmod +x "$python"
    refuses 1 "$why" enable "$python"
  done <<'VERSIONS'
2 7 False:the shim does not support it: Python 2.7 is older than 3.6
3 5 False:the shim does not support it: Python 3.5 is older than 3.6
3 13 True:the shim does not support it: it is free-threaded
garbage:not a working Python 3.6 or later
VERSIONS
}

# stap-python: enable and disable.  stap is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper
load ../lib/launcher

# Whether list says which file loads the shim.  A script of environments() it does not read.
# usage: says_its_loader PYTHON FILE
says_its_loader() {
  [ ! -h "$1" ] || launcher list "$1" | grep -qx "  the shim: loaded at each start, by $2"
}

@test "enable lets every start of an interpreter load the shim, disable ends that, each any number of times" {
  local python site files
  # shellcheck disable=SC2046
  environments $(pythons) >"$BATS_TEST_TMPDIR/environments"
  [ -s "$BATS_TEST_TMPDIR/environments" ]
  while read -r python; do
    site=$(site_of "$python")
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
    says_its_loader "$python" "$(loader_of "$python")"
    run launcher disable "$python"
    [ "$status $output" = "0 disabled: $site/python_stap.pth" ]
    [ "$(threads_of "$python")" = 1 ]
    [ "$(ls -A "$site")" = "$files" ]
  done <"$BATS_TEST_TMPDIR/environments"
}

@test "from CPython 3.15 on the .pth file loads the shim, or python_stap.start in its place, once and without a warning" {
  local python site count=0
  # shellcheck disable=SC2046
  environments $(pythons) >"$BATS_TEST_TMPDIR/environments"
  while read -r python; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 15))' || continue
    count=$((count + 1))
    site=$(site_of "$python")
    launcher enable "$python"
    run "$python" -v -X dev -W error -c 'import sys; print("started", "python_stap" in sys.modules, "pkgutil" in sys.modules)'
    grep -qx 'started True False' <<<"$output"
    [ "$(threads_of "$python")" = 2 ]
    # with the links of a package, or of an enable for 3.18
    ln -s "${shim%/*}/python_stap_start" "${shim%/*}/python_stap_start/python_stap.start" "$site"
    says_its_loader "$python" "$site/python_stap.start"
    run "$python" -v -X dev -W error -c 'import sys; print("started", "python_stap" in sys.modules)'
    grep -i stap <<<"$output"
    [ "$(grep -c "Executing entry point: python_stap_start:load" <<<"$output")" = 1 ]
    refute grep -E "import lines in .*python_stap.pth are deprecated|Exec'ing from .*python_stap.pth" <<<"$output"
    grep -qx 'started True' <<<"$output"
    [ "$(threads_of "$python")" = 2 ]
    # the .start file alone, as from 3.18 on
    rm "$site/python_stap.pth"
    [ "$(threads_of "$python")" = 2 ]
    [ "$(launcher disable "$python")" = "disabled: $site/python_stap.pth" ]
    [ -z "$(ls -A "$site")" ]
  done <"$BATS_TEST_TMPDIR/environments"
  [ "$count" -gt 0 ] || skip "needs CPython 3.15"
}

@test "for CPython 3.15 enable makes no .start file, which would take longer" {
  local python=$BATS_TEST_TMPDIR/python3.15 real site
  read -r real site < <(says_that_it_is "$python" 15)
  [ "$(launcher enable "$python")" = "enabled: $site/python_stap.pth" ]
  [ "$(ls -A "$site")" = $'python_stap.pth\npython_stap.so' ]
  [ "$(threads_of "$real")" = 2 ]
}

@test "for CPython 3.18 enable makes a .start file, which names a function that loads the shim or does nothing" {
  local python=$BATS_TEST_TMPDIR/python3.18 real site entry broken
  read -r real site < <(says_that_it_is "$python" 18)
  [ "$(launcher enable "$python")" = "enabled: $site/python_stap.pth" ]
  [ "$(launcher enable "$python")" = "already enabled: $site/python_stap.pth" ]
  [ "$(ls -A "$site")" = $'python_stap.pth\npython_stap.so\npython_stap.start\npython_stap_start' ]
  entry=$(grep -v '^#' "$site/python_stap.start")
  [ "$entry" = "${entry%%:*}:${entry#*:}" ]
  starts() {
    "$real" -IS -W error -c "import sys
sys.path.append('$site')
import ${entry%%:*}
${entry%%:*}.${entry#*:}()
print('python_stap' in sys.modules)" 2>&1
  }
  [ "$(starts)" = True ]
  for broken in /nonexistent/libpython-stap.so.0 /etc/passwd /bin/true; do
    ln -sf "$broken" "$site/python_stap.so"
    [ "$(starts)" = False ]
  done
  rm "$site/python_stap.so"
  [ "$(starts)" = False ]
  # no bytecode is left, nor could it be
  [ -z "$(find -L "$site" -name '*.pyc')" ]
  # what would make CPython print an error
  ln -s "$shim" "$site/python_stap.so"
  rm "$site/python_stap_start"
  [ "$(launcher enable --list)" = "$site/python_stap.pth: broken: the link $site/python_stap_start leads nowhere" ]
  # of an older release: the .pth file alone
  rm "$site/python_stap.start"
  [ "$(launcher enable "$python")" = "enabled: $site/python_stap.pth" ]
  [ "$(launcher enable --list)" = "$site/python_stap.pth" ]
  # files of others stay
  rm "$site/python_stap.start"
  echo mine >"$site/python_stap.start"
  refuses 1 'python_stap.start was not created by stap-python enable' enable "$python"
  refuses 1 'python_stap.start was not created by stap-python enable' disable "$python"
  refuses 1 'python_stap.pth: it was changed since stap-python enable created it' disable --all
  [ "$(cat "$site/python_stap.start")" = mine ]
  rm "$site/python_stap.start"
  launcher disable "$python"
  [ -z "$(ls -A "$site")" ]
  [ "$(launcher enable --list)" = "nothing is enabled" ]
  # an older one gets none
  launcher enable "$real"
  [[ $(loader_of "$real") == *.start ]] || refute ls "$site/python_stap.start"
}

@test "an enabled interpreter starts silently when the shim is missing, broken or another file" {
  local python site broken
  # shellcheck disable=SC2046
  environments $(pythons_by_hook) >"$BATS_TEST_TMPDIR/environments"
  while read -r python; do
    run launcher enable "$python"
    [ "$status" = 0 ]
    site=$(site_of "$python")
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
  site=$(site_of "$python")
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
  site=$(site_of "$python")
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" enable "$python"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "stap-python: $site/python_stap.so: Permission denied: run this as the owner of that directory" ]
  [ -z "$(ls "$site")" ]
  launcher enable "$python"
  run timeout $((20 * SLOW)) setpriv --reuid=65534 --regid=65534 --clear-groups "$launcher" disable "$python"
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
  # the path of a link in /proc may be another file in this namespace
  need unshare
  mkdir "$BATS_TEST_TMPDIR/mounted"
  unshare -m sh -c 'mount --bind "$1" "$2" && echo >"$1/mounted" && exec sleep 600' sh "$folder" "$BATS_TEST_TMPDIR/mounted" &
  programs+=($!)
  wait_for test -e "$folder/mounted"
  cp -r "$folder/bin" "$BATS_TEST_TMPDIR/mounted"
  refuses 1 "cannot tell who can change it" enable "/proc/$!/root$BATS_TEST_TMPDIR/mounted/bin/python3"
  [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "enable and disable as root run and write nothing where another user may write" {
  local python site library
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  python=$(environments "$(system_python)")
  site=$(site_of "$python")
  # files in site-packages do not run while the interpreter prints their directory
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
  mkdir -p "$BATS_TEST_TMPDIR/other/bin" "$BATS_TEST_TMPDIR/other/lib/python$(abi_of "$(system_python)")/encodings"
  library=$BATS_TEST_TMPDIR/other/lib/python$(abi_of "$(system_python)")
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

# Makes a program that is taken for a CPython 3.11, and that says when it was started.
# usage: false_python FILE [OPTION OF gcc...]
false_python() {
  mkdir -p "${1%/*}"
  printf '#include <fcntl.h>\nconst char *Py_GetVersion(void) { return "3.11.2 (main)"; }\nint main(void) { creat("%s", 0600); }\n' \
    "$BATS_TEST_TMPDIR/started" | gcc -rdynamic -o "$1" "${@:2}" -x c -
}

@test "enable as root starts no Python that would load what another user can put there" {
  local folder=$BATS_TEST_TMPDIR/p python library
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  need gcc unshare
  python=$folder/a/bin/python3.11
  library=$folder/a/lib/python3.11
  false_python "$python"
  mkdir -p "$library/encodings"
  : >"$library/os.py"
  refuses 1 'not a working Python' enable "$python"
  [ -e "$BATS_TEST_TMPDIR/started" ]
  rm "$BATS_TEST_TMPDIR/started"
  # a module of the standard library
  chown 65534 "$library/os.py"
  refuses 1 "$python: $library/os.py is owned by another user \(uid 65534\)" enable "$python"
  # where the folder's name is a pattern
  mv "$folder/a" "$folder/[a]"
  refuses 1 'uid 65534' enable "$folder/[a]/bin/python3.11"
  mv "$folder/[a]" "$folder/a"
  chown 0 "$library/os.py"
  mkdir -p "$library/encodings/inner" "$folder/a/bin/lib/python3.11/lib-dynload" "$folder/elsewhere"
  ln -s "$folder/elsewhere" "$library/json"
  : >"$folder/a/lib/python311.zip"
  for file in "$library"/encodings/inner/utf_8.py "$library/json/decoder.py" "$folder"/a/lib/python311{,t}.zip \
    "$folder"/a/bin/lib/python3.11/{lib-dynload/math.so,abc.py}; do
    : >"$file"
    chown 65534 "$file"
    refuses 1 "$python: $file is owned by another user" enable "$python"
    rm "$file"
  done
  chmod o+w "$library/encodings/inner"
  refuses 1 "$library/encodings/inner is writable by others" enable "$python"
  rm -r "$library"/{encodings/inner,json} "$folder/a/bin/lib"
  # that of a Python which a virtual environment finds by a folder of links
  mkdir -p "$folder/v/bin" "$folder/links"
  ln -s ../../a/bin/python3.11 "$folder/v/bin/python3"
  ln -s ../a/bin/python3.11 "$folder/links/python3"
  echo "home = /mnt/links" >"$folder/v/pyvenv.cfg"
  chown 65534 "$library/os.py"
  # shellcheck disable=SC2016 # for that shell
  run unshare -m sh -c 'mount --bind "$1" /mnt && STAP_PYTHON_ROOT=/ "$2" enable /mnt/v/bin/python3' sh "$folder" "$launcher"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == "stap-python: /mnt/v/bin/python3: /mnt/a/lib/python3.11/os.py is owned by another user (uid 65534)"* ]]
  chown 0 "$library/os.py"
  # pyvenv.cfg, and what it names
  for config in "$folder/a/bin" "$folder/a"; do
    echo "home = $folder/b/bin" >"$config/pyvenv.cfg"
    chown 65534 "$config/pyvenv.cfg"
    refuses 1 "$config/pyvenv.cfg is owned by another user" enable "$python"
    chown 0 "$config/pyvenv.cfg"
    mkdir -p "$folder/b/bin"
    chown 65534 "$folder/b"
    refuses 1 "it would load what is in $folder/b/bin: $folder/b is owned by another user" enable "$python"
    rm -r "$config/pyvenv.cfg" "$folder/b"
  done
  # others may make pyvenv.cfg; the standard library, which is looked for in all folders above
  mkdir -m 1777 "$folder/shared"
  false_python "$folder/shared/c/python3.11"
  false_python "$folder/shared/d/e/f/python3.11"
  for python in "$folder"/shared/c/python3.11 "$folder"/shared/d/e/f/python3.11; do
    refuses 1 "it would load what is in $folder/shared: $folder/shared is writable by others" enable "$python"
  done
  # its libraries
  # shellcheck disable=SC2016 # for the dynamic linker
  for place in "$folder/theirs/lib" "$folder/shared/missing" '$ORIGIN/../../theirs'; do
    false_python "$folder/a/bin/python3.11" "-Wl,-rpath,/usr/lib:$place"
    mkdir -p "$folder/theirs/lib"
    chown 65534 "$folder/theirs"
    STAP_PYTHON_ROOT=/ refuses 1 "it would load what is in .*: .*/p/(theirs is owned by|shared is writable by)" \
      enable "$folder/a/bin/python3.11"
  done
  # also those of a program that is not known to be a Python, as its library has been replaced
  : | gcc -shared -o "$folder/theirs/libpython3.11.so.1.0" -x c -
  printf 'int main(void) { return 0; }\n' |
    gcc -Wl,--no-as-needed -o "$folder/a/bin/python3.11" -x c - -x none "$folder/theirs/libpython3.11.so.1.0" "-Wl,-rpath,$folder/theirs"
  STAP_PYTHON_ROOT=/ refuses 1 "it would load what is in .*/theirs: .*/theirs is owned by another user" \
    enable "$folder/a/bin/python3.11"
  # of those from the working directory it is not known who makes them
  # shellcheck disable=SC2016 # for the dynamic linker
  for place in :/usr/lib lib:/usr/lib '/usr/$LIB'; do
    false_python "$folder/a/bin/python3.11" "-Wl,-rpath,$place"
    refuses 1 "would load what is in (the working directory|/usr/.LIB) \(RUNPATH\)" enable "$folder/a/bin/python3.11"
  done
  [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "enable as root starts no Python on a file system that another user may have mounted" {
  local python=$BATS_TEST_TMPDIR/p/bin/python3.11 program
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  need gcc unshare
  [ "$(stat -fc %T "$BATS_TEST_TMPDIR")" != tmpfs ] || skip "needs a TMPDIR on a disk"
  false_python "$python"
  mkdir -p "$BATS_TEST_TMPDIR/p/lib/python3.11" "$BATS_TEST_TMPDIR/mounted"
  : >"$BATS_TEST_TMPDIR/p/lib/python3.11/os.py"
  printf '#!/bin/sh\n: >"%s"\n' "$BATS_TEST_TMPDIR/started" >"$BATS_TEST_TMPDIR/p/bin/script"
  chmod +x "$BATS_TEST_TMPDIR/p/bin/script"
  # such mounts have these options
  for options in nosuid,nodev nosuid; do
    for program in bin/python3.11 bin/script; do
      run unshare -m sh -c 'mount --bind "$1" "$2" && mount -o "remount,bind,$3" "$2" && "$4" disable "$2/$5"' \
        sh "$BATS_TEST_TMPDIR/p" "$BATS_TEST_TMPDIR/mounted" "$options" "$launcher" "$program"
      echo "$output"
      [ "$status" = 1 ]
      if [ $options = nosuid ]; then
        rm "$BATS_TEST_TMPDIR/started"
      else
        [[ $output == *"$program is on a file system that another user may have mounted (nosuid, nodev): if root did, remount it with dev" ]]
        [ ! -e "$BATS_TEST_TMPDIR/started" ]
      fi
    done
  done
}

@test "enable refuses a Python that the shim does not support" {
  local python version why
  python=$BATS_TEST_TMPDIR/python
  while IFS=: read -r version why; do
    printf '#!/bin/sh\nprintf "\\nsite: %s /tmp\\n"\n' "$version" >"$python"
    chmod +x "$python"
    refuses 1 "$why" enable "$python"
  done <<'VERSIONS'
2 7 -:the shim does not support it: Python 2.7 is older than 3.6
3 5 -:the shim does not support it: Python 3.5 is older than 3.6
3 13 3.13.13:the shim does not support it: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
3 14 3.14.3+:the shim does not support it: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
3 15 3.15.0a8:the shim does not support it: it is free-threaded, and older than CPython 3.14.4 or 3.15.0b1
garbage:not a working Python 3.6 or later
3 11 - .:not a working Python 3.6 or later
VERSIONS
}

@test "enable refuses a CPython whose file says that the shim does not support it" {
  need gcc
  echo 'const char *Py_GetVersion(void) { return "3.11.2 (main)"; }
    int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/python.c"
  gcc -static -o "$BATS_TEST_TMPDIR/python3" "$BATS_TEST_TMPDIR/python.c" || skip "needs a static C library"
  run launcher list "$BATS_TEST_TMPDIR/python3"
  echo "$output"
  grep -q 'the shim does not support it' <<<"$output" || skip "needs a static program that is known as a CPython"
  refuses 1 'the shim does not support it: it' enable "$BATS_TEST_TMPDIR/python3"
}

# Makes a pyenv in $pyenv, with its shim for python3, and with these versions, whose python3 is the system's.
make_pyenv() {
  local version
  pyenv=$BATS_TEST_TMPDIR/pyenv
  mkdir -p "$pyenv"/{shims,libexec} "$BATS_TEST_TMPDIR/here/below"
  cat >"$pyenv/shims/python3" <<SHIM
#!/usr/bin/env bash
set -e
program="\${0##*/}"

export PYENV_ROOT="$pyenv"
exec "$pyenv/libexec/pyenv" exec "\$program" "\$@"
SHIM
  printf '#!/bin/sh\n: >"%s/run"\n' "$BATS_TEST_TMPDIR" >"$pyenv/libexec/pyenv"
  chmod +x "$pyenv/shims/python3" "$pyenv/libexec/pyenv"
  for version; do
    mkdir -p "$pyenv/versions/$version"
    cp -a "$(dirname "$(dirname "$(environments "$(system_python)")")")/." "$pyenv/versions/$version"
    rm -r "$BATS_TEST_TMPDIR/env1"
  done
}

@test "enable follows pyenv's shim to the version that is set, and runs nothing of pyenv's" {
  make_pyenv 3.11.2 3.11.9 3.11.10 3.12.1 mine
  enables() {
    (cd "$BATS_TEST_TMPDIR/here/below" && PATH=$pyenv/shims:$PATH launcher enable) >"$BATS_TEST_TMPDIR/out"
    cat "$BATS_TEST_TMPDIR/out"
    [ -e "$pyenv/versions/$1/lib/python$(abi_of "$(system_python)")/site-packages/python_stap.pth" ]
    grep -qx "enabled: $pyenv/versions/$1/.*/python_stap.pth" "$BATS_TEST_TMPDIR/out"
    launcher disable "$pyenv/versions/$1/bin/python3"
  }
  echo 3.12.1 >"$pyenv/version"
  enables 3.12.1
  printf '# of this project\n 3.11.2\nmine\n' >"$BATS_TEST_TMPDIR/here/.python-version"
  enables 3.11.2
  echo mine >"$BATS_TEST_TMPDIR/here/below/.python-version"
  enables mine
  # the newest of those that it begins; the first that is there
  PYENV_VERSION=3.11 enables 3.11.10
  PYENV_VERSION=3.9.1:python-3.11.9:mine enables 3.11.9
  for version in 3.9.1 ../../.. /usr; do
    PYENV_VERSION=$version refuses 1 "$pyenv/shims/python3: pyenv's version $version has no python3 .see pyenv versions." \
      enable "$pyenv/shims/python3"
  done
  # the one behind it in PATH
  mkdir "$BATS_TEST_TMPDIR/bin"
  ln -s "$pyenv/versions/mine/bin/python3" "$BATS_TEST_TMPDIR/bin/python3"
  echo "home = /usr/bin" >"$BATS_TEST_TMPDIR/pyvenv.cfg"
  mkdir -p "$BATS_TEST_TMPDIR/lib/python$(abi_of "$(system_python)")/site-packages"
  PYENV_VERSION=system PATH=$pyenv/shims:$BATS_TEST_TMPDIR/bin:$PATH run launcher enable
  echo "$output"
  [[ $output == "enabled: $BATS_TEST_TMPDIR/lib/"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/run" ]
}

@test "list says what a virtual environment loads: its own .pth, its base's only with system site-packages" {
  local base python python_pth base_pth
  base=$(environments "$(system_python)")
  # a base that is not this machine's: its own library, the system's code
  base=$BATS_TEST_TMPDIR/base/bin/python3
  mkdir -p "${base%/*}" "$BATS_TEST_TMPDIR/base/lib/python$(abi_of "$(system_python)")/site-packages"
  cp "$(readlink -f "$(system_python)")" "$base"
  base_pth=$BATS_TEST_TMPDIR/base/lib/python$(abi_of "$(system_python)")/site-packages/python_stap.pth
  python=$BATS_TEST_TMPDIR/env1/bin/python3
  python_pth=$(site_of "$python")/python_stap.pth
  ln -sf "$base" "$python"
  shim_line() { launcher list "$1" | sed -n 's/^  the shim: //p'; }
  [ "$(shim_line "$python")" = "loaded when started with stap-python run" ]
  cp "$top/probes/stap-python/python_stap.pth" "$base_pth"
  ln -s "$shim" "${base_pth%pth}so"
  [ "$(shim_line "$base")" = "loaded at each start, by $base_pth" ]
  for all in false true TRUE; do
    printf 'home = %s\nInclude-System-Site-Packages=%s \n' "${base%/*}" "$all" >"$BATS_TEST_TMPDIR/env1/pyvenv.cfg"
    shim_line "$python"
    case $all in
      false)
        [ "$(shim_line "$python")" = "not loaded at each start: $base_pth is the base interpreter's, and this virtual environment has no system site-packages: stap-python enable $python" ]
        ;;
      *) [ "$(shim_line "$python")" = "loaded at each start, by $base_pth" ] ;;
    esac
  done
  # as site.py: without the key it has them
  echo "home = ${base%/*}" >"$BATS_TEST_TMPDIR/env1/pyvenv.cfg"
  [ "$(shim_line "$python")" = "loaded at each start, by $base_pth" ]
  cp "$top/probes/stap-python/python_stap.pth" "$python_pth"
  ln -s "$shim" "${python_pth%pth}so"
  [ "$(shim_line "$python")" = "loaded at each start, by $python_pth" ]
  # the base of a copy (venv --copies) is named in pyvenv.cfg only
  rm "$python" "$python_pth"
  cp "$base" "$python"
  [ "$(shim_line "$python")" = "loaded at each start, by $base_pth" ]
  # a folder's name is no pattern
  echo "home = $BATS_TEST_TMPDIR/[b]ase/bin" >"$BATS_TEST_TMPDIR/env1/pyvenv.cfg"
  [ "$(shim_line "$python")" = "loaded when started with stap-python run" ]
  echo "home = ${base%/*}" >"$BATS_TEST_TMPDIR/env1/pyvenv.cfg"
  # a link to a shim that is gone loads nothing
  ln -sf /nonexistent/libpython-stap.so.0 "${base_pth%pth}so"
  [ "$(shim_line "$python")" = "loaded when started with stap-python run" ]
}

# Makes an interpreter with its own prefix and library in the folder $1, from one of pythons() that has its own, and
# prints the path.
interpreter_at() {
  local prefix version
  for python in $(pythons); do
    prefix=$("$python" -c 'import sys; print(sys.prefix)') version=$(abi_of "$python")
    [ -d "$prefix/lib/python$version/site-packages" ] || continue
    mkdir -p "$1/bin" "$1/lib"
    cp -as "$prefix/lib/python$version" "$1/lib"
    cp "$(readlink -f "$python")" "$1/bin/python$version"
    ln -s "python$version" "$1/bin/python3"
    ln -s python3 "$1/bin/python"
    echo "$1/bin/python3"
    return
  done
}

@test "an environment of conda's, an interpreter of uv's and its virtual environment are enabled each by itself" {
  local python conda uv project=$BATS_TEST_TMPDIR/project/.venv
  conda=$(interpreter_at "$BATS_TEST_TMPDIR/miniconda3/envs/shop")
  [ "$conda" ] || skip "needs a Python with a prefix of its own"
  mkdir "${conda%/bin/*}/conda-meta"
  uv=$(interpreter_at "$BATS_TEST_TMPDIR/share/uv/python/cpython-3-linux-x86_64-gnu")
  touch "$(dirname "$(site_of "$uv")")/EXTERNALLY-MANAGED"
  mkdir -p "$project/bin" "$project/lib/python$(abi_of "$uv")/site-packages"
  ln -s "$uv" "$project/bin/python"
  ln -s python "$project/bin/python3"
  printf '%s\n' "home = ${uv%/*}" 'implementation = CPython' 'uv = 0.5.11' "version_info = $(version_of "$uv").1" \
    'include-system-site-packages = false' 'prompt = project' >"$project/pyvenv.cfg"
  for python in "$conda" "$uv" "$project/bin/python"; do
    echo "$python"
    [ "$(threads_of "$conda")$(threads_of "$uv")$(threads_of "$project/bin/python")" = 111 ]
    run launcher enable "$python"
    [ "$status $output" = "0 enabled: $(site_of "$python")/python_stap.pth" ]
    [[ $output == *" ${python%/bin/*}/lib/"* ]]
    [ "$(threads_of "$python")" = 2 ]
    launcher list "$python" | grep -qx "  the shim: loaded at each start, by ${output#enabled: }"
    launcher disable "$python"
  done
  launcher enable "$uv"
  [ "$(threads_of "$project/bin/python")" = 1 ]
  launcher list "$project/bin/python" | grep -q '^  the shim: not loaded at each start: .* no system site-packages: stap-python enable '
}

@test "virtual environments by the module venv: enabled or not, as list says" {
  local kind python
  need setpriv
  "$(system_python)" -c 'import venv' 2>/dev/null || skip "needs the module venv"
  for kind in '' --system-site-packages --copies; do
    # shellcheck disable=SC2086
    "$(system_python)" -m venv --without-pip $kind "$BATS_TEST_TMPDIR/venv$kind"
    python=$BATS_TEST_TMPDIR/venv$kind/bin/python3
    [ "$(threads_of "$python")" = 1 ]
    run launcher enable "$python"
    echo "$kind: $output"
    [[ $output == "enabled: $BATS_TEST_TMPDIR/venv$kind/lib/"*/python_stap.pth ]]
    [ "$(threads_of "$python")" = 2 ]
    launcher list "$python" | grep -qx "  the shim: loaded at each start, by ${output#enabled: }"
  done
}

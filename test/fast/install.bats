# make install, uninstall, installcheck and dist: files are where the variables of the GNU standards put them,
# SystemTap's own python.stp is kept and restored, and nothing is left behind.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  destdir=$BATS_TEST_TMPDIR/destdir
  stp=$destdir/usr/share/systemtap/tapset/python.stp
  name=systemtap-cpython-$(<"$top/VERSION")
}

# Runs make in this tree, with a copy of build in this suite's folder.  A variable that changes a path in files that
# are built already has make build them again: other suites use those of the tree.
make_target() {
  timeout -k 5 $((60 * SLOW)) make -s -C "$top" BUILD="$BATS_FILE_TMPDIR/build" DESTDIR="$destdir" "$@"
}

setup_file() {
  local build=$BATS_FILE_TMPDIR/build
  mkdir "$build"
  cp -pr "$top"/build/{generated,probes,man} "$build"
  find "$top/build" -maxdepth 1 -type f -exec cp -p {} "$build" \;
  # what each object is made of
  find "$build" -name '*.d' -exec sed -i "s,\bbuild/,$build/,g" {} +
}

# Makes the python.stp that SystemTap's package would install, with the text $1.
stock_python_stp() {
  mkdir -p "${stp%/*}"
  echo "// SystemTap's own, $1" >"$stp"
}

stock_is_back() {
  [ "$(cat "$stp")" = "// SystemTap's own, $1" ]
  [ ! -e "$stp.distrib" ]
}

ours_is_in_force() {
  cmp "$top/tapset/python.stp" "$stp"
}

# All files below DESTDIR.
installed() {
  (cd "$destdir" && find . ! -type d | sort)
}

@test "make install puts all of it below DESTDIR, where the variables say, each with its mode" {
  make_target install prefix=/opt/p exec_prefix=/opt/e bindir=/opt/b libdir=/opt/l/lib64 datadir=/opt/d mandir=/opt/m \
    docdir=/opt/doc tapsetdir=/opt/t shim_path='/opt/l/lib*/libpython-stap.so.0'
  installed
  cmp "$shim" "$destdir/opt/l/lib64/libpython-stap.so.0"
  [ "$(find "$destdir/opt/m/man3" -name '*.3stap' | wc -l)" = "$(find "$top/build/man" -name '*.3stap' | wc -l)" ]
  [ "$(cd "$destdir/opt/d/systemtap/examples/cpython" && find . -type f | sort)" = "$(cd "$top/scripts" && find . -type f | sort)" ]
  [ "$(find "$destdir/opt/d" '(' -name '*.stp' -o -name '*.bt' ')' ! -perm 755 | wc -l)" = 0 ]
  [ "$(find "$destdir/opt/d" "$destdir/opt/m" "$destdir/opt/t" -type f ! -name '*.stp' ! -name '*.d' ! -name '*.bt' ! -perm 644 | wc -l)" = 0 ]
  [ "$(find "$destdir/opt/t" -type f ! -perm 644 | wc -l)" = 0 ]
  cmp "$top/LICENSE" "$destdir/opt/doc/LICENSE"
  for file in "$top"/tapset/*.stp "$top"/tapset/*.stpm "$top"/build/python_*.stp; do
    cmp "$file" "$destdir/opt/t/${file##*/}"
  done
  grep -F '@define __python_shim_path %( "/opt/l/lib*/libpython-stap.so.0" %)' "$destdir/opt/t/python_paths.stpm"
  [ "$(readlink "$destdir/opt/t/python_local.stp")" = /etc/systemtap/python_local.stp ]
  [ -x "$destdir/opt/b/stap-python" ]
  grep -F /opt/l/lib64/libpython-stap.so.0 "$destdir/opt/b/stap-python"
  cmp "$top/build/stap-python.8" "$destdir/opt/m/man8/stap-python.8"
  grep -qx 'ExecStart=/opt/b/stap-python record --all --push .*' "$destdir/opt/p/lib/systemd/system/stap-python-profile.service"
  cmp "$top/probes/stap-python/stap-python.bash" "$destdir/opt/d/bash-completion/completions/stap-python"
  # nothing with more rights than its caller's, nor that others than its owner can change
  [ -z "$(find "$destdir/opt" ! -type l -perm /7022)" ]
  refute test -e "$destdir/usr"
  refute grep -rF "$destdir" "$destdir"
}

@test "make install writes nothing into the tree whose make is done" {
  # as root, whose files another user's next make could not replace
  make_target install
  touch "$BATS_TEST_TMPDIR/before"
  sleep 0.05
  make_target install
  make_target uninstall
  find "$BATS_FILE_TMPDIR"/build/{generated,probes,man,stap-python,stap-python.8,libpython-stap.so.0,python_objects.stp} -newer "$BATS_TEST_TMPDIR/before" |
    refute grep .
}

@test "make uninstall leaves nothing, and of other people's files all" {
  make_target install
  echo mine >"$destdir/usr/local/share/systemtap/examples/mine.stp"
  echo mine >"$destdir/usr/share/systemtap/tapset/mine.stp"
  echo mine >"$destdir/usr/local/share/man/man3/mine.3stap"
  make_target uninstall
  installed
  [ "$(installed | wc -l)" = 3 ]
  refute test -e "$destdir/usr/local/share/systemtap/examples/cpython"
  refute test -e "$destdir/usr/local/share/doc/systemtap-cpython"
  # a second time there is nothing to do
  make_target uninstall
  [ "$(installed | wc -l)" = 3 ]
}

@test "SystemTap's own python.stp is kept as python.stp.distrib, and comes back" {
  stock_python_stp 5.1
  make_target install
  ours_is_in_force
  make_target install
  ours_is_in_force
  grep 5.1 "$stp.distrib"
  make_target uninstall
  stock_is_back 5.1
  [ "$(installed | wc -l)" = 1 ]
}

@test "where an update of SystemTap has put its python.stp back, that is the one which is kept" {
  stock_python_stp 5.1
  make_target install
  stock_python_stp 5.2
  make_target install
  ours_is_in_force
  grep 5.2 "$stp.distrib"
  stock_python_stp 5.3
  make_target uninstall
  stock_is_back 5.3
}

@test "where SystemTap has been removed, its python.stp does not come back" {
  stock_python_stp 5.1
  make_target install
  # as dpkg and rpm do: it is the name that counts
  rm "$stp"
  make_target install
  ours_is_in_force
  make_target uninstall
  [ "$(installed | wc -l)" = 0 ]

  stock_python_stp 5.1
  make_target install
  rm "$stp"
  make_target uninstall
  [ "$(installed | wc -l)" = 0 ]
}

@test "with python3_sitedir every start of the interpreters that read it loads the shim, until make uninstall" {
  make_target install python3_sitedir=/opt/site
  cmp "$top/probes/stap-python/python_stap.pth" "$destdir/opt/site/python_stap.pth"
  # relative, so that it leads there below DESTDIR, too
  [ "$(readlink "$destdir/opt/site/python_stap.so")" = ../../usr/local/lib/libpython-stap.so.0 ]
  [ "$(readlink "$destdir/opt/site/python_stap.start")" = ../../usr/local/lib/python_stap_start/python_stap.start ]
  make_target installcheck python3_sitedir=/opt/site
  echo '# nothing' >"$destdir/opt/site/python_stap.pth"
  run make_target installcheck python3_sitedir=/opt/site
  [ "$status" != 0 ]
  [[ $output == *"python_stap.pth does not load the shim"* ]]
  make_target install python3_sitedir=/opt/site
  echo 'site:main' >"$destdir/usr/local/lib/python_stap_start/python_stap.start"
  run make_target installcheck python3_sitedir=/opt/site
  [ "$status" != 0 ]
  [[ $output == *"python_stap.start does not load the shim"* ]]
  make_target uninstall python3_sitedir=/opt/site
  [ "$(installed | wc -l)" = 0 ]
}

@test "with python_stp elsewhere SystemTap's own is left alone" {
  stock_python_stp 5.1
  make_target install python_stp=/usr/share/systemtap-cpython/python.stp
  stock_is_back 5.1
  cmp "$top/tapset/python.stp" "$destdir/usr/share/systemtap-cpython/python.stp"
  make_target uninstall python_stp=/usr/share/systemtap-cpython/python.stp
  stock_is_back 5.1
  [ "$(installed | wc -l)" = 1 ]
}

# Puts a fake dpkg-query, which prints $1 as the state of our package, and a fake rpm, which exits with $2, into $PATH.
packaged() {
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\nprintf %%s "%s"\n' "$1" >"$BATS_TEST_TMPDIR/bin/dpkg-query"
  printf '#!/bin/sh\nexit %s\n' "$2" >"$BATS_TEST_TMPDIR/bin/rpm"
  chmod +x "$BATS_TEST_TMPDIR/bin/dpkg-query" "$BATS_TEST_TMPDIR/bin/rpm"
  [[ $PATH == "$BATS_TEST_TMPDIR/bin:"* ]] || PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

@test "make install and uninstall refuse to touch what a package has installed" {
  # not the machine's own, where these would not refuse
  local here=("DESTDIR=" "prefix=$destdir/usr/local" "tapsetdir=$destdir/usr/share/systemtap/tapset") state target
  for state in "install ok installed:1" "install ok half-configured:1" ":0"; do
    packaged "${state%:*}" "${state#*:}"
    for target in install uninstall; do
      run make_target "$target" "${here[@]}"
      echo "$output"
      [ "$status" != 0 ]
      [[ ${lines[0]} == "make $target: the package systemtap-cpython-tapset is installed"*": remove it first, or "* ]]
    done
    refute test -e "$destdir"
  done
  # for a package
  make_target install
  make_target uninstall
  for state in "deinstall ok config-files" "unknown ok not-installed" ""; do
    packaged "$state" 1
    make_target install "${here[@]}"
    ours_is_in_force
    make_target uninstall "${here[@]}"
    [ "$(installed | wc -l)" = 0 ]
  done
}

# bats test_tags=slow
@test "make installcheck: stap resolves all in what is installed, and what is wrong is told" {
  need stap
  make_target install
  run make_target installcheck
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *"resolves every probe point in /usr/local/lib/libpython-stap.so.0"* ]]

  stock_python_stp 5.1
  run make_target installcheck
  [ "$status" != 0 ]
  [[ $output == *"python.stp is not ours"* ]]

  make_target install shim_path=/nonexistent/libpython-stap.so.0
  run make_target installcheck
  [ "$status" != 0 ]
  [[ $output == *"does not name /usr/local/lib/libpython-stap.so.0"* ]]

  for file in usr/share/systemtap/tapset/{python_stacks.stp,python_objects.stp,python_markers.stpm} usr/local/bin/stap-python \
    usr/local/share/man/man8/stap-python.8; do
    make_target install
    rm "$destdir/$file"
    run make_target installcheck
    [ "$status" != 0 ]
    [[ $output == *"$destdir/$file is missing"* ]]
  done

  make_target install
  cp /bin/true "$destdir/usr/local/lib/libpython-stap.so.0"
  run make_target installcheck
  [ "$status" != 0 ]
  [[ $output == *"the shim does not start"* ]]
}

@test "make installcheck knows man pages that a package has compressed" {
  make_target install
  gzip "$destdir"/usr/local/share/man/man?/*
  make_target installcheck
}

@test "python-stp refuses what it does not know" {
  run "$top/packaging/python-stp" put
  [ "$status" = 2 ]
  [[ $output == "python-stp: give put OURS PLACE or restore PLACE" ]]
  run "$top/packaging/python-stp" --help
  [ "$status" = 0 ]
  [[ $output == *"usage: python-stp put OURS PLACE"* ]]
}

@test "python-stp leaves SystemTap's python.stp in force where ours can't be put there" {
  local bin=$BATS_TEST_TMPDIR/bin tool
  stock_python_stp 5.1
  refute "$top/packaging/python-stp" put /nonexistent/python.stp "$stp"
  stock_is_back 5.1
  [ "$(installed | wc -l)" = 1 ]
  mkdir "$bin"
  for tool in cp chmod ln mv; do
    # half of it, as where the disk is full
    # shellcheck disable=SC2016
    printf '%s\n' '#!/bin/sh' 'for file; do :; done' '[ -e "$file" ] || echo "// half" >"$file"' 'exit 1' >"$bin/$tool"
    chmod +x "$bin/$tool"
    refute env PATH="$bin:$PATH" "$top/packaging/python-stp" put "$top/tapset/python.stp" "$stp"
    [ "$(cat "$stp")" = "// SystemTap's own, 5.1" ]
    refute test -e "$stp.new"
    rm "$bin/$tool"
  done
  # and the next time all is well
  "$top/packaging/python-stp" put "$top/tapset/python.stp" "$stp"
  ours_is_in_force
  grep 5.1 "$stp.distrib"
}

# usage: dist_in TREE FILE [VARIABLE=VALUE...]
dist_in() {
  (cd "$BATS_TEST_TMPDIR" && env "${@:3}" "$1/packaging/dist" "$2" >/dev/null)
}

@test "make dist makes the same tarball in a checkout and in an unpacked tarball, whenever it is done" {
  local first=$BATS_TEST_TMPDIR/1 second=$BATS_TEST_TMPDIR/2
  dist_in "$top" "$first/$name.tar.gz"
  tar -xzf "$first/$name.tar.gz" -C "$first"
  # what a build leaves there is not in it
  mkdir "$first/$name/build"
  touch "$first/$name/build/x"
  # nor is what else a checkout does to files: VERSION's date is that of all
  find "$first/$name" -type f ! -name VERSION -exec touch {} +
  chmod -R go= "$first/$name"
  (umask 077 && dist_in "$first/$name" "$second/$name.tar.gz" TZ=Asia/Tokyo)
  cmp "$first/$name.tar.gz" "$second/$name.tar.gz"
  tar -tzf "$first/$name.tar.gz" | grep -x "$name/packaging/dist"
  tar -tzf "$first/$name.tar.gz" | sort -c
  refute grep -v "^$name/" <(tar -tzf "$first/$name.tar.gz")
  [ ! -e "$top/.git" ] || diff <(git -C "$top" ls-files | sort) <(tar -tzf "$first/$name.tar.gz" | sed "s,^$name/,," | sort)
}

# bats test_tags=slow
@test "make distcheck is content with the tarball" {
  need stap
  local folder=$BATS_TEST_TMPDIR/dist
  dist_in "$top" "$folder/$name.tar.gz"
  run timeout -k 5 $((400 * SLOW)) "$top/packaging/distcheck" "$folder/$name.tar.gz"
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *"$name.tar.gz is ready to be distributed" ]]
}

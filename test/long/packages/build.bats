# The packages are the same bit for bit, wherever and whenever they are built, and are built from the tarball.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper

# Makes both kinds of package again, later, in another folder, as a machine with another name, time zone, umask
# and language would.
setup_file() {
  export elsewhere=$BATS_FILE_TMPDIR/else/where
  mkdir -p "$elsewhere"
  tar -xzf "$top"/build/systemtap-cpython-*.tar.gz --strip-components=1 -C "$elsewhere"
  # shellcheck disable=SC2016
  unshare --uts env TZ=Asia/Tokyo LC_ALL=C.UTF-8 HOME="$elsewhere" bash -euc '
    hostname elsewhere
    umask 027
    timeout -k 5 300 make -s -C "$elsewhere" deb rpm' >/dev/null
}

# Checks that the files that match the pattern $2 are the same in both builds, and that there are $1 of them.
same() {
  local file count=0
  for file in $(cd "$top/build" && find deb rpm -type f -name "$2" | sort); do
    echo "$file"
    cmp "$top/build/$file" "$elsewhere/build/$file"
    count=$((count + 1))
  done
  [ "$count" = "$1" ]
}

@test "the tarball is the same" {
  same 1 "*.orig.tar.gz"
  cmp "$top"/build/systemtap-cpython-*.tar.gz "$top"/build/deb/*.orig.tar.gz
}

@test "Debian's source and binary packages are the same" {
  same 1 "*.dsc"
  same 1 "*.debian.tar.*"
  same 4 "*.deb"
}

@test "the RPM source and binary packages are the same" {
  same 1 "*.src.rpm"
  same 3 "*.x86_64.rpm"
  same 1 "*.noarch.rpm"
}

@test "no package has a path of the folder that it was built in" {
  local folder=$BATS_TEST_TMPDIR/x file
  for file in "$top"/build/deb/*.deb; do
    dpkg-deb -R "$file" "$folder"
    refute grep -rlF "$top" "$folder"
    rm -r "$folder"
  done
  for file in "$top"/build/rpm/RPMS/*/*.rpm; do
    mkdir "$folder"
    (cd "$folder" && rpm2cpio "$file" | cpio -idm --quiet)
    refute grep -rlF -e "$top" -e /var/tmp/systemtap-cpython "$folder"
    rm -r "$folder"
  done
}

@test "both kinds of package have all documents, and no link of one leads nowhere" {
  local folder=$BATS_TEST_TMPDIR/x file kind
  mkdir -p "$folder"/{deb,rpm}
  for file in "$top"/build/deb/*.deb; do
    dpkg-deb -x "$file" "$folder/deb"
  done
  for file in "$top"/build/rpm/RPMS/*/*.rpm; do
    (cd "$folder/rpm" && rpm2cpio "$file" | cpio -idm --quiet)
  done
  for kind in deb rpm; do
    timeout -k 5 60 python3 "$top/test/lib/documents.py" links "$folder/$kind"
    [ "$(find "$folder/$kind" -name '*.md' | wc -l)" = "$(tar -tzf "$top"/build/systemtap-cpython-*.tar.gz | grep -c '[.]md$')" ]
  done
}

@test "make deb and make rpm name the build dependencies that are missing, and how to install them" {
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  printf '#!/bin/sh\necho "dpkg-checkbuilddeps: error: Unmet build dependencies: debhelper-compat (= 99) libelf-dev" >&2\nexit 1\n' >"$bin/dpkg-checkbuilddeps"
  chmod +x "$bin/dpkg-checkbuilddeps"
  run env PATH="$bin:$PATH" timeout -k 5 100 "$top/packaging/deb" "$top"/build/systemtap-cpython-*.tar.gz "$BATS_TEST_TMPDIR/out"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "packaging/deb: needs debhelper-compat (= 99) libelf-dev: apt-get install debhelper-compat libelf-dev" ]
  rpm -q rpm >/dev/null 2>&1 && skip "needs a machine whose rpm knows no packages"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\ncase $* in *sdt.h*) exit 1 ;; esac\n' >"$bin/gcc"
  chmod +x "$bin/gcc"
  run env PATH="$bin:$PATH" timeout -k 5 100 "$top/packaging/rpm/build" "$top"/build/systemtap-cpython-*.tar.gz "$BATS_TEST_TMPDIR/out"
  echo "$output"
  [ "$status" = 1 ]
  [ "$output" = "packaging/rpm/build: needs <sys/sdt.h>: apt-get install systemtap-sdt-dev" ]
}

@test "make distcheck names what uninstall leaves" {
  local name tree=$BATS_TEST_TMPDIR/tree
  name=$(basename "$top"/build/systemtap-cpython-*.tar.gz)
  mkdir "$tree"
  tar -xzf "$top/build/$name" --strip-components=1 -C "$tree"
  sed -i 's/python_paths.stpm python_local.stp/python_paths.stpm/' "$tree/Makefile"
  "$tree/packaging/dist" "$BATS_TEST_TMPDIR/$name"
  run timeout -k 5 200 "$top/packaging/distcheck" "$BATS_TEST_TMPDIR/$name"
  echo "$output"
  [ "$status" = 1 ]
  [[ $output == *"> ./usr/share/systemtap/tapset/python_local.stp"*"make uninstall leaves these"* ]]
}

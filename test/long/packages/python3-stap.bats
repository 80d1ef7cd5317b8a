# The package that has each start of the distribution's python3 load the shim, and what the removal of
# stap-python's package does with what is enabled, in fresh Debian roots.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../../lib/helper
load lib

teardown() {
  drop_root
}

ours=("$top"/build/deb/systemtap-cpython{,-tapset}_*.deb)
python3_stap=("$top"/build/deb/python3-stap_*.deb)

apt() {
  in_root apt-get -q -y --no-install-recommends "$@"
}

# Whether a Python of the root, started as any, has the shim.
# usage: has_shim PYTHON
has_shim() {
  in_root "$1" -c 'import sys; sys.exit("/libpython-stap.so.0" not in open("/proc/self/maps").read())'
}

@test "python3-stap installed: each start of python3 has the shim, and venvs with system site-packages; removed: no trace" {
  local release
  for release in bookworm trixie sid; do
    echo "$release"
    use_root "$release"
    files >"$BATS_TEST_TMPDIR/before"
    in_root python3 -m venv --without-pip /srv/plain
    in_root python3 -m venv --without-pip --system-site-packages /srv/system
    apt install "${ours[@]}"
    refute has_shim python3
    apt install "${ours[@]}" "${python3_stap[@]}"
    has_shim python3
    has_shim /srv/system/bin/python3
    refute has_shim /srv/plain/bin/python3
    in_root stap-python list /usr/bin/python3 | grep -xE '  the shim: loaded at each start, by /usr/lib/python3/dist-packages/python_stap.(pth|start)'
    in_root stap-python list /srv/plain/bin/python3 | grep -E "not loaded at each start: /usr/lib/python3/dist-packages/python_stap.(pth|start) is the base interpreter's"
    in_root stap-python enable /srv/plain/bin/python3
    has_shim /srv/plain/bin/python3
    in_root stap-python disable /srv/plain/bin/python3
    apt remove python3-stap
    refute has_shim python3
    refute has_shim /srv/system/bin/python3
    apt purge systemtap-cpython systemtap-cpython-tapset
    rm -r "$root/srv/plain" "$root/srv/system"
    diff "$BATS_TEST_TMPDIR/before" <(files)
    drop_root
  done
}

@test "removal of systemtap-cpython undoes what is enabled, an update doesn't; what was changed since stays, and is named" {
  local drop_in=/etc/systemd/system/web.service.d/50-systemtap-cpython.conf
  use_root bookworm
  in_root python3 -m venv --without-pip /srv/venv
  mkdir -p "$root/etc/systemd/system"
  files >"$BATS_TEST_TMPDIR/before"
  apt install "${ours[@]}"
  in_root stap-python enable
  in_root stap-python enable /srv/venv/bin/python3
  in_root stap-python enable --service web
  grep -F 'LD_PRELOAD=/usr/$LIB/systemtap-cpython/libpython-stap.so.0' "$root$drop_in"
  in_root stap-python enable --list
  [ "$(in_root stap-python enable --list | grep -vc broken)" = 3 ]
  apt install --reinstall "${ours[@]}"
  has_shim python3
  has_shim /srv/venv/bin/python3
  [ -e "$root$drop_in" ]
  apt remove systemtap-cpython systemtap-cpython-tapset
  diff "$BATS_TEST_TMPDIR/before" <(files)
  refute has_shim python3
  # changed
  apt install "${ours[@]}"
  in_root stap-python enable /srv/venv/bin/python3
  in_root stap-python enable --service web
  echo Nice=5 >>"$root$drop_in"
  apt remove systemtap-cpython systemtap-cpython-tapset >"$BATS_TEST_TMPDIR/log" 2>&1
  grep -F "stap-python: $drop_in: it was changed since" "$BATS_TEST_TMPDIR/log"
  [ "$(wc -l <"$root/var/lib/systemtap-cpython/enabled")" = 1 ]
  apt purge systemtap-cpython
  rm "$root$drop_in"
  rmdir "$root${drop_in%/*}"
  diff "$BATS_TEST_TMPDIR/before" <(files)
}

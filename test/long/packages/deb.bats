# The Debian packages: lintian; and in Debian 12, 13 and sid with SystemTap and Python they are installed,
# updated and removed, SystemTap's own python.stp is put aside and restored, and stap resolves every probe
# point without any setting.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper
load lib

teardown() {
  drop_root
}

setup_file() {
  # Our packages in an older version, with a file that this one does not have.
  export older=$BATS_FILE_TMPDIR/older
  local deb tree
  mkdir "$older"
  for deb in "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb; do
    tree=$BATS_FILE_TMPDIR/tree
    dpkg-deb -R "$deb" "$tree"
    sed -i -E 's/^Version: .*/Version: 0.0.9-1/; s/(systemtap-cpython-tapset \(= )[^)]*/\10.0.9-1/' "$tree/DEBIAN/control"
    if [ -d "$tree/usr/share/systemtap/tapset" ]; then
      echo "// no more" >"$tree/usr/share/systemtap/tapset/cpython_old.stp"
      echo "// 0.0.9" >>"$tree/usr/share/systemtap/tapset/python.stp"
    fi
    dpkg-deb --root-owner-group -b "$tree" "$older" >/dev/null
    rm -r "$tree"
  done
}

# The shim, as stap names it.
the_shim=/usr/lib/$(gcc -print-multiarch)/systemtap-cpython/libpython-stap.so.0

# Makes the root of the release $1, and keeps SystemTap's own python.stp and the list of files, to compare.
use_debian() {
  echo "$1"
  use_root "$1"
  cp "$root$stp" "$BATS_TEST_TMPDIR/stock"
  refute is_ours "$root$stp"
  files >"$BATS_TEST_TMPDIR/before"
}

apt() {
  in_root apt-get -q -y --no-install-recommends "$@"
}

ours_in_force() {
  is_ours "$root$stp"
  cmp "$BATS_TEST_TMPDIR/stock" "$root$stp.distrib"
  [ "$(in_root dpkg-divert --list | grep -c "$stp")" = 1 ]
  [ "$(in_root dpkg-divert --list "$stp")" = "diversion of $stp to $stp.distrib by systemtap-cpython-tapset" ]
}

stock_in_force() {
  cmp "$BATS_TEST_TMPDIR/stock" "$root$stp"
  refute grep "$stp" <(in_root dpkg-divert --list)
  in_root dpkg --verify systemtap-common
  diff "$BATS_TEST_TMPDIR/before" <(files)
}

@test "lintian has nothing to say, but what the overrides give the reason for" {
  need lintian
  run "$top/test/lib/lintian" -I --pedantic --fail-on error,warning,info,pedantic "$top"/build/deb/*.changes
  echo "$output"
  [ "$status" = 0 ]
  run "$top/test/lib/lintian" -I --pedantic --show-overrides "$top"/build/deb/*.changes
  [[ $output != *unused-override* ]]
  [[ $output != *mismatched-override* ]]
}

@test "the package with stap-python recommends both tracers, libcurl, and no headers, which may bring another kernel along" {
  dpkg-deb -f "$top"/build/deb/systemtap-cpython_*.deb Recommends | tr ',' '\n' | sed 's/ *(.*//; s/^ *//' | sort >"$BATS_TEST_TMPDIR/recommended"
  diff "$BATS_TEST_TMPDIR/recommended" - <<<$'bpftrace\nlibcurl3t64-gnutls | libcurl3-gnutls | libcurl4t64 | libcurl4\nsystemtap'
}

@test "blhc finds the compiler told of all hardening" {
  need blhc
  # PIE is the compiler's default, and lintian checks it
  timeout 60 blhc --bindnow "$top/build/deb/build.log"
}

@test "installed: ours is in force, every probe point resolves; purged: all is as before" {
  local release
  for release in bookworm trixie sid; do
    use_debian "$release"
    apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
    ours_in_force
    all_resolve_in "$the_shim"
    resolve gc.start | grep -F "$the_shim"
    in_root dpkg --verify systemtap-cpython systemtap-cpython-tapset
    [ -x "$root/usr/share/systemtap/examples/cpython/pyflow.stp" ]
    [ -e "$root/usr/share/man/man3/probe::python.function.entry.3stap.gz" ]
    apt purge systemtap-cpython systemtap-cpython-tapset
    stock_in_force
    drop_root
  done
}

@test "removed, not purged: SystemTap's own is in force" {
  use_debian bookworm
  apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
  apt remove systemtap-cpython systemtap-cpython-tapset
  # deb-systemd-helper keeps this until the purge
  rm "$root/var/lib/systemd/deb-systemd-helper-enabled/stap-python-profile.service.dsh-also"
  stock_in_force
}

@test "SystemTap is installed again: ours stays in force" {
  local release
  for release in bookworm trixie sid; do
    use_debian "$release"
    apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
    in_root sh -c 'dpkg -i /srv/stock/systemtap-common_*.deb'
    ours_in_force
    apt purge systemtap-cpython systemtap-cpython-tapset
    stock_in_force
    drop_root
  done
}

@test "an older version of ours, then this one: ours is in force, and nothing of the older one is left" {
  local release
  for release in bookworm trixie sid; do
    use_debian "$release"
    apt install "$older"/*.deb
    [ "$(tail -n 1 "$root$stp")" = "// 0.0.9" ]
    [ -e "$root${stp%/*}/cpython_old.stp" ]
    apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
    ours_in_force
    refute test -e "$root${stp%/*}/cpython_old.stp"
    all_resolve_in "$the_shim"
    apt purge systemtap-cpython systemtap-cpython-tapset
    stock_in_force
    drop_root
  done
}

@test "SystemTap is removed, then ours: nothing is left of either python.stp" {
  use_debian bookworm
  apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
  in_root dpkg --force-depends --remove systemtap-common
  is_ours "$root$stp"
  refute test -e "$root$stp.distrib"
  in_root dpkg --purge systemtap-cpython systemtap-cpython-tapset
  refute test -e "$root$stp"
  # and it comes back as it was
  in_root sh -c 'dpkg -i /srv/stock/systemtap-common_*.deb'
  stock_in_force
}

@test "installed before SystemTap: ours is in force" {
  use_debian bookworm
  in_root dpkg --force-depends --remove systemtap-common
  in_root sh -c "dpkg -i '$top'/build/deb/systemtap-cpython_*.deb '$top'/build/deb/systemtap-cpython-tapset_*.deb"
  in_root sh -c 'dpkg -i /srv/stock/systemtap-common_*.deb'
  ours_in_force
}

@test "installed after make install: ours is in force, and SystemTap's own comes back" {
  local since
  for since in nothing updated; do
    use_debian bookworm
    timeout -k 5 60 make -s -C "$top" DESTDIR="$root" prefix=/opt/made install
    is_ours "$root$stp"
    if [ "$since" = updated ]; then
      echo "// of an older SystemTap" >"$root$stp.distrib"
      cp "$BATS_TEST_TMPDIR/stock" "$root$stp"
    fi
    apt install "$top"/build/deb/systemtap-cpython{,-tapset}_*.deb
    ours_in_force
    all_resolve_in "$the_shim"
    in_root dpkg --verify systemtap-cpython systemtap-cpython-tapset
    apt purge systemtap-cpython systemtap-cpython-tapset
    rm -r "$root/opt/made"
    stock_in_force
    drop_root
  done
}

@test "the packages' own tests (autopkgtest) pass" {
  need autopkgtest
  use_debian bookworm
  STAP_VM_ROOT=$root unshare --mount bash -euc "source '$top/test/vm/lib.sh' && mount_into '$root' &&
    timeout -k 5 300 autopkgtest --summary-file='$BATS_TEST_TMPDIR/summary' '$top'/build/deb/{python3-stap,systemtap-cpython}_*.deb '$top'/build/deb/systemtap-cpython-tapset_*.deb \
      '$top'/build/deb/systemtap-cpython_*.dsc -- chroot '$root'" >"$BATS_TEST_TMPDIR/log" 2>&1 || {
    tail -n 40 "$BATS_TEST_TMPDIR/log"
    return 1
  }
  diff - "$BATS_TEST_TMPDIR/summary" <<'EOF_SUMMARY'
resolves             PASS
loads                PASS
EOF_SUMMARY
}

@test "piuparts finds nothing that installing and purging leaves" {
  need piuparts
  # the smallest of them: piuparts copies it
  use_root trixie
  # apt's own, of its first use in a root
  timeout -k 5 400 piuparts --existing-chroot="$root" --no-upgrade-test --no-eatmydata --ignore=/var/cache/debconf/tmp.ci \
    "$top"/build/deb/{python3-stap,systemtap-cpython{,-tapset}}_*.deb >"$BATS_TEST_TMPDIR/log" 2>&1 || {
    grep -A 9 -E ' (ERROR|FAIL)' "$BATS_TEST_TMPDIR/log"
    return 1
  }
  grep 'PASS: All tests' "$BATS_TEST_TMPDIR/log"
}

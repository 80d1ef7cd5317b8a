# The RPM packages: rpmlint, and what becomes of SystemTap's own python.stp when they and SystemTap are
# installed, updated and removed.
#
# This runs without a distribution with RPM.  dnf and rpm are the real ones; SystemTap's packages are stand-ins
# that own the path as Fedora's do (systemtap-devel and systemtap-client both); the root is Debian's, whose
# stap reads the result.  This proves that the scriptlets, their order and the file lists are right.  It does
# not prove that the spec builds with the macros of Fedora, RHEL or openSUSE.
#
# SPDX-License-Identifier: MIT

load ../../lib/helper
load lib

setup_file() {
  repo=$BATS_FILE_TMPDIR/repo
  export repo
  mkdir "$repo"
  cp "$top"/build/rpm/RPMS/*/*.rpm "$repo"
  stand_ins
  older_ours
  createrepo_c -q "$repo"
}

setup() {
  use_root bookworm
  # dnf installs it, in a package that RPM knows
  cp "$root$stp" "$BATS_TEST_TMPDIR/stock"
  rm "$root$stp"
}

teardown() {
  drop_root
}

# usage: build SPEC [RPMBUILD-OPTION...]
build() {
  rpmbuild -bb --define "_topdir $BATS_FILE_TMPDIR/top" "${@:2}" "$1" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
    cat "$BATS_FILE_TMPDIR/log"
    return 1
  }
}

# Makes SystemTap 5.0 and 5.1, and one package that stands for all others that ours need.
stand_ins() {
  local version spec=$BATS_FILE_TMPDIR/x.spec
  cat >"$spec" <<'SPEC'
Name: systemtap
Version: %{v}
Release: 1
Summary: Stand-in
License: MIT
BuildArch: noarch
%description
Stand-in.
%package devel
Summary: Stand-in
%description devel
Stand-in.
%package client
Summary: Stand-in
Requires: systemtap-devel = %{version}
%description client
Stand-in.
%install
mkdir -p %{buildroot}/usr/share/systemtap/tapset
cp /usr/share/systemtap/tapset/python2.stp %{buildroot}/usr/share/systemtap/tapset/python.stp
echo "// SystemTap %{version}" >>%{buildroot}/usr/share/systemtap/tapset/python.stp
%files devel
/usr/share/systemtap/tapset/python.stp
%files client
/usr/share/systemtap/tapset/python.stp
SPEC
  for version in 5.0 5.1; do
    build "$spec" --define "v $version"
  done
  {
    printf '%s: %s\n' Name base Version 1 Release 1 Summary Stand-in License MIT BuildArch noarch
    rpm -qp --requires "$repo"/*systemtap-cpython*.rpm | sed '/^rpmlib\|^systemtap-cpython/d; s/ >.*//; s/^/Provides: /' | sort -u
    printf '%%description\nStand-in.\n%%files\n'
  } >"$spec"
  build "$spec"
  cp "$BATS_FILE_TMPDIR"/top/RPMS/noarch/*.rpm "$repo"
}

# Makes our packages in an older version, with a file that this one does not have.
older_ours() {
  local tree=$BATS_FILE_TMPDIR/systemtap-cpython-0.0.9
  mkdir "$tree"
  tar -xzf "$top"/build/rpm/SOURCES/*.tar.gz --strip-components=1 -C "$tree"
  echo 0.0.9 >"$tree/VERSION"
  echo "// no more" >"$tree/tapset/cpython_old.stp"
  sed -i 's/^Version:.*/Version: 0.0.9/' "$tree/packaging/rpm/systemtap-cpython.spec"
  echo "// 0.0.9" >>"$tree/tapset/python.stp"
  "$tree/packaging/dist" "$tree.tar.gz"
  "$tree/packaging/rpm/build" "$tree.tar.gz" "$BATS_FILE_TMPDIR/older" >/dev/null
  cp "$BATS_FILE_TMPDIR"/older/RPMS/*/*.rpm "$repo"
}

dnf_in_root() {
  timeout -k 5 100 dnf -q -y --installroot="$root" --releasever=1 --setopt=reposdir=/nonexistent --setopt="cachedir=$BATS_TEST_TMPDIR/dnf" \
    --setopt=clean_requirements_on_remove=0 --nogpgcheck --repofrompath="local,file://$repo" "$@" 2>&1 | tee "$BATS_TEST_TMPDIR/dnf.log"
  # dnf prints a line for a scriptlet that fails, and goes on
  refute grep -iE 'scriptlet|error|fail' "$BATS_TEST_TMPDIR/dnf.log"
}

ours_in_force() {
  is_ours "$root$stp"
  [ "$(tail -n 1 "$root$stp.distrib")" = "// SystemTap $1" ]
}

stock_in_force() {
  [ "$(tail -n 1 "$root$stp")" = "// SystemTap $1" ]
  refute test -e "$root$stp.distrib"
  timeout 20 rpm --root "$root" -V systemtap-devel
}

nothing_of_python_stp() {
  refute test -e "$root$stp"
  refute test -e "$root$stp.distrib"
}

@test "rpmlint has nothing to say, but what packaging/rpm/rpmlint.toml gives the reason for" {
  need rpmlint
  run rpmlint --strict -c "$top/packaging/rpm/rpmlint.toml" "$top"/build/rpm/*.spec "$top"/build/rpm/SRPMS/*.rpm "$top"/build/rpm/RPMS/*/*.rpm
  echo "$output"
  [ "$status" = 0 ]
  [[ $output == *" 0 errors, 0 warnings"* ]]
}

@test "the package with stap-python recommends all that a first trace needs, where there is a kernel" {
  rpm -qp --recommends "$top"/build/rpm/RPMS/*/systemtap-cpython-[0-9]*.rpm >"$BATS_TEST_TMPDIR/recommended"
  diff - "$BATS_TEST_TMPDIR/recommended" <<<"(kernel-devel if kernel-core)
bpftrace
systemtap"
}

@test "installed beside SystemTap: ours is in force, every probe point resolves, and after the removal all is as before" {
  dnf_in_root install systemtap-client-5.0
  stock_in_force 5.0
  dnf_in_root install base
  # a folder of the distribution's filesystem package
  mkdir "$root/usr/share/licenses"
  files >"$BATS_TEST_TMPDIR/before"
  dnf_in_root install systemtap-cpython
  ours_in_force 5.0
  rpm --root "$root" -ql systemtap-cpython-tapset | grep -x "$stp.distrib"
  all_resolve_in /usr/lib64/libpython-stap.so.0
  rpm --root "$root" -V systemtap-cpython systemtap-cpython-tapset
  dnf_in_root remove systemtap-cpython systemtap-cpython-tapset
  stock_in_force 5.0
  diff "$BATS_TEST_TMPDIR/before" <(files)
}

@test "python3-systemtap-cpython: each start of python3 has the shim; removal undoes what is enabled, an update doesn't" {
  has_shim() {
    in_root python3 -c 'import sys; sys.exit("/libpython-stap.so.0" not in open("/proc/self/maps").read())'
  }
  dnf_in_root install base
  mkdir -p "$root/usr/share/licenses"
  # the folder of Python that dnf makes here is Debian's own package's
  mkdir -p "$root/usr/lib/python3.11/dist-packages"
  files >"$BATS_TEST_TMPDIR/before"
  dnf_in_root install systemtap-cpython-0.0.9
  refute has_shim
  in_root stap-python enable
  has_shim
  dnf_in_root update systemtap-cpython
  has_shim
  [ "$(in_root stap-python enable --list | grep -c '^/usr/local/lib/python3.11/dist-packages/python_stap.pth$')" = 1 ]
  in_root stap-python disable --all
  dnf_in_root install python3-systemtap-cpython
  has_shim
  rpm --root "$root" -V python3-systemtap-cpython
  in_root stap-python enable
  dnf_in_root remove python3-systemtap-cpython systemtap-cpython systemtap-cpython-tapset
  refute has_shim
  diff "$BATS_TEST_TMPDIR/before" <(files)
}

@test "installed before SystemTap, or with it: ours is in force" {
  dnf_in_root install systemtap-cpython
  is_ours "$root$stp"
  dnf_in_root install systemtap-client-5.0
  ours_in_force 5.0
  dnf_in_root remove systemtap-cpython systemtap-cpython-tapset systemtap-client systemtap-devel
  nothing_of_python_stp
  dnf_in_root install systemtap-cpython systemtap-client-5.0
  ours_in_force 5.0
}

@test "updates of SystemTap, back and forth and again: ours is in force, and the newest of theirs comes back" {
  dnf_in_root install systemtap-client-5.0 systemtap-cpython
  dnf_in_root update systemtap-client systemtap-devel
  ours_in_force 5.1
  dnf_in_root reinstall systemtap-client
  ours_in_force 5.1
  dnf_in_root downgrade systemtap-client-5.0 systemtap-devel-5.0
  ours_in_force 5.0
  dnf_in_root update systemtap-client systemtap-devel
  dnf_in_root remove systemtap-cpython systemtap-cpython-tapset
  stock_in_force 5.1
}

@test "an update of ours: the new one is in force, and nothing of the old one is left" {
  dnf_in_root install systemtap-client-5.0 systemtap-cpython-0.0.9
  [ "$(tail -n 1 "$root$stp")" = "// 0.0.9" ]
  [ -e "$root${stp%/*}/cpython_old.stp" ]
  dnf_in_root update systemtap-cpython
  ours_in_force 5.0
  refute test -e "$root${stp%/*}/cpython_old.stp"
  all_resolve_in /usr/lib64/libpython-stap.so.0
  dnf_in_root remove systemtap-cpython systemtap-cpython-tapset
  stock_in_force 5.0
}

@test "an update of ours and of SystemTap in one transaction" {
  dnf_in_root install systemtap-client-5.0 systemtap-cpython-0.0.9
  dnf_in_root update
  ours_in_force 5.1
}

@test "SystemTap is removed first: one of its two packages changes nothing, then theirs is gone, then ours" {
  dnf_in_root install systemtap-client-5.0 systemtap-cpython
  dnf_in_root remove systemtap-client
  ours_in_force 5.0
  dnf_in_root remove systemtap-devel
  is_ours "$root$stp"
  refute test -e "$root$stp.distrib"
  dnf_in_root remove systemtap-cpython systemtap-cpython-tapset
  nothing_of_python_stp
}

@test "all is removed in one transaction, in whichever order rpm is told of them" {
  dnf_in_root install systemtap-client-5.0 systemtap-cpython
  timeout 60 rpm --root "$root" -e systemtap-client systemtap-devel systemtap-cpython systemtap-cpython-tapset
  nothing_of_python_stp
  dnf_in_root install systemtap-client-5.0 systemtap-cpython
  timeout 60 rpm --root "$root" -e --noorder systemtap-cpython systemtap-cpython-tapset systemtap-client systemtap-devel
  nothing_of_python_stp
  dnf_in_root install systemtap-client-5.0 systemtap-cpython
  timeout 60 rpm --root "$root" -e --noorder systemtap-client systemtap-devel systemtap-cpython systemtap-cpython-tapset
  nothing_of_python_stp
}

# shellcheck shell=bash
# Fetches CPython's source into the working directory, as python*.orig.tar.xz: the newest one of Debian sid that $mirror
# has, or else one that is named here.  Sourced by checks that build CPythons.
#
# SPDX-License-Identifier: MIT

# The source to take if none of sid's index can be fetched: SHA256 FILE.
named() {
  case $1 in
    3.14) echo 3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81 python3.14_3.14.7.orig.tar.xz ;;
    3.15) echo 8d93af5eaaaea5adfd41bd786a7ba3f03f2ad1ab57c6a65e0b963deab91d5ad7 'python3.15_3.15.0~rc2.orig.tar.xz' ;;
  esac
}

# Fetches the newest source of sid's index that the mirror has; apt checks the index's signature and the file's
# sum.  All that apt keeps is here.
by_apt() {
  local version key=/usr/share/keyrings/debian-archive-keyring.gpg
  type -P apt-get >/dev/null && [ -e $key ] || return 1
  mkdir -p apt/lists/partial apt/cache/archives/partial
  : >apt/status
  echo "deb-src [signed-by=$key] $mirror sid main" >apt/sources.list
  cat >apt/apt.conf <<CONF
Dir::State "$PWD/apt";
Dir::State::Lists "$PWD/apt/lists";
Dir::State::status "$PWD/apt/status";
Dir::Cache "$PWD/apt/cache";
Dir::Etc::SourceList "$PWD/apt/sources.list";
Dir::Etc::SourceParts "-";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
APT::Sandbox::User "root";
CONF
  local -x APT_CONFIG=$PWD/apt/apt.conf
  apt-get -q update || return 1
  for version in $(apt-cache showsrc --only-source "python$1" | sed -n 's/^Version: //p' | sort -urV); do
    apt-get -q source --download-only --tar-only --only-source "python$1=$version" && return
  done
  return 1
}

by_name() {
  local sum file
  read -r sum file < <(named "$1")
  curl -fsSL --retry 2 -o "$file" "$mirror/pool/main/p/python$1/$file" && echo "$sum  $file" | sha256sum -c
}

# usage: fetch_cpython VERSION, such as 3.15
fetch_cpython() {
  by_apt "$1" || { rm -f -- *.xz && by_name "$1"; }
}

# shellcheck shell=bash
# The versions of glibc that a file needs.
#
# SPDX-License-Identifier: MIT

# The newest glibc that the shim may need on a machine of this name (uname -m): 2.17, or the architecture's oldest.
newest_glibc() {
  case $1 in
    riscv64) echo 2.27 ;;
    *) echo 2.17 ;;
  esac
}

# What the file $1 needs of a glibc newer than $2, a line each: symbols ("pthread_join GLIBC_2.34") and other versions
# ("GLIBC_ABI_DT_RELR").
needs_newer_glibc() {
  {
    readelf --wide --dyn-syms "$1" | sed -nE 's/.* UND ([^ @]*)@(GLIBC_[^ ]*).*/\2 \1/p'
    readelf --wide --version-info "$1" | sed -n 's/.*Name: \(GLIBC_[^ ]*\) .*/\1/p'
  } | awk -v newest="$2" '
    function number(version, part) { split(version, part, "."); return part[1] * 1000 + part[2] }
    { version = substr($1, 7) }
    version !~ /^[0-9.]+$/ || number(version) > number(newest) { print $2 ($2 == "" ? "" : " ") $1 }'
}

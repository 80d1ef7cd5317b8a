# shellcheck shell=bash
# The versions of glibc that a file needs.
#
# SPDX-License-Identifier: MIT

# The newest that the shim may need, of a machine as uname -m has it: 2.17, or the oldest with which it runs.
newest_glibc() {
  case $1 in
    riscv64) echo 2.27 ;;
    *) echo 2.17 ;;
  esac
}

# The symbols in the file $1 that a glibc older than $2 lacks, a line each: "pthread_join GLIBC_2.34"; and what else of a
# later one the file needs: "GLIBC_ABI_DT_RELR".
needs_newer_glibc() {
  {
    readelf --wide --dyn-syms "$1" | sed -nE 's/.* UND ([^ @]*)@(GLIBC_[^ ]*).*/\2 \1/p'
    readelf --wide --version-info "$1" | sed -n 's/.*Name: \(GLIBC_[^ ]*\) .*/\1/p'
  } | awk -v newest="$2" '
    function number(version, part) { split(version, part, "."); return part[1] * 1000 + part[2] }
    { version = substr($1, 7) }
    version !~ /^[0-9.]+$/ || number(version) > number(newest) { print $2 ($2 == "" ? "" : " ") $1 }'
}

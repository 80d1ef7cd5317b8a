# stap-python: run, and the paths of an installed one.  stap itself is not run.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2034

load ../helper
load launcher

@test "run starts a command with the shim, and ends with its status" {
  run launcher run /usr/bin/python3 -c 'print(open("/proc/self/status").read().split("Threads:")[1].split()[0]); raise SystemExit(7)'
  [ "$status $output" = "7 2" ]
  run launcher run -- sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim" ]
  run env LD_PRELOAD=libdl.so.2 timeout 20 "$launcher" run sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim:libdl.so.2" ]
  run launcher run "$launcher" run sh -c 'echo "$LD_PRELOAD"'
  [ "$output" = "$shim" ]
}

@test "run says why a command can't be started, with the status of env" {
  refuses 127 'no-such-command: No such file' run no-such-command
  refuses 126 '/etc/passwd: Permission denied' run /etc/passwd
  run launcher run sh -c 'kill -9 $$'
  [ "$status" = 137 ]
}

# As in packages: another prefix, and ld.so's $LIB in the shim's path.
@test "installed, it uses the shim and the scripts in the directories of make's variables" {
  local prefix=$BATS_TEST_TMPDIR/installed lib
  lib=$(LD_DEBUG=libs /bin/true 2>&1 | sed -n 's|.*file=/\(.*\)/libc.so.6.*|\1|p' | head -n 1)
  lib=${lib:-$(gcc -print-multiarch | sed 's|.|lib/&|')}
  make -s -C "$top" BUILD="$BATS_TEST_TMPDIR/build" prefix="$prefix" shim_preload="$prefix/\$\$LIB/libpython-stap.so.0" \
    "$BATS_TEST_TMPDIR/build/stap-python"
  mkdir -p "$prefix/bin" "$prefix/$lib" "$prefix/share/systemtap/examples/cpython"
  cp "$BATS_TEST_TMPDIR/build/stap-python" "$prefix/bin"
  launcher=$prefix/bin/stap-python
  refuses 1 "shim not found: $prefix/lib.*/libpython-stap.so.0: reinstall systemtap-cpython" run true
  refuses 1 "no scripts in $prefix/share/systemtap/examples/cpython" --list-scripts
  run launcher doctor
  grep -A 1 '^wrong shim' <<<"$output" | grep -qE 'fix: .*install.* systemtap-cpython systemtap-cpython-tapset'
  cp "$shim" "$prefix/$lib"
  cp "$top"/scripts/pygc.* "$prefix/share/systemtap/examples/cpython"
  run launcher run sh -c 'echo "$LD_PRELOAD"; exec /usr/bin/python3 -c "print([line.split()[-1] for line in open(\"/proc/self/maps\") if \"stap\" in line][0])"'
  echo "$output"
  [ "$output" = "$prefix/\$LIB/libpython-stap.so.0"$'\n'"$prefix/$lib/libpython-stap.so.0" ]
  run launcher --list-scripts
  [[ $output == "pygc "*"Garbage Collections of Python" ]]
  printf '#!/bin/sh\necho "$SYSTEMTAP_TAPSET|$*"\n' >"$BATS_TEST_TMPDIR/stap"
  chmod +x "$BATS_TEST_TMPDIR/stap"
  run env STAP="$BATS_TEST_TMPDIR/stap" timeout 20 "$launcher" pygc -c true
  [ "$output" = "|$prefix/share/systemtap/examples/cpython/pygc.stp -c env 'LD_PRELOAD=$prefix/\$LIB/libpython-stap.so.0' true" ]
}

@test "the folder of libraries is what the compiler says, else lib64, or lib for 32 bits" {
  local cc=$BATS_TEST_TMPDIR/cc folder
  need gcc
  # like the gcc of other distributions and architectures
  printf '#!/bin/sh\ncase $* in -print-multiarch) echo $MULTIARCH ;; *-dM*) echo "#define ${WIDE:-__ILP32__} 1" ;; esac\n' >"$cc"
  chmod +x "$cc"
  folder_of() {
    env "$@" make -s -C "$top" CC="$cc" BUILD="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/probes/installed.h"
    sed -n 's/^#define MULTIARCH //p' "$BATS_TEST_TMPDIR/probes/installed.h"
  }
  [ "$(folder_of MULTIARCH=lib-x WIDE=__LP64__)" = '"lib/lib-x"' ]
  [ "$(folder_of WIDE=__LP64__)" = '"lib64"' ]
  [ "$(folder_of WIDE=__ILP32__)" = '"lib"' ]
}

# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # run, which sources this, sets arch, release, root, python, made and shim, and uses space
# SPDX-License-Identifier: MIT
# The parts of test/long/architectures/run.  Each runs in a shell of its own, in which a command that fails ends it; what it
# prints is its log, and a line "result: TEXT" its cell of the table.  $work is an empty folder.

# ---------------------------------------------------------------- gdb

# The markers that events and sums compare.
events="function__entry function__return line cfunction__entry cfunction__return exception__raise gc__start gc__done"
events+=" import__find__load__start import__find__load__done audit"
sums="function__count function__summary cfunction__count cfunction__summary"

# Runs a program with gdb as the tracer: its events are in the file $1.
# usage: traced FILE MARKERS LD_PRELOAD PROGRAM ARGUMENT...
traced() {
  local file=$1 markers=$2 socket=$work/socket pid
  rm -f "$socket" "$work"/maps*
  in_qemu "${@:3}" >"$file.printed" 2>&1 3>&- &
  pid=$!
  for _ in {1..100}; do [ ! -e "$socket" ] || break && sleep 0.1; done
  SOCKET=$socket ROOT=$root SHIM=${traced_file:-$shim} MARKERS=$markers EVENTS=$file MAPS=$work/maps \
    timeout -k 5 600 gdb-multiarch -nx -batch -x test/long/architectures/trace.py "$4" >"$file.gdb" 2>&1 || {
    tail -n 5 "$file.gdb"
    return 1
  }
  wait $pid
}

# The same of everywhere.py, from where it calls getppid().
# usage: trace_everywhere FILE MARKERS [ARGUMENT...]
trace_everywhere() {
  BEGIN=getppid PYTHONHASHSEED=0 traced "$1" "$2" "$shim" "$python" -I -S test/workloads/everywhere.py "$work/maps" "${@:3}"
}

# Runs COMMAND for this architecture, and for amd64 with the same release unless its FILE is there: both make
# $made/FILE.
# usage: both FILE COMMAND...
both() {
  local file=$1 other=$roots/amd64/$release-$1
  shift
  if [ ! -e "$other" ]; then
    (
      prepare amd64 "$release"
      "$@" "$made/reference"
      mv "$made/reference" "$other"
    )
  fi
  "$@" "$made/$file"
  diff "$other" "$made/$file"
}

# ---------------------------------------------------------------- notes

part_notes() {
  diff <(sort "test/markers.$(machine_of "$arch")") <(marker_notes "$shim" | sort -u)
  [ "$(readelf --wide --dynamic "$shim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld')" = libc.so.6 ]
  needs_newer_glibc "$shim" "$(newest_glibc "$(machine_of "$arch")")" >"$work/newer"
  refute_lines . "$work/newer"
  [ "$arch" != armhf ] || sites_are_arm
  is_wide "$arch" || files_are_large
  echo "result: $(marker_notes "$shim" | sort -u | wc -l) markers"
}

# On 32 bits stat(), open() and the like fail with an inode or a size of 64 bits, stat64() and open64() do not.
files_are_large() {
  local file
  for file in "$shim" "$made/stap-python"; do
    readelf --wide --dyn-syms "$file" | sed -n 's/.* UND \([a-z0-9_]*\)@.*/\1/p' >"$work/functions"
    grep -E '^open64$' "$work/functions"
    refute_lines '^([fl]?stat|open|openat|fopen|readdir|glob|globfree|pread|pwrite|mmap|lseek)$' "$work/functions"
  done
}

# uprobes know no Thumb instructions.
sites_are_arm() {
  "$(triplet_of armhf)-objdump" -d "$shim" >"$work/code"
  readelf --wide --notes "$shim" | sed -n 's/.*Location: 0x0*\([0-9a-f]*\),.*/\1/p' >"$work/sites"
  while read -r site; do
    grep -P "^ +$site:\te320f000 " "$work/code" >/dev/null
  done <"$work/sites"
}

# ---------------------------------------------------------------- driver

# An event of each marker: numbers below zero, text beyond ASCII, NULL.
describe() {
  in_qemu "" "$made/driver" --list | awk -F '[(),]' '{
    printf "%s", $1
    for (i = 2; i < NF; i++)
      printf " %s", $i ~ /char \*/ ? (i == 3 ? "NULL" : "\"größe " i "\"") : $i ~ /\*/ ? "0x7ff01230" : $i ~ /long/ ? -2147483647 : -i
    print ""
  }'
}

drive() {
  describe >"$work/description"
  traced_file=$made/driver traced "$work/driven" "$(cut -d' ' -f1 "$work/description" | paste -sd' ')" "" "$made/driver" "$work/description"
  cut -d' ' -f2- "$work/driven" >"$1"
}

part_driver() {
  both driven drive
  [ "$(wc -l <"$made/driven")" = "$(grep -c ' probe ' probes/python.d)" ]
  grep -q '^line "größe 2" NULL -4$' "$made/driven"
  echo "result: $(wc -l <"$made/driven") events"
}

# ---------------------------------------------------------------- events, own and sums

# Those of the main thread between begin() and end(), and of the other one up to that.
everywhere() {
  trace_everywhere "$work/events" "$events"
  {
    grep '^1 ' "$work/events" | sed -n '/"begin"/,/_return.*"end"/p'
    grep -v '^1 ' "$work/events" | sed -e 's/^[0-9]*/2/' -e '/_return.*"end"/q'
  } | sed "s|$top/||" >"$1"
}

part_events() {
  both events everywhere
  grep -q '^2 line .* "in_a_thread" ' "$made/events"
  grep -q '^1 function__return .* NULL \*$' "$made/events"
  echo "result: $(wc -l <"$made/events") events, the same"
}

part_own() {
  local address
  address=$(readelf --wide --notes "$python" | sed -n '/Name: gc__start$/{ n; s/.*Semaphore: //p; }')
  [ "$address" ]
  trace_everywhere "$work/events" "function__entry gc__start" own "$address"
  grep gc__start "$work/events" | cut -d' ' -f2- | diff - <(printf 'gc__start %s\n' 2 0 2)
  echo "result: left to it"
}

# The calls of each function by each marker; of the one that sleeps, its time in tenths of a second instead.
totals() {
  trace_everywhere "$work/events" "$sums" sleeps
  grep -v importlib "$work/events" | sed "s|$top/||" | awk '
    {
      summary = $2 ~ /summary/
      name = $2
      for (i = 3; i <= NF - 1 - 2 * summary; i++) name = name " " $i
      calls[name] += $(NF - 2 * summary)
      if (summary) { time[name] += $(NF - 1); own[name] += $NF }
    }
    END {
      for (name in calls) print name, calls[name]
      for (name in time) if (time[name] < own[name] || own[name] < 0) print "no time:", name, time[name], own[name]
      for (name in time) if (name ~ /"sleeps"/ && !(time[name] > 2.4e9 && time[name] < 60e9)) print "slept:", name, time[name]
    }' | grep -E 'everywhere|^no|^slept|"(abs|collect)"' | grep -v '"idle"' | sort >"$1"
}

part_sums() {
  both sums totals
  grep -q 'function__summary .*"sleeps" .* 1$' "$made/sums"
  refute_lines '^no time|^slept' "$made/sums"
  echo "result: $(wc -l <"$made/sums") sums, the same"
}

refute_lines() {
  ! grep -E "$1" "$2"
}

# ---------------------------------------------------------------- toggled

# usage: compile OPTION...
compile() {
  # shellcheck disable=SC2046
  "$(triplet_of "$arch")-gcc" $(flags_for "$root") -D_GNU_SOURCE -O2 -Wall -pthread "$@"
}

compile_library() {
  compile -shared -fPIC "$@"
}

# Makes semaphores.so in $work, and says in SEMAPHORES which they are.
make_semaphores() {
  compile_library -o "$work/semaphores.so" test/long/memory/semaphores.c
  SEMAPHORES=$(readelf --wide --notes "$shim" | sed -n 's/.*Semaphore: //p' | sort -u | paste -sd,)
  export SEMAPHORES
}

part_toggled() {
  make_semaphores
  local toggle
  for toggle in 0 7; do
    SEMAPHORES_TOGGLE=$toggle in_qemu "$work/semaphores.so $shim" "$python" test/workloads/in_threads.py 10 | tee "$work/printed"
    [ "$(cat "$work/printed")" = fine ]
  done
  echo "result: fine"
}

# ---------------------------------------------------------------- tapset

# Compiles what includes the tapset's functions, in $work/tapset.h; the thread pointer is read as on aarch64, for which
# test/long/fuzz/kernel.h has what the C library calls it.
# usage: compile_tapset ROOM OPTION...
compile_tapset() {
  compile -std=gnu11 -O1 -Werror -Wno-unused-function -Wno-maybe-uninitialized -fwrapv -DMAXSTRINGLEN="$1" -D__aarch64__ \
    -I"$work" -Itest/long/fuzz -Iprobes "${@:2}"
}

# A library of the tapset's functions, as test/fast/tapset-c.bats makes it.
# usage: make_tapset ROOM
make_tapset() {
  test/tapset/functions >"$work/tapset.h"
  compile_tapset "$1" -shared -fPIC -o "$work/library-$1.so" test/tapset/library.c
}

# usage: reads_itself ROOM PART
reads_itself() {
  make_tapset "$1"
  PYTHONIOENCODING=utf-8 in_qemu "$work/semaphores.so $shim" "$python" -X utf8 test/tapset/objects.py "$work/library-$1.so" "$1" "$2" |
    tee "$work/printed"
  [[ $(tail -n 1 "$work/printed") == *" compared" ]]
}

# 32 bits: the shim and doctor say that there are no stacks, and no page is there.
says_no_stacks() {
  PYTHON_STAP_DEBUG=1 in_qemu "$shim" "$python" -c 'print([line for line in open("/proc/self/maps") if "70790" in line.split("-")[0]])' >"$work/printed" 2>&1
  cat "$work/printed"
  grep -q 'no stack traces: this is a program of 32 bits' "$work/printed"
  grep -Fxq '[]' "$work/printed"
  mkdir -p "$work/machine/usr/local/lib"
  cp "$shim" "$work/machine/usr/local/lib"
  STAP_PYTHON_ROOT=$work/machine in_qemu "" "$made/stap-python" doctor >"$work/printed" || true
  cat "$work/printed"
  grep -qE '^note +shim .*of 32 bits: all markers, but no stacks, values or tasks' "$work/printed"
  make_tapset 512
  in_qemu "$shim" "$python" test/long/architectures/narrow.py "$work/library-512.so" | tee "$work/printed"
  [ "$(cat "$work/printed")" = "nothing read" ]
  echo "result: refused: 32 bits"
}

# With user space of 38 bits, as on riscv64 with Sv39, and of 39 the shim's pages are at their second addresses.
has_low_pages() {
  local space # for in_qemu
  for space in 0x4000000000 0x8000000000; do
    in_qemu "$shim" "$python" -c 'print(*(line.split()[0] for line in open("/proc/self/maps") if "70790000-" in line or "707a0000-" in line))' |
      tee "$work/printed"
    grep -Fxq '2070790000-2070791000 20707a0000-20707a1000' "$work/printed"
  done
}

# Pages of 16 and of 64 KB, as kernels for aarch64 and ppc64el have them: the shim can have both of its own.
has_large_pages() {
  local size
  for size in 16384 65536; do
    QEMU_PAGESIZE=$size PYTHON_STAP_DEBUG=1 in_qemu "$shim" "$python" -c 'import resource; print(resource.getpagesize())' >"$work/printed" 2>&1
    cat "$work/printed"
    grep -Fxq $size "$work/printed"
    refute_lines 'the program uses the address' "$work/printed"
  done
}

# The str of a free-threaded CPython, which Debian has for none of these.
knows_free_threaded() {
  compile_tapset 512 -o "$work/str_state" test/tapset/str_state.c
  [ "$(in_qemu "" "$work/str_state")" = "the same" ]
}

# The numbers of system calls are the kernel's there: the table compiles, and names one.
has_system_calls() {
  {
    echo '#include <asm/unistd.h>'
    printf 'typedef unsigned char u8;\n#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))\n'
    grep -v "^#include" tapset/embedded/syscalls.c
    echo 'const char *of_read(void) { const char *name; return python_wait_reason_of(__NR_read, &name) == PYTHON_WAITS_FILE ? name : 0; }'
  } >"$work/calls.c"
  compile_library -Werror -o "$work/calls.so" "$work/calls.c"
}

part_tapset() {
  has_system_calls
  if ! is_wide "$arch"; then
    says_no_stacks
    return
  fi
  has_low_pages
  [[ $arch != arm64 && $arch != ppc64el ]] || has_large_pages
  make_semaphores
  reads_itself 1024 audited
  knows_free_threaded
  reads_itself 512 stacks
  # the shim does not know the threads of ppc64el, without which there are no stacks without a marker
  if [ "$arch" = ppc64el ]; then
    echo "result: objects, stacks by a frame"
    return
  fi
  reads_itself 512 running
  reads_itself 2048 values
  in_qemu "$work/semaphores.so $shim" "$python" test/tapset/gil.py "$work/library-512.so" 512
  echo "result: objects, all stacks"
}

# ---------------------------------------------------------------- list

lists() {
  {
    in_qemu "" "$made/stap-python" list "$shim"
    in_qemu "" "$made/stap-python" list "$python"
  } | sed -e "s|$roots/[a-z0-9]*/||" -e "s|$root||" >"$1"
}

part_list() {
  both list lists
  grep -qE "^ +audit +live " "$made/list"
  grep -qE "^ +function__entry +dead |^ +function__entry +- " "$made/list"
  echo "result: the same"
}

# ---------------------------------------------------------------- flags

# What pyaudit calls the flags of open(), against <fcntl.h>.
part_flags() {
  local machine
  case $arch in
    armhf) machine=arm ;;
    ppc64el) machine=powerpc ;;
    s390x) machine=s390 ;;
    riscv64) machine=riscv ;;
    *) machine=$arch ;;
  esac
  test/lib/kernel-tree "$work/tree"
  open_flags "$work/tree" -a "$machine" >"$work/flags"
  {
    echo '#include <fcntl.h>'
    sed -E 's/(.*) (.*)/FLAG \1 \2/' "$work/flags"
  } | compile -E -P - | sed -n 's/^FLAG //p' >"$work/numbers"
  cat "$work/flags" "$work/numbers"
  [ "$(wc -l <"$work/numbers")" = 13 ]
  while read -r named number; do
    [ $((named)) = $((number)) ]
  done <"$work/numbers"
  echo "result: $(wc -l <"$work/numbers") flags"
}

# ---------------------------------------------------------------- package

# Fetches what packages are built in, on amd64, and for this architecture.
build_root() {
  local foreign=$arch
  [ "$release" != bookworm ] || foreign=arm64,i386,armhf,ppc64el,s390x
  builder=$roots/build-$release
  [ ! -e "$builder.complete" ] || return 0
  rm -rf --one-file-system "$builder"
  # shellcheck disable=SC2046
  mmdebstrap --variant=apt --architectures="amd64,$foreign" --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="build-essential,debhelper,lintian,python3$(for one in ${foreign//,/ }; do
      printf ',crossbuild-essential-%s,libelf-dev:%s,systemtap-sdt-dev:%s,zlib1g-dev:%s' "$one" "$one" "$one" "$one"
    done)" "$release" "$builder" "$mirror"
  touch "$builder.complete"
}

part_package() {
  build_root
  make --no-print-directory -s dist
  rm -rf "$builder/packages"
  mkdir "$builder/packages"
  cp packaging/deb test/lib/lintian build/systemtap-cpython-*.tar.gz "$builder/packages"
  # shellcheck disable=SC2016
  timeout -k 5 600 chroot "$builder" sh -ec 'cd /packages
    ./deb systemtap-cpython-*.tar.gz "$PWD/out" "$1"
    ./lintian --fail-on error,warning --info out/*.changes' - "$arch"
  dpkg-deb --fsys-tarfile "$builder"/packages/out/systemtap-cpython_*_"$arch".deb | tar -x -C "$work"
  diff <(sort "test/markers.$(machine_of "$arch")") <(marker_notes "$work"/usr/lib/*/systemtap-cpython/libpython-stap.so.0 | sort -u)
  echo "result: $(cd "$builder/packages/out" && echo *_"$arch".deb | wc -w) packages, lintian clean"
}

# The parts of test/vm that need no guest.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper

@test "test/vm lets no others write to what it makes, nor to stap's cache, whatever stap's umask" {
  local mask
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/bash\numask\numask 0\nmkdir -p "$SYSTEMTAP_DIR/cache"\n. %q\numask\n' "$top/test/vm/lib.sh" >"$BATS_TEST_TMPDIR/bin/stap"
  chmod +x "$BATS_TEST_TMPDIR/bin/stap"
  export PATH=$BATS_TEST_TMPDIR/bin:$PATH STAP_VM=never SYSTEMTAP_RUNTIME=/nonexistent SYSTEMTAP_DIR=$BATS_TEST_TMPDIR/dir
  unset STAP_VM_ROOT
  # what stap gets of its caller's, and what the guest's programs then get from it
  for mask in 0000,0022 0002,0002 0027,0027; do
    rm -rf "$SYSTEMTAP_DIR"
    run bash -c "umask ${mask%,*} && exec $top/test/vm/stap -p4"
    echo "$mask: $output"
    [ "$output" = "${mask#*,}"$'\n0022' ]
    [ "$(stat -c %a "$SYSTEMTAP_DIR/cache")" = 700 ]
    [ $((8#$(stat -c %a "$SYSTEMTAP_DIR") & 2)) = 0 ]
  done
}

@test "no other user can lock the guest's image, and so stop who makes it" {
  local image=$BATS_TEST_TMPDIR/root.stap/vm-image/1.2.3
  [ -x /bin/busybox ] || skip "needs /bin/busybox"
  export STAP_VM_ROOT=$BATS_TEST_TMPDIR/root STAP_VM_KVER=1.2.3
  mkdir -p "$STAP_VM_ROOT" "$image"
  # an image that is made already
  sha256sum "$top"/test/vm/{prepare,init,tsc_khz.c} /bin/busybox >"$image/stamp"
  echo >"$image/lock"
  chmod 644 "$image/lock"
  "$top/test/vm/prepare"
  [ "$(stat -c %a "$image/lock")" = 600 ]
}

@test "a guest that counts instructions has a state folder of its own" {
  local clock
  export STAP_VM_DIR=$BATS_TEST_TMPDIR/state
  unset STAP_VM_ROOT STAP_VM_CLOCK
  for clock in '' time instructions; do
    STAP_VM_CLOCK=$clock bash -c 'me=me; . "$1/test/vm/lib.sh"; echo "$state"' - "$top"
  done | diff - <(printf '%s\n' "$STAP_VM_DIR" "$STAP_VM_DIR" "$STAP_VM_DIR-instructions")
  STAP_VM_CLOCK=minutes run "$top/test/vm/guest" status
  [ "$status" = 2 ]
  [ "$output" = "test/vm/guest: STAP_VM_CLOCK is 'minutes', not time or instructions" ]
}

# stap-python: scripts by their names.  stap itself is not run.
#
# SPDX-License-Identifier: MIT

load ../helper
load launcher

# Makes a stap that prints its tapset, and its arguments a line each.
fake_stap() {
  cat >"$BATS_TEST_TMPDIR/stap" <<'SH'
#!/bin/sh
echo "tapset $SYSTEMTAP_TAPSET"
printf '<%s>\n' "$@"
exit 5
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap
}

@test "a script's name runs stap on it, with the tapset and the arguments, and ends with its status" {
  fake_stap
  run launcher pycalls -v cfunctions 3
  [ "$status" = 5 ]
  [ "$output" = "tapset $top/build/tapset"$'\n'"<$top/scripts/pycalls.stp>"$'\n<-v>\n<cfunctions>\n<3>' ]
  run launcher pycalls.stp
  [ "$output" = "tapset $top/build/tapset"$'\n'"<$top/scripts/pycalls.stp>" ]
  run env SYSTEMTAP_TAPSET=/mine timeout 20 "$launcher" pygc
  [ "${lines[0]}" = "tapset /mine" ]
  STAP=$BATS_TEST_TMPDIR/none refuses 127 'none not found: run stap-python doctor' pygc
}

@test "what -c of a script starts has the shim, however it is written" {
  local line given got with="env 'LD_PRELOAD=$shim'"
  fake_stap
  # each line: the arguments, and what stap gets
  while read -r line; do
    given=${line%% => *} got=${line#* => }
    eval "run launcher pygc $given"
    echo "$given: ${lines[*]:2}"
    [ "${lines[*]:2}" = "$got" ]
  done <<LINES
-c 'python3 x.py' => <-c> <$with python3 x.py>
-c'python3 x.py' => <-c$with python3 x.py>
-vc 'A=1 python3 x.py' => <-vc> <$with A=1 python3 x.py>
-c 'a; b' => <-c> <$with sh -c 'a; b'>
-c "a 'b c' | d" => <-c> <$with sh -c 'a '\\''b c'\\'' | d'>
-G top=3 -c 'x' y => <-G> <top=3> <-c> <$with x> <y>
-o -c x => <-o> <-c> <x>
-e -c -c x => <-e> <-c> <-c> <$with x>
-- -c x => <--> <-c> <x>
--compatible -c x => <--compatible> <-c> <$with x>
-c => <-c>
LINES
}

@test "--list-scripts has each script and its title" {
  local script
  run launcher --list-scripts
  [ "$status" = 0 ]
  [ "${#lines[@]}" = "$(find "$top/scripts" -maxdepth 1 -name '*.stp' | wc -l)" ]
  for script in "$top"/scripts/*.stp; do
    script=${script##*/}
    grep -qE "^${script%.stp} +$(sed -n 's/^title: //p' "$top/scripts/${script%.stp}.meta")$" <<<"$output"
  done
}

# stap-python: enable --service and disable --service, with a fake systemctl.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2030,SC2031

load ../lib/helper
load ../lib/launcher

# Makes $machine, on which systemd runs.  The fake systemctl prints $units/UNIT as the unit's properties, and adds its
# arguments to $asked.
make_systemd() {
  machine=$BATS_TEST_TMPDIR/machine units=$BATS_TEST_TMPDIR/units asked=$BATS_TEST_TMPDIR/asked
  drop_in=$machine/etc/systemd/system/web.service.d/50-systemtap-cpython.conf
  mkdir -p "$machine"/{run,etc}/systemd/system "$machine/etc/default" "$units" "$BATS_TEST_TMPDIR/bin"
  cat >"$BATS_TEST_TMPDIR/bin/systemctl" <<SH
#!/bin/sh
echo "\$*" >>"$asked"
case \$1 in
  show) cat "$units/\$3" 2>/dev/null || printf 'Environment=\\nLoadState=not-found\\n' ;;
  daemon-reload) [ ! -e "$units/fails" ] || { echo "Failed to reload daemon" && exit 1; } ;;
  *) exit 1 ;;
esac
SH
  chmod +x "$BATS_TEST_TMPDIR/bin/systemctl"
  printf 'Environment=\nLoadState=loaded\n' >"$units/web.service"
  mkdir -p "$machine${shim%/*}"
  ln -s "$shim" "$machine$shim"
  PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# The libraries that the drop-in preloads.
preloaded() {
  sed -n 's/^Environment="LD_PRELOAD=\(.*\)"$/\1/p' "$drop_in"
}

@test "enable --service preloads the shim by a drop-in, disable --service removes it, each any number of times" {
  make_systemd
  run launcher disable --service web
  [ "$status $output" = "0 not enabled: there is no $drop_in" ]
  run launcher enable --service web
  echo "$output"
  [ "$status" = 0 ]
  [ "$output" = "enabled: $drop_in
restart it: systemctl restart web.service" ]
  [ "$(tail -n 2 "$drop_in")" = "[Service]
Environment=\"LD_PRELOAD=$shim\"" ]
  [ "$(stat -c %a "$drop_in")" = 644 ]
  [ "$(tail -n 1 "$asked")" = daemon-reload ]
  [ "$(launcher enable --list)" = "$drop_in" ]
  # systemd shows what the drop-in sets
  printf 'Environment=LD_PRELOAD=%s\nLoadState=loaded\n' "$shim" >"$units/web.service"
  run launcher enable --service web.service
  [ "$status $output" = "0 already enabled: $drop_in" ]
  run launcher disable --service web.service
  [ "$output" = "disabled: $drop_in
restart it: systemctl restart web.service" ]
  [ "$(grep -c daemon-reload "$asked")" = 2 ]
  [ -z "$(ls -A "$machine/etc/systemd/system")" ]
  [ ! -e "$machine/var/lib/systemtap-cpython" ]
}

@test "a LD_PRELOAD that the unit has is kept, behind the shim, quoted as systemd reads it" {
  local shown expected
  make_systemd
  # shellcheck disable=SC2016
  while IFS=: read -r shown expected; do
    shown=${shown//;/:} expected=${expected//;/:}
    printf 'Environment=%s\nEnvironmentFiles=/etc/default/none (ignore_errors=yes)\nLoadState=loaded\n' "$shown" >"$units/web.service"
    launcher enable --service web
    echo "$shown: $(preloaded)"
    [ "$(preloaded)" = "$shim${expected:+:$expected}" ]
    launcher disable --service web
  done <<'SHOWN'
A=b:
LD_PRELOAD=/lib/a.so:/lib/a.so
A=b LD_PRELOAD=/lib/a.so;/lib/b.so C=d:/lib/a.so;/lib/b.so
"A=b LD_PRELOAD=/lib/no.so" C=d:
"A=\"b" "LD_PRELOAD=/lib/a.so /lib/b.so":/lib/a.so;/lib/b.so
"LD_PRELOAD=/usr/\$LIB/a.so":/usr/$LIB/a.so
LD_PRELOAD=/100%/a.so:/100%%/a.so
LD_PRELOAD=/other/libpython-stap.so.0;/lib/a.so:/lib/a.so
NOT_LD_PRELOAD=/lib/a.so:
SHOWN
}

@test "enable --service says when an EnvironmentFile of the unit sets LD_PRELOAD" {
  make_systemd
  printf 'LoadState=loaded\nEnvironmentFiles=/etc/default/none (ignore_errors=yes)\nEnvironmentFiles=/etc/default/web (ignore_errors=no)\n' >"$units/web.service"
  echo 'A=LD_PRELOAD=x' >"$machine/etc/default/web"
  launcher enable --service web
  launcher disable --service web
  echo 'LD_PRELOAD=/lib/a.so' >>"$machine/etc/default/web"
  refuses 1 "/etc/default/web sets LD_PRELOAD, which no drop-in can change: add $shim to it there" enable --service web
  [ ! -e "${drop_in%/*}" ]
}

@test "enable --service refuses what is not the name of a service, and a unit that systemd doesn't know" {
  local word
  make_systemd
  for word in '' ../web a/b 'a b' .web @web -x a$'\n'b "$(printf '%0250d' 1)"; do
    refuses 2 'is not the name of a service' enable --service "$word"
    refuses 2 'is not the name of a service' disable --service "$word"
  done
  refuses 2 'takes one interpreter or --service UNIT' enable --service
  refuses 2 'takes one interpreter or --service UNIT' enable --service a b
  refuses 1 'nowhere.service: systemd knows no such unit' enable --service nowhere
  refuses 1 'systemctl daemon-reload failed: Failed to reload daemon' enable --service "$(: >"$units/fails" && echo web)"
  # a template, which systemd shows nothing of
  rm "$units/fails"
  launcher enable --service web@
  [ -e "$machine/etc/systemd/system/web@.service.d/50-systemtap-cpython.conf" ]
}

@test "without systemd the drop-in is written all the same, and systemctl is not asked" {
  make_systemd
  rm -r "$machine/run"
  run launcher enable --service web
  [ "$status $output" = "0 enabled: $drop_in" ]
  [ ! -e "$asked" ]
  [ "$(preloaded)" = "$shim" ]
}

@test "a drop-in of another's, or changed since, is left alone" {
  make_systemd
  mkdir -p "${drop_in%/*}"
  echo '# mine' >"$drop_in"
  refuses 1 "$drop_in was not created by stap-python enable, or changed since" enable --service web
  refuses 1 "$drop_in: it was not created by stap-python enable" disable --service web
  [ "$(cat "$drop_in")" = '# mine' ]
  rm "$drop_in"
  echo '# mine' >"${drop_in%/*}/10-mine.conf"
  launcher enable --service web
  echo 'Nice=5' >>"$drop_in"
  refuses 1 "$drop_in: it was changed since stap-python enable created it: check and remove it yourself" disable --service web
  refuses 1 "$drop_in was not created by stap-python enable, or changed since" enable --service web
  [ "$(launcher enable --list)" = "$drop_in: broken: it was changed since stap-python enable created it" ]
  sed -i '$d' "$drop_in"
  # in the same line, too; but not what else is preloaded
  sed -i 's/"$/" "A=b"/' "$drop_in"
  refuses 1 "$drop_in: it was changed since stap-python enable created it" disable --service web
  sed -i 's,^Environment=.*,Environment="LD_PRELOAD=/lib/a.so",' "$drop_in"
  refuses 1 "$drop_in: it was changed since stap-python enable created it" disable --service web
  printf '%s\n' "$(head -n 2 "$drop_in")" "Environment=\"LD_PRELOAD=/lib/a\\\"b.so:$shim\"" >"$drop_in.new"
  mv "$drop_in.new" "$drop_in"
  [ "$(launcher enable --list)" = "$drop_in" ]
  launcher disable --service web
  # the directory has another file
  [ "$(ls "${drop_in%/*}")" = 10-mine.conf ]
}

@test "disable --all removes drop-ins and .pth files alike, and systemd reads its units again once" {
  local python unit
  make_systemd
  python=$(environments "$(system_python)")
  for unit in web api; do
    cp -n "$units/web.service" "$units/$unit.service"
    launcher enable --service "$unit"
  done
  launcher enable "$python"
  : >"$asked"
  run launcher disable --all
  echo "$output"
  [ "$status" = 0 ]
  [ "$(grep -c '^disabled: ' <<<"$output")" = 3 ]
  [ "$(cat "$asked")" = daemon-reload ]
  [ -z "$(ls -A "$machine/etc/systemd/system")" ]
  [ -z "$(ls -A "$(site_of "$python")")" ]
}

@test "a shim whose path has characters that are special to systemd is found in the drop-in" {
  local tree=$BATS_TEST_TMPDIR/'a%b\c"d'
  make_systemd
  make_tree
  mv "$BATS_TEST_TMPDIR/tree" "$tree"
  export launcher=$tree/build/stap-python
  cp "$shim" "$tree/build"
  mkdir -p "$machine$tree/build"
  cp "$shim" "$machine$tree/build"
  launcher enable --service web
  cat "$drop_in"
  grep -qF 'a%%b\\c\"d/build/libpython-stap.so.0"' "$drop_in"
  [ "$(launcher enable --list)" = "$drop_in" ]
  launcher disable --service web
  [ ! -e "$drop_in" ]
}

@test "a service whose drop-in names a shim that is gone is broken" {
  make_systemd
  launcher enable --service web
  make_tree
  export launcher=$BATS_TEST_TMPDIR/tree/build/stap-python
  cp "$shim" "$BATS_TEST_TMPDIR/tree/build"
  launcher disable --service web
  launcher enable --service web
  [ "$(preloaded)" = "$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0" ]
  mkdir -p "$machine$BATS_TEST_TMPDIR/tree/build"
  cp "$shim" "$machine$BATS_TEST_TMPDIR/tree/build"
  [ "$(launcher enable --list)" = "$drop_in" ]
  rm "$machine$BATS_TEST_TMPDIR/tree/build/libpython-stap.so.0"
  [ "$(launcher enable --list)" = "$drop_in: broken: the shim that it names does not exist" ]
  rm "$drop_in"
  [ "$(launcher enable --list)" = "$drop_in: broken: No such file or directory" ]
}

@test "root asks no systemctl that another user can change" {
  [ "$(id -u)" = 0 ] || skip "needs root, which must not"
  make_systemd
  chown 65534 "$BATS_TEST_TMPDIR/bin/systemctl"
  refuses 1 "systemctl is owned by another user" enable --service web
  [ ! -e "$asked" ]
}

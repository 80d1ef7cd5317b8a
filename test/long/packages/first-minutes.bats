# The first minutes with the Debian packages, in a fresh Debian 12, 13 and sid, each command typed as a new user would:
# from apt-get install to the first answer about a web service, in three commands; the same without SystemTap; gunicorn
# and uwsgi in a virtual environment; a service in another root; python3-stap and enable; removal.  build/first-minutes-RELEASE.txt has all that was typed and
# printed.  The tests of a release build on each other.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../../lib/helper
load lib
load first-minutes

setup() {
  need qemu-system-x86_64 ssh script
  on_machine "${BATS_TEST_DESCRIPTION%%:*}"
}

teardown() {
  # of a removal that has failed
  [ ! -e "$root/srv/pid" ] || kill "$(cat "$root/srv/pid")"
}

teardown_file() {
  local release
  for release in bookworm trixie sid; do
    on_machine "$release"
    drop_machine
  done
}

# ---------------------------------------------------------------- the steps

gunicorn='cd /srv/shop && exec setpriv --reuid=www-data --regid=www-data --clear-groups venv/bin/python3 -m gunicorn --workers 2 --worker-tmp-dir /dev/shm --bind 127.0.0.1:8000 shop'
uwsgi='exec uwsgi --plugin python3 --virtualenv /srv/shop/venv --chdir /srv/shop --module shop --http-socket 127.0.0.1:8001 --master --processes 2 --uid www-data --gid www-data'
probe='-e '\''probe python.function.entry { printf("%s\n", funcname) }'\'
question='stap-python pycalls -x $(pgrep -n -u www-data python3)'

# Starts both services, and somebody who asks for pages.
services_run() {
  runs gunicorn "$gunicorn"
  runs uwsgi "$uwsgi"
  until_guest 120 'busybox wget -q -O- http://127.0.0.1:8000/ && busybox wget -q -O- http://127.0.0.1:8001/'
  in_guest sh -c 'setsid sh -c "while :; do busybox wget -q -O- http://127.0.0.1:8000/; busybox wget -q -O- http://127.0.0.1:8001/; sleep 0.2; done" >/dev/null 2>&1 </dev/null &'
}

# The fewest commands that lead to an answer: which functions of a worker of gunicorn are called most.
step_first_answer() {
  make_machine "$1"
  (cd "$root" && find . -xdev | sort) >"$root.before"
  typed in_machine 'cd /srv && apt-get install -y ./systemtap-cpython_*.deb ./systemtap-cpython-tapset_*.deb'
  [ "$status" = 0 ]
  guest_on
  services_run
  # not all scripts now
  typed in_guest 'stap-python doctor --fix' --answer y --answer n
  [ "$status" = 0 ]
  [[ $output == *"no problems"* ]]
  typed in_guest "$question" --until 'Tracing' --then 20
  [ "$status" = 0 ]
  grep -E '^ +[0-9]+ +[0-9]+ +price_of +/srv/shop/shop.py$' <<<"$output"
  remark "three commands, $(awk '{ sum += $1 } END { print sum }' "$typed_seconds") s"
  typed in_machine 'dpkg -V systemtap systemtap-common systemtap-runtime systemtap-cpython systemtap-cpython-tapset'
  [ "$status $output" = '0 ' ]
}

# The same where SystemTap is not installed.
step_bpftrace_alone() {
  transcript=${transcript%.txt}-bpftrace.txt
  make_machine "$1"
  typed in_machine 'cd /srv && apt-get install -y --no-install-recommends ./systemtap-cpython_*.deb ./systemtap-cpython-tapset_*.deb bpftrace'
  [ "$status" = 0 ]
  guest_on
  services_run
  typed in_guest "$question" --until 'Ctrl-C prints' --then 20
  [[ $output == *"SystemTap is not installed: bpftrace runs the script"* ]]
  grep -E '@calls\[price_of, /srv/shop/shop.py\]: [0-9]+$' <<<"$output"
  remark "two commands, $(awk '{ sum += $1 } END { print sum }' "$typed_seconds") s"
}

step_services() {
  typed in_guest 'stap-python attach --name uwsgi --name gunicorn'
  [ "$status" = 0 ]
  # the masters, too
  [ "$(grep -cE '^[0-9]+: (already )?(active|loaded): ' <<<"$output")" = 6 ]
  typed in_guest 'stap-python ps'
  typed in_guest 'stap-python pycalls' --until 'Tracing' --then 20
  [ "$status" = 0 ]
  grep -E '^ +[0-9]+ +[0-9]+ +price_of +/srv/shop/shop.py$' <<<"$output"
}

step_other_root() {
  local pid
  in_guest sh -euc 'mkdir -p /run/other && mount -t tmpfs other /run/other && cd /run/other && mkdir upper work root
    modprobe overlay && mount -t overlay overlay -o "lowerdir=$0,upperdir=upper,workdir=work" root
    cp /srv/shop/ticking.py root/srv' "$top/build/packages/first/$1"
  runs container 'exec unshare --mount --pid --fork sh -c "mount -t proc proc /run/other/root/proc; exec chroot /run/other/root python3 /srv/ticking.py"'
  until_guest 60 'pgrep -f "^python3 /srv/ticking.py"'
  pid=$(in_guest pgrep -f '^python3 /srv/ticking.py')
  typed in_guest 'stap-python ps'
  grep -E "^ *$pid .* other root .*ticking.py" <<<"$output"
  typed in_guest "stap-python attach $pid"
  [ "$status" = 0 ]
  [[ $output =~ "$pid: "(active|loaded)": ".*"that is our file, mounted in its root" ]]
  typed in_guest "stap-python $probe -x $pid" --until '^tick' --then 2
  [ "$status" = 0 ]
  grep -x tock <<<"$output"
}

step_python3_stap() {
  guest_off
  typed in_machine 'cd /srv && apt-get install -y ./python3-stap_*.deb'
  [ "$status" = 0 ]
  typed in_machine 'python3 -m venv /srv/plain && stap-python enable /srv/plain/bin/python3 && stap-python enable --list'
  [ "$status" = 0 ]
  guest_on
  runs python3 'exec python3 /srv/shop/ticking.py'
  until_guest 60 'pgrep -f shop/ticking.py'
  typed in_guest 'stap-python ps'
  grep -E ' active .*ticking.py' <<<"$output"
  # Debian 12's own does not compile it
  typed in_guest "$([ "$1" = bookworm ] && echo stap-python || echo stap) $probe" --until '^tick' --then 2
  [ "$status" = 0 ]
  grep -x tock <<<"$output"
}

# The files that were not there before and are no package's, but for what apt and dpkg keep for themselves, and for
# what packages that came with SystemTap leave when they are purged: passwd's, fontconfig's, dbus' and ucf's; and dbus'
# links to what its package has removed, and the state of adduser in /run.
new_files() {
  (cd "$root" && find . -xdev | sort) | comm -13 "$root.before" - |
    grep -vxFf <(sed -E 's,^/(usr/)?,./usr/,p; s,^\./usr/,./,' "$root"/var/lib/dpkg/info/*.list) |
    grep -vE '^[.](/srv|/var/cache|/var/lib/apt|/var/lib/dpkg|/var/log|/proc|/sys|/dev|/tmp|/root)(/|$)' |
    grep -vE '^[.](/etc/rc[0-6S][.]d/[SK][0-9]+dbus|/run/adduser|/etc/shadow-|/etc/fonts/conf[.]d/.*|/usr/local/share/fonts|/var/lib/(dbus|ucf)(/.*)?)$'
}

step_removal() {
  local pid turns
  guest_off
  # a process that has the shim
  in_machine sh -c 'setsid python3 /srv/shop/ticking.py >/dev/null 2>&1 </dev/null & echo $! >/srv/pid'
  pid=$(cat "$root/srv/pid")
  wait_for grep -q libpython-stap "/proc/$pid/maps"
  typed in_machine 'apt-get purge -y systemtap-cpython systemtap-cpython-tapset python3-stap'
  [ "$status" = 0 ]
  turns=$(turns_of "$pid")
  sleep 1
  [ "$(turns_of "$pid")" -gt "$turns" ]
  rm "$root/srv/pid"
  kill "$pid"
  typed in_machine 'python3 -c "print(1)"; /srv/plain/bin/python3 -c "print(1)"; /srv/shop/venv/bin/python3 -c "print(1)"'
  [ "$status $output" = $'0 1\n1\n1' ]
  # what apt brought with SystemTap
  typed in_machine 'apt-get autoremove --purge -y'
  [ "$status" = 0 ]
  typed in_machine 'find /etc /opt /root /run /usr /var/lib /var/log -iname "*systemtap-cpython*" -o -iname "*python?stap*"'
  [ "$status $output" = '0 ' ]
  new_files >"$root.left" || true
  remark "new files that are no package's: $(wc -l <"$root.left")"
  sed 's/^/    /' "$root.left" | tee -a "$transcript"
  [ ! -s "$root.left" ]
}

# How often a process went to sleep.
turns_of() {
  awk '/^voluntary/ { print $2 }' "/proc/$1/status"
}

# Waits until the command succeeds, at most 20 seconds.
wait_for() {
  for _ in {1..400}; do
    ! "$@" || return 0
    sleep 0.05
  done
  echo "waited in vain for: $*" >&2
  return 1
}

# ---------------------------------------------------------------- each release

@test "bookworm: the first answer where SystemTap is not installed, by bpftrace" { step_bpftrace_alone bookworm; }
@test "bookworm: from apt-get install to the first answer about a running web service, in three commands" { step_first_answer bookworm; }
@test "bookworm: gunicorn's and uwsgi's workers in a virtual environment, all at once" { step_services; }
@test "bookworm: a service in another root, attached to from outside, by stap" { step_other_root bookworm; }
@test "bookworm: python3-stap, and the mission's line on a python3 that was started normally" { step_python3_stap bookworm; }
@test "bookworm: removed without a trace" { step_removal; }

@test "trixie: the first answer where SystemTap is not installed, by bpftrace" { step_bpftrace_alone trixie; }
@test "trixie: from apt-get install to the first answer about a running web service, in three commands" { step_first_answer trixie; }
@test "trixie: gunicorn's and uwsgi's workers in a virtual environment, all at once" { step_services; }
@test "trixie: a service in another root, attached to from outside, by stap" { step_other_root trixie; }
@test "trixie: python3-stap, and the mission's line on a python3 that was started normally" { step_python3_stap trixie; }
@test "trixie: removed without a trace" { step_removal; }

@test "sid: the first answer where SystemTap is not installed, by bpftrace" { step_bpftrace_alone sid; }
@test "sid: from apt-get install to the first answer about a running web service, in three commands" { step_first_answer sid; }
@test "sid: gunicorn's and uwsgi's workers in a virtual environment, all at once" { step_services; }
@test "sid: a service in another root, attached to from outside, by stap" { step_other_root sid; }
@test "sid: python3-stap, and the mission's line on a python3 that was started normally" { step_python3_stap sid; }
@test "sid: removed without a trace" { step_removal; }

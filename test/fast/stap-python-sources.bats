# stap-python record -f sources: a page of source files with the samples beside each line, with a fake stap.
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2030,SC2031 # said: test/lib/launcher.bash; programs: each test has its own

load ../lib/helper
load ../lib/launcher

# Makes a fake stap that writes $SAMPLES to the file of its option -o, and a file for the page's text.
setup() {
  launcher_setup
  # other users can't enter the folder of bats
  here=$(mktemp -d /tmp/sources.XXXXXX)
  chmod 755 "$here"
  cd "$here" || return
  cat >stap <<'SH'
#!/bin/sh
printf '<%s> ' "$@" >"${STAP%/*}/arguments"
while [ "$1" != -o ]; do shift; done
cat "$SAMPLES" >"$2"
SH
  chmod +x stap
  export STAP=$here/stap SAMPLES=$here/samples TMPDIR=$here
}

teardown() {
  launcher_teardown
  rm -rf "$here"
}

# Makes the page x.html of $SAMPLES, and prints its text without $here: a line for each file, and "OWN TOTAL LINE CODE"
# with "|" between for each of its lines; "~" is before those that are folded away.
# usage: page ARGUMENTS...
page() {
  launcher record -f sources -o x.html "$@"
  "$(system_python)" - "$here/" <<'PY'
import html.parser
import sys


class Page(html.parser.HTMLParser):
    depth, text, cells = 0, "", []

    def handle_starttag(self, tag, attributes):
        if tag not in ("html", "head", "meta", "title", "style", "body", "h1", "p", "details", "summary", "b", "table", "tr", "td"):
            print("a tag", tag)
        self.depth += tag == "details"
        self.text = "" if tag in ("td", "summary", "p", "h1") else self.text
        self.cells = [] if tag == "tr" else self.cells
        for name, value in attributes:
            if name.startswith("on") or "url" in (value or ""):
                print("an attribute", name, value)

    def handle_data(self, data):
        self.text += data

    def handle_endtag(self, tag):
        self.depth -= tag == "details"
        if tag == "td":
            self.cells.append(self.text)
        elif tag == "tr":
            print("~" * (self.depth - 1) + "|".join(self.cells))
        elif (tag == "summary" and self.depth == 1) or tag in ("p", "h1"):
            print(self.text.replace(sys.argv[1], ""))


with open("x.html", encoding="utf-8", errors="strict") as file:
    Page().feed(file.read())
PY
}

@test "the page has the hottest file first, and own and total samples beside each line" {
  local user
  user=$(id -u)
  seq -f 'line %g' 1 12 >a.py
  printf 'def f():\n\treturn "<b>é</b>" & 1\r\n' >b.py
  cat >samples <<END
# 199 1700000000000000000 5000000000
python3 (1/$user);<module> ($here/a.py:2);f ($here/b.py:2) 3
python3 (1/$user);<module> ($here/a.py:2);f ($here/b.py:2);f ($here/b.py:2);[libc.so.6] read 2
python3 (1/$user);<module> ($here/a.py:2) 1
python3 (1/$user);<module> ($here/a.py:11);g (<string>:7);vfs_read_[k] 4
python3 (1/$user);[unknown] 5
END
  touch -d @1600000000 a.py b.py
  page --title 'A <title>' -- python3 x.py >text
  grep -qF '<-G> <record=2> <-G> <lines=1>' arguments
  diff - text <<'END'
A <title>
199 Hz, 15 samples
Beside a line, the first number: samples in it, or in C code that it called; the second: with those in the functions that it called. 5 samples are in no line.
33.3 % own, 33.3 % total: b.py
||1|def f():
5|5|2|        return "<b>é</b>" & 1
26.7 % own, 26.7 % total: <string>; its lines are not shown: its name does not end in .py
4|4|7|
6.7 % own, 66.7 % total: a.py
||1|line 1
1|6|2|line 2
||3|line 3
||4|line 4
||5|line 5
~||6|line 6
~||7|line 7
||8|line 8
||9|line 9
||10|line 10
|4|11|line 11
||12|line 12
END
}

@test "what a program names or writes is text on the page" {
  local name='"><img src=x onerror=alert(1)>&lt.py' bad=$'\x1b[31m'
  printf '</td><script>alert(2)</script>%s\f\xff\n' "$bad" >"$name"
  printf 'python3 (1/%s);f (%s:1) 3\n' "$(id -u)" "$here/$name" >samples
  page --title '</title><script>alert(3)</script>' -- python3 >text
  grep -qF 'total: "><img src=x onerror=alert(1)>&lt.py' text
  grep -qxF $'3|3|1|</td><script>alert(2)</script>\xef\xbf\xbd[31m\xef\xbf\xbd' text
  refute grep -E '^an? (tag|attribute) ' text
}

@test "what is no source file, or another one by now, is not shown as one" {
  local user
  user=$(id -u)
  mkdir folder.py
  mkfifo pipe.py
  truncate -s 5M large.py
  : >empty.py
  echo 'one line' >short.py
  echo 'new' >changed.py
  echo '#!/usr/bin/python3' >program
  touch -d @1600000000 short.py
  for name in folder.py:1 pipe.py:1 large.py:1 empty.py:1 none.py:1 program:1 short.py:7 changed.py:1; do
    echo "python3 (1/$user);f ($here/$name) 1"
  done >samples
  echo "# 99 1700000000000000000 5000000000" >>samples
  page -- python3 >text
  cat text
  grep -qF ': folder.py; its lines are not shown: not a regular file' text
  grep -qF ': pipe.py; its lines are not shown: not a regular file' text
  grep -qF ': large.py; its lines are not shown: it has more than 4 MB' text
  grep -qF ': empty.py; its lines are not shown: it is empty' text
  grep -qF ': none.py; its lines are not shown: No such file or directory' text
  grep -qF ': program; its lines are not shown: its name does not end in .py' text
  grep -qF 'total: short.py' text
  grep -qF 'The file has not as many lines as were sampled: it is another one by now.' text
  grep -qxF '1|1|7|' text
  grep -qF ': changed.py; changed since sampling began: its lines may have been others' text
}

# Starts a program as the user 65534 in the group 65533; its PID is in $!.
start_other() {
  setpriv --reuid=65534 --regid=65533 --clear-groups "$@" &
  programs+=($!)
  wait_for grep -q "^Uid:.65534" "/proc/$!/status"
}

@test "root does not show what the program's user could not read" {
  [ "$(id -u)" = 0 ] || skip "needs root, which can read all"
  need setpriv
  local pid
  echo 'secret = 1' >secret.py
  chmod 600 secret.py
  echo 'secret = 3' >roots.py
  chmod 640 roots.py
  mkdir private
  chmod 700 private
  echo 'secret = 2' >private/open.py
  ln -s secret.py link.py
  echo 'for_the_group = 3' >group.py
  chown 0:65533 group.py
  chmod 640 group.py
  echo 'for_all = 4' >all.py
  start_other sleep 100
  pid=$!
  for name in secret.py roots.py private/open.py link.py group.py all.py; do
    echo "python3 ($pid/65534);f ($here/$name:1) 1"
  done >samples
  page -- python3 >text
  cat text
  refute grep -r 'secret = ' x.html
  [ "$(grep -c 'its lines are not shown: Permission denied' text)" = 4 ]
  grep -qxF '1|1|1|for_the_group = 3' text
  grep -qxF '1|1|1|for_all = 4' text
  # after its end, its groups are unknown; another process's user is not that of the samples
  kill -KILL "$pid"
  wait "$pid" || true
  page -- python3 >text
  refute grep -r 'secret = ' x.html
  [ "$(grep -c 'its lines are not shown: Permission denied' text)" = 5 ]
  sed -i "s/($pid\//($$\//" samples
  page -- python3 >text
  refute grep -r 'secret = ' x.html
  # the first name of a stack may be no process
  printf '(other);f (%s:1) 1\n' "$here/secret.py" >samples
  page -- python3 >text
  refute grep -r 'secret = ' x.html
  # root's own program
  printf 'python3 (1/0);f (%s:1) 1\n' "$here/secret.py" >samples
  page -- python3 >text
  grep -qxF '1|1|1|secret = 1' text
}

has_other_mounts() { [ ! "/proc/$1/ns/mnt" -ef /proc/self/ns/mnt ]; }

@test "after the end of a process that root has not started, root shows no file of its own" {
  [ "$(id -u)" = 0 ] || skip "needs root, which can read all"
  need setpriv
  local ended target
  echo 'secret = 1' >secret.py
  chmod 600 secret.py
  echo 'for_all = 2' >all.py
  true &
  ended=$!
  wait "$ended"
  start_other sleep 100
  target=$!
  # root's: the process may have been in a container, which has other files at these paths
  for name in secret.py all.py; do echo "python3 ($ended/0);f ($here/$name:1) 1"; done >samples
  page -p "$target" >text
  cat text
  refute grep -rE '(secret|for_all) = ' x.html
  [ "$(grep -c 'its lines are not shown: its process has ended, or changed its user' text)" = 2 ]
  # another user's, with its rights, if it had our files
  for name in secret.py all.py; do echo "python3 ($ended/65534);f ($here/$name:1) 1"; done >samples
  page -p "$target" >text
  refute grep -r 'secret = ' x.html
  grep -qxF '1|1|1|for_all = 2' text
  unshare -m sleep 100 &
  programs+=($!)
  wait_for has_other_mounts $!
  for target in "-p $!" --all; do
    # shellcheck disable=SC2086 # an option and its word
    page $target >text
    refute grep -r 'for_all = ' x.html
  done
}

@test "root does not take the groups of what the process has become" {
  [ "$(id -u)" = 0 ] || skip "needs root, which can read all"
  need setpriv
  echo 'for_the_group = 1' >group.py
  chown 0:65532 group.py
  chmod 640 group.py
  # as su(1) has it while it takes the groups of the user that it becomes
  setpriv --ruid=65534 --euid=0 --regid=65534 --groups=65532 sleep 100 &
  programs+=($!)
  wait_for grep -q "^Uid:.65534" "/proc/$!/status"
  echo "python3 ($!/65534);f ($here/group.py:1) 1" >samples
  page -- python3 >text
  cat text
  refute grep -r 'for_the_group = ' x.html
}

is_in_folder() { [ "$(readlink "/proc/$1/cwd")" = "$here/folder" ]; }

is_in_root() { [ "$(readlink "/proc/$1/root")" = "$here/root" ]; }

@test "a program in another root names the files of its root, whatever links lead out of it" {
  [ "$(id -u)" = 0 ] || skip "needs root, for chroot"
  local pid
  mkdir -p root/app
  echo 'inside = 1' >root/app/x.py
  echo 'outside = 2' >y.py
  mkdir -p "root$here"
  echo 'inside = 3' >"root$here/y.py"
  ln -s "$here/y.py" root/app/link.py
  ln -s ../../../../../../../../../../../../etc/hostname root/app/up.py
  "$(system_python)" -c 'import os, time
os.chroot("root")
os.chdir("/")
time.sleep(100)' &
  pid=$!
  programs+=("$pid")
  wait_for is_in_root "$pid"
  for name in /app/x.py /app/link.py /app/up.py "$here/y.py"; do echo "python3 ($pid/0);f ($name:1) 1"; done >samples
  page -- python3 >text
  cat text
  grep -qxF '1|1|1|inside = 1' text
  [ "$(grep -cxF '1|1|1|inside = 3' text)" = 2 ]
  grep -qF ': /app/up.py; its lines are not shown: No such file or directory' text
  refute grep -q outside text
}

@test "a relative name is one of the process's working directory" {
  mkdir folder
  echo 'x = 1' >folder/x.py
  (cd folder && exec sleep 100) &
  programs+=($!)
  wait_for is_in_folder $!
  printf 'python3 (%s/%s);f (x.py:1) 2\n' $! "$(id -u)" >samples
  page -- python3 >text
  grep -qxF '2|2|1|x = 1' text
}

@test "the same file of several processes is on the page once" {
  echo 'x = 1' >x.py
  printf 'python3 (%s/%s);f (%s:1) 2\n' $$ "$(id -u)" "$here/x.py" "$PPID" "$(id -u)" "$here/x.py" 1 "$(id -u)" "$here/x.py" >samples
  page -- python3 >text
  cat text
  grep -qxF '6|6|1|x = 1' text
}

# bats test_tags=slow
@test "a file whose server does not answer is left out: no signal ends who reads it" {
  local server
  [ "$(id -u)" = 0 ] && [ -w /dev/fuse ] || skip "needs root and FUSE"
  mkdir mounted
  "$(system_python)" "$top/test/workloads/unanswered.py" mounted 1 3>&- &
  server=$!
  programs+=("$server")
  wait_for test -e mounted/x.py
  echo "python3 (1/0);f ($here/mounted/x.py:3);g ($here/mounted/y.py:3) 5" >samples
  page -- python3 x.py >text || true
  # ends the connection, and so the one that reads
  kill "$server"
  umount -l mounted
  cat text
  [ -e mounted.asked ]
  # and no other one of this program is waited for
  grep -q 'mounted/[xy].py; its lines are not shown: reading it failed, or took too long$' text
  grep -q 'mounted/[xy].py; its lines are not shown: reading another file took too long$' text
}

# stap-python: record --push, with a fake stap that writes intervals when it is told to, and a server that behaves in
# turn as Grafana Pyroscope and as servers should not (test/workloads/pyroscope.py).
#
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016

load ../lib/helper
load ../lib/launcher

setup() {
  launcher_setup
  folder=$BATS_TEST_TMPDIR/server said=$BATS_TEST_TMPDIR/said host=$(uname -n)
  mkdir "$folder"
  cat >"$BATS_TEST_TMPDIR/stap" <<'SH'
#!/bin/bash
folder=${0%/*}
case " $* " in
  *" -o "*) printf '<%s> ' "$@" >"$folder/words" ;;
  *) echo "Systemtap translator/driver (version 4.8/0.188, Debian version 4.8-2)" && exit ;;
esac
env >"$folder/environment"
while [ "$1" != -o ]; do shift; done
trap ended=1 INT
exec >"$2"
n=1 ended=
until [ -n "$ended" ]; do
  if [ -e "$folder/interval.$n" ]; then
    cat "$folder/interval.$n"
    : >"$folder/written.$n"
    n=$((n + 1))
  elif [ -e "$folder/end" ]; then
    break
  else
    sleep 0.05
  fi
done
[ ! -e "$folder/last" ] || cat "$folder/last"
exit "$(cat "$folder/end" 2>/dev/null || echo 3)"
SH
  chmod +x "$BATS_TEST_TMPDIR/stap"
  export STAP=$BATS_TEST_TMPDIR/stap
}

# Has the server, started if need be, behave so.
# usage: server MODE [PORT]
server() {
  echo "$1" >"$folder/mode.new"
  mv "$folder/mode.new" "$folder/mode"
  [ ! -e "$folder/port" ] || [ -n "${2:-}" ] || return 0
  /usr/bin/python3 "$top/test/workloads/pyroscope.py" "$folder" ${2:+"$2"} >/dev/null 2>&1 &
  server=$!
  programs+=("$server")
  wait_for test -s "$folder/port"
  url=http://127.0.0.1:$(<"$folder/port")
}

server_ends() {
  kill "$server"
  wait "$server" || true
}

# Has the fake stap write file $1, whole once it is seen, from stdin.
writes() {
  cat >"$BATS_TEST_TMPDIR/new"
  mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/$1"
}

# Prints interval $1, of PID $2, with samples of two programs.
interval() {
  printf 'python3;main (/x.py);f%s (/x.py) %s\ngunicorn: [web];main (/g.py) 5\n# 19 179000000%s000000000 2000000000 %s\n' "$1" "$1" "$1" "$2"
}

# Starts record in the background.
pushes() {
  env --default-signal=INT "$launcher" record --push "$url" -r 19 "$@" >"$BATS_TEST_TMPDIR/out" 2>"$said" &
  recording=$!
  programs+=("$recording")
}

# Ends the fake stap, with status $1 (0), and waits for record, whose status is in $status.
ends() {
  echo "${1:-0}" | writes end
  status=0
  wait "$recording" || status=$?
  cat "$said"
}

has_taken() { [ -e "$folder/$1.body" ]; }

came() { [ -e "$folder/came" ] && [ "$(wc -c <"$folder/came")" -ge "$1" ]; }

has_failed() { [ "$(grep -c 'trying again$' "$said")" = "$1" ]; }

decoded() { /usr/bin/python3 "$top/test/lib/profiles.py" raw "$folder/$1.body"; }

@test "record --push sends each interval as pprof, with service, host and pid, and says how many" {
  server takes
  interval 1 77 | writes interval.1
  pushes --every 2 -- python3 x.py
  wait_for has_taken 2
  # the first interval is there before the second is over
  interval 2 77 | writes interval.2
  wait_for has_taken 4
  echo '# 19 1790000003000000000 2000000000 77' | writes interval.3
  ends 5
  [ "$status" = 5 ]
  [ "$(cat "$said")" = "stap-python: record: profiles sent to $url/ingest: 4" ]
  grep -qE '<-G> <every=2> <-o> <[^>]*> (<-c> <.*> )?<19> ' "$BATS_TEST_TMPDIR/words"
  [ "$(cat "$folder/1.path")" = "/ingest?name=python3%7Bhost%3D${host}%2Cpid%3D77%7D&from=1790000001000000000&until=1790000003000000000&format=pprof&sampleRate=19&spyName=stap-python" ]
  [[ $(cat "$folder/2.path") == "/ingest?name=gunicorn___web_%7Bhost%3D"* ]]
  [[ $(cat "$folder/3.path") == *"&from=1790000002000000000&until=1790000004000000000&"* ]]
  decoded 3
  diff - <(decoded 3) <<'PROFILE'
samples/count cpu/nanoseconds
time 1790000002000000000 duration 2000000000 period 52631578 cpu/nanoseconds
main /x.py:0;f2 /x.py:0 2 105263157 program=python3
PROFILE
  [ "$(decoded 4 | tail -n 1)" = 'main /g.py:0 5 263157894 program=gunicorn: [web]' ]
  # the FIFO is gone
  refute test -e "$(sed 's/.*<-o> <\([^>]*\)>.*/\1/' "$BATS_TEST_TMPDIR/words")"
}

@test "one service has all programs; beyond 20 programs they are other; --all has no pid" {
  local n
  server takes
  interval 1 0 | writes interval.1
  pushes --service shop/web --all
  wait_for has_taken 1
  ends
  [ "$status" = 0 ]
  [ "$(decoded 1 | tail -n +3 | cut -d' ' -f1-3 | LC_ALL=C sort)" = $'main /g.py:0 5\nmain /x.py:0;f1 /x.py:0' ]
  grep -qF "name=shop%2Fweb%7Bhost%3D$host%7D&" "$folder/1.path"
  rm "$BATS_TEST_TMPDIR"/{end,interval.1}
  for n in {1..25}; do echo "p$n;main (/x.py) $n"; done | sed 's/^p1;/;/' >"$BATS_TEST_TMPDIR/many"
  { cat "$BATS_TEST_TMPDIR/many" && echo '(other) 3' && echo '# 19 1790000003000000000 2000000000 0'; } | writes interval.1
  pushes --all
  wait_for has_taken 22
  ends
  [ "$(tail -n 1 "$said")" = "stap-python: record: profiles sent to $url/ingest: 21" ]
  # the first program has no name
  grep -qhF 'name=unnamed%7B' "$folder"/*.path
  [ "$(grep -ohE 'name=(p[0-9]+|unnamed)%' "$folder"/*.path | sort -u | wc -l)" = 20 ]
  grep -q 'name=other%7B' "$folder/22.path"
  # of 21 to 25, and what pyprof has left out
  [ "$(decoded 22 | tail -n +3 | sed -E 's/ [0-9]+ (program=.*)?$//; s/.* //' | awk '{ sum += $1 } END { print sum }')" = 118 ]
}

# Each wait between two tries is at most one and a half seconds here, as the try before has succeeded.
# bats test_tags=slow
@test "a server that is slow, wrong or down gets each profile in the end, and each change is said once" {
  local mode n=1 port
  server slow
  port=$(<"$folder/port")
  interval 1 9 | writes interval.1
  pushes -- true
  wait_for has_taken 2
  for mode in 500 429 garbage shut down; do
    n=$((n + 1))
    if [ "$mode" = down ]; then server_ends; else server "$mode"; fi
    interval "$n" 9 | writes "interval.$n"
    wait_for has_failed $((n - 1))
    [ "$mode" = down ] && server takes "$port" || server takes
    wait_for has_taken $((n * 2))
  done
  ends
  [ "$status" = 0 ]
  [ "$(grep -c '' "$said")" = 11 ]
  [ "$(grep -c "^stap-python: record: a profile is not sent to $url/ingest: .*: trying again$" "$said")" = 5 ]
  [ "$(grep -cx "stap-python: record: profiles are sent to $url/ingest again; dropped meanwhile: 0" "$said")" = 5 ]
  grep -qF ': the server answers 500: out of \x1b[31mroom: trying again' "$said"
  grep -q 'refused\|onnect.*: trying again' "$said"
  [ "$(tail -n 1 "$said")" = "stap-python: record: profiles sent to $url/ingest: 12" ]
  [ "$(for n in {1..12}; do decoded "$n" | tail -n +3; done | LC_ALL=C sort | uniq -c | awk '{ print $1, $3 }')" = "6 /g.py:0"$'\n'"$(printf '1 /x.py:0;f%s\n' {1..6})" ]
}

@test "what a server refuses is dropped at once, said, and counted" {
  server 404
  interval 1 9 | writes interval.1
  pushes -- true
  wait_for came 2
  server takes
  interval 2 9 | writes interval.2
  wait_for has_taken 2
  ends
  [ "$status" = 1 ]
  diff - "$said" <<SAID
stap-python: record: a profile is not sent to $url/ingest: the server answers 404: out of \\x1b[31mroom: it is dropped
stap-python: record: profiles sent to $url/ingest: 2; dropped: 2: the server answers 404: out of \\x1b[31mroom
SAID
}

# bats test_tags=slow
@test "while a server never answers, pyprof's output is read, and record ends a few seconds after it" {
  local n
  server silent
  interval 1 9 | writes interval.1
  pushes -- true
  wait_for came 1
  # more than a FIFO holds
  for n in 2 3 4; do
    {
      yes "python3;main (/x.py);$(printf 'f%.0s' {1..500}) (/x.py) 1" | head -n 1000
      interval "$n" 9
    } | writes "interval.$n"
    wait_for test -e "$BATS_TEST_TMPDIR/written.$n"
  done
  came 1
  ends 4
  [ "$status" = 4 ]
  [ "$(tail -n 1 "$said")" = "stap-python: record: profiles sent to $url/ingest: 0; dropped: 8: the server has not answered within 5 s" ]
}

# bats test_tags=slow
@test "256 profiles are kept for a server that is down, and the oldest dropped, with their number" {
  local n part port
  server takes
  port=$(<"$folder/port")
  server_ends
  pushes -- true
  # a FIFO holds 64 KB: what is written was read, but for its last intervals
  for part in {0..5}; do
    for n in {1..50}; do
      printf 'python3;%01500d (/x.py);f%s (/x.py) 1\n# 19 1790000000000000%03d 1 9\n' 0 $((part * 50 + n)) $((part * 50 + n))
    done | writes "interval.$((part + 1))"
    wait_for test -e "$BATS_TEST_TMPDIR/written.$((part + 1))"
  done
  { yes "python3;last (/x.py) 1" | head -n 5000 && echo '# 19 1790000000000000999 1 9'; } | writes interval.7
  wait_for test -e "$BATS_TEST_TMPDIR/written.7"
  wait_for has_failed 1
  server takes "$port"
  for n in 1 64 128 192 256; do wait_for has_taken "$n"; done
  ends
  [ "$status" = 1 ]
  grep -qx "stap-python: record: profiles are sent to $url/ingest again; dropped meanwhile: 45" "$said"
  # each try took another time
  refute grep -E 'after [0-9]+ ms' "$said"
  [[ $(tail -n 1 "$said") == "stap-python: record: profiles sent to $url/ingest: 256; dropped: 45: "* ]]
  [[ $(decoded 255 | tail -n 1) == *';f300 /x.py:0 1 52631578 program=python3' ]]
  [[ $(decoded 2 | tail -n 1) == *';f4'[67]' /x.py:0 1 52631578 program=python3' ]]
}

@test "at Ctrl-C the last interval is sent; if the server is down, record gives up at once, and says so" {
  server takes
  pushes -- true
  interval 1 9 | writes interval.1
  interval 2 9 | writes last
  wait_for has_taken 2
  kill -INT "$recording"
  status=0
  wait "$recording" || status=$?
  [ "$status $(cat "$said")" = "3 stap-python: record: profiles sent to $url/ingest: 4" ]
  server_ends
  rm "$BATS_TEST_TMPDIR"/written.1
  pushes -- true
  wait_for test -e "$BATS_TEST_TMPDIR/written.1"
  kill -INT "$recording"
  wait "$recording" || status=$?
  cat "$said"
  grep -qE "^stap-python: record: profiles sent to $url/ingest: 0; dropped: 4: .*(refused|onnect)" "$said"
}

@test "an interval that stap does not end is said to be lost, and so is that there were no samples" {
  server takes
  echo 'python3;main (/x.py) 5' | writes last
  pushes -- true
  ends
  diff - "$said" <<'SAID'
stap-python: record: stap has ended within an interval, whose samples are lost
stap-python: record: there were no samples: nothing was sent
SAID
}

# The headers of request $1, without the carriage returns.
headers() { tr -d '\r' <"$folder/$1.headers"; }

@test "credentials are in a file or the environment, which neither ps nor the traced program has" {
  local credentials=$BATS_TEST_TMPDIR/credentials
  server takes
  interval 1 9 | writes interval.1
  printf 'X-Scope-OrgID: shop\nme:secret\n' >"$credentials"
  chmod 600 "$credentials"
  pushes --push-auth-file "$credentials" -- true
  wait_for has_taken 2
  ends
  headers 2 | grep -qx "Authorization: Basic $(printf me:secret | base64)"
  headers 2 | grep -qx 'X-Scope-OrgID: shop'
  rm "$BATS_TEST_TMPDIR/end"
  STAP_PYTHON_PUSH_AUTH='Authorization: Bearer secret' pushes -- true
  wait_for has_taken 4
  refute grep -q secret "/proc/$recording/cmdline" "$BATS_TEST_TMPDIR/words" "$BATS_TEST_TMPDIR/environment"
  ends
  headers 4 | grep -qx 'Authorization: Bearer secret'
  chmod 644 "$credentials"
  refuses 1 'has a password and is open to all users: chmod o= ' record --push "$url" --push-auth-file "$credentials" -- true
  refuses 1 'cannot read /nonexistent: No such file' record --push "$url" --push-auth-file /nonexistent -- true
  echo secret >"$credentials"
  chmod 600 "$credentials"
  refuses 2 'neither USER:PASSWORD nor a header' record --push "$url" --push-auth-file "$credentials" -- true
  refute grep -q secret "$BATS_TEST_TMPDIR/err"
}

@test "a certificate that no authority has signed is refused" {
  need openssl
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$folder/key" -out "$folder/certificate" 2>/dev/null
  /usr/bin/python3 -c 'import http.server, ssl, sys
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/certificate", sys.argv[1] + "/key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, file=open(sys.argv[1] + "/port", "w"), flush=True)
server.serve_forever()' "$folder" 2>/dev/null &
  programs+=($!)
  wait_for test -s "$folder/port"
  url=https://localhost:$(<"$folder/port")
  interval 1 9 | writes interval.1
  pushes -- true
  wait_for grep -q certificate "$said"
  ends
  grep -qE 'profiles sent to .*: 0; dropped: 2: .*certificate' "$said"
}

@test "record says what of --push is wrong before it samples" {
  local url=http://localhost:4040 folder=$BATS_TEST_TMPDIR/libraries
  refuses 2 'the URL to push to begins with http:// or https://' record --push localhost:4040 -- true
  refuses 2 'a password in the URL is seen by all users' record --push http://me:secret@localhost -- true
  refuses 2 'the URL to push to is that of the server, without a query' record --push "$url?x=1" -- true
  refuses 2 "a service has letters, digits and any of _.-/ in its name, not 'a b'" record --push "$url" --service 'a b' -- true
  refuses 2 '--every, --service and --push-auth-file are for --push' record --every 5 -- true
  refuses 2 'leave out --output, --format, --threads, --wall, --memory, --reverse and --title' record --push "$url" -o x -- true
  refuses 2 'leave out --output, --format, --threads' record --push "$url" -f folded -- true
  refuses 2 "the interval, in seconds, must be a number from 1 on, not '0'" record --push "$url" --every 0 -- true
  refuses 2 'name a process by -p PID, or a command behind --' record --push "$url" --all -- true
  refuses 2 'unknown option' top --push "$url" -- true
  mkdir "$folder"
  : >"$folder/libcurl.so.4"
  : >"$folder/libcurl-gnutls.so.4"
  LD_LIBRARY_PATH=$folder refuses 1 'libcurl, which sends profiles, cannot be loaded: .*: it is in libcurl3-gnutls' record --push "$url" -- true
  need gcc
  gcc -shared -o "$folder/libcurl.so.4" -x c /dev/null
  LD_LIBRARY_PATH=$folder refuses 1 'libcurl has no curl_global_init' record --push "$url" -- true
  [ ! -e "$BATS_TEST_TMPDIR/words" ]
}

@test "the numbers of libcurl are those of its header" {
  need gcc
  echo '#include <curl/curl.h>' >"$BATS_TEST_TMPDIR/numbers.c"
  gcc -fsyntax-only "$BATS_TEST_TMPDIR/numbers.c" 2>/dev/null || skip "needs curl/curl.h (Debian: libcurl4-gnutls-dev)"
  sed -nE 's/^ +(CURL[A-Z_]+) = ([0-9xA-F]+),?$/_Static_assert(\1 == \2, "");/p' "$top/probes/stap-python/profile/http.c" >>"$BATS_TEST_TMPDIR/numbers.c"
  cat >>"$BATS_TEST_TMPDIR/numbers.c" <<'C'
#include <stddef.h>
_Static_assert(offsetof(CURLMsg, data) == 2 * sizeof(void *) && offsetof(struct curl_waitfd, revents) == 6, "");
C
  [ "$(grep -c CURL "$BATS_TEST_TMPDIR/numbers.c")" -gt 15 ]
  gcc -fsyntax-only "$BATS_TEST_TMPDIR/numbers.c"
}

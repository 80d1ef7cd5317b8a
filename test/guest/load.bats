# Two scripts on a web server under load, with EVERY: a part of make check-load.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

@test "pycalls and pystat run on a busy web server, lose nothing and leave it as it was" {
  need_time "make check-load"
  need hey curl
  "$system" -c 'import flask, gunicorn.app.wsgiapp' || skip "needs python3-flask and gunicorn"
  timeout -k 5 $((580 * SLOW)) "$top/test/long/load/run" --seconds 8 --rate 1 pycalls pystat >"$printed" || {
    cat "$printed"
    return 1
  }
  cat "$printed"
  # 8 seconds of requests to each of them
  awk '/^py/ { if ($4 < 3) bad = 1; n++ } END { exit bad || n != 2 }' "$printed"
}

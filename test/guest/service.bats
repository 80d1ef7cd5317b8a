# A Django service traced from its start, whose own counts the script must print: a part of make check-service.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  scripts_setup
}

@test "pystacks tells of a Django service's functions what it counts itself" {
  need_time "make check-service"
  need curl
  "$system" -c 'import django, gunicorn' || skip "needs python3-django and gunicorn"
  STAP_TIMEOUT=900 timeout -k 5 1000 "$top/test/long/service/run" --requests 4 'pystacks:^with_sql$' >"$printed" || {
    cat "$printed"
    return 1
  }
  cat "$printed"
  # the thirteen functions
  awk '/^py/ { if ($4 != 13 || $5 != 0) bad = 1; n++ } END { exit bad || n != 1 }' "$printed"
}

# shellcheck shell=bash
# The web server of test/workloads/web.py under load: its clients, and what they were answered.
#
# SPDX-License-Identifier: MIT

# Six clients send requests to the server for so many seconds; their output is in the files OUT.0 to OUT.5.
# RATE: how many requests a second all of them send; '': as many as are answered.
# usage: web_load SECONDS PORT RATE OUT [HEY'S OPTIONS...]
web_load() {
  local client pages=(/ /orders /wait)
  for client in 0 1 2 3 4 5; do
    # -q is for each of its threads
    hey -z "$1s" -c 1 -t 30 ${3:+-q "$(awk -v rate="$3" 'BEGIN { print rate / 6 }')"} "${@:5}" \
      "http://127.0.0.1:$2${pages[client % 3]}" >"$4.$client" 2>&1 &
    sleep 0.2
  done
  wait
}

# From the clients' files $1.*: how many answers had status 200, how many had another or none, and the
# milliseconds that the fastest page took.
web_answers() {
  awk '
    / Fastest:/ && FILENAME ~ /[03]$/ && (!best || $2 < best) { best = $2 }
    /^  \[200\]/ { good += $2; next }
    /^  \[[0-9]+\]/ { bad += /responses/ ? $2 : substr($1, 2) }
    END { print good + 0, bad + 0, best * 1000 }' "$1".[0-5]
}

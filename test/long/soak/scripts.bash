# shellcheck shell=bash
# For test/long/soak/run, which has $folder, $seed, is_up(), in_guest() and fault(): scripts that come and go at random.
#
# SPDX-License-Identifier: MIT

mapfile -t scripts < <(cd "$top/scripts" && printf '%s\n' *.stp exporter/*.stp | sed 's/\.stp$//')
# The functions of pywatch are those that stap-python filter names; bpftrace 0.17 reads pytime by stap-python alone.
mapfile -t bpftrace_scripts < <(cd "$top/scripts/bpftrace" && printf '%s\n' *.bt | sed 's/\.bt$//; /^pywatch$/d; /^pytime$/d')

# What stap and bpftrace may report: symbols that are not installed, rows that are left out, that the other service has
# no shim, that nothing of the kind has happened so far, that bpftrace probes that marker already (probes/LIMITS.md).
allowed='Kernel function symbol table|No DWARF information found|similar warning messages|^Rerun with -v'
allowed+='|missing unwind/symbol data|are left out|ha(s|ve) no shim|not in the table|had begun before this script'
allowed+='|no request has ended|no ([a-z]+|call of a function that PATTERN names) was seen in 10 seconds|no step of a loop was seen'
allowed+='|registration error .*\(rc -22\)'

# Sets $pid to a worker of the service with the shim.
choose_worker() {
  until pid=$(in_guest worker $((RANDOM % 2))) && [ "$pid" ] || [ -e "$folder/over" ] || ! is_up; do sleep 1; done
}

# Runs one script with stap, chosen at random.
stap_at_random() {
  local out=$1 script words=() way=all target=() pid seconds=$((3 + RANDOM % 20)) said=0
  local patterns=('index listing wait' 'wsgi_app price total' '*/workloads/web.py:*' 'flask.app.*')
  script=${scripts[RANDOM % ${#scripts[@]}]}
  case $script in
    pydist | pyflow | pyline | pyrequest | pytrace | pywatch) way+=,pattern words=("${patterns[RANDOM % 4]}") ;;
    pyslow) way+=,pattern words=(20 "${patterns[RANDOM % 4]}") ;;
  esac
  # stap looks for the process of pysyscalls where it compiles the module, which is not in the guest
  if [ "$script" = pydump ] || { [ $((RANDOM % 2)) = 0 ] && [ "$script" != pysyscalls ]; }; then
    choose_worker
    way=${way/all/worker} target=(-x "$pid")
  fi
  stap -G soak_seconds="$seconds" \
    -E 'global soak_seconds = 10, soak_ran; probe timer.s(1) { if (++soak_ran >= soak_seconds) exit() }' \
    -o "$out.printed" "$top/scripts/$script.stp" "${words[@]}" "${target[@]}" >"$out.said" 2>&1 || said=$?
  note "$script" "$way" "$said" "$out"
}

# Runs one script with bpftrace, chosen at random.
bpftrace_at_random() {
  local out=$1 script way=bpftrace pid=0 said=0
  script=${bpftrace_scripts[RANDOM % ${#bpftrace_scripts[@]}]}
  if [ $((RANDOM % 2)) = 0 ]; then
    choose_worker
    way+=,worker
  fi
  in_guest trace $((3 + RANDOM % 20)) "$out" "$script" "$pid" || said=$?
  note "$script" "$way" "$said" "$out"
}

# Adds a line to $folder/scripts: a script, the way, its exit status, how many lines it printed, and its files.
note() {
  : >>"$4.printed"
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(wc -l <"$4.printed")" "$4" >>"$folder/scripts"
  rm -f "$4.printed"
}

# Runs one script after the other until the file $folder/over is there, or the guest has died.  Number 3 is bpftrace's.
# usage: lane NUMBER
lane() {
  local number
  RANDOM=$((seed + $1))
  for ((number = 0; ; number++)); do
    if [ -e "$folder/over" ] || ! is_up; then break; fi
    if [ "$1" = 3 ]; then bpftrace_at_random "$folder/$1-$number"; else stap_at_random "$folder/$1-$number"; fi
  done
}

# Reports which scripts failed or reported anything, of those that have ended since the last time: from line $checked
# on.
check_scripts() {
  local name way said out
  while IFS=$'\t' read -r name way said _ out; do
    if [ "$said" != 0 ] || grep -qvE "$allowed" "$out.said"; then
      fault "$name ($way) status $said: $(grep -vE "$allowed" "$out.said" | head -n 3 | tr '\n' ';')"
    fi
  done < <(tail -n +$((checked + 1)) "$folder/scripts")
  checked=$(wc -l <"$folder/scripts")
}

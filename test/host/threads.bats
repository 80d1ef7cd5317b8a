# Eight and more threads that call at the same time, in free-threaded builds on several processors: each call is reported
# once, and counted once.
#
# SPDX-License-Identifier: MIT

load ../lib/helper

setup() {
  can_bpftrace
  parallel=$top/test/workloads/parallel.py
}

# One interpreter with a GIL, and all free-threaded builds.
some_pythons() {
  pythons | with_minor | awk '$1 !~ /t$/ { python = $2 } END { if (python) print python }'
  free_threaded_pythons
}

# The lines of the bpftrace map $1, without its name.
map() {
  sed -n "s/^@$1//p" "$trace" | grep .
}

@test "each call of eight threads is reported, in its thread, and each is summed up" {
  local python
  for python in $(some_pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:function__entry /str(arg1) == \"shared\" || strncmp(\"own_\", str(arg1), 4) == 0/ { @entries[str(arg1), tid] = count(); @all_entries = count(); }
      usdt:$shim:python:function__return /str(arg1) == \"shared\" || strncmp(\"own_\", str(arg1), 4) == 0/ { @returns[str(arg1), tid] = count(); }
      usdt:$shim:python:cfunction__entry /str(arg1) == \"len\" && str(arg0) == \"$parallel\"/ { @len[tid] = count(); }
      usdt:$shim:python:function__count /str(arg1) == \"shared\"/ { @counted = sum(arg4); }
      usdt:$shim:python:function__summary /str(arg1) == \"shared\"/ { @summed = sum(arg4); }
      usdt:$shim:python:cfunction__count /str(arg0) == \"len\"/ { @len_counted = sum(arg2); }
      usdt:$shim:python:cfunction__summary /str(arg0) == \"len\"/ { @len_summed = sum(arg2); }" \
      env LD_PRELOAD="$shim" "$python" "$parallel" calls
    # of each thread two functions
    [ "$(map entries | grep -c ']: 5000$')" = 16 ]
    [ "$(map returns | grep -c ']: 5000$')" = 16 ]
    [ "$(map len | grep -c ']: 5000$')" = 8 ]
    grep -x '@all_entries: 80000' "$trace"
    grep -x '@counted: 40000' "$trace"
    grep -x '@summed: 40000' "$trace"
    [ "$(sed -n 's/^@len_counted: //p' "$trace")" -ge 40000 ]
    [ "$(sed -n 's/^@len_counted: //p' "$trace")" = "$(sed -n 's/^@len_summed: //p' "$trace")" ]
  done
}

@test "of more threads than a function has sums for, which share these, no call is lost" {
  local python
  for python in $(some_pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:function__count /str(arg1) == \"shared\"/ { @counted = sum(arg4); }
      usdt:$shim:python:function__summary /str(arg1) == \"shared\"/ { @summed = sum(arg4); }" \
      env LD_PRELOAD="$shim" "$python" "$parallel" many
    grep -x '@counted: 6000000' "$trace"
    grep -x '@summed: 6000000' "$trace"
  done
}

@test "functions that eight threads call for the first time at once are summed up whole" {
  local python map
  for python in $(some_pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:function__entry /strncmp(\"fresh_\", str(arg1), 6) == 0/ { @entries[str(arg1)] = count(); }
      usdt:$shim:python:function__count /strncmp(\"fresh_\", str(arg1), 6) == 0/ { @counted[str(arg1)] = sum(arg4); }
      usdt:$shim:python:function__summary /strncmp(\"fresh_\", str(arg1), 6) == 0/ { @summed[str(arg1)] = sum(arg4); }" \
      env LD_PRELOAD="$shim" "$python" "$parallel" first
    for map in entries counted summed; do
      [ "$(map "$map" | grep -c ']: 8$')" = 200 ]
    done
  done
}

@test "functions in C that eight threads call for the first time at once are summed up whole, and so are their ends" {
  local python map
  for python in $(some_pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:cfunction__count /strncmp(\"is\", str(arg0), 2) == 0/ { @counted[str(arg0)] = sum(arg2); }
      usdt:$shim:python:cfunction__summary /strncmp(\"is\", str(arg0), 2) == 0/ { @ended[str(arg0)] = sum(arg2); }" \
      env LD_PRELOAD="$shim" "$python" "$parallel" first_in_c
    # three of each name, of str, bytes and bytearray; the standard library calls some, too
    [ "$(map counted | grep -cE '^\[is(alnum|alpha|digit|lower|space|title|upper)\]: (2[4-9]|[3-9].|...)$')" = 7 ]
    [ "$(map counted | sort)" = "$(map ended | sort)" ]
  done
}

@test "a module's name that another thread changes is one that it had" {
  local python
  for python in $(some_pythons); do
    echo "$python"
    bpftrace_while "
      usdt:$shim:python:function__entry /str(arg1) == \"named\"/ { @entries[str(arg4)] = count(); @all_entries = count(); }" \
      env LD_PRELOAD="$shim" "$python" "$parallel" names
    grep -x '@all_entries: 35000' "$trace"
    refute grep -vxE '\[module_[0-9]+\]: [0-9]+' <(map entries)
    [ "$(map entries | wc -l)" -gt 1 ]
  done
}

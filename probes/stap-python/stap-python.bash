# bash completion for stap-python(8): commands, scripts, interpreters, and the PIDs of running Pythons.
#
# SPDX-License-Identifier: MIT
# shellcheck shell=bash

_stap_python() {
  local word=${COMP_WORDS[COMP_CWORD]} words='' program pid commands='run doctor list attach enable disable'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    # names only: what compgen -W is given, it expands
    words="$commands --help --version --list-scripts $("${COMP_WORDS[0]}" --list-scripts 2>/dev/null | grep -oE '^[A-Za-z0-9_-]+')"
  else
    case ${COMP_WORDS[1]} in
      list | attach)
        # the processes that run a python3
        for program in /proc/[0-9]*/exe; do
          pid=${program#/proc/}
          program=$(readlink "$program" 2>/dev/null) || continue
          [[ ${program##*/} != python3* ]] || words+=" ${pid%/exe}"
        done
        ;;&
      list | enable | disable)
        if [[ $word == */* ]]; then
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
        else
          mapfile -t COMPREPLY < <(compgen -c -- "$word" | grep -xE 'python3(\.[0-9]+t?)?' | sort -u)
        fi
        ;;
      py*)
        ((COMP_CWORD != 2)) || words=' --backend'
        [[ ${COMP_WORDS[COMP_CWORD - 1]} != --backend ]] || words=' bpftrace'
        ;;
      run)
        if ((COMP_CWORD == 2)); then
          mapfile -t COMPREPLY < <(compgen -c -- "$word")
        else
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
        ;;
    esac
    [ "$COMP_CWORD" != 2 ] || words+=' --help'
  fi
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _stap_python -o default stap-python

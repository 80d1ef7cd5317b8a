# bash completion for stap-python(8): commands, scripts, interpreters, and the PIDs of running Pythons.
#
# SPDX-License-Identifier: MIT
# shellcheck shell=bash

# Prints the PIDs of the processes whose program is called python3*.
_stap_python_pids() {
  local program pid
  for program in /proc/[0-9]*/exe; do
    pid=${program#/proc/}
    program=$(readlink "$program" 2>/dev/null) || continue
    [[ ${program##*/} != python3* ]] || echo "${pid%/exe}"
  done
}

# Prints NAME= for each line "-G NAME=VALUE" in the help of the script in the command line.
_stap_python_globals() {
  "${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -nE 's/^-G ([A-Za-z0-9_]+=).*/\1/p'
}

# Sets words to what may follow a script: stap's most common options, and --backend.
_stap_python_script() {
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    -x) words=$(_stap_python_pids) ;;
    -G)
      compopt -o nospace 2>/dev/null
      words=$(_stap_python_globals)
      ;;
    --backend) words='auto stap bpftrace' ;;
    "${COMP_WORDS[1]}") words='-c -G -x --backend' ;;
  esac
}

_stap_python() {
  local word=${COMP_WORDS[COMP_CWORD]} words='' commands='run doctor list attach detach ps filter record top dump diff enable disable precompile runtime'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    # only names of letters, digits, _ and -: compgen -W expands its words
    words="$commands help --help --version --list-scripts $("${COMP_WORDS[0]}" --list-scripts 2>/dev/null | grep -oE '^[A-Za-z0-9_-]+')"
  else
    case ${COMP_WORDS[1]} in
      list | attach | detach | filter) words=$(_stap_python_pids) ;;&
      enable | disable)
        if ((COMP_CWORD == 3)) && [[ ${COMP_WORDS[2]} == --service ]]; then
          words+=" $(systemctl list-unit-files --type=service --no-legend --no-pager 2>/dev/null | grep -oE '^[A-Za-z0-9:_.@-]+')"
          mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
          return
        fi
        words+=' --service'
        [ "${COMP_WORDS[1]}" = enable ] && words+=' --list' || words+=' --all'
        ;;&
      list | enable | disable)
        if [[ $word == */* ]]; then
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
        else
          mapfile -t COMPREPLY < <(compgen -c -- "$word" | grep -xE 'python3(\.[0-9]+t?)?' | sort -u)
        fi
        ;;
      run)
        if ((COMP_CWORD == 2)); then
          mapfile -t COMPREPLY < <(compgen -c -- "$word")
        else
          compopt -o filenames 2>/dev/null
          mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
        ;;
      help)
        words=$commands
        ;;
      record | top | dump)
        case ${COMP_WORDS[COMP_CWORD - 1]} in
          -p | --pid) words=$(_stap_python_pids) ;;
          *) words='--pid --name --children --all' && [ "${COMP_WORDS[1]}" != dump ] || words+=' --locals --json --depth' ;;
        esac
        case ${COMP_WORDS[1]}${COMP_WORDS[COMP_CWORD - 1]} in
          record-f | record--format) words='flamegraph folded html pprof raw sources speedscope svg' ;;
          record*) words+=' --rate --duration --output --format --native --threads --wall --memory --bytes --reverse --title --push --every --service --push-auth-file' ;;
          top*) words+=' --rate --duration' ;;
        esac
        ;;
      diff)
        case ${COMP_WORDS[COMP_CWORD - 1]} in
          -f | --format) words='folded json svg table' ;;
          *)
            words='--output --format'
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            ;;
        esac
        ;;
      doctor)
        [[ " ${COMP_WORDS[*]:2:COMP_CWORD-2} " == *' --fix '* ]] && words=--yes || words=--fix
        ;;
      attach | detach | ps) ;;
      *) _stap_python_script ;;
    esac
    case ${COMP_WORDS[1]} in
      attach | detach) words+=' --all --children --name' ;;
      ps) words+=' --json' ;;
    esac
    [ "$COMP_CWORD" != 2 ] || words+=' --help'
  fi
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _stap_python -o default stap-python

# shellcheck shell=bash
# Arms the shim without a tracer, by a library that raises the markers' semaphores.
#
# SPDX-License-Identifier: MIT

# The address of a marker's semaphore in a file.
semaphore() {
  readelf --wide --notes "$1" | awk -v marker="$2" '
    /Name: / { name = $2 }
    /Semaphore: / && name == marker { print $NF; exit }'
}

# The addresses of the semaphores of the markers that match the regular expression $1, with commas between.
semaphores_of() {
  readelf --wide --notes "$shim" | awk -v names="^($1)\$" '
    /Provider: / { is_python = $NF == "python" }
    /Name: / { name = $2 }
    /Semaphore: / && is_python && name ~ names { print $NF }' | sort -u | paste -sd,
}

# Makes semaphores.so in the folder $1.  Preloaded before the shim, it raises the semaphores of all markers, or of
# those that match the regular expression $2; with SEMAPHORES_TOGGLE=MS it raises and lowers them every MS.
make_semaphores() {
  "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -pthread \
    -o "$1/semaphores.so" "$top/test/long/memory/semaphores.c"
  SEMAPHORES=$(semaphores_of "${2:-.*}")
  export SEMAPHORES
}

# Makes the library, and puts it before the shim in $shim.
raise_semaphores() {
  make_semaphores "$@"
  shim="$1/semaphores.so $shim"
}

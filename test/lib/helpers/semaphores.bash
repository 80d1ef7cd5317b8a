# shellcheck shell=bash
# Arms the shim without a tracer, by a library that raises the markers' semaphores.
#
# SPDX-License-Identifier: MIT

# The semaphores in the ELF notes of a file, a line for each site: provider, name and address.
semaphore_notes() {
  readelf --wide --notes "$1" | awk '
    /Provider: / { provider = $NF }
    /Name: / { name = $2 }
    /Semaphore: / { print provider, name, $NF }'
}

# The address of a marker's semaphore in a file.
semaphore() {
  semaphore_notes "$1" | awk -v marker="$2" '$2 == marker && !count++ { print $3 }'
}

# The addresses of the semaphores of the markers that match the regular expression $1, with commas between.
semaphores_of() {
  semaphore_notes "$shim" | awk -v names="^($1)\$" '$1 == "python" && $2 ~ names { print $3 }' | sort -u | paste -sd,
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

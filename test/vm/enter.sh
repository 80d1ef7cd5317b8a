# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# In the guest: enters the working directory, and reads the environment, of the
# caller of test/vm/stap or `test/vm/guest exec` on the host. session and stapio
# source it, with $run set.

cwd=$(cat "$run/cwd")
# A folder outside of everything init has bound, say below /var.
if ! [ -d "$cwd" ] && [ -d "/ro$cwd" ]; then
  mkdir -p "$cwd" && mount --bind "/ro$cwd" "$cwd"
fi
cd "$cwd" || exit
# shellcheck disable=SC2034
mapfile -d '' environment <"$run/env"

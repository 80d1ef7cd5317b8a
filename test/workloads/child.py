# Forks a child, which makes 7 system calls in the function that it begins in, while its parent makes 13.
#
# SPDX-License-Identifier: MIT

import os


def forks():
    child = os.fork()
    for _ in range(13 if child else 7):
        os.getppid()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


forks()

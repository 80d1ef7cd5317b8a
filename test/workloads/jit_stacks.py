# Runs for ever, soon in code of CPython's JIT that writes no frame's instruction.  jit_walk.py reads in its memory where
# it is: the list has 1 while inner() runs between its first and its last line, and the variables have the number from the
# line on that set them.  Prints the address of the list once it does so.
#
# SPDX-License-Identifier: MIT

here = [0]


def inner(number, here):
    here[0] = 1
    first = number
    result = number + 7 + number + 3 + number - 3 - number + 15
    result = result + number + 7 + number + 3 + number - 3 - number + 15
    second = number
    result = number + 7 + number + 3 + number - 3 - number + 15
    result = result + number + 7 + number + 3 + number - 3 - number + 15
    here[0] = 0
    return result


def outer(turns, here):
    for number in range(turns):
        number = number & 127
        inner(number, here)


outer(100000, here)
print(id(here), flush=True)
while True:
    outer(1000000, here)

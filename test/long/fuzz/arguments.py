# arguments.py [--seconds N] [--found FOLDER] [CASE]: passes hostile arguments to the scripts, which stap must
# accept as text (also in regular expressions) or reject: nothing of them may become part of the script.
# And passes hostile words to the bash completion, which must not execute them.  Prints the number of inputs
# and so on as libFuzzer does.
#
# SPDX-License-Identifier: MIT
import argparse
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
# In most arguments; in the pass-2 output it may only be within strings.
CANARY = "canary_7f3a"
PIECES = (
    '"', '\\"', "\\\\", "\\", '\\\\"', "'", "\n", "\r", "\t", "%{ canary_7f3a(); %}", "%( canary_7f3a == 1 %?", "%:", "%)", "%}",
    "/*", "*/", "//", "#", "@1", "@2", "$1", "$2", "$#", "@#", "${1}", "*", "+", "?", "(", ")", "(((", "[", "]", "[^", "[z-a]", "{", "}",
    "|", "^", "$", ".", "\\0", "\\x22", "\\042", "\\n", "%d %s %n", "\u00e9", "\udce9", "\x1b[31m", "\x01", " ", "", "0", "-1", "1" * 9,
    "1" * 10, "9" * 40, "1.5", "0x10", "1e3", "cfunctions", "lines", "calls", "instances", '") } probe begin { canary_7f3a("',
    '"); system("touch canary_7f3a"); println("', "a" * 300, "a" * 5000, "(a|b)*" * 20, ";", "`touch canary_7f3a`", "$(touch canary_7f3a)",
    "-e", "-g", "--", "@define x %( canary_7f3a %)", "@cast(0, \"canary_7f3a\")->x", "__FILE__", "\u202e",
)
STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.S)


# A script whose argument is a regular expression.
REGEX = re.compile(r"[=!]~ @[0-9]")


def argument(dice):
    pieces = [dice.choice(PIECES) for _ in range(dice.choice((1, 1, 2, 3, 5)))]
    if dice.random() < 0.7:
        pieces.insert(dice.randrange(len(pieces) + 1), CANARY)
    return "".join(pieces).replace("\0", "")


def check_script(script, words):
    "The error, or None."
    with open(script) as file:
        if REGEX.search(file.read()):
            # Other characters crash stap 4.8 itself, and longer words take it minutes (scripts/README.md).
            words = [re.sub(r"[^\x01-\x7f]", ".", word)[:1000] for word in words]
    command = [os.path.join(TOP, "test/vm/stap"), "-p2", script, *words]
    # So that none of them is taken for an option of stap's.
    command[3:3] = ["--"] if words and words[0].startswith("-") else []
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200, errors="surrogateescape"
    )
    if done.returncode < 0 or done.returncode > 2:
        return "stap ends with %d: %s" % (done.returncode, done.stderr[-400:])
    if done.returncode:
        return None if re.search("error|:|usage", done.stderr) else "rejected without a message"
    outside = STRING.sub('""', done.stdout)
    if CANARY in outside:
        return "part of the script: " + outside[max(0, outside.index(CANARY) - 200) :][:400]
    return None


COMPLETE = r"""
source "$1"
shift
# A stand-in for bash-completion, without which it does what it can.
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
_stap_python stap-python "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
"""


def check_completion(words):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["bash", "-c", COMPLETE, "bash", os.path.join(TOP, "probes/stap-python/stap-python.bash"), "stap-python", *words],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            env=dict(os.environ, PATH=TOP + "/build:" + os.environ["PATH"]), errors="surrogateescape",
        )
        if os.listdir(folder):
            return "a word is executed"
        if done.returncode < 0:
            return "bash ends with %d" % done.returncode
    return None


def check(case):
    if case[0] == "completion":
        return check_completion(case[1:])
    return check_script(case[0], case[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--found", default=".")
    parser.add_argument("case", nargs="?")
    options = parser.parse_args()
    if options.case:
        with open(options.case) as file:
            what = check(json.load(file))
        sys.exit(what)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print("INFO: Seed: %d" % seed)
    dice = random.Random(seed)
    scripts = sorted(glob.glob(TOP + "/scripts/*.stp") + glob.glob(TOP + "/scripts/exporter/*.stp"))
    scripts = [script for script in scripts if re.search(r"[@$][0-9#]", open(script).read())]
    end = time.monotonic() + options.seconds
    inputs, seen = 0, set()
    while time.monotonic() < end:
        if inputs % 4 == 3:
            case = ["completion", dice.choice(("run", "list", "pyflow", argument(dice))), *[argument(dice) for _ in range(dice.randrange(3))]]
        else:
            case = [dice.choice(scripts), *[argument(dice) for _ in range(dice.choice((1, 1, 1, 2)))]]
        inputs += 1
        try:
            what = check(case)
        except subprocess.TimeoutExpired:
            what = "it takes too long"
        seen.add(case[0])
        if what:
            path = os.path.join(options.found, "arguments-%08x.json" % (hash(str(case)) & 0xFFFFFFFF))
            with open(path, "w") as file:
                json.dump(case, file)
            print("fuzz: %s" % what)
            print("Test unit written to %s" % path)
            sys.exit(1)
    print("DONE cov: %d" % len(seen))
    print("stat::number_of_executed_units: %d" % inputs)


main()

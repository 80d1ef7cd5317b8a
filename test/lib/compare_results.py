# Runs suites of tests without the shim and with it, and finds the tests whose results differ.  For
# test/long/cpython/compare.py and test/long/projects/compare.py.  A test
#
#   varies              if its results without the shim are not all the same
#   is expected to      if a list of expected differences has it
#   differs with any tool   if its other results with the shim are also those with another tool
#   differs             if more than one of its results with the shim are others than without
#   differs once        if one of its results with the shim is another than without
#
# SPDX-License-Identifier: MIT
import collections
import fnmatch
import os
import signal
import subprocess
import xml.etree.ElementTree as ET


running = set()


def kill():
    "Ends what run() has started and waits for, in any thread; only for a program that then ends."
    for process in list(running):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(command, base, way, timeout):
    """Runs a command in one of the ways plain, shim, ..., with what it prints in the file BASE.log: with
    what the environment variable of that name has preloaded, but plain.

    Returns its exit status, or a text that says that it didn't end.
    """
    environment = dict(os.environ)
    if way != "plain":
        environment["LD_PRELOAD"] = os.environ[way]
    os.makedirs(base, exist_ok=True)
    with open(base + ".log", "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=base,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.add(process)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = "no end in %d s" % timeout
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what the suite left behind
        except ProcessLookupError:
            pass
        process.wait()
        running.remove(process)
    return status


def read_xml(path, name_of):
    "{test: [result, ...]} of a JUnit XML file; a test has several results where its parts have the same name."
    results = collections.defaultdict(list)
    for case in ET.parse(path).iter("testcase"):
        outcome = "ok"
        for tag in "failure", "error", "skipped", "output":
            if case.find(tag) is not None:
                outcome = {"output": "expected failure"}.get(tag, tag)
        if case.get("name"):  # it has none if a part of the test failed
            results[name_of(case)].append(outcome)
    return results


def joined(results):
    return {test: " ".join(sorted(outcomes)) for test, outcomes in results.items()}


def differences(plain, shimmed):
    return sorted(key for key in {*plain, *shimmed} if plain.get(key) != shimmed.get(key))


def verdict(test, plains, shimmeds, controls, expected):
    "One of the words above, and the results seen; expected has pairs of a pattern and a reason."
    without, with_it, beside = [[run.get(test, "absent") for run in runs] for runs in (plains, shimmeds, controls)]
    other = [result for result in with_it if result != without[0]]
    shown = "%s; with the shim %s (%d of %d)" % (
        ", ".join(sorted({*without})),
        ", ".join(sorted({*other})),
        len(other),
        len(with_it),
    )
    if len({*without}) > 1:
        return "varies", shown
    for pattern, reason in expected:
        if fnmatch.fnmatchcase(test, pattern):
            return "expected", shown + ": " + reason
    if beside and {*other} <= {*beside}:
        return "differs with any tool", shown
    return ("differs" if len(other) > 1 else "differs once"), shown


def read_list(path):
    "The lines of a list of expected differences, as [first word, pattern, reason]."
    with open(path) as lines:
        return [line.strip().split(None, 2) for line in lines if line.strip() and not line.startswith("#")]

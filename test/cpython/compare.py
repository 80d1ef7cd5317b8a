# compare.py FOLDER PYTHON SUITE...: runs suites of CPython's own tests (python -m test) in PYTHON
# without the shim and with it, two at a time, and says in which tests the results differ.  Whoever
# calls it (test/cpython/run) sees to it that a tracer probes the shim meanwhile.
#
# A suite is test_NAME, or test_NAME:PATTERN for the tests of it that match.  What it printed and
# its results as XML are left in FOLDER.  A suite with a difference is run three times more, both
# ways; from 3.12 on it is also run beside a tool that is not the shim (control.py).  A test
#
#   differs             if its results without the shim are all the same, and with it something else
#                       more than once
#   differs once        if that is once in four times
#   varies              if its results without the shim are not all the same
#   differs with any tool   if its results beside the other tool are those with the shim
#   is expected to      if expected.list says so
#
# The exit status is 1 if a test differs, in the first of these meanings.
#
# SPDX-License-Identifier: MIT
import collections
import concurrent.futures
import fnmatch
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 200
REPEATS = 3


def run(python, suite, way, base):
    "Runs a suite in one of the ways plain, shim, control; returns {test: result}."
    name, _, pattern = suite.partition(":")
    xml = base + ".xml"
    command = [python] + ([os.path.join(HERE, "control.py")] if way == "control" else ["-m", "test"])
    command += ["-v", "--junit-xml", xml]
    if pattern:
        command += ["-m", pattern]
    if name == "test_monitoring":
        command += ["--testdir", HERE, name + "_beside"]
    else:
        command.append(name)
    environment = dict(os.environ)
    if way == "shim":
        environment["LD_PRELOAD"] = os.environ["shim"]
    os.makedirs(base, exist_ok=True)
    if os.path.exists(xml):
        os.remove(xml)
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
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            status = "no end in %d s" % TIMEOUT
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what the suite left behind
        except ProcessLookupError:
            pass
        process.wait()
    with open(base + ".log", errors="replace") as log:
        return read_results(name, xml, log.read(), status)


def read_results(name, xml, log, status):
    results = collections.defaultdict(list)
    if os.path.exists(xml):
        for case in ET.parse(xml).iter("testcase"):
            outcome = "ok"
            for tag in "failure", "error", "skipped", "output":
                if case.find(tag) is not None:
                    outcome = {"output": "expected failure"}.get(tag, tag)
            if case.get("name"):  # not where a part of the test failed
                results[case.get("name")].append(outcome)
    else:
        status = "%s, in %s" % (status, last_test(log))
    # A suite ends with 0, or with what regrtest gives for failed tests; the tests tell of those.
    if not os.path.exists(xml) or not isinstance(status, int) or status < 0:
        results[name + " (end)"].append("exit status %s" % status)
    else:
        results[name + " (end)"].append("ok")
    # Not in the XML: parts of a test (subTest), setUpClass() and the like.
    for kind, test, place, part in re.findall(r"^(FAIL|ERROR): (\w+) \(([\w.]+)\)(.*)$", log, re.M):
        key = place if place.endswith("." + test) else place + "." + test
        part = re.sub(r"0x[0-9a-f]+", "0x...", part)
        if part or key not in results:
            results[key + part].append({"FAIL": "failure", "ERROR": "error"}[kind])
    for warning in re.findall(r"^Warning -- (.* was modified) by", log, re.M):
        results[name + " (end): " + warning] = ["yes"]
    return {key: " ".join(sorted(value)) for key, value in results.items()}


def last_test(log):
    tests = re.findall(r"^(\w+ \([\w.]+\))", log, re.M)
    return tests[-1] if tests else "no test"


def differences(plain, shimmed):
    return sorted(key for key in {*plain, *shimmed} if plain.get(key) != shimmed.get(key))


def verdict(test, plains, shimmeds, controls):
    "One of the words above, and what was seen."
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
    if beside and {*other} <= {*beside}:
        return "differs with any tool", shown
    return ("differs" if len(other) > 1 else "differs once"), shown


def read_expected(version):
    "[(pattern, reason)] of expected.list for a version."
    expected = []
    with open(os.path.join(HERE, "expected.list")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                versions, pattern, reason = line.split(None, 2)
                first, _, last = versions.partition("-")
                if number(first) <= version <= number(last or first):
                    expected.append((pattern, reason.strip()))
    return expected


def number(version):
    return tuple(map(int, version.split(".")))


def main():
    folder, python, *suites = sys.argv[1:]
    print_version = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = number(subprocess.check_output([python, "-c", print_version], text=True))
    expected = read_expected(version)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=2)

    def start(suite, way, numbers):
        base = os.path.join(folder, re.sub(r"\W+", "_", suite) + "." + way)
        return [pool.submit(run, python, suite, way, "%s.%d" % (base, number)) for number in numbers]

    def results(futures):
        return [future.result() for future in futures]

    first = {suite: [start(suite, way, [0]) for way in ("plain", "shim")] for suite in suites}
    counts = collections.Counter()
    again = {}
    for suite in suites:
        plain, shimmed = [results(futures)[0] for futures in first[suite]]
        different = differences(plain, shimmed)
        counts["the same"] += len({*plain, *shimmed}) - len(different)
        if different:
            ways = [start(suite, way, range(1, 1 + REPEATS)) for way in ("plain", "shim")]
            again[suite] = different, plain, shimmed, ways, start(suite, "control", [0, 1] if version >= (3, 12) else [])
    for suite, (different, plain, shimmed, ways, controls) in again.items():
        plains, shimmeds = [[first] + results(futures) for first, futures in zip((plain, shimmed), ways)]
        controls = results(controls)
        for test in different:
            word, shown = verdict(test, plains, shimmeds, controls)
            reasons = [reason for pattern, reason in expected if fnmatch.fnmatchcase(test, pattern)]
            if reasons and word.startswith("differs"):
                word = "expected"
                shown += ": " + reasons[0]
            counts[word] += 1
            print("  %s: %s: %s" % (word, test, shown))
    print("%s: %s" % (python, ", ".join("%d %s" % (n, word) for word, n in counts.items())), flush=True)
    sys.exit(counts["differs"] > 0)


if __name__ == "__main__":
    main()

# compare.py FOLDER PYTHON SUITE...: runs suites of CPython's own tests (python -m test) in PYTHON
# without the shim and with it, two at a time, and says in which tests the results differ.  Whoever
# calls it (test/cpython/run) sees to it that a tracer probes the shim meanwhile.
#
# A suite is test_NAME, or test_NAME:PATTERN for the tests of it that match.  What it printed and
# its results as XML are left in FOLDER.  A suite with a difference is run three times more, both
# ways; from 3.12 on it is also run beside a tool that is not the shim (control.py).  What is then
# said of a test: both_ways.py; what is expected: expected.list.
#
# The exit status is 1 if a test differs more than once.
#
# SPDX-License-Identifier: MIT
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
import both_ways  # noqa: E402

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
    if os.path.exists(xml):
        os.remove(xml)
    status = both_ways.run(command, base, way, TIMEOUT)
    with open(base + ".log", errors="replace") as log:
        return read_results(name, xml, log.read(), status)


def read_results(name, xml, log, status):
    results = collections.defaultdict(list)
    if os.path.exists(xml):
        results = both_ways.read_xml(xml, lambda case: case.get("name"))
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
    return both_ways.joined(results)


def last_test(log):
    tests = re.findall(r"^(\w+ \([\w.]+\))", log, re.M)
    return tests[-1] if tests else "no test"


def read_expected(version):
    "[(pattern, reason)] of expected.list for a version."
    expected = []
    for versions, pattern, reason in both_ways.read_list(os.path.join(HERE, "expected.list")):
        first, _, last = versions.partition("-")
        if number(first) <= version <= number(last or first):
            expected.append((pattern, reason))
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
        different = both_ways.differences(plain, shimmed)
        counts["the same"] += len({*plain, *shimmed}) - len(different)
        if different:
            ways = [start(suite, way, range(1, 1 + REPEATS)) for way in ("plain", "shim")]
            again[suite] = different, plain, shimmed, ways, start(suite, "control", [0, 1] if version >= (3, 12) else [])
    for suite, (different, plain, shimmed, ways, controls) in again.items():
        plains, shimmeds = [[first] + results(futures) for first, futures in zip((plain, shimmed), ways)]
        controls = results(controls)
        for test in different:
            word, shown = both_ways.verdict(test, plains, shimmeds, controls, expected)
            counts[word] += 1
            print("  %s: %s: %s" % (word, test, shown))
    print("%s: %s" % (python, ", ".join("%d %s" % (n, word) for word, n in counts.items())), flush=True)
    sys.exit(counts["differs"] > 0)


if __name__ == "__main__":
    main()

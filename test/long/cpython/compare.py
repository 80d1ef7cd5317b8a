# compare.py [--limit S] [--continue] FOLDER PYTHON SUITE...: runs test files of CPython's own (python -m test) in
# PYTHON without the shim and with it, two at a time, and lists the tests whose results differ.  Its
# caller, test/long/cpython/run, has a tracer probe the shim meanwhile, and sets $shim and $control.
#
# A suite is test_NAME, or test_NAME:PATTERN for those of its tests that match.  A suite that does not
# end within S seconds without the shim is named and left out.  A suite with a difference that is not
# expected is run again, both ways; from 3.12 on it is also run beside a tool that is not the shim
# (control.c).  compare_results.py has the verdicts, expected.list the expected differences.
#
# The output and the results of each run stay in FOLDER.  A complete earlier run without the shim is
# not repeated; with --continue also none with the same shim.
#
# The exit status is 1 if a test differs more than once.
#
# SPDX-License-Identifier: MIT
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../lib"))
import compare_results  # noqa: E402

# How much longer than without the shim a suite may take with all markers probed, beside the limit: only one that hangs
# takes longer, also if other programs have the processors meanwhile.
SLOWER = 200
# What takes longer than this with the shim is run again once, other suites three times.
LONG = 60


class Suites:
    "The test files of one interpreter."

    def __init__(self, folder, python, limit, kept_ways):
        self.folder, self.python, self.limit, self.kept_ways = folder, python, limit, kept_ways
        code = "import os, sys; print('%d.%d' % sys.version_info[:2]); print(sys.version, os.stat(sys.executable).st_mtime)"
        version, self.build = subprocess.check_output([python, "-c", code], text=True).split("\n", 1)
        self.version = number(version)
        self.expected = read_expected(self.version)

    def run(self, suite, way, count, limit):
        "Runs a suite in one of the ways plain, shim, control; returns {test: result} and the seconds it took."
        name, _, pattern = suite.partition(":")
        base = os.path.join(self.folder, "%s.%s.%d" % (re.sub(r"[^\w.]+", "_", suite), way, count))
        libraries = "" if way == "plain" else os.environ[way]
        of = [os.path.realpath(self.python), self.build, libraries, libraries and os.stat(libraries.split()[-1]).st_mtime]
        try:
            with open(base + ".json") as kept:
                run = json.load(kept)
            if run["of"] == of and run["seconds"] <= limit and way in self.kept_ways:
                return run["results"], run["seconds"]
        except FileNotFoundError:
            pass
        xml = base + ".xml"
        for old in xml, base + ".json":
            if os.path.exists(old):
                os.remove(old)
        command = [self.python, "-m", "test", "-v", "--junit-xml", xml]
        if pattern:
            command += ["-m", pattern]
        for test, reason in self.expected:
            if reason.startswith("hangs: "):
                command += ["-i", test]
        if name == "test_monitoring":
            command += ["--testdir", HERE, name + "_beside"]
        else:
            command.append(name)
        began = time.monotonic()
        status = compare_results.run(command, base, way, limit)
        seconds = time.monotonic() - began
        shutil.rmtree(base, ignore_errors=True)
        with open(base + ".log", errors="replace") as log:
            results = read_results(name, xml, log.read(), status)
        if isinstance(status, int):  # it had the time
            with open(base + ".json", "w") as kept:
                json.dump({"of": of, "results": results, "seconds": seconds}, kept)
        return results, seconds

    def compare(self, suite):
        "Returns the lines to print of a suite, and how many of its tests have come out how."
        plain, seconds = self.run(suite, "plain", 0, self.limit)
        end = "%s (end)" % suite.partition(":")[0]
        if plain[end] != "ok":
            return ["%s: left out: %s without the shim" % (suite, plain[end])], {"left out": 1}
        limit = 10 * math.ceil((self.limit + SLOWER * seconds) / 10)
        shimmed, shim_seconds = self.run(suite, "shim", 0, limit)
        different = compare_results.differences(plain, shimmed)
        counts = collections.Counter()
        counts["the same"] = len({*plain, *shimmed}) - len(different)
        plains, shimmeds, controls = [plain], [shimmed], []
        if not all(any(fnmatch.fnmatchcase(test, pattern) for pattern, _ in self.expected) for test in different):
            for count in range(1, 2 if shim_seconds > LONG else 4):
                plains.append(self.run(suite, "plain", count, self.limit)[0])
                shimmeds.append(self.run(suite, "shim", count, limit)[0])
            if self.version >= (3, 12):
                controls = [self.run(suite, "control", count, limit)[0] for count in (0, 1)]
        lines = ["%s: %d the same; %.0f s, with the shim %.0f s" % (suite, counts["the same"], seconds, shim_seconds)]
        failed = [test for test, result in plain.items() if re.search("failure$|error", result) and test not in different]
        lines += ["  fails without the shim too: " + test for test in failed]
        for test in different:
            word, shown = compare_results.verdict(test, plains, shimmeds, controls, self.expected)
            counts[word] += 1
            lines.append("  %s: %s: %s" % (word, test, shown))
        return lines, counts


def read_results(name, xml, log, status):
    results = collections.defaultdict(list)
    if os.path.exists(xml):
        results = compare_results.read_xml(xml, lambda case: case.get("name"))
    # A suite ends with 0, or with regrtest's status for failed tests, which the results name.
    if os.path.exists(xml) and isinstance(status, int) and status >= 0:
        results[name + " (end)"].append("ok")
    else:
        skipped = re.search(r"^\S+ (skipped -- .*)$", log, re.M)
        if isinstance(status, int):
            status = "exit status %d" % status
        results[name + " (end)"].append(skipped.group(1) if skipped else "%s, in %s" % (status, last_test(log)))
    # Not in the XML: parts of a test (subTest), setUpClass() and the like.
    for kind, test, place, part in re.findall(r"^(FAIL|ERROR): (\w+) \(([\w.]+)\)(.*)$", log, re.M):
        key = place if place.endswith("." + test) else place + "." + test
        part = re.sub(r"0x[0-9a-f]+", "0x...", part)
        if part or key not in results:
            results[key + part].append({"FAIL": "failure", "ERROR": "error"}[kind])
    for warning in re.findall(r"^Warning -- (.* was modified) by", log, re.M):
        results[name + " (end): " + warning] = ["yes"]
    return compare_results.joined(results)


def last_test(log):
    tests = re.findall(r"^(\w+ \([\w.]+\))", log, re.M)
    return tests[-1] if tests else "no test"


def read_expected(version):
    "[(pattern, reason)] of expected.list for a version."
    expected = []
    for versions, pattern, reason in compare_results.read_list(os.path.join(HERE, "expected.list")):
        first, _, last = versions.partition("-")
        if number(first) <= version <= number(last or first):
            expected.append((pattern, reason))
    return expected


def number(version):
    return tuple(map(int, version.split(".")))


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--continue", action="store_true", dest="go_on")
    parser.add_argument("folder")
    parser.add_argument("python")
    parser.add_argument("suites", nargs="+")
    options = parser.parse_args()
    kept_ways = ["plain", "shim", "control"] if options.go_on else ["plain"]
    suites = Suites(options.folder, options.python, options.limit, kept_ways)
    counts = collections.Counter()
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=2)
    try:
        for future in concurrent.futures.as_completed([pool.submit(suites.compare, suite) for suite in options.suites]):
            lines, found = future.result()
            counts.update(found)
            print("\n".join(lines), flush=True)
    except BaseException:
        compare_results.kill()
        os._exit(1)
    print("%s: %s" % (options.python, ", ".join("%d %s" % (n, word) for word, n in counts.items())), flush=True)
    sys.exit(counts["differs"] > 0)


if __name__ == "__main__":
    main()

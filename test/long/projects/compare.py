# compare.py [OPTION...] FOLDER ROOT NAME[@PYTHON]...: runs the tests of projects (suite) plainly and
# with the shim, two runs at a time, and lists the tests whose results differ.  Its caller,
# test/long/projects/run, has the shim's markers armed meanwhile.
#
# The output of each run and its results as XML stay in FOLDER.  A project with a difference that is
# not expected is run twice more, both ways.  compare_results.py has the verdicts, expected.list the expected
# differences.
#
# The exit status is 1 if a test differs more than once.
#
# SPDX-License-Identifier: MIT
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../lib"))
import compare_results  # noqa: E402

SUITE = os.path.join(HERE, "suite")


def test_name(case):
    "What is of this run only is left out."
    name = "%s.%s" % (case.get("classname"), case.get("name"))
    return re.sub(r"/tmp/p\.\w+", "/tmp/p", re.sub(r"0x[0-9a-f]+", "0x...", name))


def run(options, project, way, base):
    "Runs a project's tests in one of the ways plain, shim; returns {test: result} and the seconds it took."
    xml = base + ".xml"
    if os.path.exists(xml):
        os.remove(xml)
    name, _, python = project.partition("@")
    command = [SUITE] + ["--whole"] * options.whole + [name, xml] + [python] * bool(python)
    if not python:
        command = ["chroot", options.root] + command
    began = time.monotonic()
    status = compare_results.run(command, base, way, options.timeout)
    seconds = time.monotonic() - began
    try:
        results = compare_results.read_xml(xml, test_name)
        if status in (0, 1):
            status = "ok"
    except (OSError, ET.ParseError):
        results = collections.defaultdict(list)
    results["(end)"].append(str(status))
    return compare_results.joined(results), seconds


def version(options, name):
    package = subprocess.check_output([SUITE, "--list"], text=True)
    package = re.search(r"^%s \S+ ([^,\n]+)" % name, package, re.M).group(1)
    return subprocess.check_output(
        ["chroot", options.root, "dpkg-query", "-W", "-f", "${Version}", package], text=True
    ).split(":")[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("root")
    parser.add_argument("projects", nargs="+")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--missing", metavar="NAMES", help="what else the summary names")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    expected = compare_results.read_list(os.path.join(HERE, "expected.list"))
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=2)
    total = collections.Counter()

    def start(project, way, numbers):
        base = os.path.join(options.folder, "%s.%s" % (re.sub(r"[^\w@.]+", "_", project), way))
        return [pool.submit(run, options, project, way, "%s.%d" % (base, number)) for number in numbers]

    first = {project: [start(project, way, [0])[0] for way in ("plain", "shim")] for project in options.projects}
    for project, futures in first.items():
        (plain, plain_seconds), (shimmed, shim_seconds) = [future.result() for future in futures]
        different = compare_results.differences(plain, shimmed)
        counts = collections.Counter()
        ours = [(pattern, reason) for name, pattern, reason in expected if name == project.partition("@")[0]]
        plains, shimmeds = [plain], [shimmed]
        if not all(any(fnmatch.fnmatchcase(test, pattern) for pattern, _ in ours) for test in different):
            again = [start(project, way, range(1, 1 + options.repeats)) for way in ("plain", "shim")]
            for results, futures in zip((plains, shimmeds), again):
                results += [future.result()[0] for future in futures]
        for test in different:
            word, shown = compare_results.verdict(test, plains, shimmeds, [], ours)
            counts[word] += 1
            print("  %s: %s: %s: %s" % (word, project, test, shown))
        name, _, python = project.partition("@")
        outcomes = collections.Counter()
        for test, result in shimmed.items():
            if test != "(end)":
                outcomes.update({"error": "failure"}.get(word, word) for word in re.findall("expected failure|\\w+", result))
        print(
            "%s %s%s: %d tests, %d passed, %d failed, %d skipped; %.0f s, with the shim %.0f s; %s"
            % (
                name,
                version(options, name),
                python and " in " + python,
                sum(outcomes.values()),
                outcomes["ok"] + outcomes["expected failure"],
                outcomes["failure"],
                outcomes["skipped"],
                plain_seconds,
                shim_seconds,
                ", ".join("%d %s" % (n, word) for word, n in counts.items()) or "no difference",
            ),
            flush=True,
        )
        total["tests"] += sum(outcomes.values())
        total["differences"] += counts["differs"]
        if not outcomes:
            print("  no results: see %s" % options.folder)
            total["differences"] += 1
    names = {project.partition("@")[0] for project in options.projects}
    summary = "%d projects, %d tests, %d differences" % (len(names), total["tests"], total["differences"])
    print(summary + (", could not be fetched: " + options.missing if options.missing else ""))
    sys.exit(total["differences"] > 0)


if __name__ == "__main__":
    main()

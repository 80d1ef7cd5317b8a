# Prints what the documents (*.md) below a folder name and does not exist, a line each; exits with 1 if there
# is any.  For test/fast/documents.bats and test/long/packages/build.bats.
#
# usage: test/lib/documents.py links FOLDER   relative links, and their anchors
#        test/lib/documents.py names FOLDER   in code: paths of the tree, and targets of "make"
#
# SPDX-License-Identifier: MIT

import glob
import os
import re
import subprocess
import sys

FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
CODE = re.compile(r"(`+)((?:(?!\n\n).)+?)\1", re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
PATH = re.compile(r"[\w-][\w.-]*(/[\w.*-]+)*/?")
TREE_PATH = re.compile(r"(?<![\w/.$~-])((?:probes|tapset|scripts|test|packaging)/[\w./*-]*)")
MAKE = re.compile(r"\bmake((?: +(?:\w+=(?:\"[^\"]*\"|'[^']*'|\S*)|[a-z][\w-]*))+)")


def documents(folder):
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {".git", "build"})
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.join(place, name)


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blank(match):
    """The same lines, with nothing in them."""
    return re.sub(r"[^\n]", " ", match.group())


def anchors(path):
    """Those of the headings, as GitHub and GitLab make them."""
    found = set()
    for heading in HEADING.findall(FENCE.sub(blank, text_of(path))):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(next(name for name in [anchor] + ["%s-%d" % (anchor, n) for n in range(1, 99)] if name not in found))
    return found


def broken_links(path):
    text = CODE.sub(blank, FENCE.sub(blank, text_of(path)))
    for match in LINK.finditer(text):
        file, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", file):
            continue
        target = os.path.join(os.path.dirname(path), file) if file else path
        if not os.path.exists(target) or (anchor and anchor not in anchors(target)):
            yield text.count("\n", 0, match.start()) + 1, match.group(1)


def code_of(path):
    """Each piece of code, in backticks or fences: its line, itself, and the paths in it."""
    text = text_of(path)
    for match in FENCE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(), TREE_PATH.findall(match.group())
    text = FENCE.sub(blank, text)
    for match in CODE.finditer(text):
        code = match.group(2).replace("\n", " ")
        words = (word.rstrip(".:") for word in re.split(r"[\s'\"=|,()]+", code))
        yield text.count("\n", 0, match.start()) + 1, code, [w for w in words if "/" in w and PATH.fullmatch(w)]


def missing_names(path, folder, targets):
    for line, code, paths in code_of(path):
        for name in paths:
            places = (os.path.join(base, name.replace("NAME", "*")) for base in (folder, os.path.dirname(path)))
            if not name.startswith("build/") and not any(map(glob.glob, places)):
                yield line, name
        for words in MAKE.findall(code):
            for target in words.split():
                if re.fullmatch(r"[a-z][a-z-]*", target) and target not in targets:
                    yield line, "make " + target


def make_targets(folder):
    database = subprocess.run(["make", "-C", folder, "-pRrq", "help"], stdout=subprocess.PIPE, universal_newlines=True)
    return set(re.findall(r"^([a-z][a-z-]*):", database.stdout, re.M))


def main(what, folder):
    targets = make_targets(folder) if what == "names" else None
    broken = False
    for path in documents(folder):
        for line, name in missing_names(path, folder, targets) if what == "names" else broken_links(path):
            print("%s:%d: %s" % (os.path.relpath(path, folder), line, name))
            broken = True
    return broken


sys.exit(main(*sys.argv[1:]))

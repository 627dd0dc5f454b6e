#!/usr/bin/env python3
"""Checks documents: prose has at most 120 columns, the README of the tree at most 150 lines, and a test that a document
names is there.

  documents.py FILE...

Tables, code and lines that are one link may be longer. Pages that begin with "<!-- Written by" come from a command.
"""

import pathlib
import re
import sys

MOST_COLUMNS = 120
MOST_LINES = {"README.md": 150}
NAMED = re.compile(r"\bTest[A-Z]\w+")


def problems(name, text, tests):
    """One line for each fault of a document; `tests` are the names of all tests."""
    found, in_code = [], False
    written = text.startswith("<!-- Written by")
    for number, line in enumerate(text.splitlines(), 1):
        found += [f"{name}:{number}: there is no test {test}" for test in NAMED.findall(line) if test not in tests]
        if line.startswith("```"):
            in_code = not in_code
            continue
        free = in_code or written or line.startswith(("|", "    ", "<!--")) or " " not in line.strip("-*. ")
        if len(line) > MOST_COLUMNS and not free:
            found.append(f"{name}:{number}: {len(line)} columns, at most {MOST_COLUMNS} are read")
    lines = len(text.splitlines())
    if lines > MOST_LINES.get(name, lines):
        found.append(f"{name}: {lines} lines, at most {MOST_LINES[name]} are read")
    return found


def names_of_tests(root):
    """The names of Go tests and of test suites in C++."""
    found = set()
    for pattern, expression in (("*_test.go", r"(?m)^func (Test\w+)\("), ("*_test.cc", r"(?m)^TEST(?:_[FP])?\((\w+),")):
        for top in ("shim", "test", "tools"):
            for path in (root / top).rglob(pattern):
                found.update(re.findall(expression, path.read_text(encoding="utf-8", errors="replace")))
    return found


def main(paths):
    tests = names_of_tests(pathlib.Path("."))
    found = []
    for path in paths:
        found += problems(path, pathlib.Path(path).read_text(encoding="utf-8"), tests)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

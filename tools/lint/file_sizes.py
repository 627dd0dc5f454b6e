#!/usr/bin/env python3
"""Checks that sources stay short enough to be read in one sitting, and narrow enough for one screen.

  file_sizes.py FILE...

Tests, whose tables may run long, and generated code do not count. Nor do the tags of Go's struct fields, which cannot
be broken, and the lines of a Makefile that say what a target does.
"""

import re
import sys

MOST_LINES, MOST_COLUMNS = 400, 120
SOURCE = re.compile(r"\.(cc|h|go|py|sh|cmake|proto)$|(^|/)(CMakeLists\.txt|Makefile)$")
EXEMPT = re.compile(r"_test\.(cc|go|py)$|\.pb\.go$")
UNBREAKABLE = re.compile(r'`json:"[^`]*`$|^[\w-]+:.* ## ')


def problems(name, text):
    """One line for each fault of a file of that name."""
    if not SOURCE.search(name) or EXEMPT.search(name):
        return []
    lines = text.splitlines()
    found = [f"{name}:{number}: {len(line)} columns, at most {MOST_COLUMNS} are read"
             for number, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS and not UNBREAKABLE.search(line)]
    if len(lines) > MOST_LINES:
        found.append(f"{name}: {len(lines)} lines; more than {MOST_LINES} are too many, split it")
    return found


def main(paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            found += problems(path, file.read())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

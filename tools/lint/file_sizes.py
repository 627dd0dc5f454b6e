#!/usr/bin/env python3
"""Checks that sources stay short enough to be read in one sitting.

  file_sizes.py FILE...

Above 500 lines a file is named, above 700 it is refused. Tests, whose tables may run long, and generated code
do not count.
"""

import re
import sys

WARN, REFUSE = 500, 700
SOURCE = re.compile(r"\.(cc|h|go|py|sh|cmake|proto)$|(^|/)(CMakeLists\.txt|Makefile)$")
EXEMPT = re.compile(r"_test\.(cc|go|py)$|\.pb\.go$")


def check(name, lines):
    """(refused, text) of a file of that many lines; None when there is nothing to say."""
    if not SOURCE.search(name) or EXEMPT.search(name) or lines <= WARN:
        return None
    if lines > REFUSE:
        return True, f"{name}: {lines} lines; more than {REFUSE} are too many, split it"
    return False, f"{name}: warning: {lines} lines; would a reader find the second half?"


def main(paths):
    refused = False
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            finding = check(path, sum(1 for _ in file))
        if finding is not None:
            refused |= finding[0]
            print(finding[1])
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

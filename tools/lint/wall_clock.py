#!/usr/bin/env python3
"""Checks that no Go test asserts how long something took: a busy machine would fail it.

  wall_clock.py FILE...

A test may wait with a patience of at least ten seconds, `time.Since(start) > 10*time.Second`, may log times, and may
compare what it likes in virtual time: files that use testing/synctest are not looked at. Another line says why it is
right in a comment that begins with "clock:".
"""

import re
import sys

TAKEN = re.compile(r"(\w+)\s*:?=\s*time\.Since\(")
PATIENT = re.compile(r"[<>]=?\s*(\d+)\s*\*\s*time\.(Second|Minute|Hour)|[<>]=?\s*patience\b")


def problems(name, text):
    """One line for each comparison of a measured time with less than ten seconds."""
    if "testing/synctest" in text:
        return []
    found, taken = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("func "):
            taken = set()
        taken.update(TAKEN.findall(line))
        measured = r"time\.Since\([^()]*(?:\([^()]*\))?[^()]*\)" + "".join(rf"|\b{word}\b" for word in sorted(taken))
        compared = re.search(rf"(?:{measured})\s*[<>]|[<>]=?\s*(?:{measured})", line)
        if not compared or "// clock:" in line:
            continue
        patience = PATIENT.search(line)
        if patience and (patience[1] is None or patience[2] != "Second" or int(patience[1]) >= 10):
            continue
        found.append(f"{name}:{number}: asserts wall-clock time: count, use testing/synctest or a benchmark: "
                     f"{line.strip()}")
    return found


def main(paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += problems(path, file.read())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

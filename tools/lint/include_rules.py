#!/usr/bin/env python3
"""Checks what core/ includes and calls.

  include_rules.py [ROOT]

Packaged headers compile even when nothing links their library, so that only a scan keeps core/ to C++20 and
abseil, free of clocks, threads, chance, logs and environment, and its layers in order.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Standard headers that give access to time, chance, threads, streams, files or the environment, or to C.
FORBIDDEN_STANDARD = {
    "chrono", "ctime", "time.h", "random", "thread", "mutex", "shared_mutex", "condition_variable", "future",
    "semaphore", "latch", "barrier", "stop_token", "iostream", "fstream", "ostream", "istream", "sstream",
    "cstdio", "stdio.h", "filesystem", "csignal", "signal.h", "locale", "clocale", "regex", "exception",
    "stdexcept", "unistd.h", "string_view",
}
FORBIDDEN_ABSEIL = ("absl/time/", "absl/log/", "absl/random/", "absl/synchronization/", "absl/flags/", "absl/base/log")
FORBIDDEN_CALLS = re.compile(r"(?<![.>\w])(?:std::|::)?"
                             r"(getenv|secure_getenv|setenv|rand|srand|time|clock|gettimeofday|system)\s*\(")
# The files that throw a failed check, and nothing else.
MAY_THROW = {"core/base/check.h", "core/base/check.cc"}
THROW = re.compile(r"\b(throw|try)\b\s*[\{\w(:;]")

# The folders that each folder of core/ may include beside itself. Families do not include each other: what two of them
# need moves down. Slack asks the plan of growth for nodes.
FOUNDATION = {"base", "cluster", "fit"}
MAY_INCLUDE = {
    "base": set(),
    "cluster": {"base"},
    "fit": {"base", "cluster"},
    "price": {"base", "cluster"},
    "pack": {"base"},
    "score": FOUNDATION,
    "expand": FOUNDATION | {"price", "pack"},
    "size": FOUNDATION,
    "slack": FOUNDATION | {"price", "expand"},
    "drain": FOUNDATION,
    "removal": {"base", "cluster"},
    "consolidate": FOUNDATION | {"price", "pack"},
}
# The parts of a loop, which compose the families; each sees those before it.
for part in ("observe", "grow", "replace", "loop", "sim"):
    MAY_INCLUDE[part] = set(MAY_INCLUDE)


def layer_problem(folder, target):
    """Why a file in core/`folder` must not include one in core/`target`; None if it may."""
    if folder not in MAY_INCLUDE:
        return f"core/{folder} is not in MAY_INCLUDE of tools/lint/include_rules.py"
    if folder == target or target in MAY_INCLUDE[folder]:
        return None
    return f"core/{folder} may include {', '.join(sorted(MAY_INCLUDE[folder])) or 'only itself'}"


def include_problem(folder, bracket, header):
    """Why a file in core/`folder` must not include `header`; None if it may."""
    if bracket == '"' and header.startswith("core/"):
        parts = header.split("/")
        return layer_problem(folder, parts[1]) if len(parts) > 2 else "headers lie in the folders of core/"
    if header.startswith("absl/"):
        banned = next((b for b in FORBIDDEN_ABSEIL if header.startswith(b)), None)
        return f"{banned} reads or shares what core/ must not" if banned else None
    if bracket == "<" and "/" not in header:
        forbidden = header in FORBIDDEN_STANDARD
        return "gives access to what core/ must not know, or has a twin in absl" if forbidden else None
    return "core/ includes itself, abseil and the standard library"


def without_comments(text):
    """The text with comments and string literals blanked out, line by line."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_file(name, folder, text):
    """Returns the problems of one file of core/`folder`, each as "name:line: text"."""
    problems = []
    may_throw = name in MAY_THROW
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            if may_throw and match.group(2) == "exception":
                continue
            if why := include_problem(folder, *match.groups()):
                problems.append(f"{name}:{number}: includes {match.group(2)}: {why}")
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        if match := FORBIDDEN_CALLS.search(line):
            problems.append(f"{name}:{number}: calls {match.group(1)}(): core/ gets what it needs as arguments")
        if (match := THROW.search(line)) and not may_throw:
            problems.append(f"{name}:{number}: {match.group(1)}: errors are values in core/")
    return problems


def check_tree(root):
    problems = []
    files = 0
    for path in sorted((root / "core").rglob("*")):
        if path.suffix in (".h", ".cc"):
            relative = path.relative_to(root)
            problems += check_file(str(relative), relative.parts[1], path.read_text(encoding="utf-8"))
            files += 1
    if files == 0:
        problems.append(f"{root / 'core'} holds no source")
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
    problems = check_tree(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Checks the README of each folder of core/ and shim/: it is there, short, and names the files that are there and no
others.

  folder_pages.py [ROOT]

A C++ file is named by its name without suffix, or by the type that it holds: drain_trial, DrainTrial. A Go file is
named by its name, or by a pattern: why*.go. Columns in pages of shim/ are left to documents.py, which lets tables pass.
"""

import fnmatch
import pathlib
import re
import sys

MOST_LINES, MOST_COLUMNS = {"core": 30, "shim": 40}, 120
QUOTED = re.compile(r"`([^`\n]+)`")


def type_name(stem):
    """The name of the type that a file of that name holds."""
    return "".join(part.capitalize() for part in stem.split("_"))


def unnamed(quoted, files):
    """What of a folder with these files its page does not name; `quoted` are the words that the page has as code."""
    words = {re.sub(r"\.(h|cc)$", "", word).removesuffix("()").split("::")[0] for word in quoted}
    stems = {pathlib.PurePath(name).stem for name in files if not name.endswith(".go")}
    found = {stem for stem in stems if stem not in words and type_name(stem) not in words}
    patterns = [word for word in quoted if word.endswith(".go")]
    found |= {name for name in files if name.endswith(".go")
              and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    return sorted(found)


def problems(folder, text, files, known):
    """One line for each fault in the page of a folder with these files; `known` are the file names of the tree."""
    lines = text.splitlines()
    found = []
    most_lines = MOST_LINES[folder.split("/")[0]]
    if len(lines) > most_lines:
        found.append(f"{folder}/README.md: {len(lines)} lines, at most {most_lines} are read")
    found += [f"{folder}/README.md:{number}: {len(line)} columns" for number, line in enumerate(lines, 1)
              if len(line) > MOST_COLUMNS and folder.startswith("core/")]
    quoted = set(QUOTED.findall(text))
    found += [f"{folder}/README.md: does not say what {name} is for" for name in unnamed(quoted, files)]
    for word in sorted(quoted):
        name = word.split("/")[-1]
        if name.startswith("NAME"):  # means the name of a file to come
            continue
        if re.search(r"^[\w/]+\.(h|cc|proto|go|py)$", word) and name not in known:
            found.append(f"{folder}/README.md: there is no {word}")
    return found


def is_source(path):
    """Whether the page of its folder has to name a file; tests lie beside Go files."""
    return path.suffix in (".h", ".cc") or path.suffix == ".go" and not path.name.endswith("_test.go")


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".")
    known = {path.name for top in ("core", "plugin", "proto", "shim", "test")
             for path in (root / top).rglob("*") if path.is_file()}
    found = []
    for folder in sorted(path for top in MOST_LINES for path in (root / top).iterdir() if path.is_dir()):
        page = folder / "README.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        files = [path.name for path in folder.iterdir() if is_source(path)]
        found += problems(folder.relative_to(root).as_posix(), text, files, known)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

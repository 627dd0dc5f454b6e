#!/usr/bin/env python3
"""Checks the README of each folder of core/: it is there, short, and names the files that are there and no others.

  core_pages.py [ROOT]

A file is named by its name without suffix, or by the type that it holds: drain_board, DrainBoard.
"""

import pathlib
import re
import sys

MOST_LINES, MOST_COLUMNS = 30, 120
QUOTED = re.compile(r"`([^`\n]+)`")


def type_name(stem):
    """The name of the type that a file of that name holds."""
    return "".join(part.capitalize() for part in stem.split("_"))


def problems(folder, text, files, known):
    """One line for each fault in the page of a folder with these files; `known` are the file names of the tree."""
    lines = text.splitlines()
    found = []
    if len(lines) > MOST_LINES:
        found.append(f"{folder}/README.md: {len(lines)} lines, at most {MOST_LINES} are read")
    found += [f"{folder}/README.md:{number}: {len(line)} columns" for number, line in enumerate(lines, 1)
              if len(line) > MOST_COLUMNS]
    quoted = set(QUOTED.findall(text))
    words = {re.sub(r"\.(h|cc)$", "", word).removesuffix("()").split("::")[0] for word in quoted}
    for stem in sorted({pathlib.PurePath(name).stem for name in files}):
        if stem not in words and type_name(stem) not in words:
            found.append(f"{folder}/README.md: does not say what {stem} is for")
    for word in sorted(quoted):
        if re.search(r"^[\w/]+\.(h|cc|proto|go|py)$", word) and word.split("/")[-1] not in known:
            found.append(f"{folder}/README.md: there is no {word}")
    return found


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".")
    known = {path.name for top in ("core", "plugin", "proto", "shim", "test")
             for path in (root / top).rglob("*") if path.is_file()}
    found = []
    for folder in sorted(path for path in (root / "core").iterdir() if path.is_dir()):
        page = folder / "README.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        files = [path.name for path in folder.iterdir() if path.suffix in (".h", ".cc")]
        found += problems(f"core/{folder.name}", text, files, known)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

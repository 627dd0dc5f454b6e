#!/usr/bin/env python3
"""Checks that comments are whole sentences in the words of docs/glossary.md.

A comment begins with a verb in the third person or with a noun phrase; in Go with the declared name. A first line that
begins with one of BEGINNINGS is the second half of a sentence without its first half. Only the first line of a block of
comments has a beginning. BANNED words are pictures that stand for many things; a word that becomes a term of the
glossary leaves the list. Names in backquotes, and names with a dot, colon or parenthesis beside them, are code.
"""

import io
import pathlib
import re
import subprocess
import sys
import tokenize

FOLDERS = ("core", "plugin", "proto", "shim", "test", "tools")
SOURCE = re.compile(r"(?<!\.pb)\.(cc|h|c|go|proto|py|sh)$")
BEGINNINGS = ("Of", "As", "So", "Those", "What", "Whether", "Where", "Which", "Who")
BANNED = ("told", "goes", "comes", "stands", "held", "sight", "board", "strangers", "dress", "ghost")

BEGINNING = re.compile(rf"({'|'.join(BEGINNINGS)})\b")
BANNED_WORD = re.compile(rf"(?<![\w.:`-])({'|'.join(BANNED)})(?![\w(`]|::|\.\w|-\w)", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
SLASHES = re.compile(r"""
    (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|`[^`]*`)
  | (?P<text>"(?:\\.|[^"\\\n])*")
  | (?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')
  | (?P<line>//[^\n]*)
  | (?P<block>/\*.*?\*/)""", re.VERBOSE | re.DOTALL)
HASH = re.compile(r"(?:^|(?<=\s))#(?!!)([^\n]*)", re.MULTILINE)
GO_NAME = re.compile(r"\s*(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+)?(\w+)")


def slash_comments(text):
    """Yields (line, whether nothing is before it, text) for each line of a // or /* comment."""
    for match in SLASHES.finditer(text):
        if match["line"] is None and match["block"] is None:
            continue
        first = text.count("\n", 0, match.start()) + 1
        alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if match["line"] is not None:
            yield first, alone, match["line"].lstrip("/!").strip()
            continue
        for offset, line in enumerate(match["block"][2:-2].split("\n")):
            yield first + offset, alone, line.strip().lstrip("*").strip()


def hash_comments(name, text):
    """Yields the same for # comments; those of Python by its own tokens, of others where a # follows a space."""
    if name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
                yield token.start[0], not token.line[:token.start[1]].strip(), token.string.lstrip("#").strip()
        return
    for match in HASH.finditer(text):
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            yield text.count("\n", 0, match.start()) + 1, not before.strip(), match[1].strip()


def begins_with_name(name, lines, number, word):
    """Returns whether the Go declaration under the comment at this line declares `word`."""
    if not name.endswith(".go"):
        return False
    code = next((line for line in lines[number:] if not line.lstrip().startswith("//")), "")
    declared = GO_NAME.match(code)
    return bool(declared) and declared[1] == word


def problems(name, text):
    """One line for each fault of the comments of a file."""
    found, lines, previous = [], text.splitlines(), 0
    comments = slash_comments(text) if not name.endswith((".py", ".sh")) else hash_comments(name, text)
    for number, alone, comment in comments:
        continues = alone and previous == number - 1 and previous > 0
        previous = number if alone and (comment or continues) else 0  # the text of a block may begin below its "/*"
        begins = BEGINNING.match(comment)
        if begins and not continues and not begins_with_name(name, lines, number, begins[1]):
            found.append(f"{name}:{number}: begins with {begins[1]}: {comment}")
        for banned in BANNED_WORD.finditer(CODE.sub("``", comment)):
            declared = banned.start() == 0 and begins_with_name(name, lines, number, banned[1])
            if not declared:
                found.append(f'{name}:{number}: says "{banned[1]}": {comment}')
    return found


def sources():
    """The sources that git tracks or would, sorted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FOLDERS]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in names if SOURCE.search(name) and pathlib.Path(name).is_file()})


def main():
    found = []
    for path in sources():
        with open(path, encoding="utf-8", errors="replace") as file:
            found += problems(path, file.read())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

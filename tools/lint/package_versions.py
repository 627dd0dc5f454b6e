#!/usr/bin/env python3
"""Checks that installed Debian packages have the upstream versions that were tested.

  package_versions.py [--write] [FILE]

FILE, tools/packages.txt by default, has a package and a version in each line. With --write the versions of FILE become
those that are installed. Where there is no dpkg-query, nothing is checked.
"""

import re
import shutil
import subprocess
import sys

LINE = re.compile(r"^(?P<name>[a-z0-9][a-z0-9+.-]*)(?P<space>\s+)(?P<version>\S+)(?P<rest>.*)$")
EPOCH, REVISION = re.compile(r"^\d+:"), re.compile(r"-[^-]*$")


def upstream(version):
    """The upstream part of a Debian version: without the epoch and without Debian's revision."""
    return REVISION.sub("", EPOCH.sub("", version))


def listed(text):
    """Version by package."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.match(line)
        if match is None or match["name"] in found:
            raise ValueError(f"line {number}: {line!r} is not a package of its own and a version")
        found[match["name"]] = match["version"]
    return found


def problems(wanted, installed):
    """One line for each package that is missing or has another version than the one that was tested."""
    found = []
    for name, version in wanted.items():
        if name not in installed:
            found.append(f"{name} is not installed: make deps")
        elif version not in ("any", installed[name]):
            found.append(f"{name} {installed[name]} is installed, but {version} was tested."
                         " Run make test, then make renew writes the version down")
    return found


def renewed(text, installed):
    """The text with installed versions."""
    def change(line):
        match = None if line.startswith("#") else LINE.match(line)
        if match is None or match["version"] == "any":
            return line
        return match["name"] + match["space"] + installed.get(match["name"], match["version"]) + match["rest"]
    return "\n".join(map(change, text.split("\n")))


def main(arguments):
    write = "--write" in arguments
    path = next((a for a in arguments if not a.startswith("-")), "tools/packages.txt")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    wanted = listed(text)
    if shutil.which("dpkg-query") is None:
        print("no dpkg-query: versions of Debian packages are not checked")
        return 0
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *wanted],
                           capture_output=True, text=True, check=False).stdout
    installed = {name: upstream(version) for name, status, version in
                 (line.split(" ", 2) for line in query.splitlines()) if status == "installed"}
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(renewed(text, installed))
        return 0
    found = problems(wanted, installed)
    for problem in found:
        print(f"{path}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

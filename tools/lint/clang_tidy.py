#!/usr/bin/env python3
"""Runs clang-tidy over our sources, skipping what passed before.

  clang_tidy.py BUILD_DIR [--jobs N]

BUILD_DIR holds compile_commands.json. A source passes again unasked as long as its compile command, the
configuration and all of our own headers that it can reach are what they were; BUILD_DIR/tidy remembers that.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)


class Inputs:
    """Content hashes of sources with all that they include from the tree or from generated code."""

    def __init__(self, build, settings):
        self.include_roots = [ROOT, build / "gen"]
        self.settings = settings
        self.contents = {}

    def read(self, path):
        if path not in self.contents:
            self.contents[path] = path.read_bytes()
        return self.contents[path]

    def reach(self, path):
        """`path` and every header of ours that it includes, directly or not."""
        found, pending = {path}, [path]
        while pending:
            for name in INCLUDE.findall(self.read(pending.pop())):
                for root in self.include_roots:
                    header = root / name.decode()
                    if header not in found and header.is_file():
                        found.add(header)
                        pending.append(header)
        return sorted(found)

    def digest(self, path, command):
        digest = hashlib.sha256(self.settings)
        digest.update(command.encode())
        for file in self.reach(path):
            digest.update(str(file).encode())
            digest.update(self.read(file))
        return digest.hexdigest()


def settings():
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    return version + (ROOT / ".clang-tidy").read_bytes()


def sources(build):
    """(source, compile command) of our own sources."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for entry in commands:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
            yield path, entry["command"]


def tidy(build, path):
    run = subprocess.run([TOOL, "--quiet", "-p", str(build), str(path)], capture_output=True, text=True)
    return run.returncode == 0, run.stdout if run.stdout.strip() else run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    passed = arguments.build / "tidy"
    passed.mkdir(exist_ok=True)
    inputs = Inputs(arguments.build, settings())
    todo = {}  # one run for a source that several targets compile alike
    for path, command in sources(arguments.build):
        stamp = passed / inputs.digest(path, re.sub(r" -o \S+", "", command))
        if not stamp.exists():
            todo[path] = stamp

    failed = 0
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {pool.submit(tidy, arguments.build, path): path for path in sorted(todo)}
        for done, run in enumerate(concurrent.futures.as_completed(runs), start=1):
            ok, output = run.result()
            name = runs[run].relative_to(ROOT)
            print(f"[{done}/{len(runs)}] {name}", flush=True)
            if ok:
                todo[runs[run]].touch()
            else:
                failed += 1
                print(output, flush=True)
    if todo:
        print(f"clang-tidy: {len(todo)} sources in {time.monotonic() - start:.0f} s, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs clang-tidy over our sources, skipping what passed before.

  clang_tidy.py BUILD_DIR [--jobs N]

BUILD_DIR holds compile_commands.json. A source passes again unasked as long as its compile command, the
configuration and all of our own headers that it can reach are what they were; BUILD_DIR/tidy remembers that.

Nearly all of the time goes into headers. Sources that are compiled alike are therefore read as one file, a bundle;
one with findings, or of sources that do not go together, is read again in halves.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)
DEFINED = re.compile(rb"^(?!namespace|using)[A-Za-z](?:[\w<>,*& \"]|::)*[ *&](\w+)(?:\[\])?(?= =| \{|;|(\(.*))", re.M)
BUNDLE = 12  # sources: more save little, and cost memory


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
        digest.update(" ".join(command).encode())
        for file in self.reach(path):
            digest.update(str(file).encode())
            digest.update(self.read(file))
        return digest.hexdigest()


def settings():
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    return version + (ROOT / ".clang-tidy").read_bytes()


def sources(build):
    """{source: arguments of its compiler, without input and output} of our own sources."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
            command = re.sub(r" (-o|-c) \S+", "", entry["command"])
            commands[path] = shlex.split(command)[1:]
    return commands


def bundles(todo, commands):
    """Lists of sources to be read as one: none defines at its left margin what another does."""
    alike = {}
    for path in sorted(todo):
        names = set(DEFINED.findall(path.read_bytes()))
        open_bundles = alike.setdefault(tuple(commands[path]), [])
        for members, taken in open_bundles:
            if len(members) < BUNDLE and not names & taken:
                members.append(path)
                taken |= names
                break
        else:
            open_bundles.append(([path], names))
    return [members for open_bundles in alike.values() for members, _ in open_bundles]


def tidy(path, command, *options):
    run = subprocess.run([TOOL, "--quiet", *options, str(path), "--", *command], capture_output=True, text=True)
    return run.returncode == 0, run.stdout if run.stdout.strip() else run.stderr


def tidy_bundle(build, bundle, command):
    """{source: None if it passed, else what is wrong}."""
    if len(bundle) == 1:
        ok, output = tidy(bundle[0], command)
        return {bundle[0]: None if ok else output}
    name = hashlib.sha256("\n".join(map(str, bundle)).encode()).hexdigest()[:16]
    file = build / "bundles" / f"{name}.cc"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f'#include "{path}"\n' for path in bundle))
    if tidy(file, command, f"--config-file={ROOT / '.clang-tidy'}", "--checks=-bugprone-suspicious-include")[0]:
        return dict.fromkeys(bundle)
    half = len(bundle) // 2
    return tidy_bundle(build, bundle[:half], command) | tidy_bundle(build, bundle[half:], command)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    passed = arguments.build / "tidy"
    passed.mkdir(exist_ok=True)
    inputs = Inputs(arguments.build, settings())
    commands = sources(arguments.build)
    stamps = {path: passed / inputs.digest(path, command) for path, command in commands.items()}
    todo = [path for path, stamp in stamps.items() if not stamp.exists()]

    done = failed = 0
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(tidy_bundle, arguments.build, bundle, commands[bundle[0]])
                for bundle in bundles(todo, commands)]
        for run in concurrent.futures.as_completed(runs):
            for path, problem in run.result().items():
                done += 1
                print(f"[{done}/{len(todo)}] {path.relative_to(ROOT)}", flush=True)
                if problem is None:
                    stamps[path].touch()
                else:
                    failed += 1
                    print(problem, flush=True)
    if todo:
        print(f"clang-tidy: {len(todo)} sources in {time.monotonic() - start:.0f} s, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

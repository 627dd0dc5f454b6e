#!/usr/bin/env python3
"""Runs what takes hours and writes docs/check-long.md: when each check last ran, on what, and what it found.

  check_long.py [CHECK...]

A CHECK is a target of make; without one, all of CHECKS run. One that fails does not keep the others from running. The
page is written after each: a run that is cut short has told what it has found so far, and a check that did not run
keeps the row of its last run.
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "check-long.md"
LOGS = ROOT / "build" / "check-long"

CHECKS = {
    "tidy": "clang-tidy and go vet over all sources",
    "test-asan": "the C++ tests under the address and undefined behaviour sanitizers",
    "test-tsan": "the C++ tests that start threads, under the thread sanitizer",
    "test-race": "the Go tests of `shim/` under the race detector",
    "race-smoke": "a minute of Loadline and Karpenter through the same load",
    "test-karpenter": "nodes by NodeClaims of Karpenter's own controllers",
    "test-cluster-api": "the autoscaler with the core controllers of Cluster API",
    "test-e2e-1.37": "the end-to-end tests with the newer minor of Kubernetes",
    "test-pairs": "pairs of families of rules that both act, on real control planes",
    "test-claim": "limits over allocatable on five seeds, of which `make test` has one",
    "test-fit-next": "filters and scores against the plugins of the newer minor",
    "test-hostile": "objects that are meant to harm, one by one and together",
    "test-drawn": "the tests that draw their cases, with all of them",
    "simulate": "1,000 drawn clusters with faults",
    "test-scale": "the autoscaler on 2,000 nodes with 80,000 pods",
    "test-release": "images and releases, made twice, verified and installed from",
    "test-images": "the programs of the images, in the files of their images alone",
    "test-arm64": "the programs for linux/arm64 under qemu-user",
    "fuzz": "all fuzz targets, an hour in all",
    "mutants": "small faults in a copy of the tree, which some test has to notice",
}

HEAD = """<!-- Written by `make check-long`. -->

# What takes hours

`make check-long` runs what is too long for every change. `make check-long CHECKS=NAME` runs one of these.

| Command | What it runs | Last run | Commit | Machine | Time | Found |
|---|---|---|---|---|---|---|
"""
NEVER = ["not yet", "", "", "", ""]
TOLD = re.compile(r"FAIL|ERROR|Error|error:|WARNING: |survived")
MOST_TEXT = 300
FUZZ_SECONDS = "300"  # for each of 12 targets


def rows_of(page):
    """By check, what a page says of its last run: date, commit, machine, time, found."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in page.splitlines() if line.startswith("| `make ")]
    return {row[0].removeprefix("`make ").rstrip("`"): row[2:] for row in cells if len(row) == 7}


def page_of(rows):
    """The page that says this, in the order of CHECKS."""
    lines = (["`make " + name + "`", what, *rows.get(name, NEVER)] for name, what in CHECKS.items())
    return HEAD + "".join("| " + " | ".join(line) + " |\n" for line in lines)


def found_in(log, status, root):
    """What a check found: nothing, or the last lines that say what went wrong, without paths of this machine."""
    if status == 0:
        return "nothing"
    told = [line.strip() for line in log.splitlines() if TOLD.search(line)][-3:] or log.splitlines()[-1:]
    text = "; ".join(told).replace(f"{root}/", "").replace("|", "/")
    return f"FAILED: {text}"[:MOST_TEXT].rstrip()


def machine():
    """Processors, their model and the system."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    system = re.search(r'^PRETTY_NAME="(.*)"$', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    return f"{os.cpu_count()} cpus of {cpu.group(1) if cpu else 'unknown'}, {system.group(1) if system else 'Linux'}"


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    """The commit that is checked out; "+" for changes on top of it, other than the page."""
    changed = git("status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}")
    return (git("rev-parse", "--short=7", "HEAD") or "unknown") + ("+" if changed else "")


def run(name):
    """Runs one check; the row of its run."""
    print(f"== {name}", flush=True)
    begin, at, revision = time.monotonic(), datetime.datetime.now(datetime.timezone.utc), commit()
    log = LOGS / f"{name}.log"
    with open(log, "w", encoding="utf-8") as out:
        status = subprocess.run(["make", name], cwd=ROOT, env={"FUZZ_SECONDS": FUZZ_SECONDS} | os.environ, stdout=out,
                                stderr=subprocess.STDOUT, check=False).returncode
    minutes = int(time.monotonic() - begin + 59) // 60
    found = found_in(log.read_text(encoding="utf-8", errors="replace"), status, ROOT)
    print(f"   {minutes} min: {found}", flush=True)
    return [f"{at.day} {at:%B %Y, %H:%M} UTC", revision, machine(), f"{minutes} min", found]


def main(names):
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(f"check-long: {', '.join(unknown)}: must be of {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in names or CHECKS:
        row = run(name)
        failed |= row[-1] != "nothing"
        rows = rows_of(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
        PAGE.write_text(page_of(rows | {name: row}), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written; logs are in {LOGS.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

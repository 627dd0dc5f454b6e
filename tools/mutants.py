#!/usr/bin/env python3
"""Puts small faults into a copy of the tree, one at a time, and reports those that no test notices.

  tools/mutants.py [--list FILE] [--copy DIR] [WORD...]     WORD: only mutants whose description has one of them

The list says for each mutant what is wrong with it, the text that it replaces, and the tests that have to fail: of
core_test, or of the program that it names. The copy lies in build/mutants and is built with the preset dev, file by
file, so that a mutant costs one file and a second run only what changed. Exit code 1: a mutant survived, does not
build, or its text is not in the tree any more.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A mutant may leave something unused. The compiler cache takes no notice of the flag: most files of the copy then come
# from what the tree was built with.
NO_WARNINGS = "-w"
os.environ["CCACHE_IGNOREOPTIONS"] = NO_WARNINGS


def run(command, directory, seconds):
    """Exit code and output; a program that does not end counts as failed."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 1, f"did not end within {seconds} s"
    return done.returncode, done.stdout + done.stderr


def copy_tree(copy):
    """Brings the copy up to the tracked and new files of the tree; files that are the same keep their times."""
    copy.mkdir(parents=True, exist_ok=True)
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    kept = set()
    for name in filter(None, files):
        source, target = ROOT / name, copy / name
        if not source.is_file():
            continue
        kept.add(name)
        content = source.read_bytes()
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode)
    for folder in ("core", "test", "plugin"):
        for path in (copy / folder).rglob("*"):
            if path.is_file() and str(path.relative_to(copy)) not in kept:
                path.unlink()


def program_of(mutant):
    return mutant.get("program", "core_test")


def build(copy, program):
    return run(["cmake", "--build", "--preset", "dev", "--target", program], copy, 3600)


def failed_tests(copy, program, tests):
    """What fails of the tests; None: none did."""
    command = [f"build/dev/test/{program}", "--gtest_brief=1", f"--gtest_filter={tests}"]
    if run([*command, "--gtest_list_tests"], copy, 60)[1].count("\n  ") == 0:
        sys.exit(f"{program} has no test {tests}")
    code, output = run(["env", "RC_PARAMS=seed=20260217", *command], copy, 300)
    if code == 0:
        return None
    names = [line.split("]")[1].split("(")[0].strip(" ,") for line in output.splitlines()
             if line.startswith("[  FAILED  ]")]
    return names or [output.strip().splitlines()[-1] if output.strip() else "the program ended"]


def try_mutant(mutant, copy):
    """Returns whether it is killed, and by what or why not."""
    path = copy / mutant["file"]
    text = path.read_text()
    if text.count(mutant["old"]) != 1:
        return False, f"{mutant['file']}: the text to replace stands there {text.count(mutant['old'])} times"
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        code, output = build(copy, program_of(mutant))
        if code != 0:
            return False, "does not build:\n" + "\n".join(line for line in output.splitlines() if "error" in line)
        failed = failed_tests(copy, program_of(mutant), mutant["tests"])
        return (False, f"SURVIVED {mutant['tests']}") if failed is None else (True, failed[0])
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=pathlib.Path, default=ROOT / "test/mutants/mutants.toml")
    parser.add_argument("--copy", type=pathlib.Path, default=ROOT / "build/mutants")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    mutants = tomllib.loads(arguments.list.read_text())["mutant"]
    if arguments.words:
        mutants = [m for m in mutants if any(word in m["what"] or word in m["file"] for word in arguments.words)]
    copy_tree(arguments.copy)
    print(f"building {arguments.copy} (minutes the first time)", flush=True)
    run(["cmake", "--preset", "dev", f"-DCMAKE_CXX_FLAGS={NO_WARNINGS}"], arguments.copy, 600)
    for program in sorted({program_of(mutant) for mutant in mutants}):
        code, output = build(arguments.copy, program)
        tests = ":".join(sorted({mutant["tests"] for mutant in mutants if program_of(mutant) == program}))
        if code != 0 or failed_tests(arguments.copy, program, tests) is not None:
            sys.exit(f"without a mutant the tests of {program} do not build or pass:\n{output[-2000:]}")
    survivors = 0
    for number, mutant in enumerate(mutants, start=1):
        begin = time.monotonic()
        killed, how = try_mutant(mutant, arguments.copy)
        survivors += not killed
        print(f"{number}/{len(mutants)} {'killed by' if killed else 'NOT KILLED:'} {how} ({mutant['what']}, "
              f"{time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants were killed")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()

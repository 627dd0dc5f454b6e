#!/usr/bin/env python3
"""Simulates weeks of clusters with and without the replacement of nodes, and prints what each costs.

  bench_months.py [--days N] [--seeds N] [--jobs N] [--only WORD] [FOLDER]

Each scenario of FOLDER (test/months) runs with the default settings that it leaves alone, once with `replace` and once
without, for each seed. A scenario whose groups are `PRICES` runs with each list of test/months/prices; with
`SPOT PRICES` each group of the list also comes as a spot group at SPOT_SHARE of its price. Exit code 1: some scenario
costs more than LIMIT with `replace`, measured by what it costs without, or broke an invariant.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MONTHS = ROOT / "test" / "months"
PROGRAM = os.environ.get("LOADLINE", str(ROOT / "build" / "bin" / "loadline"))
SPOT_SHARE = 0.35
LIMIT = 1.01  # USD with `replace`, over USD without
GROUPS = re.compile(r"^  groups: (SPOT )?PRICES\n", re.MULTILINE)
HEAD = ("| Scenario | Prices | Seed | USD without | over bound | with `replace` | over bound | with over without "
        "| Evictions per pod and day: without | with | Moves | given up |")


def spot(groups):
    """Returns the groups, and each of them once more as a spot group."""
    def cheaper(match):
        return f"usdPerHour: {float(match[1]) * SPOT_SHARE:g}, spot: true"
    as_spot = re.sub(r"usdPerHour: ([0-9.]+)", cheaper, groups)
    return groups + re.sub(r"\{name: ([^,]+),", r"{name: \1-spot,", as_spot)


def priced(text):
    """Yields each list of prices that a scenario runs with, and the scenario with its groups."""
    wanted = GROUPS.search(text)
    if wanted is None:
        yield "its own", text
        return
    for file in sorted((MONTHS / "prices").glob("*.yaml")):
        groups = file.read_text()
        yield file.stem, GROUPS.sub(lambda _: "  groups:\n" + (spot(groups) if wanted[1] else groups), text)


def with_replace(text, value):
    """Returns the scenario with `settings.replace` set."""
    setting = f"replace: {value}"
    text, found = re.subn(r"\breplace: *(true|false)\b", setting, text)
    if found == 0:
        text, found = re.subn(r"^( *)settings: *\{ *", rf"\1settings: {{{setting}, ", text, flags=re.MULTILINE)
    if found == 0:
        text, found = re.subn(r"^( *)settings:( *#.*)?$", rf"\1settings:\n\1  {setting}", text, flags=re.MULTILINE)
    return text if found > 0 else text.rstrip("\n") + f"\n  settings: {{{setting}}}\n"


def simulate(text, days, seed):
    """Returns what `loadline simulate -o json` says of a scenario."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        command = [PROGRAM, "simulate", "--scenario", file.name, "--days", str(days), "--seed", str(seed), "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or done.stdout[-300:])
    return json.loads(done.stdout)


def rows_of(folder, only):
    """Yields scenario, prices and text of all runs."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        sys.exit(f"{folder} holds no scenario")
    for file in files:
        if only in file.stem:
            for prices, text in priced(file.read_text()):
                yield file.stem, prices, text


def evictions_a_day(run, pods):
    return run["evictions"] / run["days"] / pods


def pods_of(text):
    """Counts the pods that a scenario asks for at its peaks, but for DaemonSets, jobs and bursts."""
    return max(1, sum(int(replicas) for replicas in re.findall(r"kind: DEPLOYMENT, replicas: ([0-9]+)", text)))


def line_of(row, without, with_it):
    """Returns a row of the table."""
    name, prices, text, seed = row
    pods = pods_of(text)
    cells = [name, prices, str(seed), f"{without['usd']:.0f}", f"{without['usd'] / without['boundUsd']:.3f}",
             f"{with_it['usd']:.0f}", f"{with_it['usd'] / with_it['boundUsd']:.3f}",
             f"{with_it['usd'] / without['usd']:.3f}", f"{evictions_a_day(without, pods):.3f}",
             f"{evictions_a_day(with_it, pods):.3f}", str(with_it["moves"]["done"]), str(with_it["moves"]["givenUp"])]
    return "| " + " | ".join(cells) + " |"


def summary_of(done):
    """Returns the medians, scenarios without anti-affinity and with it apart, and the worst ratio."""
    apart = [("no anti-affinity", [d for d in done if "apart: true" not in d[0][2]]),
             ("with anti-affinity", [d for d in done if "apart: true" in d[0][2]])]
    for name, some in apart:
        if not some:
            continue
        over = statistics.median(with_it["usd"] / with_it["boundUsd"] for _, _, with_it in some)
        before = statistics.median(without["usd"] / without["boundUsd"] for _, without, _ in some)
        evictions = statistics.median(evictions_a_day(with_it, pods_of(row[2])) for row, _, with_it in some)
        worst = max(with_it["usd"] / without["usd"] for _, without, with_it in some)
        yield (f"{len(some)} runs, {name}: USD over bound in the median {before:.3f} without `replace`, {over:.3f} "
               f"with; evictions per pod and day in the median {evictions:.3f}; with over without at most {worst:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=MONTHS)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    rows = [(*row, seed) for row in rows_of(args.folder, args.only) for seed in range(1, args.seeds + 1)]
    done, bad = [], []
    print(HEAD + "\n|" + "---|" * HEAD.count(" | ") + "---|", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [[pool.submit(simulate, with_replace(row[2], value), args.days, row[3]) for value in ("false", "true")]
                for row in rows]
        for row, (without, with_it) in zip(rows, runs):
            done.append((row, without.result(), with_it.result()))
            print(line_of(*done[-1]), flush=True)
            broken = done[-1][1]["violations"] + done[-1][2]["violations"]
            if broken or done[-1][2]["usd"] > LIMIT * done[-1][1]["usd"]:
                bad.append(f"{row[0]}, {row[1]}, seed {row[3]}")
    print("\n" + "\n".join(summary_of(done)))
    if bad:
        sys.exit("dearer with `replace` than without by more than a percent, or an invariant broke: " + "; ".join(bad))


if __name__ == "__main__":
    main()

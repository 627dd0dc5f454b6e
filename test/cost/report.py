#!/usr/bin/env python3
"""Makes a table and a picture of what growing a cluster costs.

    cost_bench ... | report.py [--svg FILE] [--seconds N]

Up to 200 CPUs costs are held against the optimum, where CBC (Debian's coinor-cbc) proves it within N seconds;
beyond, against the lower bound. The optimum is that of a covering problem over all maximal contents of a node: it
shares no code with the engine. Fails when a target is missed, when a bound is above an optimum, or when a plan
leaves over what another one places.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STRATEGIES = [("least_waste", "least-waste"), ("price", "price"), ("joint", "joint plan")]
COLORS = ["#9aa5b1", "#5b8db8", "#d9822b"]
MOST_PATTERNS = 60_000
PROVE_UP_TO = 200
TARGET_OPTIMUM, TARGET_BOUND, TARGET_SECONDS = 1.02, 1.05, 1.0


def undominated(types):
    """Types that no other one replaces: as large in all, and no dearer."""
    kept = []
    for i, a in enumerate(types):
        beaten = any(
            all(b[k] >= a[k] for k in (1, 2, 3)) and b[4] <= a[4] and (b[1:] != a[1:] or j < i)
            for j, b in enumerate(types) if j != i)
        if not beaten:
            kept.append(a)
    return kept


def maximal_contents(node, pods, most):
    """All contents of a node that nothing can be added to, bounded by the pods there are; None: too many."""
    contents, current = [], [0] * len(pods)

    def descend(k, cpu, memory, slots):
        if len(contents) > most:
            return
        if k == len(pods):
            full = all(current[i] == pods[i][2] or pods[i][0] > cpu or pods[i][1] > memory or slots < 1
                       for i in range(len(pods)))
            if full and any(current):
                contents.append(tuple(current))
            return
        p_cpu, p_memory, count = pods[k]
        fit = min(count, slots, cpu // p_cpu if p_cpu else count, memory // p_memory if p_memory else count)
        for n in range(int(fit), -1, -1):
            current[k] = n
            descend(k + 1, cpu - n * p_cpu, memory - n * p_memory, slots - n)
        current[k] = 0

    descend(0, *node[1:4])
    return contents if len(contents) <= most else None


def optimum(scenario, seconds):
    """The least cost of nodes that hold all pods; None where it is not proven."""
    pods = [p for p in scenario["pods"] if p[2] > 0]
    columns = []
    for node in undominated(scenario["types"]):
        contents = maximal_contents(node, pods, MOST_PATTERNS - len(columns))
        if contents is None:
            return None
        columns += [(node[4], content) for content in contents]
    lines = ["Minimize", " obj: " + " + ".join(f"{cost:.9g} x{i}" for i, (cost, _) in enumerate(columns)),
             "Subject To"]
    for k, pod in enumerate(pods):
        terms = " + ".join(f"{content[k]} x{i}" for i, (_, content) in enumerate(columns) if content[k])
        lines.append(f" c{k}: {terms} >= {pod[2]}")
    lines += ["General"] + [f" x{i}" for i in range(len(columns))] + ["End"]
    with tempfile.TemporaryDirectory() as folder:
        model, solution = Path(folder, "model.lp"), Path(folder, "solution")
        # CBC reads lines up to some length only.
        model.write_text("\n".join(line.replace(" + ", "\n + ") for line in lines) + "\n")
        subprocess.run(["cbc", str(model), "ratio", "0", "allow", "0", "sec", str(seconds),
                        "solve", "solu", str(solution)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=seconds * 3 + 60)
        first = solution.read_text().splitlines()[0] if solution.exists() else ""
    # "Optimal - objective value 1.23"; anything else is no proof.
    return float(first.split()[-1]) if first.startswith("Optimal") else None


def percentile_90(values):
    values = sorted(values)
    return values[min(len(values) - 1, int(0.9 * len(values)))]


def svg(rows):
    """Bars of the mean cost over the reference, from 1 up."""
    width, height, left, bottom = 720, 320, 60, 40
    top = max(max(mean for _, mean, _ in row["costs"]) for row in rows)
    scale = (height - bottom - 40) / max(top - 1, 0.01)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="18">mean cost of the new nodes, as a multiple of the optimum or of its lower '
             'bound</text>']
    step = (width - left - 20) / len(rows)
    base = height - bottom
    for r, row in enumerate(rows):
        x = left + r * step
        for s, (name, mean, _) in enumerate(row["costs"]):
            bar = max(1.0, (mean - 1) * scale)
            at = x + s * (step - 30) / 3
            parts.append(f'<rect x="{at:.1f}" y="{base - bar:.1f}" width="{(step - 40) / 3:.1f}" height="{bar:.1f}" '
                         f'fill="{COLORS[s]}"><title>{name}: {mean:.3f}</title></rect>')
            parts.append(f'<text x="{at + (step - 40) / 6:.1f}" y="{base - bar - 4:.1f}" text-anchor="middle">'
                         f'{mean:.2f}</text>')
        parts.append(f'<text x="{x + step / 2 - 15:.1f}" y="{base + 16}" text-anchor="middle">'
                     f'{row["cpus"]:,} CPUs</text>')
        parts.append(f'<text x="{x + step / 2 - 15:.1f}" y="{base + 31}" text-anchor="middle" fill="#666">'
                     f'{row["reference"]}</text>')
    for s, (_, name) in enumerate(STRATEGIES):
        parts.append(f'<rect x="{width - 330 + s * 110}" y="28" width="10" height="10" fill="{COLORS[s]}"/>'
                     f'<text x="{width - 315 + s * 110}" y="37">{name}</text>')
    parts.append(f'<line x1="{left - 5}" y1="{base}" x2="{width - 15}" y2="{base}" stroke="black"/></svg>')
    return "\n".join(parts) + "\n"


def judge(cpus, scenarios, seconds, faults):
    """One row of the table."""
    by_optimum = cpus <= PROVE_UP_TO
    pairs = []
    for scenario in scenarios:
        where = f'{cpus} CPUs, seed {scenario["seed"]}'
        if scenario["left"] != [0, 0, 0]:
            faults.append(f'{where}: pods are left over: {scenario["left"]}')
        # 0: no single option takes all that the plan takes.
        if 0 < scenario["best_single"] * (1 + 1e-9) < scenario["joint"]:
            faults.append(f"{where}: the joint plan is dearer than the best single option")
        if scenario["bound"] > scenario["joint"] * (1 + 1e-9):
            faults.append(f"{where}: the bound is above the plan")
        reference = optimum(scenario, seconds) if by_optimum else scenario["bound"]
        if reference is None:
            continue
        if by_optimum and scenario["bound"] > reference * (1 + 1e-6):
            faults.append(f'{where}: the bound {scenario["bound"]} is above the optimum {reference}')
        if by_optimum and scenario["joint"] < reference * (1 - 1e-6):
            faults.append(f'{where}: the plan {scenario["joint"]} is below the optimum {reference}')
        pairs.append((scenario, reference))
    costs = []
    for key, name in STRATEGIES:
        ratios = [scenario[key] / reference for scenario, reference in pairs]
        costs.append((name, sum(ratios) / len(ratios), percentile_90(ratios)) if ratios else (name, 1.0, 1.0))
    row = {"cpus": cpus, "costs": costs, "cases": len(pairs), "reference": "optimum" if by_optimum else "lower bound",
           "seconds": max(scenario["seconds"] for scenario in scenarios)}
    target = TARGET_OPTIMUM if by_optimum else TARGET_BOUND
    if costs[2][1] > target:
        faults.append(f"{cpus} CPUs: the joint plan's mean {costs[2][1]:.4f} is above {target}")
    if by_optimum and len(pairs) < 50:
        faults.append(f"{cpus} CPUs: the optimum was proven for {len(pairs)} scenarios, not for 50")
    if row["seconds"] > TARGET_SECONDS:
        faults.append(f'{cpus} CPUs: a plan took {row["seconds"]:.2f} s')
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--svg")
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    if shutil.which("cbc") is None:
        sys.exit("report.py: there is no cbc; apt-get install coinor-cbc")
    sizes = {}
    for line in sys.stdin:
        scenario = json.loads(line)
        sizes.setdefault(scenario["cpus"], []).append(scenario)
    faults, rows = [], []
    print("Cost of the new nodes over the optimum (proven by CBC) or over its lower bound: mean (90th percentile)\n")
    print(f'{"CPUs":>6} {"cases":>6} {"against":>12}' + "".join(f"{name:>18}" for _, name in STRATEGIES) +
          f'{"slowest":>10}')
    for cpus, scenarios in sorted(sizes.items()):
        row = judge(cpus, scenarios, arguments.seconds, faults)
        rows.append(row)
        cells = "".join(f'{f"{mean:.3f} ({p90:.3f})":>18}' for _, mean, p90 in row["costs"])
        print(f'{cpus:>6} {row["cases"]:>6} {row["reference"]:>12}{cells}{row["seconds"]:>8.2f} s', flush=True)
    if arguments.svg:
        Path(arguments.svg).write_text(svg(rows))
        print(f"\npicture: {arguments.svg}")
    for fault in faults:
        print("FAULT", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

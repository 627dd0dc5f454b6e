#!/usr/bin/env python3
"""Holds what core/consolidate reaches on clusters of up to 20 nodes, without constraints, against the optimum.

  consolidate_oracle.py CONSOLIDATE_ANSWERS [CASES]
"""

import json
import subprocess
import sys

from pack_oracle import least_to_hold_all

MOST_IN_THE_MEAN = 1.02
CLOSE = 1e-6


def main(arguments):
    program, cases = arguments[0], arguments[1] if len(arguments) > 1 else "24"
    lines = subprocess.run([program, cases], check=True, capture_output=True, text=True).stdout.splitlines()
    ratios = []
    for line in lines:
        answer = json.loads(line)
        problem = answer["problem"]
        best = least_to_hold_all(problem, [item["count"] for item in problem["items"]], small=True)
        if not answer["bound"] <= best + CLOSE <= answer["reachable"] + 2 * CLOSE:
            print(f"seed {answer['seed']}: bound {answer['bound']}, optimum {best}, reached {answer['reachable']}")
            return 1
        ratios.append(answer["reachable"] / best)
    mean = sum(ratios) / len(ratios)
    print(f"{len(ratios)} clusters: {mean:.4f} of the optimum in the mean, {max(ratios):.4f} at most")
    return 0 if mean <= MOST_IN_THE_MEAN else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

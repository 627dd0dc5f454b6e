#!/usr/bin/env python3
"""Holds the linear programs, knapsacks, bounds and packings of core/pack against HiGHS.

  pack_oracle.py PACK_ANSWERS [CASES [SEED]]

PACK_ANSWERS prints random problems and what core/pack answers; all expected numbers come from HiGHS. Tolerances:

  linear programs         1e-6 of the penalty per row, since core moves right sides by about 1e-7
  knapsacks               kKnapsackTolerance, by which core may miss the best
  relaxations             1e-3, twice that, without limits; none is below the solver's, no bound above it, to 1e-6
  bounds                  none is above the solver's by more than 1e-6
  packings                none is below the solver's; CHEAPEST of them cost as little, and all of them together at
                          most COST times as much. Large ones cost at most LARGE times what their relaxations do.
"""

import collections
import json
import subprocess
import sys

from packings import PatternProgram, placeable, relaxation, resource_relaxation
from solver import NoSolution, Program

CLOSE = 1e-6
RELAXED = 1e-3
CHEAPEST = 0.96
COST = 1.002
LARGE = 1.02


class Failed(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failed(what)


def not_above(bound, cost, what):
    expect(bound <= cost * (1 + CLOSE) + CLOSE, f"{what}: {bound} is above {cost}")


class Tally:
    """How good the packings are altogether."""

    def __init__(self):
        self.compared, self.cheapest, self.cost, self.least = 0, 0, 0.0, 0.0
        self.large, self.large_cost, self.relaxed = 0, 0.0, 0.0

    def add(self, cost, least):
        self.compared += 1
        self.cheapest += cost <= least + CLOSE
        self.cost += cost
        self.least += least

    def add_large(self, cost, relaxed):
        self.large += 1
        self.large_cost += cost
        self.relaxed += relaxed

    def check(self):
        print(f"{self.cheapest} of {self.compared} small packings cost as little as can be, all together "
              f"{self.cost / self.least:.5f} of it; {self.large} large ones cost {self.large_cost / self.relaxed:.5f} "
              "of their relaxations")
        expect(self.cheapest >= CHEAPEST * self.compared, "too few packings are the cheapest")
        expect(self.cost <= COST * self.least, "packings cost too much")
        expect(self.large_cost <= LARGE * self.relaxed, "large packings cost too much")


# --- linear programs ----------------------------------------------------------------------------------------------


def check_covering_lp(question, answer, _):
    demands, limits, penalty = question["demands"], question["limits"], question["penalty"]
    stages = answer["stages"]
    tolerance = CLOSE * penalty * (len(demands) + len(limits))
    for stage in stages:
        columns = question["columns"][:len(stage["values"])]
        program = Program()
        for demand in demands:
            program.add_row(lower=demand)
        for limit in limits:
            program.add_row(upper=limit)
        for column in columns:
            program.add_column(column["cost"], column["entries"])
        for row in range(len(demands)):
            program.add_column(penalty, [(row, 1)])
        least = program.solve()[0]
        expect(stage["solved"], "was not solved")
        expect(abs(stage["objective"] - least) <= tolerance, f"costs {stage['objective']}, not {least}")
        # The values reach that cost ...
        sums = [0.0] * (len(demands) + len(limits))
        for column, value in zip(columns, stage["values"]):
            expect(value >= 0, "a value is below 0")
            for row, factor in column["entries"]:
                sums[row] += factor * value
        missing = sum(max(0.0, demand - got) for demand, got in zip(demands, sums))
        cost = sum(column["cost"] * value for column, value in zip(columns, stage["values"])) + penalty * missing
        expect(abs(cost - least) <= tolerance, f"the values cost {cost}, not {least}")
        for limit, got in zip(limits, sums[len(demands):]):
            not_above(got, limit, "a limit")
        # ... and the prices prove that nothing can be below it.
        prices = stage["demand_prices"] + stage["limit_prices"]
        expect(all(0 <= price <= penalty * (1 + CLOSE) for price in stage["demand_prices"]), "a price of a demand")
        expect(all(price <= 0 for price in stage["limit_prices"]), "a price of a limit")
        for column in columns:
            worth = sum(prices[row] * factor for row, factor in column["entries"])
            expect(worth <= column["cost"] + CLOSE * (1 + penalty), "a column is worth more than it costs")
        worth = sum(price * right for price, right in zip(prices, demands + limits))
        expect(abs(worth - least) <= tolerance, f"the prices prove {worth}, not {least}")
    expect(len(stages[-1]["values"]) == len(question["columns"]), "a column has no value")


# --- knapsacks ----------------------------------------------------------------------------------------------------


def check_knapsack(question, answer, _):
    knapsack = Program()
    rows = [knapsack.add_row(upper=free) for free in question["free"]]
    for item in question["items"]:
        knapsack.add_column(-item["value"], list(zip(rows, item["request"])), most=item["most"], whole=True)
    best = -knapsack.solve()[0]
    worth = 0.0
    used = [0] * len(rows)
    for item, count in zip(question["items"], answer["counts"]):
        expect(0 <= count <= item["most"], "takes more than there are")
        worth += count * item["value"]
        used = [sum_ + count * amount for sum_, amount in zip(used, item["request"])]
    expect(all(sum_ <= free for sum_, free in zip(used, question["free"])), "does not fit")
    expect(abs(worth - answer["value"]) <= CLOSE, f"is worth {worth}, not {answer['value']}")
    not_above(worth, best, "the value")
    not_above(best, answer["weighed_bound"], "the best, above the bound by weights")
    not_above(best, max(answer["bound"], question["at_least"]), "the best, above the bound")
    if question["cut_short"] or best <= question["at_least"] * (1 + 2 * question["tolerance"]):
        return
    expect(worth >= best * (1 - question["tolerance"]) - CLOSE, f"is worth {worth}, not {best}")
    not_above(answer["bound"], best * (1 + 2 * question["tolerance"]), "the bound")


# --- packings -----------------------------------------------------------------------------------------------------


def check_content(problem, packing, demands, what):
    """Nothing is over-full, limits hold, and all is placed or left. Returns what is placed."""
    placed = [0] * len(problem["items"])
    nodes = [0] * len(problem["types"])
    cost = 0.0
    for run in packing["nodes"]:
        kind = problem["types"][run["type"]]
        used = [0] * len(kind["free"])
        nodes[run["type"]] += run["nodes"]
        cost += kind["cost"] * run["nodes"]
        for item, count in run["items"]:
            expect(0 < count <= kind["most"][item], f"{what}: more of an item than the type takes")
            used = [sum_ + count * amount for sum_, amount in zip(used, problem["items"][item]["request"])]
            placed[item] += count * run["nodes"]
        expect(all(sum_ <= free for sum_, free in zip(used, kind["free"])), f"{what}: a node is over-full")
    for count, kind in zip(nodes, problem["types"]):
        expect(kind["limit"] is None or count <= kind["limit"], f"{what}: more nodes than the type's limit")
    expect(problem["limit"] is None or sum(nodes) <= problem["limit"], f"{what}: more nodes than the limit of all")
    for item, left in enumerate(packing["left"]):
        expect(left >= 0 and placed[item] + left == problem["items"][item]["count"], f"{what}: an item is lost")
        expect(left == problem["items"][item]["count"] or demands[item] > 0, f"{what}: an item that nothing takes")
    expect(abs(cost - packing["cost"]) <= CLOSE, f"{what}: costs {cost}, not {packing['cost']}")
    return placed


def least_to_hold_all(problem, demands, small):
    """None: limits forbid it. Of large problems the relaxation's."""
    try:
        if small:
            return PatternProgram(problem, demands, None, whole=True).add_all().solve()
        # Missing items that cost more than everything: the relaxation holds all if that is possible.
        penalty = 1e4 * max(kind["cost"] for kind in problem["types"])
        cost = relaxation(problem, demands, penalty)
        return cost if cost < penalty / 10 else None
    except NoSolution:
        return None


def check_patterns(problem, demands, answer, small):
    patterns = answer["patterns"]
    penalty = patterns["penalty"]
    expect(penalty > max(kind["cost"] for kind in problem["types"]), "to miss an item is cheaper than a node")
    if small:
        least = PatternProgram(problem, demands, penalty, whole=False).add_all().solve()
    else:
        least = relaxation(problem, demands, penalty)
    not_above(least, patterns["objective"], "the relaxation, above core's")
    not_above(patterns["lower_bound"], least, "the bound of the relaxation")
    expect(patterns["complete"], "the relaxation was not solved")
    # By limits a tolerance grows: it is a part of what items are worth, from which what limits are worth is taken.
    if problem["limit"] is None and all(kind["limit"] is None for kind in problem["types"]):
        not_above(patterns["objective"], least * (1 + RELAXED), "the relaxation")
        not_above(least * (1 - RELAXED), patterns["lower_bound"], "the relaxation, above its bound")
    return penalty


def check_resources(problem, answer):
    demands = [item["count"] for item in problem["items"]]
    resources = answer["resources"]
    least = resource_relaxation(problem, demands)
    if sum(demands) == 0 or all(kind["limit"] == 0 for kind in problem["types"]):
        return
    if problem["limit"] == 0:
        return  # the caller asks for nothing then
    offered = [sum(kind["free"][r] * nodes for kind, nodes in zip(problem["types"], resources["nodes"]))
               for r in range(len(problem["types"][0]["free"]))]
    if resources["covers"] and least is not None:
        cost = sum(kind["cost"] * nodes for kind, nodes in zip(problem["types"], resources["nodes"]))
        expect(abs(cost - least) <= 1e-5 * (1 + least), f"nodes for the resources cost {cost}, not {least}")
        for r, amount in enumerate(offered):
            asked = sum(item["request"][r] * item["count"] for item in problem["items"])
            not_above(asked, amount * (1 + 1e-3), "a resource")
        worth = sum(price * count for price, count in zip(resources["item_prices"], demands))
        worth -= sum(price * (kind["limit"] or 0) for price, kind in zip(resources["type_prices"], problem["types"]))
        worth -= resources["price_of_all"] * (problem["limit"] or 0)
        expect(abs(worth - least) <= 1e-5 * (1 + least), f"the prices of the resources prove {worth}, not {least}")
    expect(resources["covers"] == (least is not None), "whether limits permit enough nodes")


def check_packing_of(problem, answer, tally, small):
    takes = set(placeable(problem))
    demands = [item["count"] if i in takes else 0 for i, item in enumerate(problem["items"])]
    penalty = check_patterns(problem, demands, answer, small)
    check_resources(problem, answer)
    hold_all = least_to_hold_all(problem, demands, small)
    for bound in ("bound", "exact_bound", "coarse_bound"):
        if hold_all is not None:
            not_above(answer[bound]["cost"], hold_all, bound)
    if demands == [item["count"] for item in problem["items"]] and hold_all is not None:
        for cost in answer["price_bounds"]:
            not_above(cost, hold_all, "a bound by prices")
    objectives = {}
    for way in ("pack", "exact", "coarse"):
        packing = answer[way]
        placed = check_content(problem, packing, demands, way)
        missing = sum(demands) - sum(placed)
        objectives[way] = packing["cost"] + penalty * missing
        least = hold_all if missing == 0 else least_to_hold_all(problem, placed, small)
        not_above(packing["lower_bound"], packing["cost"], f"{way}: the bound")
        not_above(packing["lower_bound"], least, f"{way}: the bound of what it holds")
    if small:
        least = PatternProgram(problem, demands, penalty, whole=True).add_all().solve()
        for way, objective in objectives.items():
            not_above(least, objective, f"the least, above {way}")
        tally.add(objectives["pack"], least)
    elif hold_all is not None and answer["pack"]["cost"] > 0 and sum(answer["pack"]["left"]) == sum(
            item["count"] for item in problem["items"]) - sum(demands):
        tally.add_large(answer["pack"]["cost"], hold_all)


CHECKS = {
    "covering_lp": check_covering_lp,
    "knapsack": check_knapsack,
    "packing": lambda question, answer, tally: check_packing_of(question, answer, tally, small=True),
    "large_packing": lambda question, answer, tally: check_packing_of(question, answer, tally, small=False),
}


def main(arguments):
    program, cases, seed = (arguments + ["600", "20260217"][len(arguments) - 1:])[:3]
    lines = subprocess.run([program, cases, seed], check=True, capture_output=True, text=True).stdout.splitlines()
    tally, counts, failed = Tally(), collections.Counter(), 0
    for number, line in enumerate(lines, start=1):
        case = json.loads(line)
        counts[case["kind"]] += 1
        try:
            CHECKS[case["kind"]](case["question"], case["answer"], tally)
        except (Failed, NoSolution) as error:
            failed += 1
            print(f"FAIL line {number} of `pack_answers {cases} {seed}`, {case['kind']}: {error}")
    try:
        tally.check()
    except Failed as error:
        failed += 1
        print(f"FAIL: {error}")
    if set(counts) != set(CHECKS):
        failed += 1
        print(f"FAIL: of some kind there is no problem: {dict(counts)}")
    print(f"{dict(counts)}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

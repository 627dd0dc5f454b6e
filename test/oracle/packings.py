"""What packings cost at least, by programs that HiGHS solves. The problems are those of core/pack/packing.h."""

from solver import INFINITE, NoSolution, Program


def copies(problem, kind, item):
    """How many of an item one node takes: by what it requests, by the type, and by how many there are."""
    request = problem["items"][item]["request"]
    fit = [free // amount for free, amount in zip(kind["free"], request) if amount > 0]
    return max(0, min(fit + [kind["most"][item], problem["items"][item]["count"]]))


def placeable(problem):
    """Items of which some type that is not forbidden takes at least one."""
    return [item for item in range(len(problem["items"]))
            if any(kind["limit"] != 0 and copies(problem, kind, item) > 0 for kind in problem["types"])]


def maximal_patterns(problem, kind):
    """All that one node of a type can hold and that nothing can be added to."""
    items = problem["items"]
    most = [copies(problem, kind, item) for item in range(len(items))]
    found = []

    def extend(item, free, counts):
        if item == len(items):
            full = all(counts[i] == most[i] or any(a > f for a, f in zip(items[i]["request"], free))
                       for i in range(len(items)))
            if full and any(counts):
                found.append(list(counts))
            return
        for count in range(most[item] + 1):
            left = [f - count * a for f, a in zip(free, items[item]["request"])]
            if min(left) < 0:
                break
            extend(item + 1, left, counts + [count])

    extend(0, kind["free"], [])
    return found


class PatternProgram:
    """How often each pattern is used. A pattern holds counts[item] of each item on a node of its type."""

    def __init__(self, problem, demands, penalty, whole):
        """`demands`: by item. `penalty`: of an item that is missing; None: none may be."""
        self.problem, self.whole, self.program = problem, whole, Program()
        self.item_rows = {item: self.program.add_row(lower=count) for item, count in enumerate(demands) if count > 0}
        self.type_rows = [None if kind["limit"] is None else self.program.add_row(upper=kind["limit"])
                          for kind in problem["types"]]
        self.row_of_all = None if problem["limit"] is None else self.program.add_row(upper=problem["limit"])
        if penalty is not None:
            for item, row in self.item_rows.items():
                self.program.add_column(penalty, [(row, 1)], most=demands[item])

    def limits(self, kind):
        return [row for row in (self.type_rows[kind], self.row_of_all) if row is not None]

    def add(self, kind, counts):
        entries = [(self.item_rows[item], count) for item, count in enumerate(counts)
                   if count > 0 and item in self.item_rows]
        entries += [(row, 1) for row in self.limits(kind)]
        self.program.add_column(self.problem["types"][kind]["cost"], entries, whole=self.whole)

    def add_all(self):
        for kind, of in enumerate(self.problem["types"]):
            for counts in maximal_patterns(self.problem, of):
                self.add(kind, counts)
        return self

    def solve(self):
        return self.program.solve()[0]


def best_pattern(problem, kind, values):
    """What is worth most on one node, and what it is worth."""
    knapsack = Program()
    rows = [knapsack.add_row(upper=free) for free in kind["free"]]
    for item, of in enumerate(problem["items"]):
        knapsack.add_column(-values[item], list(zip(rows, of["request"])), most=copies(problem, kind, item), whole=True)
    worth, counts, _ = knapsack.solve()
    return -worth, [round(count) for count in counts]


def relaxation(problem, demands, penalty):
    """The least cost of patterns in fractions of nodes; patterns are made as they are needed."""
    program = PatternProgram(problem, demands, penalty, whole=False)
    for kind, of in enumerate(problem["types"]):
        for item in range(len(demands)):
            if copies(problem, of, item) > 0:
                program.add(kind, [copies(problem, of, item) if i == item else 0 for i in range(len(demands))])
    while True:
        cost, _, prices = program.program.solve()
        values = [prices[program.item_rows[item]] if item in program.item_rows else 0 for item in range(len(demands))]
        added = 0
        for kind, of in enumerate(problem["types"]):
            paid = of["cost"] - sum(prices[row] for row in program.limits(kind))
            worth, counts = best_pattern(problem, of, values)
            if worth > paid * (1 + 1e-7) + 1e-9:
                program.add(kind, counts)
                added += 1
        if added == 0:
            return cost


def resource_relaxation(problem, demands):
    """The least cost of nodes that offer as much of each resource as the items request; None: limits forbid it."""
    program = Program()
    rows = []
    for resource in range(len(problem["types"][0]["free"])):
        asked = sum(item["request"][resource] * count for item, count in zip(problem["items"], demands))
        # In units of the most that a node offers, so that the tolerances of the solver mean the same everywhere.
        largest = max([kind["free"][resource] for kind in problem["types"] if kind["limit"] != 0] + [0])
        if asked > 0 and largest > 0:
            rows.append((resource, largest, program.add_row(lower=asked / largest)))
    row_of_all = program.add_row(upper=INFINITE if problem["limit"] is None else problem["limit"])
    for kind in problem["types"]:
        entries = [(row, kind["free"][resource] / largest) for resource, largest, row in rows]
        most = INFINITE if kind["limit"] is None else kind["limit"]
        program.add_column(kind["cost"], entries + [(row_of_all, 1)], most=most)
    try:
        return program.solve()[0]
    except NoSolution:
        return None

"""Linear programs with and without whole numbers, solved by HiGHS."""

import highspy
import numpy

INFINITE = highspy.kHighsInf


class NoSolution(Exception):
    """The program has no solution, or HiGHS did not solve it to the end."""


class Program:
    """minimize cost * x over rows lower <= a * x <= upper and 0 <= x <= most."""

    def __init__(self):
        self.costs, self.most, self.whole, self.columns = [], [], [], []
        self.lower, self.upper = [], []

    def add_row(self, lower=-INFINITE, upper=INFINITE):
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def add_column(self, cost, entries, most=INFINITE, whole=False):
        """`entries`: row and value."""
        self.costs.append(cost)
        self.most.append(most)
        self.whole.append(whole)
        self.columns.append([(row, value) for row, value in entries if value != 0])
        return len(self.costs) - 1

    def solve(self):
        """The least cost, the values of the columns, and the prices of the rows (of programs without whole numbers)."""
        if not self.costs:
            if any(bound > 0 for bound in self.lower):
                raise NoSolution("a row without columns")
            return 0.0, [], [0.0] * len(self.lower)
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("mip_rel_gap", 1e-7)
        highs.setOptionValue("mip_abs_gap", 1e-9)
        highs.passModel(self._model())
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise NoSolution(highs.modelStatusToString(highs.getModelStatus()))
        solution = highs.getSolution()
        return highs.getInfo().objective_function_value, list(solution.col_value), list(solution.row_dual)

    def _model(self):
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self.lower)
        lp.col_cost_ = numpy.array(self.costs, dtype=float)
        lp.col_lower_ = numpy.zeros(len(self.costs))
        lp.col_upper_ = numpy.array(self.most, dtype=float)
        lp.row_lower_ = numpy.array(self.lower, dtype=float)
        lp.row_upper_ = numpy.array(self.upper, dtype=float)
        starts = numpy.cumsum([0] + [len(column) for column in self.columns])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = starts.astype(numpy.int32)
        lp.a_matrix_.index_ = numpy.array([row for column in self.columns for row, _ in column], dtype=numpy.int32)
        lp.a_matrix_.value_ = numpy.array([value for column in self.columns for _, value in column], dtype=float)
        if any(self.whole):
            lp.integrality_ = [highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous
                               for whole in self.whole]
        return lp

#!/usr/bin/env python3
"""run_vectors tells right rows from wrong ones, and fails on what it cannot run.

  run_vectors_test.py RUN_VECTORS
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

RUN_VECTORS = None

META = {"_meta": {"file": "limit_score"}}
# Two nodes of 4 and 16 cores that hold 2: 50 and 87 in whole numbers.
RIGHT = {
    "id": "T-1", "fn": "limit_score",
    "in": {"weights": {"cpu": 1}, "nodes": [{"allocatable": {"cpu": 4000}, "limits": {"cpu": 2000}},
                                            {"allocatable": {"cpu": 16000}, "limits": {"cpu": 2000}}]},
    "want": {"raw_sum_int": [50, 87], "raw_sum_exact": ["50", "175/2"], "norm_int": [0, 100]},
}
GO = {"id": "T-2", "fn": "quantise", "in": {"scores": [0, 4, 5, 100]}, "want": {"half_up": [0, 0, 1, 10]}}


def changed(row, **changes):
    result = copy.deepcopy(row)
    for key, value in changes.items():
        result[key] = value
    return result


class RunVectorsTest(unittest.TestCase):
    def run_lines(self, *lines):
        """Exit code and printed lines for one file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for line in lines:
                    file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
            run = subprocess.run([RUN_VECTORS, path], capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()

    def assert_run(self, lines, code, counts, others="0 peer, 0 overruled", says=None):
        got_code, printed = self.run_lines(*lines)
        self.assertEqual(printed[-1], counts, printed)
        self.assertEqual(printed[-2], others, printed)
        self.assertEqual(got_code, code)
        if says is None:
            self.assertEqual(len(printed), 2, printed)
        else:
            self.assertEqual(len(printed), 3, printed)
            for text in says:
                self.assertIn(text, printed[0])

    def test_right_row_passes(self):
        self.assert_run([META, RIGHT], 0, "1 passed, 0 failed")

    def test_wrong_row_fails_and_shows_what_differs(self):
        row = changed(RIGHT, want={"raw_sum_int": [50, 88], "norm_int": [0, 100]})
        self.assert_run([META, RIGHT, changed(row, id="T-3")], 1, "1 passed, 1 failed",
                        says=["T-3", '{"raw_sum_int":[50,88]}', '{"raw_sum_int":[50,87]}'])

    def test_exact_score_that_is_off_by_more_than_the_tolerance_fails(self):
        for fraction, passes in [("175/2", True), ("183500801/2097152", True), ("91750403/1048576", False)]:
            row = changed(RIGHT, want={"raw_sum_exact": ["50", fraction]})
            code, printed = self.run_lines(META, row)
            self.assertEqual(code == 0, passes, (fraction, printed))

    def test_null_means_that_all_scores_are_zero(self):
        self.assert_run([META, changed(RIGHT, want={"norm_int": None})], 1, "0 passed, 1 failed", says=["norm_int"])

    def test_unknown_function_fails(self):
        self.assert_run([META, changed(RIGHT, fn="no_such_function")], 1, "0 passed, 1 failed",
                        says=["unknown fn no_such_function"])

    def test_key_that_nothing_answers_fails(self):
        self.assert_run([META, changed(RIGHT, want={"raw_sum_int": [50, 87], "no_such_key": 1})], 1,
                        "0 passed, 1 failed", says=["no_such_key"])

    def test_row_that_cannot_be_run_fails(self):
        self.assert_run([META, changed(RIGHT, **{"in": {"weights": {"cpu": 1}}})], 1, "0 passed, 1 failed",
                        says=["T-1", "cannot be run"])

    def test_broken_line_fails(self):
        self.assert_run([META, RIGHT, '{"id": "T-3", "fn"'], 1, "1 passed, 1 failed", says=["rows.jsonl:3"])

    def test_id_of_another_row_fails(self):
        self.assert_run([META, RIGHT, RIGHT], 1, "1 passed, 1 failed", says=["taken"])

    def test_rows_of_other_programs_are_counted_apart(self):
        self.assert_run([META, RIGHT, {"id": "T-3", "fn": "nodes_to_score", "in": {}, "want": {"scored": [1]}}],
                        0, "1 passed, 0 failed", others="1 peer, 0 overruled")
        self.assert_run([META, changed(RIGHT, want={"norm_int": [0, 100], "norm_round": [1, 2]})],
                        0, "1 passed, 0 failed")

    def test_rows_of_go_functions(self):
        self.assert_run([META, GO], 0, "1 passed, 0 failed")
        self.assert_run([META, RIGHT, changed(GO, want={"half_up": [0, 0, 0, 10]})], 1, "1 passed, 1 failed",
                        says=["T-2"])

    def test_missing_file_fails(self):
        run = subprocess.run([RUN_VECTORS, "/nonexistent.jsonl"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(subprocess.run([RUN_VECTORS], capture_output=True).returncode, 2)


if __name__ == "__main__":
    RUN_VECTORS = sys.argv.pop(1)
    unittest.main()

#!/usr/bin/env python3
"""What tools/check_long.py writes of a run, and keeps of former ones."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_long  # noqa: E402

OLD = ["1 May 2026, 10:00 UTC", "abcdef0", "2 cpus", "7 min", "nothing"]
NEW = ["2 May 2026, 10:00 UTC", "abcdef1", "4 cpus", "3 min", "FAILED: x"]


class PageTest(unittest.TestCase):
    def test_a_page_says_what_was_written_into_it(self):
        rows = {"test-asan": OLD, "fuzz": NEW}
        read = check_long.rows_of(check_long.page_of(rows))
        self.assertEqual(read, {name: rows.get(name, check_long.NEVER) for name in check_long.CHECKS})

    def test_every_check_is_a_target_of_make(self):
        targets = re.findall(r"(?m)^([\w.-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
        self.assertEqual(set(check_long.CHECKS) - set(targets), set())

    def test_the_page_of_the_tree_is_of_this_form(self):
        page = check_long.PAGE.read_text(encoding="utf-8")
        self.assertEqual(page, check_long.page_of(check_long.rows_of(page)))


class FoundTest(unittest.TestCase):
    def test_success_finds_nothing_whatever_the_log_says(self):
        self.assertEqual(check_long.found_in("FAIL\n", 0, "/tree"), "nothing")

    def test_the_last_three_lines_that_tell(self):
        log = "error: a\nok\nFAIL b\n--- FAIL: /tree/c|d\nmake: *** [x] Error 2\n"
        self.assertEqual(check_long.found_in(log, 2, "/tree"),
                         "FAILED: FAIL b; --- FAIL: c/d; make: *** [x] Error 2")

    def test_a_log_that_tells_nothing_gives_its_last_line_and_long_text_is_cut(self):
        self.assertEqual(check_long.found_in("killed\n", 1, "/tree"), "FAILED: killed")
        self.assertEqual(check_long.found_in("", 1, "/tree"), "FAILED:")
        self.assertEqual(len(check_long.found_in("FAIL" + "x" * 1000, 1, "/tree")), check_long.MOST_TEXT)


class MainTest(unittest.TestCase):
    def main(self, page, names, results):
        """Runs main() with these results of checks; its status and the page after each check."""
        pages = []

        def run(name):
            pages.append(page.read_text(encoding="utf-8"))
            return results[name]

        with mock.patch.object(check_long, "run", run), mock.patch.object(check_long, "PAGE", page), \
                mock.patch.object(check_long, "ROOT", page.parent), \
                mock.patch.object(check_long, "LOGS", page.parent / "logs"), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = check_long.main(names)
        return status, [check_long.rows_of(text) for text in pages[1:] + [page.read_text(encoding="utf-8")]]

    def test_rows_of_other_checks_stay_and_each_run_is_written_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(check_long.page_of({"mutants": OLD, "fuzz": OLD}), encoding="utf-8")
            status, pages = self.main(page, ["fuzz", "test-asan"], {"fuzz": NEW, "test-asan": OLD})
        self.assertEqual(status, 1)
        self.assertEqual([rows["fuzz"] for rows in pages], [NEW, NEW])
        self.assertEqual([rows["test-asan"] for rows in pages], [check_long.NEVER, OLD])
        self.assertEqual([rows["mutants"] for rows in pages], [OLD, OLD])

    def test_unknown_checks_are_refused_and_success_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("", encoding="utf-8")
            self.assertEqual(self.main(page, ["build"], {})[0], 2)
            self.assertEqual(page.read_text(encoding="utf-8"), "")
            self.assertEqual(self.main(page, ["fuzz"], {"fuzz": OLD})[0], 0)


if __name__ == "__main__":
    unittest.main()

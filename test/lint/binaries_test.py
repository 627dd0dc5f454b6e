#!/usr/bin/env python3
"""What libloadline.so and loadlined are from outside: exported symbols, header, hardening, how they find each other.

  binaries_test.py --cc CC --cxx CXX --library libloadline.so --daemon loadlined --paths released|any
"""

import argparse
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "plugin" / "abi" / "loadline.h"
FUNCTIONS = ["loadline_call", "loadline_create", "loadline_destroy", "loadline_error_details", "loadline_free",
             "loadline_try_call", "loadline_version"]

arguments = None


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compile_header(compiler, language, standard):
    return subprocess.run(
        [compiler, "-x", language, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror",
         "-Wstrict-prototypes" if language == "c" else "-Wold-style-cast", "-fsyntax-only", "-"],
        input=f'#include "{HEADER}"\n', capture_output=True, text=True)


class LibraryTest(unittest.TestCase):
    def test_exports_exactly_the_abi(self):
        symbols = output("nm", "-D", "--defined-only", arguments.library).splitlines()
        exported = [line.split()[-1].split("@")[0] for line in symbols if line.split()[-2] != "A"]
        self.assertEqual(sorted(exported), FUNCTIONS)

    def test_header_declares_exactly_the_abi(self):
        declared = re.findall(r"^[a-z].*?\b(loadline_\w+)\(", HEADER.read_text(), re.M)
        self.assertEqual(sorted(declared), FUNCTIONS)

    def test_header_compiles_as_c_and_as_cxx(self):
        for compiler, language, standard in [(arguments.cc, "c", "c11"), (arguments.cxx, "c++", "c++20")]:
            result = compile_header(compiler, language, standard)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_needs_one_protobuf_runtime_and_no_grpc(self):
        needed = " ".join(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", arguments.library)))
        self.assertIn("libprotobuf.so", needed)
        self.assertNotIn("libprotobuf-lite", needed)
        self.assertNotIn("grpc", needed)


class PathsTest(unittest.TestCase):
    def test_sources_are_named_by_their_place_in_the_tree(self):
        if arguments.paths != "released":
            self.skipTest("only what is released is the same wherever it was built")
        for path in (arguments.library + ".debug", arguments.daemon):
            with self.subTest(path):
                names = re.findall(r"\]  (.*)", output("readelf", "--string-dump=.debug_line_str", path))
                self.assertTrue(any(name.startswith("./plugin/") for name in names), names[:5])
                elsewhere = [name for name in names if name.startswith(("..", "CMakeFiles", "gen/", str(ROOT)))]
                self.assertEqual(elsewhere, [])


class HardeningTest(unittest.TestCase):
    def test_both(self):
        for path in (arguments.library, arguments.daemon):
            with self.subTest(path):
                headers = output("readelf", "-W", "-l", path)
                stack = next(line for line in headers.splitlines() if "GNU_STACK" in line)
                self.assertNotIn("E", stack.split("GNU_STACK")[1].replace("0x", ""), "executable stack")
                self.assertIn("GNU_RELRO", headers)
                self.assertIn("BIND_NOW", output("readelf", "-d", path))
                self.assertIn("__stack_chk_fail", output("nm", "-D", "--undefined-only", path))

    def test_daemon_is_position_independent(self):
        flags = output("readelf", "-d", arguments.daemon)
        self.assertRegex(flags, r"FLAGS_1\).*PIE")

    def test_daemon_finds_the_library_beside_it(self):
        self.assertRegex(output("readelf", "-d", arguments.daemon), r"RUNPATH\).*\[\$ORIGIN/\.\./lib\]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--cc", "--cxx", "--library", "--daemon", "--paths"):
        parser.add_argument(name, required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

#!/usr/bin/env python3
"""Each check of tools/lint finds what it is there for, and lets good input pass."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "lint"), str(ROOT / "tools")]

import comments  # noqa: E402
import documents  # noqa: E402
import file_sizes  # noqa: E402
import folder_pages  # noqa: E402
import include_rules  # noqa: E402
import package_versions  # noqa: E402
import proto_compat  # noqa: E402
import proto_lint  # noqa: E402
import wall_clock  # noqa: E402
import ways  # noqa: E402

GOOD_PROTO = """
syntax = "proto3";
package loadline.v1;

// Answers.
service Answers {
  // Gives one answer.
  rpc Ask(AskRequest) returns (AskResponse);
}

// A question.
message AskRequest {
  // The kinds of answers.
  enum Kind {
    KIND_UNSPECIFIED = 0;  // refused
    // All of it.
    ALL = 1;
  }
  // Name of the view.
  string view = 1;
  // Slots in the view;
  // see Slot.
  repeated int32 slots = 2;
  Kind kind = 3;  // of the answer
  reserved 4, 6 to 8;
  reserved "old_name";
}

// The answer.
message AskResponse {}
"""


class ProtoLintTest(unittest.TestCase):
    def problems(self, old="", new=""):
        self.assertIn(old, GOOD_PROTO)
        found = proto_lint.lint("x.proto", GOOD_PROTO.replace(old, new, 1) if old else GOOD_PROTO)
        return [p.split(": ", 1)[1] for p in found]

    def test_good_file_passes(self):
        self.assertEqual(self.problems(), [])

    def test_missing_comments(self):
        for old, name in [
            ("// Answers.\n", "service Answers"),
            ("  // Gives one answer.\n", "rpc Answers.Ask"),
            ("// A question.\n", "message AskRequest"),
            ("  // The kinds of answers.\n", "enum Kind"),
            ("  // refused", "value Kind.KIND_UNSPECIFIED"),
            ("    // All of it.\n", "value Kind.ALL"),
            ("  // Name of the view.\n", "field AskRequest.view"),
            ("  // of the answer", "field AskRequest.kind"),
        ]:
            with self.subTest(name):
                self.assertEqual(self.problems(old, ""), [f"{name} has no comment of its own"])

    def test_comment_is_of_one_element(self):
        none = ["field AskRequest.slots has no comment of its own"]
        self.assertEqual(self.problems("  // Slots in the view;\n  // see Slot.\n"), none)  # the one above is of `view`
        self.assertEqual(self.problems("  // see Slot.\n", "\n"), none)
        self.assertEqual(self.problems("// Slots in the view;\n  // see Slot.\n", "// See view.\n"), none)
        self.assertEqual(self.problems("// Slots in the view;\n  // see Slot.\n", "// See Other.slots.\n"), none)

    def test_what_others_define_needs_no_comment(self):
        others = "\n".join(line for line in GOOD_PROTO.replace("loadline.v1", "expander").splitlines()
                           if not line.strip().startswith("//"))
        self.assertEqual(proto_lint.lint("x.proto", others), [])

    def test_numbers_and_names(self):
        self.assertEqual(self.problems("slots = 2", "slots = 1"), ["AskRequest.slots: number 1 is that of view"])
        self.assertEqual(self.problems("slots = 2", "slots = 7"), ["AskRequest.slots: number 7 is reserved"])
        self.assertEqual(self.problems("slots = 2", "old_name = 2"), ["AskRequest.old_name: the name is reserved"])
        self.assertEqual(self.problems("slots = 2", "view = 2"), ["AskRequest.view: the name is taken"])

    def test_case(self):
        self.assertEqual(self.problems("string view", "string viewName"), ["AskRequest.viewName is not snake_case"])
        self.assertEqual(self.problems("ALL = 1", "All = 1"), ["Kind.All is not UPPER_SNAKE_CASE"])

    def test_zero_value(self):
        self.assertEqual(self.problems("KIND_UNSPECIFIED = 0;", "NONE = 0;"),
                         ["Kind: the first value is 0 and ends in _UNSPECIFIED"])

    def test_kinds_that_are_refused(self):
        self.assertEqual(self.problems("string view = 1", "map<string, string> view = 1"),
                         ["AskRequest.view is a map: a sorted repeated message has one order"])
        self.assertEqual(self.problems("string view", "uint64 view"),
                         ["AskRequest.view is unsigned: amounts are signed, hashes are fixed64"])

    def test_own_request_and_response(self):
        self.assertIn("rpc Answers.Ask takes AskRequest and returns AskResponse",
                      self.problems("(AskRequest)", "(Other)"))

    def test_what_cannot_be_read_is_a_problem(self):
        self.assertEqual(self.problems("string view = 1;", "string view 1;"),
                         ["cannot read this line of AskRequest: string view 1;"])


class ProtoCompatTest(unittest.TestCase):
    # A FileDescriptorSet by hand: file { package "p", message M { int32 a = 1 } , enum E { X = 1 },
    # service S { rpc Do(stream p.M) returns (p.M) } }.
    @staticmethod
    def field(number, content):
        if isinstance(content, int):
            return bytes([number << 3, content])
        return bytes([number << 3 | 2, len(content)]) + content

    def test_lines_tell_what_clients_depend_on(self):
        f = self.field
        a = f(1, b"a") + f(3, 1) + f(4, 3) + f(5, 5)
        self.assertEqual(list(proto_compat.message_lines("p", f(1, b"M") + f(2, a))),
                         ["message p.M", "field p.M.a = 1: repeated int32"])
        self.assertEqual(list(proto_compat.enum_lines("p", f(1, b"E") + f(2, f(1, b"X") + f(2, 1)))),
                         ["value p.E.X = 1"])
        do = f(1, b"Do") + f(2, b".p.M") + f(3, b".p.M") + f(5, 1)
        self.assertEqual(list(proto_compat.service_lines("p", f(1, b"S") + f(2, do))),
                         ["method /p.S/Do: stream p.M -> p.M"])

    def test_what_goes_or_changes_is_found(self):
        released = ["field p.M.a = 1: int32", "field p.M.b = 2: string"]
        self.assertEqual(proto_compat.missing(released, [*released, "field p.M.c = 3: bool"]), [])
        for changed in ("field p.M.b = 3: string", "field p.M.b = 2: bytes", "field p.M.c = 2: string"):
            self.assertEqual(proto_compat.missing(released, [released[0], changed]), [released[1]])

    def test_a_release_is_recorded(self):
        released = proto_compat.RELEASED.read_text(encoding="utf-8").splitlines()
        self.assertEqual(released, sorted(released))
        self.assertIn("method /loadline.v1.ClusterState/Sync: loadline.v1.SyncRequest -> loadline.v1.SyncResponse",
                      released)


class CommentsTest(unittest.TestCase):
    def problems(self, name, text):
        return [line.split(": ")[0].removeprefix(name + ":") + " " + line.split(": ")[1]
                for line in comments.problems(name, text)]

    def test_beginnings_are_found_in_each_kind_of_comment(self):
        for name, text, want in [
            ("a.h", "// Of all nodes.\n", "1 begins with Of"),
            ("a.h", "int x;\n  /// What it is.\n", "2 begins with What"),
            ("a.cc", "int x;  // Whether it is so\n", "1 begins with Whether"),
            ("a.h", "/*\n * Those of a node.\n */\n", "2 begins with Those"),
            ("a.h", "/* As that. */\n", "1 begins with As"),
            ("a.proto", "// Who is asked.\n", "1 begins with Who"),
            ("a.go", "// Which it is.\nvar x int\n", "1 begins with Which"),
            ("a.py", "x = 1  # Where it is\n", "1 begins with Where"),
            ("a.sh", "#!/bin/sh\n# So it is.\n", "2 begins with So"),
        ]:
            with self.subTest(text):
                self.assertEqual(self.problems(name, text), [want])

    def test_only_the_first_line_of_a_block_has_a_beginning(self):
        for name, text in [("a.h", "// Returns the nodes.\n// Of these one is first.\n//\n// What else.\n"),
                           ("a.h", "/* Returns the nodes.\n * Of these one is first. */\n"),
                           ("a.py", "# Returns the nodes.\n# As it is.\n"), ("a.h", "// Often so. Also a Whole.\n")]:
            with self.subTest(text):
                self.assertEqual(self.problems(name, text), [])
        self.assertEqual(self.problems("a.h", "// One.\n\n// Of two.\n"), ["3 begins with Of"])
        self.assertEqual(self.problems("a.h", "int x;  // one\n// Of two.\n"), ["2 begins with Of"])
        self.assertEqual(self.problems("a.h", "// Returns all.\n// It goes on.\n"), ['2 says "goes"'])

    def test_go_comments_begin_with_the_declared_name(self):
        for code in ["func Of(x int) {", "func (t *T) Of() {", "type Of struct {", "var Of = 1", "\tOf int"]:
            with self.subTest(code):
                self.assertEqual(self.problems("a.go", "// Of is that.\n// It has two lines.\n" + code + "\n"), [])
        self.assertEqual(self.problems("a.go", "// Of nodes.\nfunc Nodes() {\n"), ["1 begins with Of"])
        self.assertEqual(self.problems("a.h", "// Of is that.\nint Of();\n"), ["1 begins with Of"])

    def test_banned_words_are_found_and_code_is_not(self):
        for text, want in [("Holds what it was told; it goes.", ['1 says "told"', '1 says "goes"']),
                           ("Goes on.", ['1 says "Goes"']), ("Boards and goes_on, ghosted.", []),
                           ("The field `held` of a view, group.held, held() and Told::x.", []),
                           ("A left-held board-like one.", []),
                           ('The flag "goes".', [])]:
            with self.subTest(text):
                self.assertEqual(self.problems("a.h", "// " + text + "\n"), want)

        self.assertEqual(self.problems("a.go", "// told returns what was told.\nfunc told() {\n"), ['1 says "told"'])
        self.assertEqual(self.problems("a.go", "// told returns it.\nfunc other() {\n"), ['1 says "told"'])

    def test_text_is_no_comment(self):
        for name, text in [("a.cc", 'f("http://goes", \'"\', "// Of it");\n'), ("a.cc", 'R"(\n// Of it\n)";\n'),
                           ("a.cc", "int x = 10\'000;  // plain\nint y = 20\'000;\n"),
                           ("a.go", "x := `\n// Of it\n`\n"),
                           ("a.py", 'x = "# Of it"\n'), ("a.sh", 'echo "a # Of it"; echo $#Of\n')]:
            with self.subTest(text):
                self.assertEqual(self.problems(name, text), [])

        self.assertEqual(self.problems("a.cc", "x = 1\'000;  // Of 2\'000 nodes\n"), ["1 begins with Of"])

    def test_a_single_fault_is_printed_and_refused(self):
        for text, status, printed in [("// Of nodes.\n", 1, ":1: begins with Of: Of nodes.\n"), ("// One.\n", 0, "")]:
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "a.h"
                path.write_text(text, encoding="utf-8")
                out = io.StringIO()
                with mock.patch("comments.sources", return_value=[str(path)]), contextlib.redirect_stdout(out):
                    self.assertEqual(comments.main(), status)
                self.assertEqual(out.getvalue().removeprefix(str(path)), printed)

    def test_sources_are_those_of_people(self):
        names = ["core/base/amount.h", "test/lint/lint_test.py", "tools/lint.sh", "shim/api/loadlinev1/fit.pb.go",
                 "a.md"]
        self.assertEqual([name for name in names if comments.SOURCE.search(name)], names[:3])


class IncludeRulesTest(unittest.TestCase):
    def problems(self, folder, text):
        return include_rules.check_file(f"core/{folder}/x.cc", folder, text)

    def test_the_tree_passes(self):
        self.assertEqual(include_rules.check_tree(ROOT), [])

    def test_allowed(self):
        for folder, include in [
            ("base", "<vector>"), ("base", '"absl/status/statusor.h"'), ("cluster", '"core/base/quantity.h"'),
            ("score", '"core/cluster/view.h"'), ("score", '"core/score/limit_score.h"'), ("drain", '"core/fit/fit.h"'),
            ("loop", '"core/drain/plan_drain.h"'), ("loop", '"core/score/limit_score.h"'),
        ]:
            with self.subTest(f"{folder} {include}"):
                self.assertEqual(self.problems(folder, f"#include {include}\n"), [])

    def test_forbidden(self):
        for folder, include in [
            ("base", "<google/protobuf/message.h>"), ("base", "<grpcpp/grpcpp.h>"), ("base", "<chrono>"),
            ("base", "<random>"), ("base", "<iostream>"), ("base", "<ctime>"), ("base", "<thread>"),
            ("base", "<mutex>"),
            ("base", '"absl/time/clock.h"'), ("base", '"absl/log/log.h"'), ("base", '"absl/synchronization/mutex.h"'),
            ("base", '"loadline/v1/cluster_state.pb.h"'), ("base", '"plugin/convert/pods.h"'),
            ("base", '"core/cluster/view.h"'), ("cluster", '"core/fit/fit.h"'),
            ("cluster", '"core/score/limit_score.h"'),
            ("score", '"core/drain/plan_drain.h"'), ("drain", '"core/score/limit_score.h"'),
            ("drain", '"core/loop/loop.h"'),
        ]:
            with self.subTest(f"{folder} {include}"):
                self.assertEqual(len(self.problems(folder, f"int x;\n  #  include {include}\n")), 1)

    def test_calls(self):
        for code in ['const char* home = getenv("HOME");', "int r = std::rand();", "throw 1;", "try {"]:
            with self.subTest(code):
                self.assertEqual(len(self.problems("base", code)), 1)

    def test_only_a_failed_check_is_thrown(self):
        for name, found in [("core/base/check.cc", 0), ("core/base/check2.cc", 2), ("core/drain/check.cc", 2)]:
            with self.subTest(name):
                code = "#include <exception>\nthrow CheckFailed(text);"
                self.assertEqual(len(include_rules.check_file(name, name.split("/")[1], code)), found)

    def test_comments_and_strings_are_not_code(self):
        for code in ["// Reads no clock(): time() is an argument.", 'Error("do not try { this");', "/* getenv(\n) */",
                     "stats.time(3);", "retry(1);"]:
            with self.subTest(code):
                self.assertEqual(self.problems("base", code), [])


class FileSizesTest(unittest.TestCase):
    def test_bounds(self):
        self.assertEqual(file_sizes.problems("core/base/a.cc", "x\n" * 400), [])
        self.assertEqual(len(file_sizes.problems("core/base/a.cc", "x\n" * 401)), 1)
        self.assertEqual(file_sizes.problems("a.go", "x" * 120), [])
        self.assertEqual(file_sizes.problems("a.go", "\n" + "x" * 121),
                         ["a.go:2: 121 columns, at most 120 are read"])

    def test_exempt(self):
        long = "x" * 121 + "\n"
        for name in ["test/core/a_test.cc", "shim/view/view_test.go", "shim/api/loadlinev1/a.pb.go", "README.md"]:
            self.assertEqual(file_sizes.problems(name, long * 401), [])
        self.assertEqual(file_sizes.problems("a.go", f'\tName string `json:"name" help:"{long.strip()}"`\n'), [])
        self.assertEqual(file_sizes.problems("Makefile", "build: deps ## builds " + long), [])
        self.assertEqual(len(file_sizes.problems("Makefile", "\t@echo " + long)), 1)


class FolderPagesTest(unittest.TestCase):
    PAGE = "# Drains\n\n`plan_drain` decides, on a `DrainBoard`; begin with `planner.cc`.\n"
    FILES = ["plan_drain.cc", "plan_drain.h", "drain_board.h", "planner.cc"]

    def problems(self, text, files=None):
        return folder_pages.problems("core/drain", text, self.FILES if files is None else files, set(self.FILES))

    def test_good_page_passes(self):
        self.assertEqual(self.problems(self.PAGE), [])

    def test_each_fault_is_found(self):
        for text, files, part in [(self.PAGE + "\n" * 28, None, "31 lines"),
                                  (self.PAGE + "a" * 121, None, ":4: 121 columns"),
                                  (self.PAGE, self.FILES + ["timers.cc"], "does not say what timers is for"),
                                  (self.PAGE + "See `old_plan.cc`.\n", None, "there is no old_plan.cc")]:
            with self.subTest(part):
                found = self.problems(text, files)
                self.assertEqual(len(found), 1)
                self.assertIn(part, found[0])

    def test_pages_of_go_folders_name_files_or_patterns(self):
        files = ["why.go", "whynode.go", "source.go"]
        for text, want in [("`why*.go`, `source.go`; a new one is `NAME.go`\n", []),
                           ("`why.go`, `source.go`\n", ["shim/cli/README.md: does not say what whynode.go is for"]),
                           ("`why*.go`, `source`, `*`\n", ["shim/cli/README.md: does not say what source.go is for"]),
                           ("`*.go`, `old.go`\n", ["shim/cli/README.md: there is no old.go"]),
                           ("`*.go`\n" * 41, ["shim/cli/README.md: 41 lines, at most 40 are read"])]:
            with self.subTest(text):
                self.assertEqual(folder_pages.problems("shim/cli", text, files, set(files)), want)

    def test_a_test_needs_no_name(self):
        files = ["a.go", "a_test.go", "a.h", "a.cc", "a.md"]
        named = [name for name in files if folder_pages.is_source(pathlib.Path(name))]
        self.assertEqual(named, ["a.go", "a.h", "a.cc"])


class DocumentsTest(unittest.TestCase):
    LONG = "word " * 25

    def problems(self, text):
        return documents.problems("a.md", text, {"TestDemo"})

    def test_the_readme_of_the_tree_is_short(self):
        self.assertEqual(documents.problems("README.md", "a\n" * 150, set()), [])
        self.assertEqual(documents.problems("README.md", "a\n" * 151, set()),
                         ["README.md: 151 lines, at most 150 are read"])
        self.assertEqual(documents.problems("core/README.md", "a\n" * 151, set()), [])

    def test_prose_is_bounded_and_tables_and_code_are_not(self):
        self.assertEqual(self.problems(self.LONG), ["a.md:1: 125 columns, at most 120 are read"])
        self.assertEqual(len(self.problems("```\na\n```\n- " + self.LONG)), 1)
        for text in ["| " + self.LONG, "    " + self.LONG, "```sh\n" + self.LONG + "\n```", "- [a](" + "b" * 120 + ")",
                     "<!-- Written by `make x`. -->\n" + self.LONG]:
            with self.subTest(text):
                self.assertEqual(self.problems(text), [])

    def test_named_tests_are_there(self):
        self.assertEqual(self.problems("`TestDemo` and `TestGone` hold it."), ["a.md:1: there is no test TestGone"])

    def test_tests_of_both_languages_are_known(self):
        names = documents.names_of_tests(ROOT)
        self.assertTrue({"TestDemo", "NodeReasonTest"} <= names)


class ReasonsToStayTest(unittest.TestCase):
    def test_the_page_of_drains_has_a_row_for_each_reason(self):
        source = (ROOT / "core/drain/node_reason.cc").read_text(encoding="utf-8")
        page = (ROOT / "docs/drains.md").read_text(encoding="utf-8")
        section = page.split("## Reasons to stay")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE),
                         [name for name in re.findall(r'return \{"(\w+)"', source) if name != "None"])


class PackageVersionsTest(unittest.TestCase):
    LIST = "# Tested.\ncmake  3.25.1\ngit    any  # whichever\nlibgrpc++-dev 1.51.1\n"

    def test_upstream_part(self):
        for version, upstream in [("1:14.0.6-12", "14.0.6"), ("1.51.1-3+b1", "1.51.1"), ("2.0.9+ds-2", "2.0.9+ds"),
                                  ("0~1033-08b5058-3", "0~1033-08b5058"), ("12.9", "12.9")]:
            with self.subTest(version):
                self.assertEqual(package_versions.upstream(version), upstream)

    def test_other_and_missing_versions_are_named(self):
        wanted = package_versions.listed(self.LIST)
        good = {"cmake": "3.25.1", "git": "2.39.5", "libgrpc++-dev": "1.51.1"}
        self.assertEqual(package_versions.problems(wanted, good), [])
        for installed, part in [({**good, "cmake": "3.25.2"}, "cmake 3.25.2 is installed, but 3.25.1 was tested"),
                                ({**good, "libgrpc++-dev": "1.51"}, "libgrpc++-dev 1.51 is installed, but 1.51.1"),
                                ({"cmake": "3.25.1", "git": "1"}, "libgrpc++-dev is not installed: make deps")]:
            with self.subTest(part):
                found = package_versions.problems(wanted, installed)
                self.assertEqual(len(found), 1)
                self.assertIn(part, found[0])

    def test_renewed_changes_versions_and_nothing_else(self):
        self.assertEqual(package_versions.renewed(self.LIST, {"cmake": "3.26.0", "git": "3"}),
                         self.LIST.replace("3.25.1", "3.26.0"))

    def test_bad_lists(self):
        for text in ["cmake\n", "cmake 1\ncmake 2\n", " cmake 1\n"]:
            with self.subTest(text):
                self.assertRaises(ValueError, package_versions.listed, text)


class WallClockTest(unittest.TestCase):
    def test_asserted_times_are_found(self):
        for body in ["if took := time.Since(start); took > time.Second {",
                     "took := time.Since(start)\n\tif took > most {",
                     "if time.Since(start) < 200*time.Millisecond {", "if time.Since(start) > 9*time.Second {"]:
            with self.subTest(body):
                self.assertEqual(len(wall_clock.problems("x_test.go", "func TestX(t *testing.T) {\n\t" + body)), 1)

    def test_patience_virtual_time_and_logs_pass(self):
        for text in ["for start := time.Now(); time.Since(start) < 10*time.Second; {", "time.Since(start) < patience",
                     "time.Since(time.Unix(now(), 0)) > 2*time.Minute", "took := time.Since(start)\nt.Log(took)",
                     'import "testing/synctest"\nif took := time.Since(start); took > time.Second {',
                     "func A() {\n\ttook := time.Since(start)\n}\nfunc B(took int) {\n\tif took > 3 {",
                     "if time.Since(start) > rest { // clock: waits"]:
            with self.subTest(text):
                self.assertEqual(wall_clock.problems("x_test.go", text), [])


class WaysTest(unittest.TestCase):
    GOOD = ("# A comment.\ntitle: A way\nlane: a\nlane: b < c\n"
            "a: thinks\na > b < c: asks: why & how\nb < c > a: answers\n")

    def test_steps_and_messages_are_read(self):
        self.assertEqual(ways.parse("w.txt", self.GOOD), (
            "A way", ["a", "b < c"], [(0, None, "thinks"), (0, 1, "asks: why & how"), (1, 0, "answers")]))

    def test_bad_lines_are_named(self):
        for old, new, part in [("a: thinks", "d: thinks", "w.txt:5: no lane d"),
                               ("a: thinks", "thinks", "w.txt:5: not"),
                               ("a: thinks", "a > a: thinks", "w.txt:5: no lane a > a"),
                               ("title: A way\n", "", "no title"),
                               ("b < c > a: ", "b < c > a > a: ", "w.txt:7: no lane")]:
            with self.subTest(new):
                self.assertRaisesRegex(ValueError, part, ways.parse, "w.txt", self.GOOD.replace(old, new, 1))

    def test_arrows_lead_from_lane_to_lane(self):
        # Lanes are 250 apart from 20 on: their middles are 145 and 395. An arrow ends 8 before its lane.
        drawn = ways.picture("w.txt", self.GOOD)
        self.assertIn('x1="145" y1="150" x2="387" y2="150"', drawn)  # 92, a box of 26, 12 between, 16 of text and 4
        self.assertIn('x1="395"', drawn)
        self.assertIn("asks: why &amp; how", drawn)

    def test_the_pictures_of_the_documents_are_current(self):
        self.assertEqual(ways.main(["--check"]), 0)


class MutantsTest(unittest.TestCase):
    """A mutant whose text is not in the tree any more tests nothing."""

    def test_each_text_stands_exactly_once_in_its_file(self):
        mutants = tomllib.loads((ROOT / "test/mutants/mutants.toml").read_text(encoding="utf-8"))["mutant"]
        for mutant in mutants:
            with self.subTest(mutant["what"]):
                self.assertEqual((ROOT / mutant["file"]).read_text(encoding="utf-8").count(mutant["old"]), 1)


if __name__ == "__main__":
    unittest.main()

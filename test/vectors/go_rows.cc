#include "test/vectors/go_rows.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline::vectors {
namespace {

// Returns what `command` prints to both of its outputs.
std::string OutputOf(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), pclose);
  std::string output;
  char buffer[4096];
  while (pipe != nullptr) {
    const size_t size = std::fread(buffer, 1, sizeof(buffer), pipe.get());
    if (size == 0) break;
    output.append(buffer, size);
  }
  return output;
}

// Lines of `go test -v`: "=== RUN TestVectors/ID", what the test says, "--- PASS: TestVectors/ID (0.00s)".
struct Verdicts {
  std::set<std::string> passed;
  std::map<std::string, std::string> said;  // by id; under "" what belongs to no row
};

std::string IdOf(const std::string& test) { return test.substr(test.rfind('/') + 1); }

Verdicts Read(const std::string& output) {
  Verdicts verdicts;
  std::istringstream lines(output);
  std::string line;
  std::string current;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string mark, what, test;
    words >> mark >> what >> test;
    if (mark == "===") {
      current = IdOf(test);
    } else if (mark == "---") {
      if (what == "PASS:") verdicts.passed.insert(IdOf(test));
      current.clear();
    } else {
      absl::StrAppend(&verdicts.said[current], absl::StripAsciiWhitespace(line), "; ");
    }
  }
  return verdicts;
}

}  // namespace

std::map<std::string, std::string> FailedGoRows(const GoQuestion& question) {
  setenv("VECTOR_FILES", absl::StrJoin(question.files, ":").c_str(), /*overwrite=*/1);
  const Verdicts verdicts =
      Read(OutputOf(absl::StrCat("cd '" LOADLINE_SOURCE_DIR "/shim' && go test ", question.package,
                                 " -run '^TestVectors$' -count=1 -v")));

  std::map<std::string, std::string> failed;
  for (const std::string& id : question.ids) {
    const auto said = verdicts.said.find(id);
    if (verdicts.passed.contains(id)) {
      const bool differs =
          said != verdicts.said.end() && absl::StrContains(said->second, "overruled, and differs");
      if (differs == question.overruled.contains(id)) continue;
      failed[id] =
          differs ? "the Go package overrules this row" : "the Go package does not overrule this row";
      continue;
    }
    const auto all = verdicts.said.find("");
    failed[id] = said != verdicts.said.end()  ? said->second
                 : all != verdicts.said.end() ? all->second
                                              : "the Go test did not run this row";
  }
  return failed;
}

}  // namespace loadline::vectors

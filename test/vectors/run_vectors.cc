// Holds the product against rows of expected decisions.
//
//   run_vectors [--overruled=N] FILE...
//
// Prints a line for each row that failed or is overruled, then how many rows describe others or are
// overruled, then "N passed, N failed". An overruled row is run, and fails if it passes. Ends with 1 when a
// row failed, or could not be read or run, or when not exactly N rows are overruled; with 2 without a file.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "test/vectors/answers.h"
#include "test/vectors/go_rows.h"
#include "test/vectors/registry.h"
#include "test/vectors/row.h"

namespace loadline::vectors {
namespace {

class Run {
 public:
  void File(const RowFile& file);
  // After the last file: the rows of Go packages, all rows of one package in one go.
  void GoRows();
  // Prints the counts; true when nothing failed, and `overruled` rows are overruled if that is given.
  bool Finish(std::optional<int> overruled) const;

 private:
  void One(const RowFile& file, const Row& row);
  void Handle(const Row& row, Handler handler);
  void Overrule(const Row& row);
  void Fail(const std::string& id, const std::string& what);

  std::set<std::string> ids_;
  std::map<std::string, GoQuestion> go_;  // by package
  int passed_ = 0;
  int failed_ = 0;
  int peers_ = 0;
  int overruled_ = 0;
};

void Run::Fail(const std::string& id, const std::string& what) {
  std::printf("FAIL %s: %s\n", id.c_str(), what.c_str());
  ++failed_;
}

void Run::File(const RowFile& file) {
  for (const std::string& error : file.errors) Fail("line", error);
  for (const Row& row : file.rows) One(file, row);
}

void Run::One(const RowFile& file, const Row& row) {
  if (!ids_.insert(row.id).second) return Fail(row.id, "the id is taken by a row before");
  const bool overruled = OverruledReason(row.id) != nullptr;
  const Owner owner = OwnerOf(file.name, row.fn);
  switch (owner.kind) {
    case Owner::Kind::kPeer:
      ++peers_;
      return;
    case Owner::Kind::kUnknown:
      if (overruled && IsLackedOnPurpose(row.fn)) return Overrule(row);
      return Fail(row.id, "unknown fn " + row.fn);
    case Owner::Kind::kGo: {
      GoQuestion& question = go_[owner.go_package];
      question.package = owner.go_package;
      question.files.insert(std::filesystem::absolute(file.path));
      question.ids.insert(row.id);
      if (overruled) question.overruled.insert(row.id);
      return;
    }
    case Owner::Kind::kHandler:
      return Handle(row, owner.handler);
  }
}

void Run::Overrule(const Row& row) {
  std::printf("overruled %s: %s\n", row.id.c_str(), OverruledReason(row.id));
  ++overruled_;
}

void Run::Handle(const Row& row, Handler handler) {
  Answers answers(row);
  try {
    handler(row.in, &answers);
  } catch (const Json::exception& error) {
    return Fail(row.id, std::string("cannot be run: ") + error.what());
  }
  const std::map<std::string, Json> differences = answers.Differences();
  if (const char* const reason = OverruledReason(row.id)) {
    if (!differences.empty()) return Overrule(row);
    return Fail(row.id, std::string("passes, and is not overruled any more: ") + reason);
  }
  if (differences.empty()) {
    ++passed_;
    return;
  }
  Json expected = Json::object();
  for (const auto& [key, got] : differences) expected[key] = row.want.at(key);
  Fail(row.id, "expected " + expected.dump() + ", got " + Json(differences).dump());
}

void Run::GoRows() {
  for (const auto& [package, question] : go_) {
    const std::map<std::string, std::string> failed = FailedGoRows(question);
    for (const auto& [id, said] : failed) Fail(id, said);
    passed_ += static_cast<int>(question.ids.size() - failed.size());
    for (const std::string& id : question.overruled) {
      if (failed.contains(id)) continue;
      std::printf("overruled %s: %s\n", id.c_str(), OverruledReason(id));
      ++overruled_;
      --passed_;
    }
  }
}

bool Run::Finish(std::optional<int> overruled) const {
  const bool as_many = overruled.value_or(overruled_) == overruled_;
  if (!as_many) std::printf("FAIL: %d rows are overruled, not %d\n", overruled_, *overruled);
  std::printf("%d peer, %d overruled\n%d passed, %d failed\n", peers_, overruled_, passed_, failed_);
  return failed_ == 0 && as_many;
}

}  // namespace
}  // namespace loadline::vectors

int main(int argc, char** argv) try {
  constexpr absl::string_view kOverruled = "--overruled=";
  std::optional<int> overruled;
  int first = 1;
  if (argc > 1 && absl::StartsWith(argv[1], kOverruled)) {
    overruled = std::stoi(argv[1] + kOverruled.size());
    ++first;
  }
  if (argc <= first) {
    std::fprintf(stderr, "usage: run_vectors [--overruled=N] FILE...\n");
    return 2;
  }
  loadline::vectors::Run run;
  for (int i = first; i < argc; ++i) run.File(loadline::vectors::ReadRows(argv[i]));
  run.GoRows();
  return run.Finish(overruled) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "run_vectors: %s\n", error.what());
  return 1;
}

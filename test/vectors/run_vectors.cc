// Holds the product against rows of expected decisions.
//
//   run_vectors FILE...
//
// Prints a line for each row that failed, then how many rows describe others or are overruled, then
// "N passed, N failed". Ends with 1 when a row failed, or could not be read or run; with 2 without a file.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string>

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
  // Prints the counts; true when nothing failed.
  bool Finish() const;

 private:
  void One(const RowFile& file, const Row& row);
  void Handle(const Row& row, Handler handler);
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
  if (const char* const reason = OverruledReason(row.id)) {
    std::printf("overruled %s: %s\n", row.id.c_str(), reason);
    ++overruled_;
    return;
  }
  const Owner owner = OwnerOf(file.name, row.fn);
  switch (owner.kind) {
    case Owner::Kind::kPeer:
      ++peers_;
      return;
    case Owner::Kind::kUnknown:
      return Fail(row.id, "unknown fn " + row.fn);
    case Owner::Kind::kGo: {
      GoQuestion& question = go_[owner.go_package];
      question.package = owner.go_package;
      question.files.insert(std::filesystem::absolute(file.path));
      question.ids.insert(row.id);
      return;
    }
    case Owner::Kind::kHandler:
      return Handle(row, owner.handler);
  }
}

void Run::Handle(const Row& row, Handler handler) {
  Answers answers(row.want);
  try {
    handler(row.in, &answers);
  } catch (const Json::exception& error) {
    return Fail(row.id, std::string("cannot be run: ") + error.what());
  }
  const std::map<std::string, Json> differences = answers.Differences();
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
  }
}

bool Run::Finish() const {
  std::printf("%d peer, %d overruled\n%d passed, %d failed\n", peers_, overruled_, passed_, failed_);
  return failed_ == 0;
}

}  // namespace
}  // namespace loadline::vectors

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: run_vectors FILE...\n");
    return 2;
  }
  loadline::vectors::Run run;
  for (int i = 1; i < argc; ++i) run.File(loadline::vectors::ReadRows(argv[i]));
  run.GoRows();
  return run.Finish() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "run_vectors: %s\n", error.what());
  return 1;
}

// Rows that Go code answers: a Go test compares, this starts it and reads what became of each row.
#ifndef LOADLINE_TEST_VECTORS_GO_ROWS_H_
#define LOADLINE_TEST_VECTORS_GO_ROWS_H_

#include <map>
#include <set>
#include <string>

namespace loadline::vectors {

// The question to one Go package.
struct GoQuestion {
  std::string package;              // below shim/, such as "./extender"
  std::set<std::string> files;      // that hold the rows
  std::set<std::string> ids;        // of the rows
  std::set<std::string> overruled;  // those of `ids` that are to differ
};

// Runs TestVectors of the package, which gets the files in VECTOR_FILES, separated by ':', and has a subtest
// per row, named by its id; that of an overruled row passes if the row differs, and says so. Returns for each
// id that did not pass what the test said; for all of them, when the test cannot be run.
std::map<std::string, std::string> FailedGoRows(const GoQuestion& question);

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_GO_ROWS_H_

// Rows of expected decisions, as test/vectors/data/README.md describes them.
#ifndef LOADLINE_TEST_VECTORS_ROW_H_
#define LOADLINE_TEST_VECTORS_ROW_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace loadline::vectors {

using Json = nlohmann::json;

struct Row {
  std::string id;
  std::string fn;
  Json in;
  Json want;
};

// A file of rows. What cannot be read is an error with its place, and the rest is still there.
struct RowFile {
  std::string path;
  std::string name;  // of the header, such as "limit_score"
  std::vector<Row> rows;
  std::vector<std::string> errors;
};

RowFile ReadRows(const std::string& path);

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_ROW_H_

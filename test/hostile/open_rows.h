// Rows of the catalogue that are still broken, with what is wrong in the words of Findings. Who mends one
// takes its line away; the test demands it.
#ifndef LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_
#define LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_

#include <map>
#include <string>

namespace loadline {

inline constexpr size_t kOpenRows = 0;

inline const std::map<std::string, std::string>& OpenRows() {
  static const std::map<std::string, std::string>* const kRows = new std::map<std::string, std::string>{};
  return *kRows;
}

// Returns what is still wrong with a row; empty: nothing.
inline std::string OpenIn(const std::string& row) {
  const auto found = OpenRows().find(row);
  return found == OpenRows().end() ? "" : found->second;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_OPEN_ROWS_H_

// How many cases a test draws that could draw any number.
#ifndef LOADLINE_TEST_TESTING_DRAWN_CASES_H_
#define LOADLINE_TEST_TESTING_DRAWN_CASES_H_

#include <cstdlib>

namespace loadline {

// Returns `all` for `make test-drawn`, which sets LOADLINE_DRAWN_CASES, and `some`, what each run has time
// for, else.
inline int DrawnCases(int some, int all) {
  return std::getenv("LOADLINE_DRAWN_CASES") != nullptr ? all : some;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_DRAWN_CASES_H_

// Units of memory.
#ifndef LOADLINE_TEST_TESTING_UNITS_H_
#define LOADLINE_TEST_TESTING_UNITS_H_

#include <cstdint>

namespace loadline {

inline constexpr int64_t kMi = int64_t{1} << 20;
inline constexpr int64_t kGi = int64_t{1} << 30;

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_UNITS_H_

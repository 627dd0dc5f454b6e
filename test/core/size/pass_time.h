// When the passes of the tests take place.
#ifndef LOADLINE_TEST_CORE_SIZE_PASS_TIME_H_
#define LOADLINE_TEST_CORE_SIZE_PASS_TIME_H_

#include <cstdint>

namespace loadline {

inline constexpr int64_t kPassTime = 1'700'000'000'000;  // milliseconds since 1970
inline constexpr int64_t kMinute = 60'000;

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_SIZE_PASS_TIME_H_

// A span of time.
#ifndef LOADLINE_CORE_BASE_TIME_WINDOW_H_
#define LOADLINE_CORE_BASE_TIME_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// From the first second until before the other one, since 1970.
struct TimeWindow {
  int64_t from_s = 0;
  int64_t until_s = 0;
  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

// nullopt: at any time. None: never.
using TimeWindows = std::optional<std::vector<TimeWindow>>;

inline bool Contain(const TimeWindows& windows, int64_t now_s) {
  return !windows.has_value() || std::any_of(windows->begin(), windows->end(), [&](const TimeWindow& window) {
    return window.from_s <= now_s && now_s < window.until_s;
  });
}

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_TIME_WINDOW_H_

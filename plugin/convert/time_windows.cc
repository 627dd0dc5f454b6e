#include "plugin/convert/time_windows.h"

#include <cstdint>
#include <utility>

#include "plugin/convert/fields.h"

namespace loadline {

absl::StatusOr<TimeWindows> DecodeTimeWindows(const v1::TimeWindows& message, int most) {
  constexpr int64_t kLatestS = int64_t{1} << 40;
  Fields fields;
  fields.Keep(CheckSize("windows", message.windows_size(), most));
  TimeWindows windows(std::in_place);
  for (const v1::TimeWindow& window : message.windows()) {
    fields.Range("from_s", window.from_s(), 0, kLatestS);
    fields.Range("until_s", window.until_s(), window.from_s(), kLatestS);
    windows->push_back({window.from_s(), window.until_s()});
  }
  if (!fields.status().ok()) return fields.status();
  return windows;
}

}  // namespace loadline

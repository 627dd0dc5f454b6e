// A trace of machines with what they were given and what they used, hour by hour.
#ifndef LOADLINE_TEST_OVERLOAD_TRACE_H_
#define LOADLINE_TEST_OVERLOAD_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/objects.h"

namespace loadline {

// The first week is history, the rest is judged.
inline constexpr size_t kHistoryDays = 7;
inline constexpr size_t kHistoryHours = kHistoryDays * kHoursOfDay;

// A machine of the trace, which becomes a pod. What it was given is its limit.
struct Machine {
  int64_t cpu_limit = 0;     // millicores
  int64_t memory_limit = 0;  // bytes
  // The peak of each hour, in the same units.
  std::vector<double> cpu;
  std::vector<double> memory;
};

struct Trace {
  std::string name;  // of the file
  std::vector<Machine> machines;
  size_t hours = 0;  // of each machine
};

// Reads lines of "number,MHz,MiB,cpu:memory cpu:memory ...", the peaks in thousandths of what was given. A
// core is kMhzOfCore. Errors: kInvalidArgument  names file and line.
inline constexpr double kMhzOfCore = 2600;
absl::StatusOr<Trace> ReadTrace(const std::string& path);

// The profile of a machine by its first week. The trace has the peak of each hour and no samples within it. A
// collector takes the 90th percentile of all samples of CPU in an hour of the day, which no rule makes of
// seven peaks: of those the largest one is taken, as it is of memory. What is judged are the peaks of hours
// as well.
WorkloadUsage ProfileOf(const Machine& machine);

// The 95th percentile of the peaks of the first week, as the nearest rank.
double HistoryPercentile95(const std::vector<double>& peaks);

}  // namespace loadline

#endif  // LOADLINE_TEST_OVERLOAD_TRACE_H_

#include "test/overload/trace.h"

#include <algorithm>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace loadline {
namespace {

constexpr double kMib = 1024 * 1024;

absl::StatusOr<Machine> ReadMachine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ',');
  int64_t mhz = 0;
  int64_t mib = 0;
  if (fields.size() != 4 || !absl::SimpleAtoi(fields[1], &mhz) || !absl::SimpleAtoi(fields[2], &mib) ||
      mhz <= 0 || mib <= 0) {
    return absl::InvalidArgumentError("is not number,MHz,MiB,peaks");
  }
  Machine machine;
  const double cores = static_cast<double>(mhz) / kMhzOfCore;
  machine.cpu_limit = static_cast<int64_t>(cores * 1000);
  machine.memory_limit = static_cast<int64_t>(static_cast<double>(mib) * kMib);
  for (const absl::string_view peak : absl::StrSplit(fields[3], ' ', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(peak, ':');
    int64_t cpu = 0;
    int64_t memory = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &cpu) || !absl::SimpleAtoi(parts[1], &memory) ||
        cpu < 0 || memory < 0) {
      return absl::InvalidArgumentError(absl::StrCat("hour ", machine.cpu.size(), " is not cpu:memory"));
    }
    machine.cpu.push_back(static_cast<double>(cpu * machine.cpu_limit) / 1000);
    machine.memory.push_back(static_cast<double>(memory) * static_cast<double>(machine.memory_limit) / 1000);
  }
  return machine;
}

// The largest peak in one hour of the day of the history.
double LargestOf(const std::vector<double>& peaks, size_t hour) {
  double largest = 0;
  for (size_t day = 0; day < kHistoryDays; ++day) {
    largest = std::max(largest, peaks[day * kHoursOfDay + hour]);
  }
  return largest;
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  Trace trace;
  trace.name = path.substr(path.rfind('/') + 1);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto refused = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", why));
    };
    absl::StatusOr<Machine> machine = ReadMachine(line);
    if (!machine.ok()) return refused(machine.status().message());
    if (trace.hours == 0) trace.hours = machine->cpu.size();
    if (machine->cpu.size() != trace.hours) {
      return refused(absl::StrCat("has ", machine->cpu.size(), " hours, not ", trace.hours));
    }
    trace.machines.push_back(*std::move(machine));
  }
  if (trace.hours <= kHistoryHours) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", trace.hours, " hours, and a week of history"));
  }
  return trace;
}

WorkloadUsage ProfileOf(const Machine& machine) {
  WorkloadUsage usage;
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    usage.cpu_milli[hour] = std::max<int64_t>(1, static_cast<int64_t>(LargestOf(machine.cpu, hour)));
    usage.memory_bytes[hour] = std::max<int64_t>(1, static_cast<int64_t>(LargestOf(machine.memory, hour)));
  }
  usage.cpu_limit_milli = machine.cpu_limit;
  usage.memory_limit_bytes = machine.memory_limit;
  usage.days = kHistoryDays;
  usage.newest_s = kHistoryHours * 3600;
  return usage;
}

double HistoryPercentile95(const std::vector<double>& peaks) {
  std::vector<double> week(peaks.begin(), peaks.begin() + kHistoryHours);
  const size_t rank = (kHistoryHours * 95 + 99) / 100;
  std::nth_element(week.begin(), week.begin() + static_cast<std::ptrdiff_t>(rank - 1), week.end());
  return week[rank - 1];
}

}  // namespace loadline

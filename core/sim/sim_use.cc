#include "core/sim/sim_use.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/score/limit_policy.h"
#include "core/sim/shapes_of.h"

namespace loadline {
namespace {

constexpr int64_t kAllOfPeak = 100;

// The courses of CPU, in percent of the peak. Chosen for what their names say: offices are busy for eight
// hours with an hour or two on both sides, jobs of the night are done before the morning.
constexpr HourlyAmounts kOfficeHours = {15,  15,  15,  15,  15,  15, 15, 40, 70, 100, 100, 100,
                                        100, 100, 100, 100, 100, 60, 40, 15, 15, 15,  15,  15};
constexpr HourlyAmounts kNightBatch = {100, 100, 100, 100, 100, 50, 10, 10, 10, 10, 10, 10,
                                       10,  10,  10,  10,  10,  10, 10, 10, 10, 10, 10, 60};

int64_t ShareOfPeak(SimUsePattern pattern, size_t hour) {
  switch (pattern) {
    case SimUsePattern::kHours:
    case SimUsePattern::kFlat:
      return kAllOfPeak;
    case SimUsePattern::kOfficeHours:
      return kOfficeHours[hour];
    case SimUsePattern::kNightBatch:
      return kNightBatch[hour];
  }
  return kAllOfPeak;
}

// Returns shares of the limit, in hundredths of a percent, rounded up.
int64_t AmountOf(int64_t limit, int64_t ten_thousandths) {
  constexpr int64_t kWhole = 10'000;
  return static_cast<int64_t>((absl::int128(limit) * ten_thousandths + kWhole - 1) / kWhole);
}

int64_t Capped(int64_t amount, int64_t limit) { return limit > 0 ? std::min(amount, limit) : amount; }

// Counts as a line does by default.
void AddLine(ResourceId resource, int64_t limits, int64_t expected, LoadLine* line) {
  const ScoredResource scored =
      StrictPolicy({{std::string(LineResourceName(resource)), 1}}).resources.front();
  const LimitRules rules = {scored.best_effort, scored.others};
  if (limits > 0) {
    line->sums.resources.push_back({resource, rules});
    line->lines.push_back(limits);
  }
  if (expected > 0) AddExpectedLine(resource, rules, expected, line);
}

}  // namespace

SimHours HoursOf(const SimWorkload& workload) {
  SimHours hours;
  if (!workload.use.has_value()) return hours;
  const SimUse& use = *workload.use;
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    if (use.pattern == SimUsePattern::kHours) {
      hours.cpu[hour] = Capped(use.cpu_milli[hour], workload.limit.cpu);
      hours.memory[hour] = Capped(use.memory_bytes[hour], workload.limit.memory);
      continue;
    }
    const size_t at = (hour + kHoursOfDay - static_cast<size_t>(use.phase_hours)) % kHoursOfDay;
    const int64_t share = ShareOfPeak(use.pattern, at);
    hours.cpu[hour] = AmountOf(workload.limit.cpu, use.cpu_peak_percent * share);
    hours.memory[hour] = AmountOf(workload.limit.memory, use.memory_peak_percent * (kAllOfPeak + share) / 2);
  }
  return hours;
}

std::string SimProfileName(const SimWorkload& workload) {
  return absl::StrCat(Name(ShapesOf::KindOf(workload)), "/", workload.name);
}

std::shared_ptr<const ExpectedUse> SimProfiles(const Scenario& scenario) {
  const ExpectedUseOptions& options = scenario.settings.expected_use;
  if (!options.on) return nullptr;
  // Profiles are neither new nor stale: a scenario states what is known all the time.
  constexpr int32_t kDays = 365;
  constexpr int64_t kNowS = int64_t{1} << 31;
  ClusterObjects objects;
  for (const SimWorkload& workload : scenario.workloads) {
    if (!workload.use.has_value()) continue;
    const SimHours hours = HoursOf(workload);
    ClusterObject object;
    object.key = {ObjectKind::kWorkloadUsage, kSimNamespace, SimProfileName(workload)};
    object.content =
        WorkloadUsage{.cpu_milli = hours.cpu, .memory_bytes = hours.memory, .days = kDays, .newest_s = kNowS};
    objects.Set(std::move(object));
  }
  return std::make_shared<const ExpectedUse>(options, objects, kNowS);
}

LoadLine SimLoadLine(const Scenario& scenario) {
  const SimSettings& settings = scenario.settings;
  LoadLine line;
  AddLine(kCpu, settings.limits_line.cpu, settings.expected_line.cpu, &line);
  AddLine(kMemory, settings.limits_line.memory, settings.expected_line.memory, &line);
  if (!line.HasHours()) return line;
  line.expected_use = settings.expected_use;
  line.sums.expected = SimProfiles(scenario);
  return line;
}

}  // namespace loadline

#include "core/loop/load_rest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/cluster/pod_role.h"
#include "core/loop/waiting.h"

namespace loadline {
namespace {

// Chosen, see load_rest.h.
constexpr int64_t kSamePercent = 5;
constexpr double kPassesWithinParts = 10;  // of the payback
constexpr double kMostHours = 7 * 24;
constexpr int64_t kLeastPercent = 90;
// The most that counts of the load of an hour, in millicores and in MiB: a sum of an hour does not overflow.
constexpr int64_t kMostPerHour = int64_t{1} << 40;
constexpr int64_t kHourMs = 3'600'000;

bool IsLoad(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  return !shape.finished && !traits.mirror && !traits.static_pod && !GivesWay(traits) &&
         !OfKnownDaemonSet(shape, objects);
}

CpuMemory Requests(const PodShape& shape) { return {shape.requests.Get(kCpu), shape.requests.Get(kMemory)}; }

bool IsSame(int64_t before, int64_t now) {
  const absl::int128 difference = absl::int128(before) - now;
  return (difference < 0 ? -difference : difference) * 100 <= absl::int128(before) * kSamePercent;
}

// Returns the hours in steps of `least_hours` that double; `least_hours` if they are fewer.
double InSteps(double least_hours, double hours) {
  double step = least_hours;
  while (step < kMostHours && std::min(2 * step, kMostHours) <= hours) step = std::min(2 * step, kMostHours);
  return step;
}

// The load of an hour, and the highest load of lately.
bool IsAlike(int64_t hour, int64_t lately) {
  return absl::int128(hour) * 100 >= absl::int128(lately) * kLeastPercent &&
         absl::int128(hour) * 100 <= absl::int128(lately) * (100 + kSamePercent);
}

CpuMemory InMiB(const CpuMemory& load) {
  return {std::min(load.cpu, kMostPerHour), std::min(load.memory >> 20, kMostPerHour)};
}

CpuMemory MeanOf(const HourOfLoad& hour) {
  return {hour.sum.cpu / hour.known_ms, hour.sum.memory / hour.known_ms};
}

// Returns the time since which the load was, hour by hour, like the load of lately.
int64_t AlikeSinceMs(const RestingLoad& load) {
  if (load.hours.empty()) return load.since_ms;
  CpuMemory lately = InMiB(load.last);
  const int64_t now = load.last_ms / kHourMs;
  for (const HourOfLoad& hour : load.hours) {
    if (hour.hour == now - 1) lately = Larger(lately, MeanOf(hour));
  }
  int64_t since_ms = load.last_ms;
  for (auto hour = load.hours.rbegin(); hour != load.hours.rend(); ++hour) {
    if (hour->hour >= now) continue;
    const CpuMemory mean = MeanOf(*hour);
    if (!IsAlike(mean.cpu, lately.cpu) || !IsAlike(mean.memory, lately.memory)) break;
    since_ms = (hour->hour + 1) * kHourMs - hour->known_ms;
  }
  return since_ms;
}

int64_t PassesWithinMs(double payback_hours) {
  return static_cast<int64_t>(std::ceil(payback_hours * 3'600'000 / kPassesWithinParts));
}

}  // namespace

CpuMemory LoadOf(const ClusterState& cluster, std::span<const PendingPods> waiting) {
  CpuMemory load;
  const std::span<const int64_t> pods = cluster.pods_of_shape();
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == 0) continue;
    const PodShape& shape = cluster.pod_shapes()[static_cast<int32_t>(i)];
    if (IsLoad(shape, cluster.objects())) load = Plus(load, Times(Requests(shape), pods[i]));
  }
  for (const PendingPods& entry : waiting) {
    if (IsLoad(entry.pod.shape, cluster.objects()))
      load = Plus(load, Times(Requests(entry.pod.shape), entry.count));
  }
  return load;
}

RestingLoad FollowLoad(const std::optional<RestingLoad>& before, const CpuMemory& load, double payback_hours,
                       int64_t now_ms) {
  if (!before.has_value()) return {.load = load, .since_ms = now_ms, .last = load, .last_ms = now_ms};
  RestingLoad next = *before;
  if (IsSame(before->load.cpu, load.cpu) && IsSame(before->load.memory, load.memory)) {
    next.away_since_ms.reset();
    return next;
  }
  if (!next.away_since_ms.has_value()) next.away_since_ms = now_ms;
  if (now_ms - *next.away_since_ms < PassesWithinMs(payback_hours)) return next;
  next.load = load;
  next.since_ms = *std::exchange(next.away_since_ms, std::nullopt);
  return next;
}

void FollowHours(const CpuMemory& load, int64_t now_ms, RestingLoad* resting) {
  const CpuMemory last = InMiB(resting->last);
  const int64_t first_hour = now_ms / kHourMs - kMostHoursOfLoad + 1;
  std::vector<HourOfLoad>& hours = resting->hours;
  for (int64_t at_ms = std::max(resting->last_ms, first_hour * kHourMs); at_ms < now_ms;) {
    const int64_t hour = at_ms / kHourMs;
    const int64_t for_ms = std::min(now_ms, (hour + 1) * kHourMs) - at_ms;
    if (hours.empty() || hours.back().hour < hour) hours.push_back({.hour = hour});
    hours.back().known_ms += for_ms;
    hours.back().sum = Plus(hours.back().sum, Times(last, for_ms));
    at_ms += for_ms;
  }
  std::erase_if(hours, [&](const HourOfLoad& hour) { return hour.hour < first_hour; });
  resting->last = load;
  resting->last_ms = now_ms;
}

double SavingLastsHours(double payback_hours, const std::optional<RestingLoad>& load, int64_t now_ms) {
  if (!load.has_value()) return payback_hours;
  const int64_t since_ms = std::min(load->since_ms, AlikeSinceMs(*load));
  return InSteps(payback_hours, static_cast<double>(now_ms - since_ms) / kHourMs);
}

void UseSavingLasts(double lasts_hours, ConsolidationOptions* options) {
  if (lasts_hours > options->payback_hours) options->load_rests_hours = lasts_hours;
  options->payback_hours = lasts_hours;
}

void NoteTimesOfLoad(double payback_hours, const RestingLoad& load, int64_t now_ms,
                     const std::function<void(int64_t)>& note) {
  if (load.away_since_ms.has_value()) note(*load.away_since_ms + PassesWithinMs(payback_hours));
  if (!load.hours.empty()) note((load.hours.back().hour + 1) * kHourMs);
  const int64_t since_ms = std::min(load.since_ms, AlikeSinceMs(load));
  const double hours = InSteps(payback_hours, static_cast<double>(now_ms - since_ms) / kHourMs);
  if (hours >= kMostHours) return;
  note(since_ms + static_cast<int64_t>(std::ceil(std::min(2 * hours, kMostHours) * kHourMs)));
}

}  // namespace loadline

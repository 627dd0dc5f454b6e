#include "core/replace/load_rest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/numeric/int128.h"
#include "core/cluster/pod_role.h"
#include "core/grow/waiting.h"

namespace loadline {
namespace {

// Chosen, see load_rest.h.
constexpr int64_t kSamePercent = 5;
constexpr double kPassesWithinParts = 10;  // of the payback
constexpr double kMostHours = 7 * 24;

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
  if (!before.has_value()) return {load, now_ms, std::nullopt};
  RestingLoad next = *before;
  if (IsSame(before->load.cpu, load.cpu) && IsSame(before->load.memory, load.memory)) {
    next.away_since_ms.reset();
    return next;
  }
  if (!next.away_since_ms.has_value()) next.away_since_ms = now_ms;
  if (now_ms - *next.away_since_ms < PassesWithinMs(payback_hours)) return next;
  return {load, *next.away_since_ms, std::nullopt};
}

double SavingLastsHours(double payback_hours, const std::optional<RestingLoad>& load, int64_t now_ms) {
  if (!load.has_value()) return payback_hours;
  const double rest_hours = static_cast<double>(now_ms - load->since_ms) / 3'600'000;
  double hours = payback_hours;
  while (hours < kMostHours && std::min(2 * hours, kMostHours) <= rest_hours)
    hours = std::min(2 * hours, kMostHours);
  return hours;
}

void UseSavingLasts(double lasts_hours, ConsolidationOptions* options) {
  if (lasts_hours > options->payback_hours) options->load_rests_hours = lasts_hours;
  options->payback_hours = lasts_hours;
}

void NoteTimesOfLoad(double payback_hours, const RestingLoad& load, int64_t now_ms,
                     const std::function<void(int64_t)>& note) {
  if (load.away_since_ms.has_value()) note(*load.away_since_ms + PassesWithinMs(payback_hours));
  const double hours = SavingLastsHours(payback_hours, load, now_ms);
  if (hours >= kMostHours) return;
  note(load.since_ms + static_cast<int64_t>(std::ceil(std::min(2 * hours, kMostHours) * 3'600'000)));
}

}  // namespace loadline

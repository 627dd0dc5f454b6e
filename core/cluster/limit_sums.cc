#include "core/cluster/limit_sums.h"

#include <algorithm>

#include "core/base/check.h"

namespace loadline {

PodLimit LimitSums::LimitOfPod(const PodShape& pod, size_t resource) const {
  const LimitCounting counting{PodLimits::kEffective, MissingLimitScope::kAllPods, spec_.max_limit_ratio};
  const LimitSumsSpec::Resource& entry = spec_.resources[resource];
  PodLimit limit = PodLimitOf(counting, entry.rules, entry.id, pod, PodRole::kExisting);
  if (!entry.hour.has_value() || spec_.expected == nullptr) return limit;
  const HourlyAmounts* const profile = spec_.expected->Find(pod, entry.id);
  limit.at_most =
      spec_.expected->AtMost(profile, static_cast<size_t>(*entry.hour), pod.requests.Get(entry.id));
  return limit;
}

CountedLimit LimitSums::Counted(const PodShape& pod, const NodeShape& node, size_t resource) const {
  return CountOnNode(spec_.max_limit_ratio, LimitOfPod(pod, resource),
                     node.allocatable.Get(spec_.resources[resource].id));
}

void LimitSums::Change(NodeIndex node, const NodeShape& node_shape, int32_t shape, const PodShape& pod,
                       int32_t sign) {
  const size_t width = spec_.resources.size();
  const size_t end = (IndexOf(node) + 1) * width;
  if (sums_.size() < end) sums_.resize(std::max(end, 2 * sums_.size()));
  const size_t at = static_cast<size_t>(shape);
  if (limits_.size() <= at) limits_.resize(std::max(at + 1, 2 * limits_.size()));
  std::vector<PodLimit>& limits = limits_[at];
  if (limits.empty()) {
    for (size_t r = 0; r < width; ++r) limits.push_back(LimitOfPod(pod, r));
  }
  for (size_t r = 0; r < width; ++r) {
    const int64_t allocatable = node_shape.allocatable.Get(spec_.resources[r].id);
    absl::int128& sum = sums_[end - width + r];
    sum += absl::int128(CountOnNode(spec_.max_limit_ratio, limits[r], allocatable).amount) * sign;
    LOADLINE_DCHECK(sum >= 0) << "a node gives back more limits than it has";
  }
}

}  // namespace loadline

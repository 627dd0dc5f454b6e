#include "core/score/line_check.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/base/check.h"

namespace loadline {

std::vector<size_t> ColumnsOfLine(const LoadLine& line, const LimitPolicy& policy) {
  std::vector<size_t> positions;
  if (policy.pod_limits != PodLimits::kEffective || policy.max_limit_ratio != line.sums.max_limit_ratio ||
      policy.missing_limit_scope != MissingLimitScope::kAllPods) {
    return positions;
  }
  for (const LimitSumsSpec::Resource& resource : line.sums.resources) {
    const auto found =
        std::find_if(policy.resources.begin(), policy.resources.end(), [&](const ScoredResource& scored) {
          return scored.name == LineResourceName(resource.id) &&
                 LimitRules{scored.best_effort, scored.others} == resource.rules;
        });
    if (found == policy.resources.end()) return {};
    positions.push_back(static_cast<size_t>(found - policy.resources.begin()));
  }
  return positions;
}

LineCheck::LineCheck(const LoadLine* line, const LimitColumns* columns, std::vector<size_t> positions,
                     const ClusterState* cluster)
    : line_(*line),
      columns_(*columns),
      positions_(std::move(positions)),
      cluster_(*cluster),
      sums_(line->sums) {
  LOADLINE_CHECK(positions_.size() == line_.lines.size())
      << "columns of " << positions_.size() << " resources";
}

NodeLoad LineCheck::Load(Slot slot, size_t resource) const {
  NodeLoad load;
  load.line = line_.lines[resource];
  if (!line_.node_label_prefix.empty() && !line_.sums.resources[resource].hour.has_value()) {
    load.line = LineOn(line_, resource, cluster_.node_shape(slot).labels);
  }
  const size_t column = positions_[resource];
  load.allocatable = columns_.terms(slot)[column].allocatable;
  const std::optional<int8_t> hour = line_.sums.resources[resource].hour;
  load.limits = hour.has_value() ? columns_.limits(slot, column, static_cast<size_t>(*hour))
                                 : columns_.limits(slot)[column];
  load.ceiling = LimitCeiling(load.line, load.allocatable);
  return load;
}

bool LineCheck::Above(Slot slot) const {
  for (size_t r = 0; r < positions_.size(); ++r) {
    if (Load(slot, r).above()) return true;
  }
  return false;
}

LineCheck::Pod LineCheck::MakePod(const PodShape& pod) const {
  Pod made;
  made.exempt = line_.exempt_namespaces.contains(pod.namespace_name);
  for (size_t r = 0; r < positions_.size(); ++r) {
    made.limits.push_back(LimitOfPod(pod, r));
    made.stated.push_back(pod.limits.Get(line_.sums.resources[r].id) > 0);
  }
  return made;
}

PodLimit LineCheck::LimitOfPod(const PodShape& pod, size_t resource) const {
  return sums_.LimitOfPod(pod, resource);
}

LineOnNode LineCheck::LineOf(const Pod& pod, const NodeLoad& node, size_t resource) const {
  LineOnNode line;
  line.ceiling = node.ceiling;
  line.counted = CountOnNode(line_.sums.max_limit_ratio, pod.limits[resource], node.allocatable).amount;
  line.lacking = node.allocatable == 0 && pod.stated[resource];
  return line;
}

bool LineCheck::Keeps(const Pod& pod, Slot slot) const {
  if (pod.exempt) return true;
  for (size_t r = 0; r < positions_.size(); ++r) {
    const NodeLoad node = Load(slot, r);
    if (!LineOf(pod, node, r).Keeps(node.limits)) return false;
  }
  return true;
}

LineVerdict LineCheck::Explain(const Pod& pod, Slot slot) const {
  LineVerdict verdict;
  if (pod.exempt) return verdict;
  for (size_t r = 0; r < positions_.size(); ++r) {
    const NodeLoad node = Load(slot, r);
    const LineOnNode line = LineOf(pod, node, r);
    if (line.Keeps(node.limits)) continue;
    verdict.reasons.push_back(Reason(slot, r));
    verdict.unresolvable = verdict.unresolvable || !line.Keeps(0);
  }
  TidyReasons(&verdict.reasons);
  return verdict;
}

int64_t LineCheck::Room(const Pod& pod, Slot slot, size_t resource) const {
  if (pod.exempt) return kMaxAmount;
  const NodeLoad node = Load(slot, resource);
  const LineOnNode line = LineOf(pod, node, resource);
  if (line.lacking) return -kMaxAmount;
  if (line.counted == 0) return kMaxAmount;
  const absl::int128 room = absl::int128(line.ceiling) - node.limits - line.counted;
  return static_cast<int64_t>(std::max(room, -absl::int128(kMaxAmount)));
}

std::string LineCheck::Reason(Slot slot, size_t resource) const {
  return LineReason(line_.sums.resources[resource], Load(slot, resource).line);
}

int64_t LineCheck::Count(const PodShape& pod, Slot slot, size_t resource) const {
  const int64_t allocatable = columns_.terms(slot)[positions_[resource]].allocatable;
  return CountOnNode(line_.sums.max_limit_ratio, LimitOfPod(pod, resource), allocatable).amount;
}

}  // namespace loadline

#include "core/score/line_check.h"

#include <algorithm>
#include <utility>

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
    : line_(*line), columns_(*columns), positions_(std::move(positions)), cluster_(*cluster) {
  LOADLINE_CHECK(positions_.size() == line_.lines.size())
      << "columns of " << positions_.size() << " resources";
}

bool LineCheck::Move(const LineMove& move) {
  std::vector<absl::int128>& moved = moved_[move.slot];
  moved.resize(positions_.size());
  std::vector<absl::int128> after = moved;
  const Pod pod = MakePod(move.pod);
  for (size_t r = 0; r < positions_.size(); ++r) {
    const int64_t allocatable = columns_.terms(move.slot)[positions_[r]].allocatable;
    const int64_t counted = CountOnNode(line_.sums.max_limit_ratio, pod.limits[r], allocatable).amount;
    after[r] += move.removed ? -absl::int128(counted) : absl::int128(counted);
    if (after[r] + columns_.limits(move.slot)[positions_[r]] < 0) return false;
  }
  moved = std::move(after);
  return true;
}

NodeLoad LineCheck::Load(Slot slot, size_t resource) const {
  NodeLoad load;
  load.line = line_.lines[resource];
  if (!line_.node_label_prefix.empty()) {
    load.line = LineOn(line_, resource, cluster_.node_shape(slot).labels);
  }
  load.allocatable = columns_.terms(slot)[positions_[resource]].allocatable;
  load.limits = columns_.limits(slot)[positions_[resource]];
  load.ceiling = LimitCeiling(load.line, load.allocatable);
  if (moved_.empty()) return load;
  if (const auto moved = moved_.find(slot); moved != moved_.end()) {
    const absl::int128 most = kMaxAmount;
    load.limits = static_cast<int64_t>(std::min(most, load.limits + moved->second[resource]));
  }
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
  const LimitCounting counting{PodLimits::kEffective, MissingLimitScope::kAllPods,
                               line_.sums.max_limit_ratio};
  for (const LimitSumsSpec::Resource& resource : line_.sums.resources) {
    made.limits.push_back(PodLimitOf(counting, resource.rules, resource.id, pod, PodRole::kExisting));
    made.stated.push_back(pod.limits.Get(resource.id) > 0);
  }
  return made;
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
    verdict.reasons.push_back(LineReason(line_.sums.resources[r].id, node.line));
    verdict.unresolvable = verdict.unresolvable || !line.Keeps(0);
  }
  std::sort(verdict.reasons.begin(), verdict.reasons.end());
  return verdict;
}

}  // namespace loadline

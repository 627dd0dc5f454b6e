#include "core/drain/size_limits.h"

#include "core/drain/node_reason.h"

namespace loadline {

SizeLimits::SizeLimits(NodeGroupSpan groups, const ClusterMinimum& minimum)
    : groups_(groups), minimum_(minimum), counts_(groups.size()) {
  for (const auto& [type, gpus] : minimum.gpus) spare_gpus_[type] = -gpus;
}

absl::int128* SizeLimits::SpareGpus(const NodeOffer& node) {
  if (node.gpus == 0) return nullptr;
  const auto at = spare_gpus_.find(node.gpu_type);
  return at == spare_gpus_.end() ? nullptr : &at->second;
}

void SizeLimits::AddNode(std::optional<GroupIndex> group, const NodeOffer& node, bool being_deleted) {
  if (group.has_value()) {
    Count& count = counts_[*group];
    ++count.registered;
    if (being_deleted) ++count.deleting;
  }
  if (being_deleted) return;
  ++nodes_;
  cpu_ += node.cpu;
  memory_ += node.memory;
  if (absl::int128* const spare = SpareGpus(node)) *spare += node.gpus;
}

NodeReason SizeLimits::Take(std::optional<GroupIndex> group, const NodeOffer& node) {
  if (!group.has_value()) return NodeReason::kNotAutoscaled;
  const NodeGroup& limits = groups_[*group];
  Count& count = counts_[*group];
  const int64_t going = count.deleting + count.taken;
  if (limits.target - going <= limits.min_nodes || count.registered - going <= limits.min_nodes) {
    return NodeReason::kNodeGroupMinSizeReached;
  }
  if (nodes_ - 1 < minimum_.nodes || cpu_ - node.cpu < minimum_.amounts.cpu ||
      memory_ - node.memory < minimum_.amounts.memory) {
    return NodeReason::kMinimalResourceLimitExceeded;
  }
  absl::int128* const spare = SpareGpus(node);
  if (spare != nullptr && *spare < node.gpus) return NodeReason::kMinimalResourceLimitExceeded;
  if (spare != nullptr) *spare -= node.gpus;
  ++count.taken;
  --nodes_;
  cpu_ -= node.cpu;
  memory_ -= node.memory;
  return NodeReason::kNone;
}

void SizeLimits::GiveBack(GroupIndex group, const NodeOffer& node) {
  --counts_[group].taken;
  ++nodes_;
  cpu_ += node.cpu;
  memory_ += node.memory;
  if (absl::int128* const spare = SpareGpus(node)) *spare += node.gpus;
}

bool SizeLimits::AreWholeGroup(GroupIndex group, int64_t nodes) const {
  const Count& count = counts_[group];
  const int64_t going = nodes + count.deleting;
  const NodeGroup& limits = groups_[group];
  return going == limits.target || going == count.registered + limits.upcoming;
}

}  // namespace loadline

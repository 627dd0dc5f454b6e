#include "core/cluster/minimum_sizes.h"

namespace loadline {

MinimumSizes::MinimumSizes(NodeGroupSpan groups, const ClusterMinimum& minimum)
    : groups_(groups), minimum_(minimum), counts_(groups.size()) {
  for (const auto& [type, gpus] : minimum.gpus) spare_gpus_[type] = -gpus;
}

void MinimumSizes::Add(const NodeOffer& node, int sign) {
  nodes_ += sign;
  cpu_ += absl::int128(sign) * node.cpu;
  memory_ += absl::int128(sign) * node.memory;
  if (node.gpus == 0) return;
  const auto spare = spare_gpus_.find(node.gpu_type);
  if (spare != spare_gpus_.end()) spare->second += absl::int128(sign) * node.gpus;
}

void MinimumSizes::AddNode(std::optional<GroupIndex> group, const NodeOffer& node, bool being_deleted) {
  if (group.has_value()) {
    Count& count = counts_[*group];
    ++count.registered;
    if (being_deleted) ++count.deleting;
  }
  if (!being_deleted) Add(node, +1);
}

MinimumReached MinimumSizes::Reached(GroupIndex group, const NodeOffer& node) const {
  const NodeGroup& limits = groups_[group];
  const Count& count = counts_[group];
  const int64_t going = count.deleting + count.removed;
  if (limits.target - going <= limits.min_nodes || count.registered - going <= limits.min_nodes) {
    return MinimumReached::kOfGroup;
  }
  if (nodes_ - 1 < minimum_.nodes || cpu_ - node.cpu < minimum_.amounts.cpu ||
      memory_ - node.memory < minimum_.amounts.memory) {
    return MinimumReached::kOfCluster;
  }
  if (node.gpus == 0) return MinimumReached::kNone;
  const auto spare = spare_gpus_.find(node.gpu_type);
  const bool too_few = spare != spare_gpus_.end() && spare->second < node.gpus;
  return too_few ? MinimumReached::kOfCluster : MinimumReached::kNone;
}

void MinimumSizes::Remove(GroupIndex group, const NodeOffer& node) {
  ++counts_[group].removed;
  Add(node, -1);
}

void MinimumSizes::Restore(GroupIndex group, const NodeOffer& node) {
  --counts_[group].removed;
  Add(node, +1);
}

bool MinimumSizes::AreWholeGroup(GroupIndex group, int64_t nodes) const {
  const Count& count = counts_[group];
  const int64_t going = nodes + count.deleting;
  const NodeGroup& limits = groups_[group];
  return going == limits.target || going == count.registered + limits.upcoming;
}

}  // namespace loadline

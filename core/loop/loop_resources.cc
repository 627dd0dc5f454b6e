#include "core/loop/loop_resources.h"

#include <algorithm>
#include <utility>

#include "core/slack/slack_class.h"

namespace loadline {
namespace {

CpuMemory OfferOf(const LoopGroup& group) { return CpuMemoryOf(group.node->allocatable); }

}  // namespace

ResourceRoom RoomOfCluster(const LoopProblem& problem, std::span<const GroupCounts> counts) {
  ResourceRoom room(problem.maximum);
  if (room.unlimited()) return room;
  const ClusterState& cluster = *problem.drain.cluster;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (cluster.Occupied(slot)) room.Take(CpuMemoryOf(cluster.node_shape(slot).allocatable), 1);
  }
  for (size_t group = 0; group < counts.size(); ++group) {
    const LoopGroup& of = problem.groups[group];
    if (of.node.has_value()) room.Take(OfferOf(of), counts[group].upcoming);
  }
  return room;
}

ResourceRoom RoomLeft(const LoopProblem& problem, const LoopPlan& plan) {
  ResourceRoom room = plan.room;
  for (const LoopGrowth& growth : plan.growth) {
    const LoopGroup& of = problem.groups[static_cast<size_t>(growth.group)];
    if (of.node.has_value()) room.Take(OfferOf(of), growth.nodes());
  }
  return room;
}

NodeLimit MostNodesOf(const LoopProblem& problem, const ResourceRoom& left, size_t group) {
  const LoopGroup& of = problem.groups[group];
  return of.node.has_value() ? left.MostNodes(OfferOf(of)) : std::nullopt;
}

bool PermitsTogether(const LoopProblem& problem, const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  for (const auto& [group, nodes] : growth) {
    const size_t position = static_cast<size_t>(group);
    if (MostNodesOf(problem, room, position).value_or(nodes) < nodes) return false;
    room.Take(OfferOf(problem.groups[position]), nodes);
  }
  return true;
}

std::vector<NodeLimit> CapsTogether(const LoopProblem& problem, std::span<const GroupCounts> counts,
                                    const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  std::vector<NodeLimit> caps(problem.groups.size());
  const auto give = [&](size_t group, int64_t wanted) {
    int64_t nodes = std::min(wanted, MostNodesOf(problem, room, group).value_or(wanted));
    if (problem.groups[group].drain.atomic && nodes < wanted) nodes = 0;
    room.Take(OfferOf(problem.groups[group]), nodes);
    caps[group] = caps[group].value_or(0) + nodes;
  };
  for (const bool atomic : {false, true}) {
    for (const auto& [group, nodes] : growth) {
      const size_t position = static_cast<size_t>(group);
      if (problem.groups[position].drain.atomic == atomic) give(position, nodes);
    }
  }
  for (size_t group = 0; group < caps.size(); ++group) {
    const LoopGroup& of = problem.groups[group];
    if (!of.node.has_value()) continue;
    if (of.drain.atomic) {
      caps[group] = caps[group].value_or(0);
      continue;
    }
    const int64_t nodes = counts[group].registered + counts[group].upcoming + caps[group].value_or(0);
    give(group, std::max<int64_t>(0, of.max_nodes - nodes));
  }
  return caps;
}

std::vector<GroupAtMaximum> GroupsAtMaximum(const LoopProblem& problem, const LoopPlan& plan) {
  std::vector<GroupAtMaximum> groups;
  if (plan.room.unlimited()) return groups;
  const ResourceRoom room = RoomLeft(problem, plan);
  for (size_t group = 0; group < problem.groups.size(); ++group) {
    const LoopGroup& of = problem.groups[group];
    if (!of.node.has_value()) continue;
    std::vector<absl::string_view> exceeded = room.ExceededBy(OfferOf(of));
    if (!exceeded.empty()) groups.push_back({static_cast<int32_t>(group), std::move(exceeded)});
  }
  return groups;
}

}  // namespace loadline

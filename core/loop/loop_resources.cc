#include "core/loop/loop_resources.h"

#include <algorithm>
#include <utility>

#include "core/cluster/node_kind.h"

namespace loadline {
namespace {

// What a node of the cluster offers. Where its GPUs are not there yet, its group says how many come.
NodeOffer OfferThere(const LoopProblem& problem, Slot slot) {
  NodeOffer offer = OfferOfNode(problem, problem.drain.cluster->node_shape(slot));
  if (offer.gpu_type.empty() || offer.gpus > 0) return offer;
  const size_t at = IndexOf(slot);
  const int32_t group = at < problem.drain.group_of.size() ? problem.drain.group_of[at] : -1;
  if (group < 0 || !problem.groups[static_cast<size_t>(group)].model.has_value()) return offer;
  offer.gpus = OfferOfGroup(problem, static_cast<size_t>(group)).gpus;
  return offer;
}

}  // namespace

NodeOffer OfferOfNode(const LoopProblem& problem, const NodeShape& node) {
  return OfferOf(node, problem.names, problem.scale_down.eligibility.utilization.gpu_labels);
}

NodeOffer OfferOfGroup(const LoopProblem& problem, size_t group) {
  return OfferOfNode(problem, problem.groups[group].model->shape);
}

ResourceRoom RoomOfCluster(const LoopProblem& problem, std::span<const GroupCounts> counts) {
  ResourceRoom room(problem.maximum);
  if (room.unlimited()) return room;
  const ClusterState& cluster = *problem.drain.cluster;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (!cluster.Occupied(slot)) continue;
    // What a virtual node says that it offers is nobody's machine.
    if (KindForPlan(cluster, slot, problem.drain.group_of) == NodeKind::kVirtual) continue;
    room.Take(OfferThere(problem, slot), 1);
  }
  for (size_t group = 0; group < counts.size(); ++group) {
    const NodeGroup& of = problem.groups[group];
    if (of.model.has_value()) room.Take(OfferOfGroup(problem, group), counts[group].upcoming);
  }
  return room;
}

ResourceRoom RoomLeft(const LoopProblem& problem, const LoopPlan& plan) {
  ResourceRoom room = plan.room;
  if (room.unlimited()) return room;
  for (const LoopGrowth& growth : plan.growth) {
    const size_t group = static_cast<size_t>(growth.group);
    if (problem.groups[group].model.has_value()) room.Take(OfferOfGroup(problem, group), growth.nodes());
  }
  return room;
}

NodeLimit MostNodesOf(const LoopProblem& problem, const ResourceRoom& left, size_t group) {
  if (left.unlimited() || !problem.groups[group].model.has_value()) return std::nullopt;
  return left.MostNodes(OfferOfGroup(problem, group));
}

bool PermitsTogether(const LoopProblem& problem, const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  for (const auto& [group, nodes] : growth) {
    const size_t position = static_cast<size_t>(group);
    if (MostNodesOf(problem, room, position).value_or(nodes) < nodes) return false;
    room.Take(OfferOfGroup(problem, position), nodes);
  }
  return true;
}

std::vector<NodeLimit> CapsTogether(const LoopProblem& problem, std::span<const GroupCounts> counts,
                                    const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  std::vector<NodeLimit> caps(problem.groups.size());
  const auto give = [&](size_t group, int64_t wanted) {
    int64_t nodes = std::min(wanted, MostNodesOf(problem, room, group).value_or(wanted));
    if (problem.groups[group].atomic && nodes < wanted) nodes = 0;
    room.Take(OfferOfGroup(problem, group), nodes);
    caps[group] = caps[group].value_or(0) + nodes;
  };
  for (const bool atomic : {false, true}) {
    for (const auto& [group, nodes] : growth) {
      const size_t position = static_cast<size_t>(group);
      if (problem.groups[position].atomic == atomic) give(position, nodes);
    }
  }
  for (size_t group = 0; group < caps.size(); ++group) {
    const NodeGroup& of = problem.groups[group];
    if (!of.model.has_value()) continue;
    if (of.atomic) {
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
    const NodeGroup& of = problem.groups[group];
    if (!of.model.has_value()) continue;
    std::vector<absl::string_view> exceeded = room.ExceededBy(OfferOfGroup(problem, group));
    if (!exceeded.empty()) groups.push_back({static_cast<int32_t>(group), std::move(exceeded)});
  }
  return groups;
}

}  // namespace loadline

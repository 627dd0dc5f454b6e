#include "core/loop/loop_resources.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/node_kind.h"

namespace loadline {
namespace {

// Returns what a node of the cluster offers. Where its GPUs are not there yet, its group says how many will
// be.
CountedNode OfferThere(const LoopProblem& problem, Slot slot) {
  CountedNode offer = OfferOfNode(problem, problem.drain.cluster->node_shape(slot));
  if (offer.gpu_type.empty() || offer.gpus > 0) return offer;
  const std::optional<GroupIndex> group = problem.drain.group_of[slot];
  if (!group.has_value() || !problem.groups[*group].model.has_value()) return offer;
  offer.gpus = OfferOfGroup(problem, *group).gpus;
  return offer;
}

// Returns whether the maxima count a node. The stated offer of a virtual node is nobody's machine.
bool IsCounted(const LoopProblem& problem, Slot slot) {
  const ClusterState& cluster = *problem.drain.cluster;
  return cluster.Occupied(slot) && KindForPlan(cluster, slot, problem.drain.group_of) != NodeKind::kVirtual;
}

// Returns the labels of the nodes that each group has.
StrongVector<GroupIndex, std::vector<const Labels*>> LabelsOfGroups(const LoopProblem& problem) {
  StrongVector<GroupIndex, std::vector<const Labels*>> labels(problem.groups.size());
  for (int32_t i = 0; i < problem.drain.cluster->slot_end(); ++i) {
    const Slot slot{i};
    const std::optional<GroupIndex> group = problem.drain.group_of[slot];
    if (group.has_value() && IsCounted(problem, slot))
      labels[*group].push_back(&problem.drain.cluster->node_shape(slot).labels);
  }
  return labels;
}

}  // namespace

CountedNode OfferOfNode(const LoopProblem& problem, const NodeShape& node) {
  return {OfferOf(node, problem.names, problem.scale_down.eligibility.utilization.gpu_labels), &node.labels};
}

CountedNode OfferOfGroup(const LoopProblem& problem, GroupIndex group) {
  CountedNode offer = OfferOfNode(problem, problem.groups[group].model->shape);
  offer.group = group;
  return offer;
}

ResourceRoom RoomOfCluster(const LoopProblem& problem, const CountsOfGroups& counts) {
  ResourceRoom room(problem.maxima);
  if (room.unlimited()) return room;
  for (int32_t i = 0; i < problem.drain.cluster->slot_end(); ++i) {
    if (IsCounted(problem, Slot{i})) room.Take(OfferThere(problem, Slot{i}), 1);
  }
  const StrongVector<GroupIndex, std::vector<const Labels*>> labels = LabelsOfGroups(problem);
  for (const GroupIndex group : labels.indices()) room.Learn(group, labels[group]);
  for (const GroupIndex group : counts.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (of.model.has_value()) room.Take(OfferOfGroup(problem, group), counts[group].upcoming);
  }
  return room;
}

ResourceRoom RoomLeft(const LoopProblem& problem, const LoopPlan& plan) {
  ResourceRoom room = plan.room;
  if (room.unlimited()) return room;
  for (const LoopGrowth& growth : plan.growth) {
    if (!problem.groups[growth.group].model.has_value()) continue;
    room.Take(OfferOfGroup(problem, growth.group), growth.nodes());
  }
  return room;
}

NodeLimit MostNodesOf(const LoopProblem& problem, const ResourceRoom& left, GroupIndex group) {
  if (left.unlimited() || !problem.groups[group].model.has_value()) return std::nullopt;
  return left.MostNodes(OfferOfGroup(problem, group));
}

double PriceOf(const LoopProblem& problem, const NodesOfGroups& growth) {
  double usd = 0;
  for (const auto& [group, nodes] : growth) usd += UsdOf(problem.groups[group]) * static_cast<double>(nodes);
  return usd;
}

bool PermitsTogether(const LoopProblem& problem, const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  for (const auto& [group, nodes] : growth) {
    if (MostNodesOf(problem, room, group).value_or(nodes) < nodes) return false;
    room.Take(OfferOfGroup(problem, group), nodes);
  }
  return true;
}

StrongVector<GroupIndex, NodeLimit> CapsTogether(const LoopProblem& problem, const CountsOfGroups& counts,
                                                 const LoopPlan& plan, const NodesOfGroups& growth) {
  ResourceRoom room = RoomLeft(problem, plan);
  StrongVector<GroupIndex, NodeLimit> caps(problem.groups.size());
  const auto give = [&](GroupIndex group, int64_t wanted) {
    int64_t nodes = std::min(wanted, MostNodesOf(problem, room, group).value_or(wanted));
    if (problem.groups[group].atomic && nodes < wanted) nodes = 0;
    room.Take(OfferOfGroup(problem, group), nodes);
    caps[group] = caps[group].value_or(0) + nodes;
  };
  for (const bool atomic : {false, true}) {
    for (const auto& [group, nodes] : growth) {
      if (problem.groups[group].atomic == atomic) give(group, nodes);
    }
  }
  for (const GroupIndex group : caps.indices()) {
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
  for (const GroupIndex group : problem.groups.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (!of.model.has_value()) continue;
    std::vector<std::string> exceeded = room.ExceededBy(OfferOfGroup(problem, group));
    if (!exceeded.empty()) groups.push_back({group, std::move(exceeded)});
  }
  return groups;
}

std::vector<std::string> WarningsOfMaxima(const LoopProblem& problem) {
  std::vector<std::string> warnings;
  if (problem.maxima.empty()) return warnings;
  const StrongVector<GroupIndex, std::vector<const Labels*>> labels = LabelsOfGroups(problem);
  for (const NodeMaximum& maximum : problem.maxima) {
    if (maximum.selector.Everything()) continue;
    std::string first;
    int64_t others = 0;
    for (const GroupIndex group : problem.groups.indices()) {
      const std::optional<NodeModel>& model = problem.groups[group].model;
      if (!model.has_value() || model->source != ModelSource::kStated) continue;
      const auto selected =
          absl::c_count_if(labels[group], [&](const Labels* of) { return maximum.selector.Matches(*of); });
      if (selected == 0 || maximum.selector.Matches(model->shape.labels)) continue;
      others += first.empty() ? 0 : 1;
      if (!first.empty()) continue;
      first = absl::StrCat(maximum.name, " selects ", selected, " of ", labels[group].size(),
                           " nodes of node group ", problem.groups[group].name,
                           ", but not the template of new nodes: they count only while "
                           "most nodes of the group are selected; add the labels to the template");
    }
    if (first.empty()) continue;
    if (others > 0)
      absl::StrAppend(&first, "; likewise ", others,
                      others == 1 ? " other node group" : " other node groups");
    warnings.push_back(std::move(first));
  }
  return warnings;
}

}  // namespace loadline

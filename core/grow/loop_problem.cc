#include "core/grow/loop_problem.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/node_model.h"

namespace loadline {
namespace {

// The price stays that of what the cloud says of new nodes: a node tells nothing of its capacity here.
void SetModel(const ClusterState& cluster, const GroupFindings& of, bool cloud_template,
              const StartupTaints& startup_taints, const ResourceNames& names, NodeGroup* group) {
  if (!group->model.has_value()) return;
  const bool is_stated = cloud_template || of.examples.empty();
  group->model = ModelOfNewNode(
      cluster, {is_stated ? &group->model->shape : nullptr, of.examples, of.lacking}, startup_taints, names);
}

}  // namespace

void ApplyFindings(const LoopFindings& findings, const StrongVector<GroupIndex, bool>& cloud_template,
                   const ClusterState& cluster, LoopProblem* problem) {
  problem->drain.drained = findings.marked.going;
  problem->drain.nothing_leaves = findings.nothing_leaves;
  problem->drain.group_of = {};
  problem->drain.going_group_of = {};
  problem->starting_group_of = {};
  problem->drain.not_started.clear();
  for (const GroupIndex i : problem->groups.indices()) {
    const GroupFindings& of = findings.groups[i];
    NodeGroup& group = problem->groups[i];
    for (const Slot slot : of.nodes) {
      if (MayBeInGroup(cluster, slot)) problem->drain.group_of.Set(slot, i);
    }
    for (const Slot slot : of.going) problem->drain.going_group_of.Set(slot, i);
    std::vector<Slot> starting;
    absl::c_set_intersection(of.examples, findings.not_started, std::back_inserter(starting));
    for (const Slot slot : starting) {
      if (!absl::c_binary_search(findings.marked.going, slot)) problem->starting_group_of.Set(slot, i);
      problem->drain.not_started.push_back(slot);
    }
    group.target = static_cast<int64_t>(of.nodes.size()) + std::min(of.upcoming, kMostUpcomingNodes);
    group.max_nodes = group.target + of.room;
    group.blocked_reason = of.held;
    group.not_begun = of.swappable;
    const std::optional<int64_t>& until_ms = findings.fleet.groups[IndexOf(i)].cools_down_until_ms;
    group.stays_until_s.reset();
    if (until_ms.has_value()) group.stays_until_s = (*until_ms + 999) / 1000;
    SetModel(cluster, of, cloud_template[i], problem->startup_taints, problem->names, &group);
  }
  absl::c_sort(problem->drain.not_started);
  problem->growth.max_new_nodes = findings.max_new_nodes;
}

}  // namespace loadline

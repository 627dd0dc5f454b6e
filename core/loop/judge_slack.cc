#include "core/loop/judge_slack.h"

#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"

namespace loadline {
namespace {

// Returns the nodes whose room is meant for something that is not there yet.
absl::flat_hash_set<Slot> NodesInUse(const LoopPlan& plan, const SlackState& slack, const Snapshot& snapshot,
                                     const ClusterState& cluster) {
  absl::flat_hash_set<Slot> in_use(plan.reserved_nodes.begin(), plan.reserved_nodes.end());
  for (const ExpectedPlace& place : plan.expected) {
    if (!place.group.has_value()) in_use.insert(snapshot.slot(place.node));
  }
  for (const Placeholder& placeholder : slack.placeholders) {
    if (placeholder.node.empty()) continue;
    const std::optional<Slot> slot = cluster.Find(placeholder.node);
    if (slot.has_value()) in_use.insert(*slot);
  }
  return in_use;
}

bool RunsPods(Slot slot, const Snapshot& snapshot) {
  const std::optional<NodeIndex> node = snapshot.FindSlot(slot);
  return node.has_value() && absl::c_any_of(snapshot.pods(*node), [&](const auto& pod) {
           return !BelongsToNode(snapshot.pod_shape(pod.shape), snapshot.objects());
         });
}

}  // namespace

std::vector<JudgedSlackGrowth> JudgeSlackGrowth(const LoopProblem& problem, const LoopPlan& plan,
                                                const SlackPlanner& slack,
                                                std::span<const GroupIndex> groups_that_are_asked,
                                                const Snapshot& snapshot) {
  std::vector<JudgedSlackGrowth> judged;
  std::optional<absl::flat_hash_set<Slot>> in_use;
  if (plan.slack.cut_short != BudgetEnd::kNotEnded) return judged;
  for (const GroupIndex group : problem.slack_growth.indices()) {
    const std::vector<Slot>& came = problem.slack_growth[group].came;
    if (came.empty()) continue;
    if (!in_use.has_value()) in_use = NodesInUse(plan, slack.State(), snapshot, *problem.drain.cluster);
    const bool has_helped =
        absl::c_any_of(came, [&](Slot node) { return in_use->contains(node) || RunsPods(node, snapshot); });
    if (has_helped || absl::c_linear_search(groups_that_are_asked, group)) {
      judged.push_back({group, has_helped});
    }
  }
  return judged;
}

}  // namespace loadline

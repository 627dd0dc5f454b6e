#include "core/drain/eligible_nodes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

bool HasTerminatingPods(const ClusterState& cluster, Slot slot) {
  const std::span<const NodePods::Pod> pods = cluster.pods(slot).pods();
  return std::any_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    return TraitsOf(cluster.pod_shapes()[pod.shape]).deleted_s.has_value();
  });
}

}  // namespace

void EligibleNodes::ForgetChanged(const TrialFollower::Changes& changes, const DrainCall& call) {
  const DrainProblem& problem = call.problem();
  Basis basis{call.options().eligibility, {}, problem.chosen, problem.replaced, problem.takes_replaced_pods};
  for (const NodeGroup& group : problem.groups) {
    basis.groups.push_back({group.sized, group.target <= group.min_nodes, group.utilization_threshold,
                            group.gpu_utilization_threshold, group.ignore_daemonsets_utilization});
  }
  if (!changes.has_value() || !problem.pools.empty() || basis != basis_) known_.clear();
  basis_ = std::move(basis);
  known_.resize(static_cast<size_t>(call.cluster().slot_end()));
  ForgetMoved(problem.group_of);
  if (!changes.has_value()) return;
  for (const Slot slot : *changes) {
    if (IndexOf(slot) < known_.size()) known_[IndexOf(slot)].reset();
  }
}

// Nodes that belong to another group than before.
void EligibleNodes::ForgetMoved(const GroupsOfNodes& group_of) {
  if (group_of == group_of_) return;
  for (size_t i = 0; i < known_.size(); ++i) {
    const Slot slot = IndexAt<Slot>(i);
    if (group_of[slot] != group_of_[slot]) known_[i].reset();
  }
  group_of_ = group_of;
}

void EligibleNodes::Judge(const TrialFollower::Changes& changes, DrainCall* call) {
  ForgetChanged(changes, *call);
  const DrainProblem& problem = call->problem();
  const size_t slots = static_cast<size_t>(call->cluster().slot_end());
  std::vector<bool> chosen(slots, false), replaced(slots, false), takes(slots, false);
  for (const Slot slot : problem.chosen) chosen[IndexOf(slot)] = true;
  for (const ReplacedNode& node : problem.replaced) replaced[IndexOf(node.slot)] = true;
  for (const Slot slot : problem.takes_replaced_pods) takes[IndexOf(slot)] = true;
  for (const Slot slot : call->nodes()) {
    JudgedNode& node = call->judged(slot);
    if (call->CountsForMinimum(slot)) {
      call->limits.AddNode(node.group, call->OfferOf(slot), node.being_deleted);
    }
    NodeQuestion question{.slot = slot,
                          .group = call->GroupOf(slot),
                          .being_deleted = node.being_deleted,
                          .chosen = chosen[IndexOf(slot)],
                          .replaced = replaced[IndexOf(slot)],
                          .takes_replaced_pods = takes[IndexOf(slot)]};
    if (const auto pools = problem.pools.find(slot); pools != problem.pools.end()) {
      question.pools = pools->second;
    }
    std::optional<NodeReason>& known = known_[IndexOf(slot)];
    if (node.being_deleted || !known.has_value()) {
      node.reason =
          CheckEligibility(call->cluster(), question, call->options().eligibility, call->now_s()).reason;
      // Pods that are terminating stop counting at some time.
      const bool lasts = !node.being_deleted && !HasTerminatingPods(call->cluster(), slot);
      known = lasts ? std::optional(node.reason) : std::nullopt;
    } else {
      node.reason = *known;
    }
    const bool in_no_group = node.reason == NodeReason::kNotAutoscaled;
    if (in_no_group && absl::c_binary_search(problem.not_started, slot))
      node.reason = NodeReason::kNotStarted;
    node.eligible = node.reason == NodeReason::kNone;
  }
}

}  // namespace loadline

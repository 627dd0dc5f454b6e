#include "core/grow/nominated.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/drain/drain_state.h"
#include "core/fit/pod_fit.h"
#include "core/fit/trial_memory.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {
namespace {

// The nodes that kept room for nominated pods, and since when.
class Holds {
 public:
  Holds(const DrainProblem& drain, std::span<const DeletingNode> deleting,
        std::span<const ReservedNode> reserved)
      : cluster_(*drain.cluster), now_s_(drain.now_s) {
    for (const DeletingNode& node : deleting) deleting_.insert(node.node);
    for (ReservedNode held : reserved) {
      held.since_s = std::min(held.since_s, now_s_);
      const std::optional<Slot> slot = cluster_.Find(held.node);
      const bool there = slot.has_value() && held.uid == cluster_.traits(*slot).uid;
      if (there && now_s_ - held.since_s < kHoldAgainAfterS) held_.emplace(held.node, held);
    }
  }

  bool MayHold(Slot slot) const {
    const absl::string_view name = cluster_.name(slot);
    const auto at = held_.find(name);
    return (at == held_.end() || now_s_ - at->second.since_s < kLongestHoldS) && !deleting_.contains(name);
  }

  void Hold(Slot slot) {
    std::string name(cluster_.name(slot));
    held_.try_emplace(name, ReservedNode{name, cluster_.traits(slot).uid, now_s_});
  }

  std::vector<ReservedNode> Take() && {
    std::vector<ReservedNode> held;
    for (auto& [name, node] : held_) held.push_back(std::move(node));
    return held;
  }

 private:
  const ClusterState& cluster_;
  int64_t now_s_;
  absl::flat_hash_set<std::string> deleting_;
  absl::btree_map<std::string, ReservedNode> held_;
};

// Returns whether the pod is about to make room for one of this priority.
bool MakesRoom(const PodTraits& traits, int32_t priority, int64_t now_s) {
  if (!traits.deleted_s.has_value() || traits.priority >= priority) return false;
  return *traits.deleted_s - now_s < kLongestPreemptionS && now_s - *traits.deleted_s < kOverduePreemptionS;
}

void RemoveEnding(NodeIndex node, int32_t priority, int64_t now_s, Snapshot* snapshot) {
  // From the end: the last pod takes the place of a removed one.
  for (size_t position = snapshot->pods(node).size(); position-- > 0;) {
    const PodShape& shape = snapshot->pod_shape(snapshot->pods(node)[position].shape);
    if (MakesRoom(TraitsOf(shape), priority, now_s)) snapshot->RemovePod(node, position);
  }
}

// Places up to `count` of the pods on the node; returns how many fit.
int64_t PlaceOn(NodeIndex node, const IncomingPod& pod, int64_t count, const FitOptions& options,
                Snapshot* snapshot, WorkBudget* budget) {
  PodFit fit(snapshot, pod, &options, budget);
  int64_t placed = 0;
  while (placed < count && budget->Spend(fit.UnitsPerNode()) && budget->Reserve(TrialMemory::kPodBytes)) {
    fit.Refresh(budget);
    if (!fit.Fits(node)) break;
    snapshot->PlacePod(node, fit.shape());
    ++placed;
  }
  return placed;
}

}  // namespace

void PlaceNominated(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget,
                    std::vector<PendingPods>* waiting, WaitingPodsPlan* plan) {
  Holds holds(problem.drain, problem.deleting, problem.reserved_nodes);
  for (const Nomination& nomination : problem.nominations) {
    const std::optional<NodeIndex> node = snapshot->FindSlot(nomination.node);
    PendingPods& pods = (*waiting)[static_cast<size_t>(nomination.pods)];
    const int64_t count = std::min(nomination.count, pods.count);
    if (!node.has_value() || count <= 0 || !holds.MayHold(nomination.node)) continue;
    if (budget->ended()) break;
    snapshot->Fork();
    RemoveEnding(*node, TraitsOf(pods.pod.shape).priority, problem.drain.now_s, snapshot);
    const int64_t placed = PlaceOn(*node, pods.pod, count, problem.scale_down.fit, snapshot, budget);
    if (placed == 0) {
      snapshot->Revert();
      continue;
    }
    snapshot->Commit();
    pods.count -= placed;
    plan->expected.push_back({nomination.pods, placed, *node});
    plan->reserved_nodes.push_back(nomination.node);
    holds.Hold(nomination.node);
  }
  plan->next_reserved_nodes = std::move(holds).Take();
}

}  // namespace loadline

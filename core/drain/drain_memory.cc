#include "core/drain/drain_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/drain/being_deleted.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

// Returns whether a drain was tried in vain.
bool IsFailure(NodeReason reason) {
  return reason == NodeReason::kBlockedByPod || reason == NodeReason::kNoPlaceToMovePods ||
         reason == NodeReason::kPlaceholdersNeedRoom;
}

// Returns the text of FailedNode::pod.
std::string FailedPodText(const DrainCall& call, Slot slot, const std::optional<PodRef>& pod) {
  if (!pod.has_value()) return "";
  if (pod->is_placeholder()) return call.TextOf(slot, *pod);
  const NodePods& pods = call.cluster().pods(slot);
  const PodShape& shape = call.cluster().pod_shapes()[pods.pods()[pod->position()].shape];
  return absl::StrCat(shape.namespace_name, "/", pods.name(pod->position()));
}

// Why a node stays. A drain that was tried in vain is added to `failed`; `known`: as it failed before, or
// nullptr.
DrainKeep KeepOf(const DrainCall& call, Slot slot, const FailedNode* known, std::vector<FailedNode>* failed) {
  const JudgedNode& node = call.judged(slot);
  DrainKeep keep{.slot = slot,
                 .reason = node.reason,
                 .pod = node.pod,
                 .pod_reason = node.pod_reason,
                 .budget = node.budget};
  if (node.reason == NodeReason::kNotEvaluated && known != nullptr) {
    keep.reason = known->reason;
    keep.since_s = known->since_s;
    failed->push_back(*known);
    return keep;
  }
  if (!IsFailure(node.reason)) return keep;
  const bool continues = known != nullptr && known->reason == node.reason;
  keep.since_s = continues ? std::min(known->since_s, call.now_s()) : call.now_s();
  failed->push_back({std::string(call.name(slot)), call.cluster().traits(slot).uid, node.reason,
                     FailedPodText(call, slot, node.pod), keep.since_s});
  return keep;
}

}  // namespace

void DrainMemory::Set(DrainState state) {
  state_ = std::move(state);
  planned_.clear();
  timers_.clear();
}

DrainState DrainMemory::ToState(const DrainCall* last) const {
  DrainState state = state_;
  if (last == nullptr) return state;
  for (const PlannedNode& planned : planned_) {
    UnneededNode& node = state.unneeded.emplace_back();
    node.node = std::string(last->name(planned.slot));
    node.uid = planned.uid;
    node.since_s = planned.since_s;
    node.risky = planned.risky;
    node.start = planned.start;
    for (const DrainMove& move : *planned.moves) {
      node.hints.push_back({last->TextOf(planned.slot, move.pod), std::string(last->name(move.to))});
    }
  }
  for (const FormerNode& former : timers_) {
    UnneededNode& node = state.unneeded.emplace_back();
    node.node = former.node;
    node.uid = former.uid;
    node.since_s = former.since_s;
    const std::optional<Slot> slot = last->cluster().Find(former.node);
    if (!slot.has_value()) continue;
    const absl::flat_hash_map<uint64_t, PodRef> pods = last->PodsByKey(*slot);
    for (const auto& [key, to] : former.hints) {
      const auto pod = pods.find(key);
      if (pod != pods.end()) node.hints.push_back({last->TextOf(*slot, pod->second), to});
    }
  }
  return state;
}

// The clock may have been set back since: an eviction of the future would be kept until then.
void DrainMemory::ForgetOldEvictions(int64_t now_s, int64_t recent_eviction_s) {
  for (RecentEviction& eviction : state_.recent_evictions) eviction.at_s = std::min(eviction.at_s, now_s);
  std::erase_if(state_.recent_evictions,
                [&](const RecentEviction& eviction) { return now_s - eviction.at_s >= recent_eviction_s; });
}

bool DrainMemory::SawSameRules(const DrainCall& call) {
  const int64_t version = call.cluster().objects().version();
  const bool same = call.budgets.empty() && call.options().rules == rules_ && objects_version_ == version;
  rules_ = call.options().rules;
  objects_version_ = version;
  return same;
}

std::vector<PlannedNode> DrainMemory::TakePlanned() { return std::exchange(planned_, {}); }

std::vector<FormerNode> DrainMemory::TakeTimers() {
  std::vector<FormerNode> timers;
  for (UnneededNode& node : state_.unneeded) {
    FormerNode& former = timers.emplace_back();
    former.node = std::move(node.node);
    former.uid = std::move(node.uid);
    former.since_s = node.since_s;
    for (DestinationHint& hint : node.hints) {
      former.hints.emplace_back(DrainCall::KeyOfText(hint.pod), std::move(hint.node));
    }
  }
  state_.unneeded.clear();
  for (FormerNode& former : timers_) timers.push_back(std::move(former));
  timers_.clear();
  return timers;
}

void DrainMemory::Remember(const DrainCall& call, const DrainTrial& trial, std::string resume_at,
                           std::vector<OwnerPods> pods, DrainPlan* plan) {
  RememberFailures(call, plan);
  RememberTimers(call, trial);
  state_.resume_at = std::move(resume_at);
  state_.at_s = call.now_s();
  std::erase_if(state_.deleting,
                [&](const DeletingNode& node) { return !call.cluster().Find(node.node).has_value(); });
  RememberCounts(call, *plan, std::move(pods));
}

void DrainMemory::RememberFailures(const DrainCall& call, DrainPlan* plan) {
  std::vector<FailedNode> failed;
  absl::flat_hash_map<absl::string_view, const FailedNode*> before;
  for (const FailedNode& node : state_.failed) before.emplace(node.node, &node);
  plan->keep.reserve(call.nodes().size() - planned_.size());
  for (const Slot slot : call.nodes()) {
    if (call.judged(slot).planned) continue;
    const auto found = before.find(call.name(slot));
    const FailedNode* known = found == before.end() ? nullptr : found->second;
    const std::string& uid = call.cluster().traits(slot).uid;
    if (known != nullptr && !known->uid.empty() && !uid.empty() && known->uid != uid) known = nullptr;
    plan->keep.push_back(KeepOf(call, slot, known, &failed));
  }
  state_.failed = std::move(failed);
}

void DrainMemory::RememberTimers(const DrainCall& call, const DrainTrial& trial) {
  // Nodes that took pods are no candidates, whatever their timers say.
  std::erase_if(timers_, [&](const FormerNode& former) {
    const std::optional<Slot> slot = call.cluster().Find(former.node);
    return !slot.has_value() || trial.received(call.judged(*slot).node) > 0;
  });
  // The state has the same rule: no hint is kept for a placeholder that is away for a loop.
  for (FormerNode& former : timers_) {
    const absl::flat_hash_map<uint64_t, PodRef> pods = call.PodsByKey(*call.cluster().Find(former.node));
    std::erase_if(former.hints, [&](const auto& hint) { return !pods.contains(hint.first); });
  }
}

// The counts with which the next call compares what it finds: without nodes whose deletion was started, or
// starts now. If no node is removed in this loop, nothing explains why pods would vanish from the nodes of
// the plan.
void DrainMemory::RememberCounts(const DrainCall& call, const DrainPlan& plan, std::vector<OwnerPods> pods) {
  std::vector<Slot> leaving = RememberedDeleting(call.cluster(), state_.deleting);
  for (const DrainRemoval& removal : plan.remove) {
    if (removal.start && !call.problem().nothing_leaves) leaving.push_back(removal.slot);
  }
  for (DeletingNode& node : state_.deleting) node.left_out = true;
  state_.nodes = call.cluster().node_count() - static_cast<int64_t>(leaving.size());
  state_.pods = std::move(pods);
  TakeAwayPods(call.cluster(), leaving, &state_.pods);
}

}  // namespace loadline

#include "core/drain/planner.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/drain/planner_impl.h"

namespace loadline {

absl::string_view Name(DrainBrake brake) {
  switch (brake) {
    case DrainBrake::kNone:
      return "None";
    case DrainBrake::kDoubt:
      return "ClusterNotKnown";
    case DrainBrake::kUnhealthy:
      return "ClusterUnhealthy";
    case DrainBrake::kPodsVanished:
      return "PodsVanished";
    case DrainBrake::kNodesVanished:
      return "NodesVanished";
    case DrainBrake::kClockWentBack:
      return "ClockWentBack";
    case DrainBrake::kNodesBeingDeleted:
      return "NodesBeingDeleted";
    case DrainBrake::kRecentEvictions:
      return "RecentEvictions";
    case DrainBrake::kNotVerified:
      return "NotVerified";
  }
  return "invalid brake";
}

DrainPlanner::DrainPlanner() : impl_(std::make_unique<Impl>()) {}
DrainPlanner::~DrainPlanner() = default;
void DrainPlanner::SetState(DrainState state) { impl_->SetState(std::move(state)); }
DrainState DrainPlanner::state() const { return impl_->State(); }
const DrainPlan& DrainPlanner::Plan(const DrainProblem& problem, const DrainOptions& options,
                                    WorkBudget* budget) {
  return impl_->Plan(problem, options, budget);
}

const DrainPlan& DrainPlanner::Impl::Plan(const DrainProblem& problem, const DrainOptions& options,
                                          WorkBudget* budget) {
  problem_ = &problem;
  options_ = &options;
  budget_ = budget;
  TakeBackMoves();
  plan_ = {};
  displaced_.clear();
  evaluated_ = skipped_ = 0;
  risky_by_taint_ = false;
  resume_at_.clear();
  // The clock may have been set back since: an eviction of the future would be kept until then.
  for (RecentEviction& eviction : state_.recent_evictions) {
    eviction.at_s = std::min(eviction.at_s, problem.now_s);
  }
  std::erase_if(state_.recent_evictions, [&](const RecentEviction& eviction) {
    return problem.now_s - eviction.at_s >= options.recent_eviction_s;
  });
  budgets_.emplace(cluster(), Evictions());
  judge_.emplace(cluster(), *budgets_, options.rules, problem.now_s);
  // Rules are options that hardly ever change, and the answers of the last call say which ones held.
  const std::string rules =
      absl::StrCat(options.rules.skip_nodes_with_system_pods, options.rules.skip_nodes_with_local_storage,
                   options.rules.skip_nodes_with_custom_controller_pods, "/", options.rules.min_replica_count,
                   "/", options.rules.system_pod_timeout_s);
  same_rules_ = budgets_->size() == 0 && rules == rules_ && cluster().objects().version() == objects_version_;
  rules_ = rules;
  objects_version_ = cluster().objects().version();
  Sync();
  JudgeNodes();
  pods_now_ = counter_.counts();
  plan_.brake = FindBrake(&plan_.brake_text);
  if (plan_.brake == DrainBrake::kNone) plan_.brake = Verify(&plan_.brake_text);
  if (plan_.brake == DrainBrake::kNone) {
    KeepFormers();
    PlanCandidates();
  } else {
    Brake();
  }
  Answer();
  return plan_;
}

// Most of a plan is told again by the next one.
void DrainPlanner::Impl::TakeBackMoves() {
  if (plan_.remove.size() != planned_.size()) return;
  for (size_t i = 0; i < planned_.size(); ++i) planned_[i].told = std::move(plan_.remove[i].moves);
}

void DrainPlanner::Impl::Answer() {
  plan_.cut_short_by = budget_->end();
  plan_.evaluated = evaluated_;
  plan_.skipped = skipped_;
  Select();
  std::vector<FailedNode> failed;
  absl::flat_hash_map<absl::string_view, const FailedNode*> before;
  for (const FailedNode& node : state_.failed) before.emplace(node.node, &node);
  plan_.keep.reserve(slots_.size() - planned_.size());
  for (const Slot slot : slots_) {
    if (judged(slot).planned) continue;
    const auto found = before.find(name(slot));
    const FailedNode* known = found == before.end() ? nullptr : found->second;
    const std::string& uid = cluster().traits(slot).uid;
    if (known != nullptr && !known->uid.empty() && !uid.empty() && known->uid != uid) known = nullptr;
    plan_.keep.push_back(KeepOf(slot, known, &failed));
  }
  state_.failed = std::move(failed);
  // Nodes that took pods are no candidates, whatever their timers say.
  std::erase_if(held_, [&](const FormerNode& former) {
    const std::optional<Slot> slot = cluster().Find(former.node);
    return !slot.has_value() || board_->received(judged(*slot).node) > 0;
  });
  // As in a state: of a placeholder that is away for a loop no hint is kept.
  for (FormerNode& former : held_) {
    const absl::flat_hash_map<uint64_t, int32_t> pods = PodsByKey(*cluster().Find(former.node));
    std::erase_if(former.hints, [&](const auto& hint) { return !pods.contains(hint.first); });
  }
  state_.resume_at = resume_at_;
  state_.at_s = problem_->now_s;
  std::erase_if(state_.deleting,
                [&](const DeletingNode& node) { return !cluster().Find(node.node).has_value(); });
  RememberCounts();
}

// Why a node stays; a drain that was tried in vain is remembered.
DrainKeep DrainPlanner::Impl::KeepOf(Slot slot, const FailedNode* known, std::vector<FailedNode>* failed) {
  const JudgedNode& node = judged(slot);
  DrainKeep keep{.slot = slot,
                 .reason = node.reason,
                 .pod = node.pod,
                 .pod_reason = node.pod_reason,
                 .budget = node.budget};
  const auto tried = [](NodeReason reason) {
    return reason == NodeReason::kBlockedByPod || reason == NodeReason::kNoPlaceToMovePods ||
           reason == NodeReason::kPlaceholdersNeedRoom;
  };
  if (node.reason == NodeReason::kNotEvaluated && known != nullptr) {
    keep.reason = known->reason;
    keep.since_s = known->since_s;
    failed->push_back(*known);
    return keep;
  }
  if (!tried(node.reason)) return keep;
  keep.since_s = known != nullptr && known->reason == node.reason ? std::min(known->since_s, problem_->now_s)
                                                                  : problem_->now_s;
  failed->push_back({std::string(name(slot)), cluster().traits(slot).uid, node.reason,
                     PodText(slot, node.pod), keep.since_s});
  return keep;
}

std::string DrainPlanner::Impl::PodText(Slot slot, int32_t pod) const {
  if (pod == DrainKeep::kNoPod) return "";
  if (pod < 0) return TextOf(slot, pod);
  const NodePods& pods = cluster().pods(slot);
  const size_t i = static_cast<size_t>(pod);
  return absl::StrCat(cluster().pod_shapes()[pods.pods()[i].shape].namespace_name, "/", pods.name(i));
}

// The pods and placeholders of a node.
absl::flat_hash_map<uint64_t, int32_t> DrainPlanner::Impl::PodsByKey(Slot slot) const {
  absl::flat_hash_map<uint64_t, int32_t> pods;
  const int32_t end = static_cast<int32_t>(cluster().pods(slot).pods().size());
  for (int32_t pod = 0; pod < end; ++pod) pods.try_emplace(KeyOf(slot, pod), pod);
  if (IndexOf(slot) < placeholders_on_.size()) {
    for (const int32_t pod : placeholders_on_[IndexOf(slot)]) pods.try_emplace(KeyOf(slot, pod), pod);
  }
  return pods;
}

DrainState DrainPlanner::Impl::State() const {
  DrainState state = state_;
  if (board_ == nullptr) return state;
  state.unneeded.clear();
  for (size_t i = 0; i < planned_.size(); ++i) {
    const PlannedNode& planned = planned_[i];
    UnneededNode& node = state.unneeded.emplace_back();
    node.node = board_->snapshot().name(planned.node);
    node.uid = planned.uid;
    node.since_s = planned.since_s;
    node.risky = planned.risky;
    node.start = plan_.remove[i].start;
    for (const PlannedMove& move : planned.moves) {
      node.hints.push_back({TextOf(planned.slot, move.pod), board_->snapshot().name(move.to)});
    }
  }
  for (const FormerNode& former : held_) {
    UnneededNode& node = state.unneeded.emplace_back();
    node.node = former.node;
    node.uid = former.uid;
    node.since_s = former.since_s;
    const std::optional<Slot> slot = cluster().Find(former.node);
    if (!slot.has_value()) continue;
    const absl::flat_hash_map<uint64_t, int32_t> pods = PodsByKey(*slot);
    for (const auto& [key, to] : former.hints) {
      if (const auto pod = pods.find(key); pod != pods.end())
        node.hints.push_back({TextOf(*slot, pod->second), to});
    }
  }
  return state;
}

}  // namespace loadline

// What every node is asked, and the first round: nodes of the former plan.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/drain/planner_impl.h"

namespace loadline {

// All that eligibility turns on beside the node.
std::string DrainPlanner::Impl::EligibilityBasis() const {
  const EligibilityOptions& options = options_->eligibility;
  std::string basis =
      absl::StrCat(absl::StrJoin(problem_->group_of, ","), "/", options.utilization_threshold, "/",
                   options.gpu_utilization_threshold, "/", options.scale_down_unready_enabled,
                   options.utilization.ignore_daemonsets, options.utilization.ignore_mirror_pods, "/",
                   absl::StrJoin(options.utilization.gpu_labels, ","));
  for (const Slot slot : problem_->chosen) absl::StrAppend(&basis, "+", static_cast<int32_t>(slot));
  for (const DrainGroup& group : problem_->groups) {
    absl::StrAppend(
        &basis, ";", group.sized, ",", group.min_nodes, ",", group.target, ",",
        group.utilization_threshold.value_or(-1), ",", group.gpu_utilization_threshold.value_or(-1), ",",
        group.ignore_daemonsets_utilization.has_value(), group.ignore_daemonsets_utilization.value_or(false));
  }
  return basis;
}

void DrainPlanner::Impl::JudgeNodes() {
  std::string basis = EligibilityBasis();
  if (basis != known_basis_ || !problem_->pools.empty()) known_reasons_.clear();
  known_basis_ = std::move(basis);
  known_reasons_.resize(judged_.size());
  limits_.emplace(problem_->groups, options_->minimum);
  std::vector<bool> deleting(judged_.size(), false);
  for (const Slot slot : deleting_) deleting[IndexOf(slot)] = true;
  std::vector<bool> chosen(judged_.size(), false);
  for (const Slot slot : problem_->chosen) chosen[IndexOf(slot)] = true;
  for (const Slot slot : slots_) {
    JudgedNode& node = judged(slot);
    const bool being_deleted = deleting[IndexOf(slot)];
    limits_->AddNode(node.group, AllocatableOf(slot), being_deleted);
    NodeQuestion question{.slot = slot, .being_deleted = being_deleted, .chosen = chosen[IndexOf(slot)]};
    if (node.group >= 0) question.group = &problem_->groups[static_cast<size_t>(node.group)];
    if (const auto pools = problem_->pools.find(slot); pools != problem_->pools.end()) {
      question.pools = pools->second;
    }
    std::optional<NodeReason>& known = known_reasons_[IndexOf(slot)];
    if (being_deleted || !known.has_value()) {
      const NodeReason reason =
          CheckEligibility(cluster(), question, options_->eligibility, problem_->now_s).reason;
      // Pods that are terminating stop counting at some time.
      known = being_deleted || HasTerminatingPods(slot) ? std::nullopt : std::optional(reason);
      node.reason = reason;
    } else {
      node.reason = *known;
    }
    node.eligible = node.reason == NodeReason::kNone;
  }
}

bool DrainPlanner::Impl::HasTerminatingPods(Slot slot) const {
  const std::span<const NodePods::Pod> pods = cluster().pods(slot).pods();
  return std::any_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    return TraitsOf(cluster().pod_shapes()[pod.shape]).deleted_s.has_value();
  });
}

CpuMemory DrainPlanner::Impl::AllocatableOf(Slot slot) const {
  const ResourceAmounts& allocatable = cluster().node_shape(slot).allocatable;
  return {allocatable.Get(kCpu), allocatable.Get(kMemory)};
}

void DrainPlanner::Impl::Note(Slot slot, NodeReason reason, int32_t pod) {
  JudgedNode& node = judged(slot);
  node.reason = reason;
  node.pod = pod;
  node.pod_reason = PodReason::kNone;
  node.budget = BudgetRefusal::kNone;
}

MovingPod DrainPlanner::Impl::PodAt(Slot slot, int32_t pod) {
  MovingPod moving;
  moving.pod = pod;
  moving.key = KeyOf(slot, pod);
  if (pod < 0) {
    const DrainPlaceholder& placeholder = problem_->placeholders[static_cast<size_t>(-1 - pod)];
    moving.kind = board_->KindOf(placeholder.pod);
    moving.placeholder = true;
    moving.name = placeholder.name;
    return moving;
  }
  const NodePods& pods = cluster().pods(slot);
  const size_t i = static_cast<size_t>(pod);
  const PodShape& shape = cluster().pod_shapes()[pods.pods()[i].shape];
  const PodTraits& traits = TraitsOf(shape);
  moving.kind = board_->KindOf(pods.pods()[i].shape);
  moving.use = budgets_->UseOf(pods.pods()[i].shape);
  moving.priority = traits.priority;
  moving.placeholder = traits.placeholder;
  moving.namespace_name = shape.namespace_name;
  moving.name = pods.name(i);
  moving.uid = pods.uid(i);
  return moving;
}

bool DrainPlanner::Impl::AskPods(Slot slot, const FormerNode* former, PlannedNode* planned,
                                 std::vector<MovingPod>* pods) {
  planned->slot = slot;
  planned->node = judged(slot).node;
  planned->uid = cluster().traits(slot).uid;
  planned->empty = true;
  const std::span<const NodePods::Pod> all = cluster().pods(slot).pods();
  NodePodsJudgement judgement = judge_->JudgeNode(slot);
  if (judgement.block.has_value()) {
    Note(slot, NodeReason::kBlockedByPod, static_cast<int32_t>(judgement.block->pod));
    judged(slot).pod_reason = judgement.block->reason;
    if (judgement.block->reason == PodReason::kNotEnoughPdb) {
      judged(slot).budget = budgets_->Refuses(budgets_->UseOf(all[judgement.block->pod].shape));
    }
    return false;
  }
  for (const size_t pod : judgement.wait) planned->waits_for.push_back(static_cast<int32_t>(pod));
  std::vector<BudgetUse> uses;
  for (const size_t pod : judgement.move) {
    // A finished pod holds nothing, and nothing takes its place.
    if (cluster().pod_shapes()[all[pod].shape].finished) continue;
    pods->push_back(PodAt(slot, static_cast<int32_t>(pod)));
    planned->sources.push_back(static_cast<int32_t>(pod));
    planned->empty = planned->empty && pods->back().placeholder;
    uses.push_back(pods->back().use);
  }
  const DisruptionBudgets::Answer answer = budgets_->Ask(uses);
  if (answer.refused.has_value()) {
    Note(slot, NodeReason::kBlockedByPod, planned->sources[*answer.refused]);
    judged(slot).pod_reason = PodReason::kNotEnoughPdb;
    judged(slot).budget = answer.refusal;
    return false;
  }
  planned->risky = answer.risky;
  if (IndexOf(slot) < placeholders_on_.size()) {
    for (const int32_t placeholder : placeholders_on_[IndexOf(slot)]) {
      pods->push_back(PodAt(slot, placeholder));
      planned->sources.push_back(placeholder);
    }
  }
  if (former != nullptr) {
    absl::flat_hash_map<uint64_t, const std::string*> hints;
    for (const auto& [key, node] : former->hints) hints.try_emplace(key, &node);
    for (MovingPod& pod : *pods) {
      const auto hint = hints.find(pod.key);
      if (hint == hints.end()) continue;
      const std::optional<Slot> to = cluster().Find(*hint->second);
      if (to.has_value() && !is_former_[IndexOf(*to)]) pod.hint = judged(*to).node;
    }
  }
  board_->Sort(pods);
  return true;
}

// Nodes of the former plan stay in it where each of their pods still has the place that was planned, before
// any node that is new; the others are tried again later.
void DrainPlanner::Impl::KeepFormers() {
  for (FormerEntry& entry : formers_) {
    if (entry.intact.has_value()) {
      if (budget_->ended() && MayStop()) {
        const Slot slot = entry.intact->slot;
        FormerNode former = Forget(*entry.intact);
        Withdraw({&*entry.intact, 1});
        HoldUnevaluated(std::move(former), slot);
        continue;
      }
      ++evaluated_;
      budget_->Spend(1 + static_cast<int64_t>(entry.intact->moves.size()) / 8);
      if (KeepIntact(&*entry.intact)) continue;
      entry.former = Forget(*entry.intact);
      Withdraw({&*entry.intact, 1});
    }
    const std::optional<Slot> slot = cluster().Find(entry.former.node);
    // The node is gone, or another one has its name.
    if (!slot.has_value()) continue;
    const std::string& uid = cluster().traits(*slot).uid;
    if (!uid.empty() && !entry.former.uid.empty() && uid != entry.former.uid) continue;
    if (judged(*slot).planned) continue;
    if (budget_->ended() && MayStop()) {
      HoldUnevaluated(std::move(entry.former), *slot);
      continue;
    }
    if (!entry.intact.has_value()) ++evaluated_;
    if (!Readopt(entry.former, *slot)) displaced_.push_back(std::move(entry.former));
  }
}

// The work ended before it was the turn of this node of the former plan: its timer goes on, and it is no
// candidate in this call.
void DrainPlanner::Impl::HoldUnevaluated(FormerNode former, Slot slot) {
  if (!judged(slot).eligible) return;
  Note(slot, NodeReason::kNotEvaluated);
  judged(slot).eligible = false;
  ++skipped_;
  Hold(std::move(former));
}

// Pods that are terminating end at some time, and pods of kube-system may move when they are old.
bool DrainPlanner::Impl::IsSettled(Slot slot) const {
  const std::span<const NodePods::Pod> pods = cluster().pods(slot).pods();
  return std::none_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    const PodShape& shape = cluster().pod_shapes()[pod.shape];
    return TraitsOf(shape).deleted_s.has_value() || shape.namespace_name == "kube-system";
  });
}

// Whether the pods of a node that move, or are waited for, are those that were planned; `uses` is what they
// take.
bool DrainPlanner::Impl::MovesTheSame(const PlannedNode& planned, std::vector<BudgetUse>* uses) {
  const std::span<const NodePods::Pod> pods = cluster().pods(planned.slot).pods();
  size_t moving = 0;
  size_t waiting = 0;
  int32_t shape = -1;
  RuleAnswer answer;
  bool finished = false;
  for (size_t i = 0; i < pods.size(); ++i) {
    // Most pods are like the one before; nothing is taken from budgets in between. Of mirror pods none is
    // here twice.
    if (pods[i].shape != shape) {
      shape = pods[i].shape;
      answer = judge_->Judge(planned.slot, shape);
      finished = cluster().pod_shapes()[shape].finished;
    }
    switch (answer.outcome) {
      case PodOutcome::kSkip:
      case PodOutcome::kDaemon:
        break;
      case PodOutcome::kBlock:
        return false;
      case PodOutcome::kWait:
        if (waiting >= planned.waits_for.size() || planned.waits_for[waiting++] != static_cast<int32_t>(i)) {
          return false;
        }
        break;
      case PodOutcome::kUndefined:
      case PodOutcome::kMove:
        if (finished) break;
        if (moving >= planned.sources.size() || planned.sources[moving++] != static_cast<int32_t>(i))
          return false;
        uses->push_back(budgets_->UseOf(shape));
        break;
    }
  }
  // Behind the pods are placeholders, which are as they were.
  return waiting == planned.waits_for.size() &&
         (moving == planned.sources.size() || planned.sources[moving] < 0);
}

// Whether a node whose moves stand on the board goes on as it is.
bool DrainPlanner::Impl::KeepIntact(PlannedNode* planned) {
  const Slot slot = planned->slot;
  if (!judged(slot).eligible || board_->received(planned->node) > 0) return false;
  uses_.clear();
  if (!(same_rules_ && planned->settled) && !MovesTheSame(*planned, &uses_)) return false;
  if (budgets_->size() > 0) {
    const DisruptionBudgets::Answer answer = budgets_->Ask(uses_);
    if (answer.refused.has_value() || answer.risky) return false;
  }
  if (limits_->Take(judged(slot).group, AllocatableOf(slot)) != NodeReason::kNone) return false;
  for (const BudgetUse& use : uses_) budgets_->Take(use);
  planned->since_s = TimerStart(planned->since_s, problem_->now_s);
  planned->risky = false;
  judged(slot).planned = true;
  planned_.push_back(std::move(*planned));
  return true;
}

bool DrainPlanner::Impl::Readopt(const FormerNode& former, Slot slot) {
  if (!judged(slot).eligible || board_->received(judged(slot).node) > 0) return false;
  PlannedNode planned;
  std::vector<MovingPod> pods;
  if (!AskPods(slot, &former, &planned, &pods) || planned.risky) return false;
  if (std::any_of(pods.begin(), pods.end(), [](const MovingPod& pod) { return pod.hint == kNoNode; }))
    return false;
  if (limits_->Take(judged(slot).group, AllocatableOf(slot)) != NodeReason::kNone) return false;
  const DrainBoard::Answer answer =
      board_->Drain(planned.node, pods, /*hints_only=*/true, budget_, /*may_stop=*/false);
  if (answer.outcome != DrainBoard::Outcome::kPlaced) {
    limits_->GiveBack(judged(slot).group, AllocatableOf(slot));
    return false;
  }
  planned.since_s = TimerStart(former.since_s, problem_->now_s);
  Accept(std::move(planned), pods);
  return true;
}

// Of a node whose pods have been placed.
void DrainPlanner::Impl::Accept(PlannedNode planned, const std::vector<MovingPod>& pods) {
  planned.moves.reserve(pods.size());
  for (const MovingPod& pod : pods) {
    budgets_->Take(pod.use);
    planned.moves.push_back({pod.pod, pod.kind, pod.to, board_->snapshot().slot(pod.to), pod.key});
  }
  planned.settled = IsSettled(planned.slot);
  Note(planned.slot, NodeReason::kNone);
  judged(planned.slot).planned = true;
  planned_.push_back(std::move(planned));
}

}  // namespace loadline

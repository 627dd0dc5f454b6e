#include "core/drain/keep_formers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/drain/node_reason.h"
#include "core/drain/node_trial.h"
#include "core/drain/timers.h"

namespace loadline {
namespace {

class FormerRound {
 public:
  FormerRound(bool same_rules, DrainCall* call, TrialFollower* follower, DrainMemory* memory)
      : same_rules_(same_rules), call_(*call), follower_(*follower), memory_(*memory) {}

  void Run(FormerEntry entry);
  std::vector<FormerNode> TakeDisplaced() { return std::move(displaced_); }

 private:
  bool OutOfWork() { return call_.work()->ended() && call_.MayStop(); }
  void LeaveUnevaluated(FormerNode former, Slot slot);
  bool MovesTheSame(const PlannedNode& planned);
  bool KeepIntact(PlannedNode* planned, bool replaced);
  bool PlaceAgain(const FormerNode& former, Slot slot, bool replaced);

  const bool same_rules_;
  DrainCall& call_;
  TrialFollower& follower_;
  DrainMemory& memory_;
  std::vector<FormerNode> displaced_;
  std::vector<BudgetUse> uses_;  // room to work in
};

void FormerRound::Run(FormerEntry entry) {
  const bool was_intact = entry.intact.has_value();
  if (was_intact) {
    const bool out_of_work = OutOfWork();
    if (!out_of_work) {
      ++call_.evaluated;
      call_.work()->Spend(1 + static_cast<int64_t>(entry.intact->placed.size()) / 8);
      if (KeepIntact(&*entry.intact, entry.replaced)) return;
    }
    entry.former = follower_.ByNames(*entry.intact);
    follower_.Withdraw(call_, {&*entry.intact, 1});
    if (out_of_work) return LeaveUnevaluated(std::move(entry.former), entry.intact->slot);
  }
  const std::optional<Slot> slot = call_.Find(entry.former);
  if (!slot.has_value() || call_.judged(*slot).planned) return;
  if (OutOfWork()) return LeaveUnevaluated(std::move(entry.former), *slot);
  if (!was_intact) ++call_.evaluated;
  if (!PlaceAgain(entry.former, *slot, entry.replaced)) displaced_.push_back(std::move(entry.former));
}

// The work ended before the turn of this node: its timer keeps running, and it is no candidate in this call.
void FormerRound::LeaveUnevaluated(FormerNode former, Slot slot) {
  if (!call_.judged(slot).eligible) return;
  call_.Note(slot, NodeReason::kNotEvaluated);
  call_.judged(slot).eligible = false;
  ++call_.skipped;
  memory_.KeepTimer(std::move(former));
}

// Returns whether the pods of a node that move, or are waited for, are those that were planned; uses_ is what
// they take.
bool FormerRound::MovesTheSame(const PlannedNode& planned) {
  const std::span<const NodePods::Pod> pods = call_.cluster().pods(planned.slot).pods();
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
      answer = call_.judge.Judge(planned.slot, shape);
      finished = call_.cluster().pod_shapes()[shape].finished;
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
        if (moving >= planned.sources.size() || planned.sources[moving++] != PodRef::Pod(i)) return false;
        uses_.push_back(call_.budgets.UseOf(shape));
        break;
    }
  }
  // Behind the pods are placeholders, which are as they were.
  return waiting == planned.waits_for.size() &&
         (moving == planned.sources.size() || planned.sources[moving].is_placeholder());
}

// Returns whether a node whose moves are applied stays in the plan as it is. One whose budgets do not allow
// all of its pods at once is last, unless it is replaced: others must not use up what it needs.
bool FormerRound::KeepIntact(PlannedNode* planned, bool replaced) {
  const Slot slot = planned->slot;
  JudgedNode& node = call_.judged(slot);
  if (!node.eligible || follower_.trial().received(planned->node) > 0) return false;
  uses_.clear();
  if (!(same_rules_ && planned->settled) && !MovesTheSame(*planned)) return false;
  planned->risky = false;
  if (!call_.budgets.empty()) {
    const DisruptionBudgets::Answer answer = call_.budgets.Ask(uses_);
    if (answer.refused.has_value() || (answer.risky && !replaced)) return false;
    planned->risky = answer.risky;
  }
  if (call_.limits.Take(node.group, call_.OfferOf(slot)) != NodeReason::kNone) return false;
  for (const BudgetUse& use : uses_) call_.budgets.Take(use);
  planned->since_s = TimerStart(planned->since_s, call_.now_s());
  node.planned = true;
  memory_.planned().push_back(std::move(*planned));
  return true;
}

// Returns whether each pod of a node that is known by names still has its place; then they are placed there.
bool FormerRound::PlaceAgain(const FormerNode& former, Slot slot, bool replaced) {
  const JudgedNode& node = call_.judged(slot);
  DrainTrial& trial_cluster = follower_.trial();
  if (!node.eligible || trial_cluster.received(node.node) > 0) return false;
  std::optional<NodeTrial> trial = AskPods(slot, &former, &call_, &follower_);
  if (!trial.has_value() || (trial->planned.risky && !replaced)) return false;
  if (std::any_of(trial->pods.begin(), trial->pods.end(),
                  [](const MovingPod& pod) { return pod.hint == kNoNode; })) {
    return false;
  }
  if (call_.limits.Take(node.group, call_.OfferOf(slot)) != NodeReason::kNone) return false;
  const DrainTrial::Answer answer =
      trial_cluster.Drain(node.node, trial->pods, /*hints_only=*/true, call_.work(), /*may_stop=*/false);
  if (answer.outcome != DrainTrial::Outcome::kPlaced) {
    call_.limits.GiveBack(*node.group, call_.OfferOf(slot));
    return false;
  }
  trial->planned.since_s = TimerStart(former.since_s, call_.now_s());
  memory_.planned().push_back(Accept(*std::move(trial), trial_cluster, &call_));
  return true;
}

}  // namespace

std::vector<FormerNode> KeepFormers(std::vector<FormerEntry> formers, bool same_rules, DrainCall* call,
                                    TrialFollower* follower, DrainMemory* memory) {
  FormerRound round(same_rules, call, follower, memory);
  for (FormerEntry& entry : formers) round.Run(std::move(entry));
  return round.TakeDisplaced();
}

void KeepTimers(std::vector<FormerEntry> formers, bool anew, const DrainCall& call,
                const TrialFollower& follower, DrainMemory* memory) {
  for (FormerEntry& entry : formers) {
    FormerNode former = entry.intact.has_value() ? follower.ByNames(*entry.intact) : std::move(entry.former);
    if (!call.Find(former).has_value()) continue;
    former.since_s = anew ? call.now_s() : TimerStart(former.since_s, call.now_s());
    memory->KeepTimer(std::move(former));
  }
}

}  // namespace loadline

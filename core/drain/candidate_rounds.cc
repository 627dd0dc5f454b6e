#include "core/drain/candidate_rounds.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/drain/node_reason.h"
#include "core/drain/node_trial.h"
#include "core/drain/timers.h"

namespace loadline {
namespace {

class Rounds {
 public:
  Rounds(std::span<const FormerNode> displaced, DrainCall* call, TrialFollower* follower, DrainMemory* memory)
      : call_(*call),
        follower_(*follower),
        trial_cluster_(follower->trial()),
        planned_(memory->planned()),
        resume_from_(memory->state().resume_at),
        candidates_(Candidates(*call, trial_cluster_.snapshot(), displaced)),
        priced_(ArePriced(*call, candidates_)) {}

  void Run(bool compete);
  // Candidates that the work did not suffice for.
  std::vector<Candidate> Unevaluated() const;
  // Nodes that only a budget keeps, of which others have used up what was left, and since when.
  std::vector<TimedNode> BehindBudgets() const;
  const std::string& resume_at() const { return resume_at_; }

 private:
  // The result of a round of candidates.
  struct Outcome {
    int64_t nodes = 0;
    double value = 0;
  };
  enum class Trial { kAccepted, kRefused, kDestination, kRisky, kSkipped };

  Outcome Try(const std::vector<Candidate>& order);
  Trial TryNode(const Candidate& candidate, bool risky_too);
  void NoteSkipped(const Candidate& candidate);
  void Compete(const Outcome& plain, size_t kept);
  bool Beats(const Outcome& other, const Outcome& plain) const;
  void UndoRound(size_t kept);
  void Repeat(std::vector<PlannedNode> nodes);

  DrainCall& call_;
  TrialFollower& follower_;
  DrainTrial& trial_cluster_;
  std::vector<PlannedNode>& planned_;
  const std::string resume_from_;
  const std::vector<Candidate> candidates_;
  const bool priced_;  // all candidates have a price
  std::string resume_at_;
};

void Rounds::Run(bool compete) {
  const size_t kept = planned_.size();
  const Outcome plain = Try(Ordered(call_, candidates_, OrderBy::kLoad, resume_from_));
  if (compete && !call_.work()->ended()) Compete(plain, kept);
}

// One round. What a node failed for may have changed only where pods look at each other; there those that
// failed are tried again.
Rounds::Outcome Rounds::Try(const std::vector<Candidate>& order) {
  constexpr int kMostPasses = 3;  // chosen: each pass costs as much as the first, and later ones find little
  trial_cluster_.SetOrder(Destinations(call_, order));
  Outcome outcome;
  resume_at_.clear();
  std::vector<Candidate> left = order;
  bool last = false;
  for (int pass = 0; pass < kMostPasses && !last && !left.empty(); ++pass) {
    bool accepted = false;
    std::vector<Candidate> refused;
    for (const bool risky : {false, true}) {
      std::vector<Candidate> risky_ones;
      for (const Candidate& candidate : left) {
        const Trial trial = TryNode(candidate, risky);
        const bool evaluated = trial != Trial::kSkipped && trial != Trial::kDestination;
        if (evaluated && pass == 0 && !risky) ++call_.evaluated;
        if (trial == Trial::kAccepted) {
          accepted = true;
          ++outcome.nodes;
          outcome.value += candidate.value;
        } else if (trial == Trial::kRisky) {
          risky_ones.push_back(candidate);
        } else if (trial == Trial::kRefused) {
          refused.push_back(candidate);
        } else if (trial == Trial::kSkipped) {
          NoteSkipped(candidate);
        }
      }
      left = std::move(risky_ones);
    }
    left = std::move(refused);
    last = !accepted || !trial_cluster_.pods_depend() || call_.work()->ended();
  }
  return outcome;
}

void Rounds::NoteSkipped(const Candidate& candidate) {
  if (call_.judged(candidate.slot).reason != NodeReason::kNone) return;
  call_.Note(candidate.slot, NodeReason::kNotEvaluated);
  // Nodes of the previous plan are first in any case.
  if (resume_at_.empty() && candidate.displaced == nullptr)
    resume_at_ = std::string(call_.name(candidate.slot));
}

Rounds::Trial Rounds::TryNode(const Candidate& candidate, bool risky_too) {
  const Slot slot = candidate.slot;
  const JudgedNode& node = call_.judged(slot);
  if (trial_cluster_.received(node.node) > 0) {
    call_.Note(slot, NodeReason::kAlreadyADestination);
    return Trial::kDestination;
  }
  call_.work()->Spend();
  if (call_.work()->ended() && call_.MayStop()) return Trial::kSkipped;
  std::optional<NodeTrial> trial = AskPods(slot, candidate.displaced, &call_, &follower_);
  if (!trial.has_value()) return Trial::kRefused;
  if (trial->planned.risky && !risky_too) return Trial::kRisky;
  const NodeReason limit = call_.limits.Take(node.group, call_.OfferOf(slot));
  if (limit != NodeReason::kNone) {
    call_.Note(slot, limit);
    return Trial::kRefused;
  }
  const DrainTrial::Answer answer =
      trial_cluster_.Drain(node.node, trial->pods, /*hints_only=*/false, call_.work(), call_.MayStop());
  if (answer.outcome == DrainTrial::Outcome::kPlaced) {
    if (!trial_cluster_.pods_depend()) {
      for (MovingPod& pod : trial->pods) pod.hint = kNoNode;
      trial_cluster_.Sort(&trial->pods);
    }
    const FormerNode* const former = candidate.displaced;
    trial->planned.since_s = former == nullptr ? call_.now_s() : TimerStart(former->since_s, call_.now_s());
    planned_.push_back(Accept(*std::move(trial), trial_cluster_, &call_));
    return Trial::kAccepted;
  }
  call_.limits.GiveBack(*node.group, call_.OfferOf(slot));
  if (answer.outcome == DrainTrial::Outcome::kStopped) return Trial::kSkipped;
  const MovingPod& pod = trial->pods[answer.pod];
  call_.Note(slot, pod.placeholder ? NodeReason::kPlaceholdersNeedRoom : NodeReason::kNoPlaceToMovePods,
             pod.pod);
  return Trial::kRefused;
}

// Another order competes with the plain one: the dearest nodes first, or where prices are not known the
// smallest ones, of which most can go. Where all nodes are worth the same, it would be the plain one.
void Rounds::Compete(const Outcome& plain, size_t kept) {
  if (std::all_of(candidates_.begin(), candidates_.end(),
                  [&](const Candidate& candidate) { return candidate.value == candidates_.front().value; })) {
    return;
  }
  const int64_t evaluated = call_.evaluated;
  const std::string resume_at = resume_at_;
  std::vector<PlannedNode> best(planned_.begin() + static_cast<std::ptrdiff_t>(kept), planned_.end());
  const std::vector<JudgedNode> judged = call_.all_judged();
  UndoRound(kept);
  const OrderBy by = priced_ ? OrderBy::kValue : OrderBy::kSmallest;
  if (!Beats(Try(Ordered(call_, candidates_, by, resume_from_)), plain)) {
    UndoRound(kept);
    call_.Restore(judged);
    Repeat(std::move(best));
    resume_at_ = resume_at;
  }
  call_.evaluated = evaluated;
}

// Known prices decide, but never for fewer nodes than plain greedy finds.
bool Rounds::Beats(const Outcome& other, const Outcome& plain) const {
  if (priced_) return other.nodes >= plain.nodes && other.value > plain.value;
  return other.nodes != plain.nodes ? other.nodes > plain.nodes : other.value > plain.value;
}

// Undoes what was accepted behind the first `kept` nodes.
void Rounds::UndoRound(size_t kept) {
  for (size_t i = kept; i < planned_.size(); ++i) {
    const Slot slot = planned_[i].slot;
    for (const PodRef pod : planned_[i].sources) {
      if (pod.is_placeholder()) continue;
      call_.budgets.GiveBack(call_.budgets.UseOf(call_.cluster().pods(slot).pods()[pod.position()].shape));
    }
    call_.limits.GiveBack(*call_.judged(slot).group, call_.OfferOf(slot));
    call_.judged(slot).planned = false;
  }
  follower_.Withdraw(call_, std::span(planned_).subspan(kept));
  planned_.resize(kept);
}

// Carries out what was found before and undone.
void Rounds::Repeat(std::vector<PlannedNode> nodes) {
  for (PlannedNode& planned : nodes) {
    std::vector<MovingPod> pods;
    pods.reserve(planned.placed.size());
    for (size_t i = 0; i < planned.placed.size(); ++i) {
      pods.push_back(MovingPodOf(call_, planned.slot, (*planned.moves)[i].pod, &follower_));
      pods.back().hint = planned.placed[i].to;
      call_.budgets.Take(pods.back().use);
    }
    trial_cluster_.Repeat(planned.node, pods);
    call_.limits.Take(call_.judged(planned.slot).group, call_.OfferOf(planned.slot));
    planned_.push_back(std::move(planned));
  }
}

std::vector<Candidate> Rounds::Unevaluated() const {
  std::vector<Candidate> unevaluated;
  for (const Candidate& candidate : candidates_) {
    if (call_.judged(candidate.slot).reason == NodeReason::kNotEvaluated) unevaluated.push_back(candidate);
  }
  return unevaluated;
}

// Returns the nodes that are unneeded too but wait for a disruption budget; their timers keep running. A
// timer runs while pods of other nodes start, when nothing is left of a budget, but the node does not start
// then; and where a budget never lets a pod go, the timer ends.
std::vector<TimedNode> Rounds::BehindBudgets() const {
  std::vector<TimedNode> nodes;
  for (const Candidate& candidate : candidates_) {
    const JudgedNode& node = call_.judged(candidate.slot);
    if (node.reason != NodeReason::kBlockedByPod || !NothingIsLeft(node.budget)) continue;
    const int32_t shape = call_.cluster().pods(candidate.slot).pods()[node.pod->position()].shape;
    const BudgetUse use = call_.budgets.UseOf(shape);
    if (candidate.displaced != nullptr && call_.budgets.MayBeLeftLater(use)) {
      nodes.push_back({candidate.slot, TimerStart(candidate.displaced->since_s, call_.now_s())});
    } else if (candidate.displaced == nullptr && call_.budgets.WouldBeLeft(use)) {
      nodes.push_back({candidate.slot, call_.now_s()});
    }
  }
  return nodes;
}

}  // namespace

std::string PlanCandidates(std::span<const FormerNode> displaced, bool anew, DrainCall* call,
                           TrialFollower* follower, DrainMemory* memory) {
  Rounds rounds(displaced, call, follower, memory);
  // A plan under way is added to and never exchanged: its timers would start anew.
  rounds.Run(/*compete=*/call->options().improve && anew && call->problem().walk.empty());
  for (const Candidate& candidate : rounds.Unevaluated()) {
    ++call->skipped;
    if (candidate.displaced != nullptr) memory->KeepTimer(*candidate.displaced);
  }
  call->behind_budgets = rounds.BehindBudgets();
  for (const auto& [slot, since_s] : call->behind_budgets)
    memory->KeepTimer({std::string(call->name(slot)), call->cluster().traits(slot).uid, since_s, {}});
  return rounds.resume_at();
}

}  // namespace loadline

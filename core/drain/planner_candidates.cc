// Rounds of candidates: who is tried when, where pods go, and which order does best.
#include <algorithm>
#include <tuple>
#include <utility>

#include "core/drain/planner_impl.h"

namespace loadline {
namespace {

constexpr int64_t kMillion = 1'000'000;

// The larger share of cpu and memory that is requested, in millionths.
int64_t LoadOf(const Snapshot& snapshot, NodeIndex node) {
  int64_t load = 0;
  for (const ResourceId resource : {kCpu, kMemory}) {
    const NodeAmount& amount = snapshot.amount(node, resource);
    if (amount.allocatable <= 0) continue;
    const absl::int128 share = amount.requested * kMillion / amount.allocatable;
    load = std::max(load, static_cast<int64_t>(std::min<absl::int128>(share, INT64_MAX)));
  }
  return load;
}

}  // namespace

// What the node costs; where any candidate has no price, how large it is.
double DrainPlanner::Impl::ValueOf(Slot slot) const {
  const int32_t group = judged(slot).group;
  if (priced_) {
    return group < 0 ? 0 : problem_->groups[static_cast<size_t>(group)].node_price.value_or(0);
  }
  constexpr double kBytesPerMilliCpu = 4.0 * (int64_t{1} << 30) / 1000;
  const CpuMemory allocatable = AllocatableOf(slot);
  return static_cast<double>(allocatable.cpu) + static_cast<double>(allocatable.memory) / kBytesPerMilliCpu;
}

std::vector<DrainPlanner::Impl::Candidate> DrainPlanner::Impl::Candidates() const {
  std::vector<Candidate> candidates;
  const auto add = [&](Slot slot) {
    if (!judged(slot).eligible || judged(slot).planned) return;
    Candidate candidate{.slot = slot};
    candidate.moves_pods = board_->snapshot().pods(judged(slot).node).size() > 0;
    candidate.load = LoadOf(board_->snapshot(), judged(slot).node);
    candidates.push_back(candidate);
  };
  if (!problem_->walk.empty()) {
    for (const Slot slot : problem_->walk) {
      if (cluster().Occupied(slot)) add(slot);
    }
  } else {
    for (const Slot slot : slots_) add(slot);
  }
  std::vector<int32_t> former(judged_.size(), -1);
  for (size_t i = 0; i < displaced_.size(); ++i) {
    if (const std::optional<Slot> slot = cluster().Find(displaced_[i].node)) {
      former[IndexOf(*slot)] = static_cast<int32_t>(i);
    }
  }
  for (Candidate& candidate : candidates) candidate.former = former[IndexOf(candidate.slot)];
  return candidates;
}

// Those of a former plan first, in its order, for their timers run; then nodes without pods; then by what is
// asked. Where the last loop was cut short, the nodes that it did not reach come before the others.
std::vector<DrainPlanner::Impl::Candidate> DrainPlanner::Impl::Ordered(std::vector<Candidate> candidates,
                                                                       OrderBy by) const {
  if (!problem_->walk.empty()) return candidates;
  for (Candidate& candidate : candidates) candidate.value = ValueOf(candidate.slot);
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& candidate) {
      return std::make_tuple(candidate.former < 0, candidate.former, candidate.moves_pods);
    };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (by == OrderBy::kValue && a.value != b.value) return a.value > b.value;
    if (by == OrderBy::kSmallest && a.value != b.value) return a.value < b.value;
    if (a.load != b.load) return a.load < b.load;
    return name(a.slot) < name(b.slot);
  };
  std::sort(candidates.begin(), candidates.end(), before);
  if (!state_.resume_at.empty()) {
    const auto first = std::find_if(candidates.begin(), candidates.end(),
                                    [](const Candidate& candidate) { return candidate.former < 0; });
    const auto resume = std::find_if(first, candidates.end(), [&](const Candidate& candidate) {
      return name(candidate.slot) == state_.resume_at;
    });
    if (resume != candidates.end()) std::rotate(first, resume, candidates.end());
  }
  return candidates;
}

// Nodes that stay for sure, then candidates from the last one back: those that are tried late are most likely
// to stay.
std::vector<NodeIndex> DrainPlanner::Impl::Destinations(const std::vector<Candidate>& order) const {
  std::vector<bool> late(judged_.size(), false);
  for (const Candidate& candidate : order) late[IndexOf(candidate.slot)] = true;
  std::vector<NodeIndex> result;
  for (const Slot slot : slots_) {
    if (!late[IndexOf(slot)] && !is_former_[IndexOf(slot)]) result.push_back(judged(slot).node);
  }
  for (auto candidate = order.rbegin(); candidate != order.rend(); ++candidate) {
    result.push_back(judged(candidate->slot).node);
  }
  for (const Slot slot : slots_) {
    if (!late[IndexOf(slot)] && is_former_[IndexOf(slot)]) result.push_back(judged(slot).node);
  }
  return result;
}

DrainPlanner::Impl::Trial DrainPlanner::Impl::TryNode(const Candidate& candidate, bool risky_too) {
  const Slot slot = candidate.slot;
  const NodeIndex node = judged(slot).node;
  if (board_->received(node) > 0) {
    Note(slot, NodeReason::kAlreadyADestination);
    return Trial::kDestination;
  }
  budget_->Spend();
  if (budget_->ended() && MayStop()) return Trial::kSkipped;
  const FormerNode* const former =
      candidate.former < 0 ? nullptr : &displaced_[static_cast<size_t>(candidate.former)];
  PlannedNode planned;
  std::vector<MovingPod> pods;
  if (!AskPods(slot, former, &planned, &pods)) return Trial::kRefused;
  if (planned.risky && !risky_too) return Trial::kRisky;
  const NodeReason limit = limits_->Take(judged(slot).group, AllocatableOf(slot));
  if (limit != NodeReason::kNone) {
    Note(slot, limit);
    return Trial::kRefused;
  }
  const DrainBoard::Answer answer = board_->Drain(node, pods, /*hints_only=*/false, budget_, MayStop());
  if (answer.outcome == DrainBoard::Outcome::kPlaced) {
    if (!board_->pods_depend()) {
      for (MovingPod& pod : pods) pod.hint = kNoNode;
      board_->Sort(&pods);
    }
    planned.since_s = former == nullptr ? problem_->now_s : TimerStart(former->since_s, problem_->now_s);
    Accept(std::move(planned), pods);
    return Trial::kAccepted;
  }
  limits_->GiveBack(judged(slot).group, AllocatableOf(slot));
  if (answer.outcome == DrainBoard::Outcome::kStopped) return Trial::kSkipped;
  const MovingPod& pod = pods[answer.pod];
  Note(slot, pod.placeholder ? NodeReason::kPlaceholdersNeedRoom : NodeReason::kNoPlaceToMovePods, pod.pod);
  return Trial::kRefused;
}

// One round: each candidate once, those that are risky at the end. What a node failed for may have changed
// only where pods look at each other; there those that failed are tried again.
DrainPlanner::Impl::Outcome DrainPlanner::Impl::Try(const std::vector<Candidate>& order) {
  constexpr int kMostPasses = 3;
  board_->SetOrder(Destinations(order));
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
        if (trial != Trial::kSkipped && trial != Trial::kDestination && pass == 0 && !risky) ++evaluated_;
        if (trial == Trial::kAccepted) {
          accepted = true;
          ++outcome.nodes;
          outcome.value += ValueOf(candidate.slot);
        } else if (trial == Trial::kRisky) {
          risky_ones.push_back(candidate);
        } else if (trial == Trial::kRefused) {
          refused.push_back(candidate);
        } else if (trial == Trial::kSkipped && judged(candidate.slot).reason == NodeReason::kNone) {
          Note(candidate.slot, NodeReason::kNotEvaluated);
          // Nodes of the former plan come first in any case.
          if (resume_at_.empty() && candidate.former < 0) resume_at_ = std::string(name(candidate.slot));
        }
      }
      left = std::move(risky_ones);
    }
    left = std::move(refused);
    last = !accepted || !board_->pods_depend() || budget_->ended();
  }
  return outcome;
}

// Undoes what was accepted behind the first `planned` nodes.
void DrainPlanner::Impl::UndoRound(size_t planned) {
  for (size_t i = planned; i < planned_.size(); ++i) {
    const Slot slot = planned_[i].slot;
    for (const int32_t pod : planned_[i].sources) {
      if (pod < 0) continue;
      budgets_->GiveBack(budgets_->UseOf(cluster().pods(slot).pods()[static_cast<size_t>(pod)].shape));
    }
    limits_->GiveBack(judged(slot).group, AllocatableOf(slot));
    judged(slot).planned = false;
  }
  Withdraw(std::span(planned_).subspan(planned));
  planned_.resize(planned);
}

void DrainPlanner::Impl::PlanCandidates() {
  const std::vector<Candidate> candidates = Candidates();
  priced_ = std::all_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    const int32_t group = judged(candidate.slot).group;
    return group >= 0 && problem_->groups[static_cast<size_t>(group)].node_price.has_value();
  });
  const size_t kept = planned_.size();
  const std::vector<Candidate> order = Ordered(candidates, OrderBy::kLoad);
  const Outcome plain = Try(order);
  // A plan under way is added to and never exchanged: its timers would start anew.
  if (options_->improve && formers_.empty() && problem_->walk.empty() && !budget_->ended()) {
    Improve(candidates, plain, kept);
  }
  for (const Candidate& candidate : candidates) {
    if (judged(candidate.slot).reason != NodeReason::kNotEvaluated) continue;
    ++skipped_;
    if (candidate.former >= 0) Hold(displaced_[static_cast<size_t>(candidate.former)]);
  }
}

// Another order competes with the plain one: the dearest nodes first, or where prices are not known the
// smallest ones, of which most can go. Where all nodes are worth the same, it would be the plain one.
void DrainPlanner::Impl::Improve(const std::vector<Candidate>& candidates, const Outcome& plain,
                                 size_t kept) {
  const auto same_value = [&](const Candidate& candidate) {
    return ValueOf(candidate.slot) == ValueOf(candidates.front().slot);
  };
  if (std::all_of(candidates.begin(), candidates.end(), same_value)) return;
  const int64_t evaluated = evaluated_;
  const std::string resume_at = resume_at_;
  std::vector<PlannedNode> best(planned_.begin() + static_cast<std::ptrdiff_t>(kept), planned_.end());
  const std::vector<JudgedNode> judged_then = judged_;
  UndoRound(kept);
  const Outcome other = Try(Ordered(candidates, priced_ ? OrderBy::kValue : OrderBy::kSmallest));
  // Where prices are known they decide, but never for fewer nodes than plain greedy finds.
  const bool better =
      other.nodes >= plain.nodes && (priced_ ? other.value > plain.value : other.Beats(plain));
  if (!better) {
    UndoRound(kept);
    judged_ = judged_then;
    Repeat(std::move(best));
    resume_at_ = resume_at;
  }
  evaluated_ = evaluated;
}

// Carries out what was found before and undone.
void DrainPlanner::Impl::Repeat(std::vector<PlannedNode> nodes) {
  for (PlannedNode& planned : nodes) {
    std::vector<MovingPod> pods;
    pods.reserve(planned.moves.size());
    for (const PlannedMove& move : planned.moves) {
      pods.push_back(PodAt(planned.slot, move.pod));
      pods.back().hint = move.to;
      budgets_->Take(pods.back().use);
    }
    board_->Repeat(planned.node, pods);
    limits_->Take(judged(planned.slot).group, AllocatableOf(planned.slot));
    planned_.push_back(std::move(planned));
  }
}

}  // namespace loadline

#include "core/drain/deletion.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/drain/node_reason.h"

namespace loadline {
namespace {

class Selection {
 public:
  Selection(std::span<const DeletionCandidate> candidates, NodeGroupSpan groups,
            const DeletionsUnderWay& under_way, const DeletionOptions& options, SizeLimits* limits,
            NodeAllowance* allowance)
      : candidates_(candidates),
        groups_(groups),
        under_way_(under_way),
        options_(options),
        limits_(limits),
        allowance_(*allowance),
        left_(options.max_scale_down_parallelism - under_way.empty - under_way.drain),
        drains_left_(options.max_drain_parallelism - under_way.drain),
        draining_(under_way.drain > 0),
        alone_(under_way.risky) {
    answer_.decisions.resize(candidates.size());
  }

  Deletions Run(int64_t now_s) {
    AskTimers(now_s);
    AskSizes();
    for (const Unit& unit : Units()) StartOrHold(unit);
    Finish();
    return std::move(answer_);
  }

 private:
  // A node, or the nodes of an atomic group, which are removed together.
  struct Unit {
    bool atomic = false;
    bool risky = false;
    int64_t drains = 0;
    std::vector<size_t> nodes;
    int64_t size() const { return static_cast<int64_t>(nodes.size()); }
  };

  bool Waits(size_t i) const { return answer_.decisions[i].waits != NodeReason::kNone; }
  void Wait(size_t i, NodeReason reason) { answer_.decisions[i].waits = reason; }
  RemovalReason ReasonOf(size_t i) const {
    const DeletionCandidate& candidate = candidates_[i];
    if (candidate.replaced) return RemovalReason::kReplaced;
    return candidate.empty ? RemovalReason::kEmpty : RemovalReason::kUnderutilized;
  }
  bool IsAtomic(size_t i) const { return groups_[*candidates_[i].group].atomic; }

  void AskTimers(int64_t now_s);
  void AskSizes();
  void AskSizeOfAtomic(GroupIndex group);
  std::vector<Unit> Units() const;
  ThrottleLimit LimitFor(const Unit& unit) const;
  bool IsAllowed(const Unit& unit) const;
  void StartOrHold(const Unit& unit);
  void Start(const Unit& unit);
  void Finish();

  std::span<const DeletionCandidate> candidates_;
  NodeGroupSpan groups_;
  const DeletionsUnderWay& under_way_;
  const DeletionOptions& options_;
  SizeLimits* limits_;
  NodeAllowance& allowance_;
  // Nodes, and drains, that may start yet; below 0 after an atomic group that exceeds them.
  int64_t left_;
  int64_t drains_left_;
  // A drain runs, or starts now; it is a risky one.
  bool draining_;
  bool alone_;
  // The limit that an atomic group waits for: the next ones wait for it as well.
  ThrottleLimit atomic_limit_ = ThrottleLimit::kNone;
  Deletions answer_;
};

void Selection::AskTimers(int64_t now_s) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const DeletionCandidate& candidate = candidates_[i];
    if (!candidate.group.has_value()) {
      Wait(i, NodeReason::kNotAutoscaled);
      continue;
    }
    const NodeGroup& group = groups_[*candidate.group];
    const int64_t wait_s = candidate.replaced ? 0 : WaitTime(group, candidate.ready, options_.timers);
    answer_.decisions[i].ready_at_s = ReadyAt(candidate.since_s, wait_s);
    if (!HasWaited(candidate.since_s, wait_s, now_s)) {
      Wait(i, candidate.ready ? NodeReason::kNotUnneededLongEnough : NodeReason::kNotUnreadyLongEnough);
    } else if (candidate.on_completion) {
      Wait(i, NodeReason::kBlockedByOnCompletionPod);
    }
  }
}

void Selection::AskSizes() {
  StrongVector<GroupIndex, bool> asked(groups_.size(), false);
  for (const bool empty : {true, false}) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const DeletionCandidate& candidate = candidates_[i];
      if (candidate.empty != empty || Waits(i)) continue;
      if (!IsAtomic(i)) {
        Wait(i, limits_->Take(candidate.group, candidate.allocatable));
      } else if (!asked[*candidate.group]) {
        asked[*candidate.group] = true;
        AskSizeOfAtomic(*candidate.group);
      }
    }
  }
}

void Selection::AskSizeOfAtomic(GroupIndex group) {
  std::vector<size_t> members;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].group == group && !Waits(i)) members.push_back(i);
  }
  size_t taken = 0;
  if (limits_->AreWholeGroup(group, static_cast<int64_t>(members.size()))) {
    while (taken < members.size() &&
           limits_->Take(group, candidates_[members[taken]].allocatable) == NodeReason::kNone) {
      ++taken;
    }
    if (taken == members.size()) return;
  }
  for (size_t i = 0; i < taken; ++i) limits_->GiveBack(group, candidates_[members[i]].allocatable);
  for (const size_t i : members) Wait(i, NodeReason::kAtomicScaleDownFailed);
}

// Atomic groups with empty nodes, other atomic groups, empty nodes, drains, risky drains; each in the order
// in which they come.
std::vector<Selection::Unit> Selection::Units() const {
  std::vector<Unit> atomic;
  std::array<std::vector<Unit>, 3> single;
  StrongVector<GroupIndex, std::optional<size_t>> position(groups_.size());
  for (const bool empty : {true, false}) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const DeletionCandidate& candidate = candidates_[i];
      if (candidate.empty != empty || Waits(i)) continue;
      Unit* unit;
      if (IsAtomic(i)) {
        std::optional<size_t>& at = position[*candidate.group];
        if (!at.has_value()) {
          at = atomic.size();
          atomic.emplace_back().atomic = true;
        }
        unit = &atomic[*at];
      } else {
        unit = &single[empty ? 0 : candidate.risky ? 2 : 1].emplace_back();
      }
      unit->nodes.push_back(i);
      if (empty) continue;
      ++unit->drains;
      unit->risky |= candidate.risky;
    }
  }
  for (std::vector<Unit>& units : single) std::move(units.begin(), units.end(), std::back_inserter(atomic));
  return atomic;
}

// The limit that holds it back, or kNone.
ThrottleLimit Selection::LimitFor(const Unit& unit) const {
  if (options_.exclusive && unit.drains > 0 && under_way_.drain > 0) return ThrottleLimit::kExclusive;
  if (unit.atomic && atomic_limit_ != ThrottleLimit::kNone) return atomic_limit_;
  const bool may_exceed = unit.atomic && answer_.start.empty();
  const int64_t needed = may_exceed ? 1 : unit.size();
  const int64_t drains_needed = may_exceed ? std::min<int64_t>(unit.drains, 1) : unit.drains;
  if (left_ < needed) return ThrottleLimit::kMaxScaleDownParallelism;
  if (unit.drains > 0 && drains_left_ < drains_needed) return ThrottleLimit::kMaxDrainParallelism;
  return IsAllowed(unit) ? ThrottleLimit::kNone : ThrottleLimit::kNodeBudget;
}

// By the budgets of its group, which allow all of its nodes or none.
bool Selection::IsAllowed(const Unit& unit) const {
  std::vector<RemovalReason> reasons;
  for (const size_t i : unit.nodes) reasons.push_back(ReasonOf(i));
  return allowance_.Allows(candidates_[unit.nodes.front()].group, reasons);
}

void Selection::StartOrHold(const Unit& unit) {
  const ThrottleLimit limit = LimitFor(unit);
  if (limit != ThrottleLimit::kNone) {
    for (const size_t i : unit.nodes) Wait(i, NodeReason::kScaleDownThrottled);
    if (answer_.limit == ThrottleLimit::kNone) answer_.limit = limit;
    const bool of_one = limit == ThrottleLimit::kExclusive || limit == ThrottleLimit::kNodeBudget;
    if (unit.atomic && !of_one) atomic_limit_ = limit;
  } else if (unit.drains > 0 && (alone_ || (unit.risky && (draining_ || unit.drains > 1)))) {
    for (const size_t i : unit.nodes) Wait(i, NodeReason::kWaitsForOtherDrains);
  } else {
    Start(unit);
  }
}

void Selection::Start(const Unit& unit) {
  for (const size_t i : unit.nodes) {
    answer_.decisions[i].start = true;
    answer_.start.push_back(i);
    allowance_.Take(candidates_[i].group, ReasonOf(i));
  }
  left_ -= unit.size();
  drains_left_ -= unit.drains;
  draining_ |= unit.drains > 0;
  alone_ |= unit.risky;
}

void Selection::Finish() {
  std::stable_partition(answer_.start.begin(), answer_.start.end(),
                        [&](size_t i) { return candidates_[i].empty; });
  if (!answer_.start.empty()) {
    answer_.status = DrainStatus::kNodeDeleteStarted;
  } else if (answer_.limit != ThrottleLimit::kNone) {
    answer_.status = DrainStatus::kThrottled;
  } else if (!candidates_.empty()) {
    answer_.status = DrainStatus::kNoNodeDeleted;
  }
}

}  // namespace

absl::string_view Name(ThrottleLimit limit) {
  switch (limit) {
    case ThrottleLimit::kNone:
      return "None";
    case ThrottleLimit::kMaxScaleDownParallelism:
      return "MaxScaleDownParallelism";
    case ThrottleLimit::kMaxDrainParallelism:
      return "MaxDrainParallelism";
    case ThrottleLimit::kExclusive:
      return "Exclusive";
    case ThrottleLimit::kNodeBudget:
      return "NodeBudget";
  }
  return "invalid limit";
}

absl::string_view Name(DrainStatus status) {
  switch (status) {
    case DrainStatus::kNotTried:
      return "ScaleDownNotTried";
    case DrainStatus::kNoCandidates:
      return "ScaleDownNoCandidates";
    case DrainStatus::kNoNodeDeleted:
      return "ScaleDownNoNodeDeleted";
    case DrainStatus::kThrottled:
      return "ScaleDownThrottled";
    case DrainStatus::kNodeDeleteStarted:
      return "ScaleDownNodeDeleteStarted";
  }
  return "invalid status";
}

Deletions SelectDeletions(std::span<const DeletionCandidate> candidates, NodeGroupSpan groups,
                          const DeletionsUnderWay& under_way, const DeletionOptions& options, int64_t now_s,
                          SizeLimits* limits, NodeAllowance* allowance) {
  return Selection(candidates, groups, under_way, options, limits, allowance).Run(now_s);
}

}  // namespace loadline

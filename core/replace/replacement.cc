#include "core/replace/replacement.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/node_reason.h"
#include "core/observe/move_objects.h"
#include "core/replace/load_rest.h"
#include "core/replace/move_check.h"

namespace loadline {
namespace {

using Phase = MoveUnderWay::Phase;
// The time after which one of the drains of a move must have begun. Chosen: some loops.
constexpr int64_t kUntilDrainsBeginMs = 60'000;

// Returns the time at which the drains of a move count as failed unless another pod leaves its node.
int64_t DrainsEndMs(const ReplacementPolicy& policy, const MoveUnderWay& move) {
  return std::min(std::max(move.at_ms, move.step_ms) + policy.drain_wait_ms,
                  move.at_ms + policy.all_drains_ms);
}

// Returns whether it is time that one of its drains has begun.
bool IsToDrain(const MoveUnderWay& move, int64_t now_ms) {
  return move.phase == Phase::kDraining && now_ms - move.at_ms >= kUntilDrainsBeginMs;
}

int64_t Missing(const MoveUnderWay& move) { return std::count(move.came.begin(), move.came.end(), 0U); }

class Follower {
 public:
  Follower(const LoopProblem& problem, GrowthLedger* ledger, ReplacementPlan* plan)
      : problem_(problem),
        cluster_(*problem.drain.cluster),
        now_ms_(problem.replacement.now_ms),
        facts_(*ledger->facts),
        ledger_(*ledger),
        plan_(*plan) {}

  void Run(Snapshot* snapshot, WorkBudget* budget) {
    for (const MoveUnderWay& move : problem_.replacement.moves) {
      for (const uint64_t key : move.came) claimed_.insert(key);
    }
    for (MoveUnderWay move : problem_.replacement.moves) {
      Claim(&move);
      if (Continues(snapshot, budget, &move)) plan_.moves.push_back(std::move(move));
    }
  }

  void EndStuck(const DrainPlan& drains) {
    if (drains.brake != DrainBrake::kNone) return;
    for (MoveUnderWay& move : plan_.moves) {
      if (!IsToDrain(move, now_ms_)) continue;
      if (const DrainKeep* const keep = WhatHoldsUp(move, drains))
        End(&move, absl::StrCat("node ", cluster_.name(keep->slot),
                                " cannot be removed: ", EntryOf(keep->reason).meaning));
    }
  }

 private:
  // Nodes of the groups that were created since the order are those of the move, first by name. (Names of the
  // nodes that were there would be too many to remember.)
  void Claim(MoveUnderWay* move) {
    if (move->step_ms == 0 || Missing(*move) == 0) return;
    const int64_t since_s = move->step_ms / 1000;
    size_t at = 0;
    for (const MoveUnderWay::Order& order : move->orders) {
      const std::optional<GroupIndex> group = GroupNamed(facts_.groups, order.group);
      std::map<absl::string_view, uint64_t> fresh;
      for (const auto [slot, of] : problem_.drain.group_of) {
        if (group != of || !cluster_.Occupied(slot)) continue;
        if (cluster_.traits(slot).created_s.value_or(0) < since_s) continue;
        const uint64_t key = KeyOfNode(cluster_, slot);
        if (!claimed_.contains(key)) fresh.emplace(cluster_.name(slot), key);
      }
      auto next = fresh.begin();
      for (int64_t i = 0; i < order.nodes; ++i, ++at) {
        if (move->came[at] != 0 || next == fresh.end()) continue;
        claimed_.insert(move->came[at] = next->second);
        ++next;
      }
    }
  }

  bool Continues(Snapshot* snapshot, WorkBudget* budget, MoveUnderWay* move) {
    const LoopReplacement& policy = problem_.replacement;
    switch (move->phase) {
      case Phase::kOrdered:
        if (FindAll(facts_.nodes, move->came).size() + static_cast<size_t>(Missing(*move)) <
            move->came.size()) {
          End(move, "a node that had come for it is gone");
        } else if (Missing(*move) == 0) {
          Check(snapshot, budget, move);
        } else if (now_ms_ - move->at_ms >= policy.node_wait_ms) {
          End(move, absl::StrCat(Missing(*move), " of its ", move->came.size(),
                                 move->came.size() == 1 ? " new node" : " new nodes",
                                 Missing(*move) == 1 ? " has not come in time, or was refused"
                                                     : " have not come in time, or were refused"));
        }
        return true;
      case Phase::kDraining:
        if (FindAll(facts_.nodes, move->remove).empty()) {
          Rest(*move);
          if (!move->orders.empty()) plan_.drains_took_ms = std::max<int64_t>(0, now_ms_ - move->at_ms);
          plan_.ended.push_back({move->remove, ""});
          return false;
        }
        NoteProgress(move);
        if (now_ms_ >= DrainsEndMs(policy, *move)) {
          End(move, "its drains have taken too long");
        } else if (HasLostAPlace(*move)) {
          End(move, "a node that its pods move to is gone");
        }
        return true;
      case Phase::kGivingBack:
        // A new node that may not go is then as any other empty one: it must not keep moves from beginning.
        return (Missing(*move) > 0 || HasEmptyOnes(*move)) && now_ms_ - move->at_ms < policy.node_wait_ms;
    }
    return false;
  }

  // Forgets the places of pods that are on no old node any more.
  void NoteProgress(MoveUnderWay* move) const {
    absl::flat_hash_set<uint64_t> there;
    for (const Slot slot : FindAll(facts_.nodes, move->remove)) {
      for (size_t i = 0; i < cluster_.pods(slot).pods().size(); ++i)
        there.insert(KeyOfPod(cluster_, slot, i));
    }
    const auto has_left = [&](const MoveUnderWay::Place& place) { return !there.contains(place.pod); };
    if (std::erase_if(move->places, has_left) > 0) move->step_ms = now_ms_;
  }

  // Returns whether a pod that has yet to move had its place on a node that is gone.
  bool HasLostAPlace(const MoveUnderWay& move) const {
    const std::vector<Slot> targets = TargetsOf(facts_.nodes, move);
    if (std::find(targets.begin(), targets.end(), kNoSlot) == targets.end()) return false;
    for (const Slot slot : FindAll(facts_.nodes, move.remove)) {
      for (size_t i = 0; i < cluster_.pods(slot).pods().size(); ++i) {
        const MoveUnderWay::Place* const place = PlaceOf(move, KeyOfPod(cluster_, slot, i));
        if (place != nullptr && targets[static_cast<size_t>(place->target)] == kNoSlot) return true;
      }
    }
    return false;
  }

  // Returns why an old node of the move has to stay, where none of them leaves or is about to.
  const DrainKeep* WhatHoldsUp(const MoveUnderWay& move, const DrainPlan& drains) const {
    const std::vector<Slot> old = FindAll(facts_.nodes, move.remove);
    const auto is_old = [&](Slot slot) { return absl::c_linear_search(old, slot); };
    if (absl::c_any_of(old, [&](Slot slot) { return facts_.leaving.contains(slot); })) return nullptr;
    if (absl::c_any_of(drains.remove, [&](const DrainRemoval& of) { return is_old(of.slot); }))
      return nullptr;
    for (const DrainKeep& keep : drains.keep) {
      if (is_old(keep.slot) && !Passes(keep)) return &keep;
    }
    return nullptr;
  }

  // Returns whether the reason ends by itself: a budget that is used up has something left again once the
  // pods that it waits for are ready.
  static bool Passes(const DrainKeep& keep) {
    return keep.reason == NodeReason::kNotEvaluated || keep.budget == BudgetRefusal::kExhausted;
  }

  bool HasEmptyOnes(const MoveUnderWay& move) const {
    const std::vector<Slot> came = FindAll(facts_.nodes, move.came);
    return std::any_of(came.begin(), came.end(), [&](Slot slot) { return IsEmptyNode(cluster_, slot); });
  }

  void Check(Snapshot* snapshot, WorkBudget* budget, MoveUnderWay* move) {
    // One whose order was refused has waited for long enough, whenever that was.
    plan_.nodes_took_ms = std::clamp<int64_t>(now_ms_ - move->at_ms, 0, problem_.replacement.node_wait_ms);
    const MoveNodes nodes{FindAll(facts_.nodes, move->remove), TargetsOf(facts_.nodes, *move)};
    const double lasts_hours = plan_.saving_lasts_hours;
    if (const auto why = CheckMove(problem_, nodes, lasts_hours, snapshot, budget, move))
      return End(move, *why);
    move->phase = Phase::kDraining;
    move->at_ms = now_ms_;
  }

  void End(MoveUnderWay* move, std::string why) {
    plan_.ended.push_back({move->remove, std::move(why)});
    Rest(*move);
    BackOff(*move);
    move->phase = Phase::kGivingBack;
    move->at_ms = now_ms_;
    move->places.clear();
    for (const auto& [group, missing] : MissingNodes(facts_.groups, *move))
      ledger_.TakeBackNodes(group, missing);
  }

  // Its nodes are left alone for some time.
  void Rest(const MoveUnderWay& move) {
    auto& resting = plan_.resting_since_ms;
    for (const auto* keys : {&move.came, &move.onto, &move.remove}) {
      for (const uint64_t key : *keys) {
        if (key != 0 && facts_.nodes.contains(key) && resting.size() < kMostRestingNodes)
          resting[key] = now_ms_;
      }
    }
  }

  // Its old nodes are left alone for longer each time.
  void BackOff(const MoveUnderWay& move) {
    auto& given_up = plan_.given_up;
    for (const uint64_t key : move.remove) {
      if (!facts_.nodes.contains(key) || given_up.size() >= kMostRestingNodes) continue;
      GivenUpMoves& moves = given_up[key];
      ++moves.count;
      moves.last_ms = now_ms_;
    }
  }

  const LoopProblem& problem_;
  const ClusterState& cluster_;
  const int64_t now_ms_;
  const LoopFacts& facts_;
  GrowthLedger& ledger_;
  ReplacementPlan& plan_;
  absl::flat_hash_set<uint64_t> claimed_;
};

}  // namespace

int64_t RestAfter(const ReplacementPolicy& policy, const GivenUpMoves& moves) {
  constexpr int64_t kMostDoublings = 20;  // a second becomes more than a day
  int64_t rest_ms = policy.rest_ms;
  for (int64_t i = 1; i < std::min(moves.count, kMostDoublings) && rest_ms < kMostGivenUpMs; ++i)
    rest_ms *= 2;
  return std::max(policy.rest_ms, std::min(rest_ms, kMostGivenUpMs));
}

void FollowMoves(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget, GrowthLedger* ledger,
                 ReplacementPlan* plan) {
  const LoopReplacement& policy = problem.replacement;
  for (const auto& [node, since_ms] : policy.resting_since_ms) {
    if (policy.now_ms - since_ms < policy.rest_ms) plan->resting_since_ms[node] = since_ms;
  }
  absl::flat_hash_set<uint64_t> tried_again;
  for (const MoveUnderWay& move : policy.moves) tried_again.insert(move.remove.begin(), move.remove.end());
  for (const auto& [node, moves] : policy.given_up) {
    const int64_t until_ms = moves.last_ms + RestAfter(policy, moves) + kMostGivenUpMs;
    if (policy.now_ms < until_ms || tried_again.contains(node)) plan->given_up[node] = moves;
  }
  if (problem.decisions.replace) {
    const double payback_hours = policy.options.payback_hours;
    const CpuMemory load = LoadOf(*problem.drain.cluster, problem.pending);
    plan->load = FollowLoad(policy.load, load, payback_hours, policy.now_ms);
    plan->saving_lasts_hours = SavingLastsHours(payback_hours, plan->load, policy.now_ms);
  }
  if (policy.moves.empty()) return;
  if (problem.decisions.replace) return Follower(problem, ledger, plan).Run(snapshot, budget);
  for (const MoveUnderWay& move : policy.moves)
    plan->ended.push_back({move.remove, "nodes are not replaced any more"});
}

void UseRememberedMoves(const LoopMemory& memory, int64_t after_add_ms, int64_t now_ms,
                        LoopReplacement* replacement) {
  replacement->now_ms = now_ms;
  replacement->surge_ms =
      std::max(after_add_ms, memory.nodes_took_ms.value_or(0) + memory.drains_took_ms.value_or(0));
  replacement->moves = memory.moves;
  replacement->resting_since_ms = memory.resting_since_ms;
  replacement->given_up = memory.given_up;
  replacement->load = memory.load;
}

void NoteMoves(const LoopPlan& plan, LoopMemory* memory) {
  memory->moves = plan.replacement.moves;
  memory->resting_since_ms = plan.replacement.resting_since_ms;
  memory->given_up = plan.replacement.given_up;
  memory->load = plan.replacement.load;
  if (plan.replacement.nodes_took_ms.has_value()) memory->nodes_took_ms = plan.replacement.nodes_took_ms;
  if (plan.replacement.drains_took_ms.has_value()) memory->drains_took_ms = plan.replacement.drains_took_ms;
}

void EndStuckMoves(const LoopProblem& problem, const DrainPlan& drains, GrowthLedger* ledger,
                   ReplacementPlan* plan) {
  const auto to_drain = [&](const MoveUnderWay& move) { return IsToDrain(move, problem.replacement.now_ms); };
  if (absl::c_any_of(plan->moves, to_drain)) Follower(problem, ledger, plan).EndStuck(drains);
}

void NoteTimesOfMoves(const ReplacementPolicy& policy, const LoopMemory& memory, int64_t now_ms,
                      const std::function<void(int64_t)>& note) {
  for (const MoveUnderWay& move : memory.moves) {
    const bool draining = move.phase == Phase::kDraining;
    note(draining ? DrainsEndMs(policy, move) : move.at_ms + policy.node_wait_ms);
    if (draining) note(move.at_ms + kUntilDrainsBeginMs);
  }
  for (const auto& [node, since_ms] : memory.resting_since_ms) note(since_ms + policy.rest_ms);
  if (memory.load.has_value()) NoteTimesOfLoad(policy.options.payback_hours, *memory.load, now_ms, note);
  for (const auto& [node, moves] : memory.given_up) note(moves.last_ms + RestAfter(policy, moves));
  if (!policy.windows.has_value()) return;
  for (const TimeWindow& window : *policy.windows) note(window.from_s * 1000);
}

}  // namespace loadline

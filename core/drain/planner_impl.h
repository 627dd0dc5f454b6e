// What the files of the planner share.
#ifndef LOADLINE_CORE_DRAIN_PLANNER_IMPL_H_
#define LOADLINE_CORE_DRAIN_PLANNER_IMPL_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/work_budget.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/drain_board.h"
#include "core/drain/planner.h"
#include "core/drain/rules.h"
#include "core/drain/size_limits.h"

namespace loadline {

// A pod that moves, as it is remembered.
struct PlannedMove {
  int32_t pod;
  int32_t kind;
  NodeIndex to;
  Slot to_slot;
  uint64_t key;
};

// A node of the plan. Its moves are made on the board.
struct PlannedNode {
  Slot slot = Slot{-1};
  NodeIndex node = kNoNode;
  std::string uid;
  int64_t since_s = 0;
  bool empty = false;
  bool risky = false;
  std::vector<PlannedMove> moves;
  std::vector<int32_t> sources;  // pods that move, in order of position
  std::vector<int32_t> waits_for;
  // What rules say of its pods does not change with time.
  bool settled = false;
  // The moves as the last plan told them; empty: it did not.
  std::vector<DrainMove> told;
};

// A placeholder as it is remembered.
struct SeenPlaceholder {
  std::string node;
  std::string name;
  uint64_t shape = 0;  // its fingerprint

  friend auto operator<=>(const SeenPlaceholder&, const SeenPlaceholder&) = default;
};

// A node of the former plan whose moves are not made on the board: by names, which outlive changes.
struct FormerNode {
  std::string node;
  std::string uid;
  int64_t since_s = 0;
  std::vector<std::pair<uint64_t, std::string>> hints;  // key, node
};

// A node of the former plan, in its order: as it stands on the board, or by names.
struct FormerEntry {
  std::optional<PlannedNode> intact;
  FormerNode former;
};

// What is known of a node in this call.
struct JudgedNode {
  NodeIndex node = kNoNode;
  int32_t group = -1;
  bool eligible = false;
  NodeReason reason = NodeReason::kNone;  // why it stays
  int32_t pod = DrainKeep::kNoPod;
  PodReason pod_reason = PodReason::kNone;
  BudgetRefusal budget = BudgetRefusal::kNone;
  bool planned = false;
};

class DrainPlanner::Impl {
 public:
  void SetState(DrainState state);
  DrainState State() const;
  const DrainPlan& Plan(const DrainProblem& problem, const DrainOptions& options, WorkBudget* budget);

 private:
  // One who is to be tried, and what the order goes by.
  struct Candidate {
    Slot slot;
    // Moves of a former plan that no longer hold as they are; -1: it was not in it.
    int32_t former = -1;
    bool moves_pods = false;
    int64_t load = 0;  // share of the node that is requested, in millionths
    double value = 0;  // of the node
  };
  // How candidates are ordered, beside what they all share.
  enum class OrderBy { kLoad, kValue, kSmallest };
  // What a round of candidates came to.
  struct Outcome {
    int64_t nodes = 0;
    double value = 0;
    bool Beats(const Outcome& other) const {
      return nodes != other.nodes ? nodes > other.nodes : value > other.value;
    }
  };

  // --- planner_sync.cc
  void Sync();
  bool CanFollow() const;
  void Follow();
  // Slots of nodes that stand on the board with other placeholders than they have now, and of those in the
  // plan that move placeholders of which the numbers are other ones.
  std::vector<Slot> WithOtherPlaceholders() const;
  bool AsksOtherwise(const PlannedNode& planned);
  void Rebuild();
  void SortSlots();
  void ReadUnneeded();
  void MarkFormers();
  void CountPlaceholders();
  // Puts placeholders on nodes that came as the cluster has them, and keeps moved pods off them where nothing
  // may go.
  void Dress(std::span<const Slot> slots);
  FormerNode Forget(const PlannedNode& planned) const;
  // Undoes the moves of nodes.
  void Withdraw(std::span<const PlannedNode> nodes);
  void Hold(FormerNode former) { held_.push_back(std::move(former)); }
  std::string TextOf(Slot slot, int32_t pod) const;
  uint64_t KeyOf(Slot slot, int32_t pod) const;

  // --- planner_verify.cc
  DrainBrake FindBrake(std::string* text) const;
  DrainBrake FindWhatVanished(std::string* text) const;
  DrainBrake Verify(std::string* text);
  DrainBoard::Outcome PlaceFromDeleting(Slot slot, std::string* text);
  DrainBoard::Outcome PlaceEvicted(std::string* text);
  void Brake();
  std::vector<AcceptedEviction> Evictions() const;

  // --- planner_rounds.cc
  void JudgeNodes();
  CpuMemory AllocatableOf(Slot slot) const;
  void KeepFormers();
  std::string EligibilityBasis() const;
  bool HasTerminatingPods(Slot slot) const;
  bool IsSettled(Slot slot) const;
  bool MovesTheSame(const PlannedNode& planned, std::vector<BudgetUse>* uses);
  void HoldUnevaluated(FormerNode former, Slot slot);
  bool KeepIntact(PlannedNode* planned);
  bool Readopt(const FormerNode& former, Slot slot);
  void Accept(PlannedNode planned, const std::vector<MovingPod>& pods);
  bool MayStop() const { return evaluated_ >= options_->min_evaluated_nodes; }
  // What would have to move from a node, in the order in which it is placed; false: a pod blocks, which is
  // noted.
  bool AskPods(Slot slot, const FormerNode* former, PlannedNode* planned, std::vector<MovingPod>* pods);
  MovingPod PodAt(Slot slot, int32_t pod);
  void Note(Slot slot, NodeReason reason, int32_t pod = DrainKeep::kNoPod);

  // --- planner_candidates.cc
  void PlanCandidates();
  void Improve(const std::vector<Candidate>& candidates, const Outcome& plain, size_t kept);
  Outcome Try(const std::vector<Candidate>& order);
  enum class Trial { kAccepted, kRefused, kDestination, kRisky, kSkipped };
  Trial TryNode(const Candidate& candidate, bool risky_too);
  std::vector<Candidate> Candidates() const;
  std::vector<Candidate> Ordered(std::vector<Candidate> candidates, OrderBy by) const;
  std::vector<NodeIndex> Destinations(const std::vector<Candidate>& order) const;
  void UndoRound(size_t planned);
  void Repeat(std::vector<PlannedNode> nodes);
  double ValueOf(Slot slot) const;

  // --- planner.cc
  void TakeBackMoves();
  void Answer();
  DrainKeep KeepOf(Slot slot, const FailedNode* known, std::vector<FailedNode>* failed);
  std::string PodText(Slot slot, int32_t pod) const;
  absl::flat_hash_map<uint64_t, int32_t> PodsByKey(Slot slot) const;

  // --- planner_select.cc
  void Select();
  Deletions DecideStarts();
  void Hold(std::vector<bool> held, NodeReason reason, Deletions* deletions) const;
  NodeIndex AddEmptied(const PlannedNode& planned);
  std::vector<bool> NodesThatHoldRoom(const Deletions& deletions);
  void RememberCounts();

  const ClusterState& cluster() const { return *problem_->cluster; }
  JudgedNode& judged(Slot slot) { return judged_[IndexOf(slot)]; }
  const JudgedNode& judged(Slot slot) const { return judged_[IndexOf(slot)]; }
  absl::string_view name(Slot slot) const { return cluster().name(slot); }

  // Of the present call.
  const DrainProblem* problem_ = nullptr;
  const DrainOptions* options_ = nullptr;
  WorkBudget* budget_ = nullptr;
  std::optional<DisruptionBudgets> budgets_;
  std::optional<PodJudge> judge_;
  std::vector<JudgedNode> judged_;                     // by slot
  std::vector<Slot> slots_;                            // in name order
  std::vector<std::vector<int32_t>> placeholders_on_;  // by slot; as DrainMove::pod
  std::vector<FormerEntry> formers_;
  std::vector<bool> is_former_;        // by slot
  std::vector<Slot> deleting_;         // in name order
  std::optional<SizeLimits> limits_;   // of groups and cluster, as the plan goes on
  std::vector<FormerNode> displaced_;  // of the former plan, not kept as they were
  bool priced_ = false;                // all candidates have a price
  bool risky_by_taint_ = false;        // a node that only its taint tells of may be risky
  int64_t evaluated_ = 0;
  int64_t skipped_ = 0;
  std::string resume_at_;
  std::vector<OwnerPods> pods_now_;  // by counter_
  std::vector<BudgetUse> uses_;      // room to work in

  // Between calls.
  std::unique_ptr<FitOptions> fit_;
  std::unique_ptr<DrainBoard> board_;
  const ClusterState* board_of_ = nullptr;
  int64_t journal_ = 0;
  PodCounter counter_;                              // up to journal_ of board_of_
  bool follows_ = false;                            // the board has the moves of planned_ and nothing else
  std::vector<SeenPlaceholder> placeholders_seen_;  // of the last call, in its order
  std::vector<std::optional<NodeReason>> known_reasons_;  // by slot: of nodes that have not changed since
  std::string known_basis_;
  std::string rules_;             // options of the last call
  int64_t objects_version_ = -1;  // of the last call
  bool same_rules_ = false;       // objects and rules are those of the last call, and there are no budgets
  std::vector<PlannedNode> planned_;
  std::vector<FormerNode> held_;  // timers that go on without a place in the plan
  DrainState state_;              // of which `unneeded` is read when a call begins
  DrainPlan plan_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_PLANNER_IMPL_H_

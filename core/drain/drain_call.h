// The facts of one call of the drain planner.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_CALL_H_
#define LOADLINE_CORE_DRAIN_DRAIN_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/cpu_memory.h"
#include "core/base/work_budget.h"
#include "core/cluster/node_offer.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/drain_question.h"
#include "core/drain/drain_state.h"
#include "core/drain/planned_node.h"
#include "core/drain/rules.h"
#include "core/drain/size_limits.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// The facts about a node that the call has found out so far.
struct JudgedNode {
  NodeIndex node = kNoNode;  // in the trial cluster
  std::optional<GroupIndex> group;
  bool former = false;  // of the plan of the last call
  bool being_deleted = false;
  bool eligible = false;
  bool planned = false;
  // The reason for which the node stays, and the pod that keeps it.
  NodeReason reason{};  // kNone
  std::optional<PodRef> pod;
  PodReason pod_reason = PodReason::kNone;
  BudgetRefusal budget = BudgetRefusal::kNone;
};

// The question, and what all decisions of the call add to or take from. Neither the problem nor its cluster
// changes while it lives.
class DrainCall {
 public:
  // All outlive the call. `state`: what is remembered of the calls before.
  DrainCall(const DrainProblem& problem, const DrainOptions& options, const DrainState& state,
            WorkBudget* work);
  DrainCall(const DrainCall&) = delete;
  DrainCall& operator=(const DrainCall&) = delete;

  // Takes the nodes of the trial cluster, in name order, and marks those of the former plan. `order`: nodes()
  // of the last call, or any others. Cost: O(nodes) where most nodes are those of it, else O(nodes log
  // nodes).
  void SetNodes(const Snapshot& snapshot, std::span<const FormerEntry> formers, std::span<const Slot> order);

  const DrainProblem& problem() const { return problem_; }
  const DrainOptions& options() const { return options_; }
  const ClusterState& cluster() const { return *problem_.cluster; }
  WorkBudget* work() { return work_; }
  int64_t now_s() const { return problem_.now_s; }

  // In name order.
  std::span<const Slot> nodes() const { return nodes_; }
  std::vector<Slot> TakeNodes() { return std::move(nodes_); }
  JudgedNode& judged(Slot slot) { return judged_[CheckedIndex("slot", IndexOf(slot), judged_.size())]; }
  const JudgedNode& judged(Slot slot) const {
    return judged_[CheckedIndex("slot", IndexOf(slot), judged_.size())];
  }
  // The facts about all nodes, and a way to restore them.
  const std::vector<JudgedNode>& all_judged() const { return judged_; }
  void Restore(std::vector<JudgedNode> judged) { judged_ = std::move(judged); }
  // Says why a node stays.
  void Note(Slot slot, NodeReason reason, std::optional<PodRef> pod = std::nullopt);

  absl::string_view name(Slot slot) const { return cluster().name(slot); }
  CpuMemory AllocatableOf(Slot slot) const;
  // Returns what minima of the cluster count of it; its GPUs where they have one.
  NodeOffer OfferOf(Slot slot) const;
  // Returns whether minima of the cluster count the node: no machine is behind what a virtual node offers.
  bool CountsForMinimum(Slot slot) const;
  // nullptr: it is in none.
  const NodeGroup* GroupOf(Slot slot) const;
  // The node of a former plan; nullopt: it is gone, or another one has its name.
  std::optional<Slot> Find(const FormerNode& former) const;

  // In their order in the problem.
  std::span<const PodRef> PlaceholdersOn(Slot slot) const;
  const DrainPlaceholder& placeholder(PodRef pod) const {
    return problem_.placeholders[CheckedIndex("placeholder", pod.position(), problem_.placeholders.size())];
  }
  // Returns the text of DestinationHint::pod.
  std::string TextOf(Slot slot, PodRef pod) const;
  // A hash of that text; tells pods of a node apart as long as the process lives.
  uint64_t KeyOf(Slot slot, PodRef pod) const;
  static uint64_t KeyOfText(absl::string_view text);
  // Pods and placeholders of a node.
  absl::flat_hash_map<uint64_t, PodRef> PodsByKey(Slot slot) const;

  // Nodes that were evaluated, and those that were left as the work had ended. Whether the latter is allowed
  // yet.
  bool MayStop() const { return evaluated >= options_.min_evaluated_nodes; }
  int64_t evaluated = 0;
  int64_t skipped = 0;
  // See DrainPlan::behind_budgets.
  std::vector<TimedNode> behind_budgets;

  // Pods of nodes being deleted and replacements of evicted pods find places before any of the plan.
  bool expects_pods_first() const { return !deleting.empty() || has_recent_evictions_; }
  std::vector<Slot> deleting;   // nodes that are being deleted, in name order
  bool risky_deletion = false;  // one that only its taint tells of may be risky
  DisruptionBudgets budgets;
  PodJudge judge;
  SizeLimits limits;  // of groups and cluster, less what the plan has taken

 private:
  void SortNodes(std::span<const Slot> order);

  const DrainProblem& problem_;
  const DrainOptions& options_;
  WorkBudget* const work_;
  const bool has_recent_evictions_;
  std::vector<Slot> nodes_;
  std::vector<JudgedNode> judged_;                    // by slot
  std::vector<std::vector<PodRef>> placeholders_on_;  // by slot; empty: there are none
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_CALL_H_

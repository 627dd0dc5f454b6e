// The question to consolidation, and its answer: the bill, and moves that make it smaller.
#ifndef LOADLINE_CORE_CONSOLIDATE_CONSOLIDATION_H_
#define LOADLINE_CORE_CONSOLIDATE_CONSOLIDATION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/base/strong_vector.h"
#include "core/base/work_budget.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/minimum_sizes.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/shapes.h"
#include "core/fit/node_filter.h"

namespace loadline {

// --- the question ----------------------------------------------------------------------------------------

// Consolidation reads of a node group its name, its minimum, its target, which is the nodes that it has now
// with those on their way, and the following. Minima hold as for drains: see MinimumSizes. Prices are US
// dollars per hour.
//
// Returns whether the group may get new nodes: their model and their price are known.
inline bool HasNewNodes(const NodeGroup& group) {
  return group.model.has_value() && group.usd_per_hour.has_value();
}
// Returns how many nodes the group may have, for consolidation: one that is sized gets none by it.
inline int64_t MostNodes(const NodeGroup& group) {
  return group.blocked_reason.empty() && !group.sized ? group.max_nodes : 0;
}

// A pod that has to find another place before its node is removed.
struct LeavingPod {
  // In ClusterState::pods() of its node; of a placeholder, in ConsolidationProblem::placeholders.
  int32_t position = 0;
  bool placeholder = false;
  // The disruption budget that its eviction takes from, in ConsolidationProblem::budgets; -1: none.
  int32_t budget = -1;
  // The one-time cost of disturbing it, US dollars: finite, >= 0.
  double usd = 0;
};

// A node of the cluster, and whether it may go.
struct ConsolidationNode {
  Slot slot = Slot{-1};
  std::optional<GroupIndex> group;  // nullopt: it is of none, and stays
  // nullopt: not known, and it stays.
  std::optional<double> usd_per_hour;
  // A node that is no machine costs nothing that is known.
  NodeKind kind = NodeKind::kMachine;
  bool may_go = false;
  // Pods may move there; see TakesMovedPods().
  bool takes_pods = true;
  // It is being deleted: it stays, takes no pods, and counts as a domain; see Snapshot::MarkLeaving().
  bool leaving = false;
  // It has started. A node that has not is on its way: it does not count for the minimum of its group.
  bool started = true;
  // The age of the node in hours, >= 0; nullopt: not known. See MoveTerms.
  std::optional<double> age_hours;
  // The leaving pods of a node that may be removed. Its other pods end with it. Of a node that stays only
  // placeholders are read.
  std::vector<LeavingPod> pods;
};

// Room that is kept by something else than a pod. It finds another place before its node is removed.
struct KeptRoom {
  std::string name;  // unique
  IncomingPod pod;   // names are those of the cluster
};

// The question: a cluster, its groups, and the nodes that may be removed.
struct ConsolidationProblem {
  const ClusterState* cluster = nullptr;           // outlives the call
  StrongSpan<GroupIndex, const NodeGroup> groups;  // outlive the call
  // The nodes of the cluster, each at most once; a node that is left out stays, and counts for no minimum.
  std::vector<ConsolidationNode> nodes;
  // By budget: how many pods it lets go at once, > 0 where a pod of a node that may go takes from it.
  std::vector<int64_t> budgets;
  std::vector<KeptRoom> placeholders;
  // Each new node carries those of them that fit it, in this order.
  std::vector<IncomingPod> daemons;
  // Nodes that the cluster may have in all, also while both old and new ones are there; nullopt: no limit.
  std::optional<int64_t> max_nodes;
  // The amounts that all nodes together offer at least after each move.
  ClusterMinimum minimum;
  // The labels that tell the type of a node's GPUs, for the minimum; see OfferOf().
  GpuLabelKeys gpu_labels;
  // Seconds since 1970.
  int64_t now_s = 0;
};

// The moves that are allowed.
enum class ConsolidationMode {
  kOff,      // the bill only
  kRemove,   // nodes go whose pods fit elsewhere; no new ones
  kReplace,  // also several nodes for several cheaper ones
};

// The limits of moves, and the least saving that they must have.
struct ConsolidationOptions {
  ConsolidationMode mode = ConsolidationMode::kReplace;
  // A move saves at least so much per hour, so much of what the nodes cost that go, and within
  // `payback_hours` what it costs to disturb its pods.
  double least_saving_usd_per_hour = 0.001;
  double least_saving_percent = 2;
  double payback_hours = 1.5;
  // The load is known to stand still for so many hours, >= 0: a move may pay for what it costs within that
  // time, however young its old nodes are. See MoveTerms.
  double load_rests_hours = 0;
  // For so many hours old and new nodes are both paid for while a move is made, >= 0; see MoveTerms.
  double surge_hours = 0;
  // Nodes that go by one move at most; of these that go at once, and pods that are disturbed at once. >= 1.
  int64_t max_nodes_per_move = 24;
  int64_t max_nodes_at_once = 10;
  int64_t max_pods_at_once = 200;
  // Pods go where a scheduler that spreads puts them (LeastAllocated, kube-scheduler's default): a move is
  // reported only if all of its pods fit so. Else they move to the places that the search has found, however
  // tight.
  bool as_scheduled = false;
  // Spot nodes come in the place of spot nodes only where so many spot groups cost less than each of those
  // that go, >= 0: who always takes the cheapest one takes what is interrupted most.
  int64_t least_spot_groups = 15;
  // New nodes are of groups of the highest NodeGroup::priority that take their pods, as with growth, also
  // where those of others cost less. A price counts among groups of one priority only.
  bool by_priority = false;
  // A node that was tried in vain is not tried again for so long, unless it changed.
  int64_t retry_s = 600;
  FitOptions fit;
};

// The part of the age of its old nodes, in the mean by price, within which a move has to save its one-time
// costs: the pods that it disturbs and the hours in which old and new nodes are both there. Load that arrived
// lately usually ends soon, and then the move has cost more than it saved. If the load has stood still for
// longer than that, the move has as long as that. Source: our own choice, measured with the loads of the race
// in the simulator.
inline constexpr double kPaysWithinAge = 0.25;

// The costs and savings of one move, summed node by node.
class MoveTerms {
 public:
  // Adds a removed node and its age; nullopt: nobody knows the age, or the plan itself adds the node.
  void Remove(double usd, std::optional<double> age_hours) {
    removed_ += usd;
    if (!age_hours.has_value()) return;
    aged_ += usd;
    weighted_age_ += usd * *age_hours;
  }
  void Add(double usd) { added_ += usd; }
  void Disturb(double usd) { disturbance_ += usd; }

  double removed() const { return removed_; }
  double disturbance() const { return disturbance_; }
  double saves() const { return removed_ - added_; }
  // The saving per hour that it needs.
  double Required(const ConsolidationOptions& options) const {
    const double once = disturbance_ + options.surge_hours * added_;
    const double age = aged_ > 0 ? weighted_age_ / aged_ : std::numeric_limits<double>::infinity();
    const double within_hours = std::max(kPaysWithinAge * age, options.load_rests_hours);
    return std::max({options.least_saving_usd_per_hour, options.least_saving_percent / 100 * removed_,
                     disturbance_ / options.payback_hours, once > 0 ? once / within_hours : 0.0});
  }

 private:
  double removed_ = 0;  // US dollars per hour
  double added_ = 0;
  double disturbance_ = 0;  // once
  double aged_ = 0;         // of `removed_`, what is of known age
  double weighted_age_ = 0;
};

// --- the answer ------------------------------------------------------------------------------------------

// US dollars per hour. bound <= reachable <= now, but for nodes whose price is not known.
struct ConsolidationBill {
  double now = 0;  // what all nodes cost whose prices are known
  double bound =
      0;  // no arrangement costs less: of the pods that may move, on the groups and the room that is there
  bool proven = false;         // the budget sufficed for the bound; else it is 0 beside what is fixed
  double reachable = 0;        // after all moves
  double fixed = 0;            // what nodes that may not go cost: part of all three
  int64_t unpriced_nodes = 0;  // machines
};

// New nodes of one group.
struct GroupGrowthCount {
  GroupIndex group{};
  int64_t nodes = 0;
  friend bool operator==(const GroupGrowthCount&, const GroupGrowthCount&) = default;
};

// A node that takes a pod: one that is there, or the `number`th new one of a group in this plan, from 1.
struct MoveTarget {
  Slot slot = Slot{-1};
  std::optional<GroupIndex> group;  // nullopt: it is there
  int32_t number = 0;
  bool is_new() const { return group.has_value(); }
  friend bool operator==(const MoveTarget&, const MoveTarget&) = default;
};

// The move of one pod to its target.
struct PodTransfer {
  Slot from;
  int32_t position = 0;  // as in LeavingPod
  bool placeholder = false;
  MoveTarget to;
  friend bool operator==(const PodTransfer&, const PodTransfer&) = default;
};

// Nodes that go, nodes that come in their place, and where all pods go. Complete in itself once those before
// it are done.
struct ConsolidationMove {
  std::vector<Slot> remove;           // in name order
  std::vector<GroupGrowthCount> add;  // by group
  std::vector<int32_t> first_number;  // of these: the number of the first new node
  std::vector<PodTransfer> pods;      // by node and position
  double saves = 0;                   // US dollars per hour, > 0
  double disturbance = 0;             // what it costs once to disturb its pods
  int64_t disrupted = 0;              // pods, without placeholders
  // Evictions in so many turns: no turn takes more of a budget than it has.
  int64_t turns = 1;
  // Moves of the same wave may go at once: budgets and the limits of ConsolidationOptions hold for all of
  // them together. From 0, ascending.
  int64_t wave = 0;
};

// The reason for which a node is not removed.
enum class KeepReason {
  kFixed,             // it may not go
  kWorthItsPrice,     // its pods are worth what it costs, at the shadow prices
  kNoCheaperPlace,    // tried in vain
  kKeepsRoom,         // tried in vain; it keeps room for pods or placeholders, which needs another place
  kSavesTooLittle,    // a cheaper arrangement saves less than the options ask for
  kGroupAtMinimum,    // of its group no node may go
  kClusterAtMinimum,  // ConsolidationProblem::minimum needs it
  kTakesPods,         // pods of nodes that go move there
  kNotTried,          // the budget ended before; the next call continues
  kModeOff,           // ConsolidationMode::kOff
  kTooFewSpotGroups,  // cheaper spot nodes could come if ConsolidationOptions::least_spot_groups were lower
};
absl::string_view Name(KeepReason reason);
// Returns what would have to change, with the options that were asked about; empty where nothing can be said.
std::string AdviceOf(KeepReason reason, const ConsolidationOptions& options);

// A node that is not removed, with the reason and its worth in US dollars per hour.
struct KeptNode {
  Slot slot = Slot{-1};
  KeepReason reason = KeepReason::kFixed;
  double usd_per_hour = 0;  // 0 where it is not known
  double worth = 0;         // of its leaving pods, at the shadow prices; of a node that may go
};

// The worth of one unit of a resource, US dollars per hour.
struct ShadowPrice {
  ResourceId resource;
  double usd = 0;
};

// The answer: the bill, the moves in their order, and the nodes that stay.
struct ConsolidationPlan {
  ConsolidationBill bill;
  std::vector<ConsolidationMove> moves;
  std::vector<KeptNode> keep;  // all other nodes of the problem, in name order
  // The shadow prices of the largest part of the cluster, by resource; a resource in plenty is worth nothing.
  std::vector<ShadowPrice> shadow_prices;
  // By namespace, in name order: what its pods on nodes that may go are worth at the shadow prices.
  std::vector<std::pair<std::string, double>> namespaces;
  BudgetEnd cut_short_by = BudgetEnd::kNotEnded;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_CONSOLIDATION_H_

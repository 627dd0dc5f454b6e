// Plans which node groups grow together, by how many nodes, and which pods the nodes take.
#ifndef LOADLINE_CORE_EXPAND_PLAN_H_
#define LOADLINE_CORE_EXPAND_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/node_limits.h"
#include "core/price/preferred.h"

namespace loadline {

// Further pods, of the kinds that wait, that a plan expects to come one by one: this many at most, and no
// more than request this together.
struct FurtherPods {
  int64_t most = 0;  // 0: a plan looks at the pods that wait alone
  NodeCapacity room;
};

// The options of a joint plan.
struct PlanOptions {
  // New nodes of all groups together.
  NodeLimit max_new_nodes;
  // The price that each further type of node counts as: an operator's wish for few types. Groups whose nodes
  // cost and take the same are one type.
  double usd_per_further_type = 0;
  // A node that takes all pods that wait is chosen with these in mind: see LookAhead.
  FurtherPods further;
};

// Nodes of one group with the same pods on each.
struct PlannedNodes {
  GrowableIndex group{};
  int64_t nodes = 0;
  std::vector<PodCount> pods;  // on one node
  friend bool operator==(const PlannedNodes&, const PlannedNodes&) = default;
};

// The result of growing one group alone.
struct SingleOption {
  std::optional<GrowableIndex> group;  // nullopt: no group takes any pod
  int64_t nodes = 0;
  int64_t pods = 0;
  double cost = 0;
};

// A joint plan: nodes of several groups, the pods that they take, and a lower bound of the cost.
struct ScaleUpPlan {
  std::vector<ExistingUse> existing;  // pods that need no new node
  std::vector<PlannedNodes> nodes;    // by group
  std::vector<int64_t> unplaced;      // by position of the pending pods
  double cost = 0;                    // of the new nodes, per hour
  // The cost of the cheapest nodes for these pods alone; nullopt: the new ones are. See PlanOptions::further.
  std::optional<double> cost_alone;
  double type_penalty = 0;  // usd_per_further_type for each type but the first
  // No nodes within the limits that hold the same pods cost less; with priorities of groups, of those of each
  // priority for the pods that they were first planned for.
  double lower_bound = 0;
  SingleOption best_single;  // most pods, then least cost
  bool cut_short = false;    // with more work, time or memory there might be a cheaper plan
  BudgetEnd cut_short_by = BudgetEnd::kNotEnded;  // what the budget ran out of
  // Positions of the pods that took more than their portion of the budget, ascending, where it ended for
  // nobody else.
  std::vector<size_t> cut_off;
};

// Plans for `pods` in this order of wishes: no pod is left over for one of a lower priority on a new node,
// which then waits for the next plan; as few pods as possible are left over; new nodes cost as little as
// possible, with the penalty for types, or little more where further pods are expected; groups that are alike
// grow evenly. Room on nodes that are there is
// used first. All filters hold for each placement, also those that depend on other pods. Among pods of one
// priority it never leaves more over than the best single option, and never costs more where both leave as
// many.
//
// With priorities of groups, all of this holds for the groups of the highest one; others are planned for the
// pods that these leave over. A price counts among groups of one priority only.
//
// Last, nodes are shared among groups of one NodeGroup::balance_set, where no more pods are left over by that
// and no more nodes come.
//
// How: a packing (core/pack/packing.h) over all groups for pods that only need room, whose counts then hold
// exactly. Pods that depend on others enter it with what one node takes of them alone, and spread over zones
// as their constraints say; the packing is then carried out in the snapshot, with all its nodes there at
// once, as a scheduler sees them. For what does not fit after all the nodes of the best single option for the
// rest are added, again and again. The result competes with the best single option, completed in the same
// way.
//
// `groups`: each has a model, at most `max_nodes` nodes, and now `target` of them. A price that is not known
// counts as 0.
//
// Deterministic; the order of pods and groups decides nothing but between equals. The snapshot is as before
// when the call returns. Cost: that of Estimator::Estimate() per group, and of Pack().
ScaleUpPlan PlanScaleUp(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                        std::vector<IncomingPod> daemons, const GrowableGroups& groups,
                        const PlanOptions& options, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_PLAN_H_

// The question to the drain planner, and its answer.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_QUESTION_H_
#define LOADLINE_CORE_DRAIN_DRAIN_QUESTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/drain/deletion.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/disturbance.h"
#include "core/drain/drain_state.h"
#include "core/drain/eligibility.h"
#include "core/drain/node_utilization.h"
#include "core/drain/pod_ref.h"
#include "core/drain/rules.h"
#include "core/drain/size_limits.h"
#include "core/drain/timers.h"
#include "core/fit/node_filter.h"
#include "core/fit/verdict.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// --- the question ----------------------------------------------------------------------------------------

// A placeholder of slack that is not a pod of the cluster. It moves as a replicated pod without budget: a
// node is removed only if its placeholders fit elsewhere too. A node that holds nothing else to move is
// empty.
struct DrainPlaceholder {
  // A shape means nothing without the names that its resource ids refer to: there is no placeholder without.
  DrainPlaceholder(std::string placeholder_name, std::string on_node,
                   std::shared_ptr<const IncomingPod> as_pod)
      : name(std::move(placeholder_name)), node(std::move(on_node)), pod(std::move(as_pod)) {}
  DrainPlaceholder(std::string placeholder_name, std::string on_node, IncomingPod as_pod)
      : DrainPlaceholder(std::move(placeholder_name), std::move(on_node),
                         std::make_shared<const IncomingPod>(std::move(as_pod))) {}

  std::string name;  // unique
  std::string node;  // where it is; on an unknown node it plays no part
  // Shape and names, which may be other ones than the cluster's: resources are matched by name. What the
  // cluster does not have is left out: it was taken where it is, so it asks for none of it, or none counts.
  std::shared_ptr<const IncomingPod> pod;  // never null; equal placeholders share one
  bool is_room = false;  // of a pod that is expected there, and not of slack: the name says so
};

// Equal pods that wait for nodes on their way.
struct PodsOnTheWay {
  IncomingPod pod;  // shape and names
  int64_t count = 1;
};

// The place where replacements of equal pods of nodes being deleted are expected.
struct ExpectedReplacements {
  uint64_t fingerprint = 0;  // of their shape
  std::string node;
  int64_t count = 0;
};

// A node that is replaced: it is removed however full it is, without a timer, before all others, and its pods
// move where the hints say as far as they fit there.
struct ReplacedNode {
  Slot slot = Slot{-1};
  std::vector<DestinationHint> hints;
  friend bool operator==(const ReplacedNode&, const ReplacedNode&) = default;
};

// The facts about the cluster. It outlives the call.
struct DrainProblem {
  const ClusterState* cluster = nullptr;
  NodeGroups groups;
  GroupsOfNodes group_of;
  // The same of nodes that are being deleted, where `group_of` is without them: for budgets of groups alone.
  GroupsOfNodes going_group_of;
  // Nodes that the cloud deletes, or was asked to: their drains are over. Sorted.
  std::vector<Slot> drained;
  std::vector<DrainPlaceholder> placeholders;
  // Pods of nodes being deleted are placed there first.
  std::vector<ExpectedReplacements> replacements;
  // Nodes of groups that are `sized` which are to go, in any order: only these of them are candidates.
  std::vector<Slot> chosen;
  // Devices on nodes.
  absl::flat_hash_map<Slot, std::vector<DevicePool>> pools;
  // The reason for which the state of the cluster is uncertain: the view is incomplete or stale. Then no node
  // is removed, and the timers keep running. Empty: the state is certain.
  std::string doubt;
  // The reason for which the cluster is unhealthy. Then no node is removed, and the timers start again.
  // Empty: it is healthy.
  std::string unhealthy;
  // Groups grow in this loop: the plan is made and timers go on, but nothing starts to go.
  bool groups_grow = false;
  // None of the nodes that would start to go does so in this loop, for a reason that is none of the plan.
  bool nothing_leaves = false;
  // Pods that count on nodes which are on their way. If none came they would need another place, so nodes
  // that could take them once they are empty do not go: as many as all these pods need.
  std::vector<PodsOnTheWay> on_the_way;
  // Nodes that pods are nominated to, and that do not start to go therefore: their timers go on.
  std::vector<Slot> nominated;
  // Nodes that are replaced now, in the order in which they are tried, and those that take their pods: these
  // are no candidates. No node is both.
  std::vector<ReplacedNode> replaced;
  std::vector<Slot> takes_replaced_pods;
  // Nodes of groups that have not started, sorted: they count as nodes on their way, and are in no group
  // here.
  std::vector<Slot> not_started;
  // Not empty: only these nodes are candidates, tried in this order, and no other order competes.
  std::vector<Slot> walk;
  // Seconds since 1970.
  int64_t now_s = 0;
};

// The options of a drain plan; most have the defaults of Cluster Autoscaler.
struct DrainOptions {
  DrainRuleOptions rules;
  EligibilityOptions eligibility;
  // The time for which the planner waits for the replacement of an evicted pod.
  int64_t recent_eviction_s = 60;
  // Nodes that are evaluated at least, whatever the work budget says.
  int64_t min_evaluated_nodes = 50;
  // Brake: nothing is removed when more than this share of the pods, or nodes, vanished since the last loop
  // without a reason. Nodes that were to go do not count, with all their pods; nor do pods of DaemonSets and
  // mirror pods, nor those that VanishedPods() knows a reason of. Percent, [0, 100].
  int64_t most_vanished_percent = 20;
  // Other orders of candidates are tried where the first one may not have found all; never fewer nodes go.
  // False: plain greedy.
  bool improve = true;
  // Says which node is nearest to taking a pod that keeps its node. Decides nothing.
  bool tell_nearest = true;
  // The least that the cluster offers; it binds the plan as a whole, and so do the minima of groups.
  ClusterMinimum minimum;
  DeletionOptions deletion;
  // The same in all calls between two of SetState().
  FitOptions fit;
};

// --- the answer ------------------------------------------------------------------------------------------

// One pod, or placeholder, and the node that it moves to.
struct DrainMove {
  PodRef pod;  // a pod of the node to be removed
  Slot to;
  friend bool operator==(const DrainMove&, const DrainMove&) = default;
};

// A node that can go.
struct DrainRemoval {
  using Moves = std::vector<DrainMove>;

  Slot slot = Slot{-1};
  // No pod has to move, placeholders apart.
  bool empty = false;
  // Its budgets do not allow all of its pods at once: it is drained last, and alone.
  bool risky = false;
  // In the order in which they were placed. Shared with the planner, which tells most of a plan again by the
  // next one; never nullptr.
  std::shared_ptr<const Moves> shared_moves;
  const Moves& moves() const { return *shared_moves; }
  // Positions of pods that are to run to completion first.
  std::vector<int32_t> waits_for;
  // In the plan without a break since then.
  int64_t since_s = 0;
  // The end of its timer: it is removed once that has passed.
  int64_t ready_at_s = 0;
  // It is removed now; if not, the thing that it waits for.
  bool start = false;
  NodeReason waits{};  // kNone
};

// A node that stays.
struct DrainKeep {
  Slot slot = Slot{-1};
  NodeReason reason{};  // kNone
  // With kBlockedByPod, kNoPlaceToMovePods, kPlaceholdersNeedRoom and kBlockedByOnCompletionPod: the pod that
  // keeps it.
  std::optional<PodRef> pod;
  PodReason pod_reason = PodReason::kNone;
  BudgetRefusal budget = BudgetRefusal::kNone;
  // With kNoPlaceToMovePods and kPlaceholdersNeedRoom, the verdict about that pod on the node which came
  // closest to taking it; one that fits: by itself it has a place, but not beside the other pods of its node.
  // nullopt: not known.
  std::optional<Verdict> nearest;
  // The drain failed for this reason since then without a break; 0: it was not tried.
  int64_t since_s = 0;
  friend bool operator==(const DrainKeep&, const DrainKeep&) = default;
};

// The reasons for which no node is removed at all.
enum class DrainBrake {
  kNone,
  kDoubt,         // DrainProblem::doubt
  kUnhealthy,     // DrainProblem::unhealthy
  kPodsVanished,  // more than most_vanished_percent since the last loop
  kNodesVanished,
  kClockWentBack,      // `now_s` is before the last loop
  kNodesBeingDeleted,  // their pods fit nowhere else: new drains wait, timers go on
  kRecentEvictions,    // nor do the replacements of evicted pods
  kNotVerified,        // the budget ended before their pods had been looked at; timers go on
};
absl::string_view Name(DrainBrake brake);

// The answer: the nodes to remove together, and all others with their reasons to stay.
struct DrainPlan {
  // Together, in the order in which they were planned; that is the order of their drains as well: a pod that
  // has rules about other pods finds its place as those before it have moved.
  std::vector<DrainRemoval> remove;
  // All other nodes, in name order.
  std::vector<DrainKeep> keep;
  // The unneeded nodes among these that wait for a budget which others use up.
  std::vector<TimedNode> behind_budgets;
  DrainBrake brake = DrainBrake::kNone;
  std::string brake_text;  // what exactly; empty without a brake
  DrainStatus status = DrainStatus::kNotTried;
  ThrottleLimit limit = ThrottleLimit::kNone;
  // Nodes whose drain was tried, and those that were left as the budget had ended.
  int64_t evaluated = 0;
  int64_t skipped = 0;
  // The limit that ended the budget before all was looked at. The nodes that the plan removes were looked at
  // in any case.
  BudgetEnd cut_short_by = BudgetEnd::kNotEnded;
  // The sum of the hourly prices of the nodes that go, where their groups state one.
  double price_saved = 0;
  // See DisruptionBudgets::TooCostly().
  std::vector<ObjectKey> too_costly_budgets;
};

// Returns what would have to change so that a node of a plan can be removed, as a sentence; empty where
// nothing can be said. `options`: those by which the plan was made.
std::string WhatWouldHelp(const DrainProblem& problem, const DrainOptions& options, const DrainPlan& plan,
                          const DrainKeep& keep);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_QUESTION_H_

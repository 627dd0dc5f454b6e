// One iteration of an autoscaler: pods that wait find places, groups grow for the rest, slack is kept, and
// unneeded nodes are removed, unless groups grow.
#ifndef LOADLINE_CORE_LOOP_PLAN_LOOP_H_
#define LOADLINE_CORE_LOOP_PLAN_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/cluster/startup_taints.h"
#include "core/consolidate/consolidator.h"
#include "core/drain/planner.h"
#include "core/expand/estimate.h"
#include "core/expand/plan.h"
#include "core/expand/plan_ranked.h"
#include "core/expand/similar_groups.h"
#include "core/loop/expected_pods.h"
#include "core/loop/growth_batch.h"
#include "core/loop/growth_turn.h"
#include "core/loop/nominated.h"
#include "core/loop/replacement_policy.h"
#include "core/loop/resource_limit.h"
#include "core/size/group_facts.h"
#include "core/size/size_group.h"
#include "core/slack/slack_options.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// --- the question ----------------------------------------------------------------------------------------

// The most upcoming nodes of one group. Chosen: four times the largest cluster that is measured.
inline constexpr int64_t kMostUpcomingNodes = 20'000;

// A group that is sized by how full it is. It grows by nothing else, and of its nodes those go that were
// tainted for that before.
struct LoopSizing {
  // The group, whose `sized` is set; it has the target, the limits and the model of a new node.
  GroupIndex group{};
  SizedGroup of;
  // The result is only reported, and not carried out.
  bool dry_run = false;
  GroupState state;
  // See GatherSizes().
  GatheredGroup gathered;
};

// How options to grow are ranked.
struct LoopRanking {
  RankPolicy policy;
  PriceModel prices;
  // In place of the policy's table.
  std::optional<NodeCapacity> preferred_node;
  // Returns the part of a pod that has a price.
  std::function<PodRequests(const PodShape&)> requests_of;
};

// The decisions that are taken; the others are left to somebody else.
struct LoopDecisions {
  bool scale_up = true;
  bool slack = true;
  bool scale_down = true;
  // Nodes are replaced by cheaper ones. Needs scale_up and scale_down, which carry it out.
  bool replace = false;
  // The nodes that should be empty first when workloads shrink. Needs scale_down.
  bool downscale_order = false;
};

// The question of one loop.
struct LoopProblem {
  // The facts about the cluster for scale-down; its groups are made of `groups`, its placeholders of the
  // slack that is kept and of pods that are expected on nodes.
  DrainProblem drain;
  NodeGroups groups;
  std::vector<LoopSizing> sized;
  // All pods without a node and those that start, which is what groups that are sized count as demand; empty:
  // those that are `pending`. Resource ids are those of `names`.
  std::vector<WaitingPods> size_pods;
  // Pods that wait, those of one priority in any order.
  std::vector<PendingPods> pending;
  // Pods that do not wait yet, see NotWaiting::kTooYoung: no group grows for them, and they keep nodes on
  // which they find room.
  std::vector<PendingPods> young;
  // FilterFingerprint() of `pending` as they were asked about (none where no growth is remembered), and the
  // fingerprint of NodeGroup::model: HoldVainGrowth() fills them in.
  std::vector<uint64_t> pending_keys;
  StrongVector<GroupIndex, uint64_t> model_keys;
  std::vector<IncomingPod> daemons;  // each new node carries those that fit it
  StartupTaints startup_taints;      // beside the well-known ones
  // Names that the shapes of groups and pods refer to: those of the cluster, with names added.
  ResourceNames names;
  PlanOptions growth;
  // Growth for pods expects further ones like them, by the size of the cluster: see PlanOptions::further,
  // which `growth` leaves empty.
  bool looks_ahead = true;
  // Says whether growth for pods waits for further ones.
  GrowthBatch batch;
  // Holds for all growth: for sizes, pods and slack, in this order.
  std::vector<NodeMaximum> maxima;
  // Groups that are similar share what they grow by for pods, by their size; nullopt: they do not.
  std::optional<SimilarityRules> balance;
  // Groups below their minimum grow to it. False: a minimum only keeps nodes from going.
  bool enforce_minima = false;
  // nullopt: groups grow for pods by PlanScaleUp(); else the best option does, by PlanRankedScaleUp().
  std::optional<LoopRanking> ranking;
  SlackOptions slack;  // valid
  DrainOptions scale_down;
  LoopDecisions decisions;
  // Pods of `pending` for which the scheduler makes room on a node, in the order of `pending`; and the nodes
  // that kept room for such pods, as the last plan says.
  std::vector<Nomination> nominations;
  std::vector<ReservedNode> reserved_nodes;
  // Nodes whose deletion was started, as planners->drain remembers them.
  std::vector<DeletingNode> deleting;
  // The turn that the last plan returned; none at first.
  GrowthTurn turn;
  LoopReplacement replacement;
  // Same as LoopMemory::downscale_order.
  absl::btree_map<uint64_t, int64_t> downscale_order;
};

// --- the answer ------------------------------------------------------------------------------------------

// Nodes that a group wins.
struct LoopGrowth {
  GroupIndex group{};
  int64_t for_pods = 0;
  int64_t for_slack = 0;
  int64_t for_utilization = 0;
  int64_t for_minimum = 0;
  int64_t for_replacement = 0;
  int64_t nodes() const { return for_pods + for_slack + for_utilization + for_minimum + for_replacement; }
  friend bool operator==(const LoopGrowth&, const LoopGrowth&) = default;
};

// Nodes on their way that are given up.
struct TakeBack {
  GroupIndex group{};
  int64_t nodes = 0;
  friend bool operator==(const TakeBack&, const TakeBack&) = default;
};

// A group of which the maxima of the cluster permit no further node.
struct GroupAtMaximum {
  GroupIndex group{};
  std::vector<std::string> resources;  // of which there would be too much: see ResourceRoom::ExceededBy()
  friend bool operator==(const GroupAtMaximum&, const GroupAtMaximum&) = default;
};

// The deletion cost that the pods of ReplicaSets on a node are to state.
struct NodeDeletionCost {
  Slot slot;
  int32_t cost = 0;
  friend bool operator==(const NodeDeletionCost&, const NodeDeletionCost&) = default;
};

// The reason for which no removal starts.
enum class NoScaleDown {
  kConsidered,  // nodes may
  kNotDecided,  // somebody else decides, and no drain is planned
  kGrowing,     // groups grow, or wait to: drains are planned and timers go on, but none starts
};
absl::string_view Name(NoScaleDown why);

// The plan for the pods that wait.
struct WaitingPodsPlan {
  std::vector<ExpectedPlace> expected;
  ScaleUpPlan scale_up;                           // positions are those of LoopPlan::waiting and of `grown`
  StrongVector<GrowableIndex, GroupIndex> grown;  // those that took part in scale_up
  // With a ranking: the options, best first, by position in `grown`, and what they were ranked by.
  std::vector<RankedOption> ranked;
  std::optional<NodeCapacity> preferred_node;
  // Nodes that are not removed, as pods are nominated to them; and those that the next loop knows to have
  // kept room.
  std::vector<Slot> reserved_nodes;
  std::vector<ReservedNode> next_reserved_nodes;
};

// The answer of one loop; ActionsOf() derives the actions from it.
struct LoopPlan : WaitingPodsPlan {
  // All that wait for a node: those asked about, at their positions, then pods of nodes that are being
  // deleted. What gives way to any pod waits for none: its count is 0.
  std::vector<PendingPods> waiting;
  std::vector<LoopGrowth> growth;  // by group; those that win nothing are left out
  // The time for which growth still waits for further pods. If it is set, nothing grows for pods and slack,
  // though `scale_up` says what would. nullopt: it does not wait.
  std::optional<int64_t> batch_wait_ms;
  // The groups for which the maxima of the cluster leave nothing.
  std::vector<GroupAtMaximum> at_maximum;
  GrowthTurn next_turn;  // for the next loop
  // Nodes not begun that are given up, one entry for each group: by moves that have ended, and for a cheaper
  // mix, which `growth` holds.
  std::vector<TakeBack> take_back;
  ReplacementPlan replacement;
  // Nodes that are to be empty first, the lowest cost first: see downscale_order.h.
  std::vector<NodeDeletionCost> deletion_costs;
  SlackPlan slack;
  // By position in LoopProblem::sized. Nodes are tainted and go only where nodes may go and no brake holds,
  // or in a dry run: else these lists are empty.
  std::vector<SizeDecision> sizes;
  NoScaleDown no_scale_down = NoScaleDown::kConsidered;
  // The question that scale_down answers; LoopPlanners::drain refers to it until its next plan. nullptr:
  // somebody else decides.
  std::unique_ptr<const DrainProblem> scale_down_problem;
  DrainPlan scale_down;
};

// --- the loop --------------------------------------------------------------------------------------------

// The planners that are kept from one iteration to the next; their states say all that counts.
struct LoopPlanners {
  SlackPlanner* slack;
  DrainPlanner* drain;
  // The planner of moves, which remembers failed attempts; nullptr: nothing is remembered.
  Consolidator* consolidator = nullptr;
};

// Plans one iteration. `snapshot` is one of problem.drain.cluster and is as before when the call returns.
//
// Groups that are sized come first: nodes that they ask for count as on their way, and those that lose their
// taint take pods. Placeholders of slack and pods below the expendable priority hold nothing against pods
// that wait. Nodes on their way, then new ones, take placeholders where pods leave room for them, before more
// is asked for. Nodes are asked to go with the pods that are expected on them. Drains are planned in every
// loop, so that timers go on; while groups grow none starts, and while pods wait for nodes on their way those
// nodes stay that would have to take them if none came.
//
// Growth may take half of the budget, slack half of what growth leaves, the search for moves half of what is
// left then, and drains the rest, so that none of them keeps the others from being planned.
//
// Where growth is cut short before all pods have a place, only some namespaces take part in the next plan of
// growth, and others in the one after it: pods that cost more than there is keep no others waiting for ever.
// Pods that do not take part are reported as pods without a place, in a plan that is cut short.
//
// While pods still come that need new nodes, growth for pods and slack waits, see LoopProblem::batch: one
// plan for all of them costs less than one for each handful.
//
// Where nodes are replaced, moves that are carried out come first, see replacement.h: nothing else uses the
// nodes that come for them, nor the places of their pods. New moves begin where nothing else is in progress.
//
// Deterministic. Cost: that of PlanScaleUp() or PlanRankedScaleUp() when pods wait, of SlackPlanner::Plan(),
// and of DrainPlanner::Plan().
LoopPlan PlanLoop(const LoopProblem& problem, const LoopPlanners& planners, Snapshot* snapshot,
                  WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLAN_LOOP_H_

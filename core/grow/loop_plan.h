// The answer of one loop.
#ifndef LOADLINE_CORE_GROW_LOOP_PLAN_H_
#define LOADLINE_CORE_GROW_LOOP_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/node_group.h"
#include "core/drain/planner.h"
#include "core/expand/estimate.h"
#include "core/expand/plan.h"
#include "core/expand/plan_ranked.h"
#include "core/grow/expected_pods.h"
#include "core/grow/growth_turn.h"
#include "core/grow/nominated.h"
#include "core/observe/replacement_policy.h"
#include "core/size/size_group.h"
#include "core/slack/slack_planner.h"

namespace loadline {

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

// The judgement on nodes that came for slack: whether they hold any of it, or run pods.
struct JudgedSlackGrowth {
  GroupIndex group{};
  bool has_helped = false;
  friend bool operator==(const JudgedSlackGrowth&, const JudgedSlackGrowth&) = default;
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

// The answer; ActionsOf() derives the actions from it.
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
  // The judged groups whose nodes came for slack. Where they did not help and slack asks for more, the group
  // does not grow for it.
  std::vector<JudgedSlackGrowth> judged_for_slack;
  // By position in LoopProblem::sized. Nodes are tainted and go only where nodes may go and no brake holds,
  // or in a dry run: else these lists are empty.
  std::vector<SizeDecision> sizes;
  NoScaleDown no_scale_down = NoScaleDown::kConsidered;
  // The question that scale_down answers; LoopPlanners::drain refers to it until its next plan. nullptr:
  // somebody else decides.
  std::unique_ptr<const DrainProblem> scale_down_problem;
  DrainPlan scale_down;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_PLAN_H_

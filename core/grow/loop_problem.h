// The question of one loop.
#ifndef LOADLINE_CORE_GROW_LOOP_PROBLEM_H_
#define LOADLINE_CORE_GROW_LOOP_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/cluster/node_group.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/drain_question.h"
#include "core/expand/estimate.h"
#include "core/expand/plan.h"
#include "core/expand/plan_ranked.h"
#include "core/expand/similar_groups.h"
#include "core/grow/growth_batch.h"
#include "core/grow/growth_turn.h"
#include "core/grow/nominated.h"
#include "core/grow/resource_limit.h"
#include "core/observe/loop_findings.h"
#include "core/observe/replacement_policy.h"
#include "core/size/group_facts.h"
#include "core/size/size_group.h"
#include "core/slack/slack_options.h"

namespace loadline {

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

// The growth of a group for slack, as far as it is remembered.
struct SlackGrowth {
  std::vector<Slot> came;  // nodes that have joined since it was asked for, and that nobody has judged
  bool held = false;       // it may not grow for slack again yet, since such nodes did not help
};

// The question: the cluster, groups, pods that wait, options, and what the last loop remembered.
struct LoopProblem {
  // The facts about the cluster for scale-down; its groups are made of `groups`, its placeholders of the
  // slack that is kept and of pods that are expected on nodes.
  DrainProblem drain;
  NodeGroups groups;
  GroupsOfNodes starting_group_of;  // of nodes that have registered and have not started: upcoming ones
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
  StrongVector<GroupIndex, SlackGrowth> slack_growth;  // likewise; empty: nothing is remembered
  std::vector<IncomingPod> daemons;                    // each new node carries those that fit it
  StartupTaints startup_taints;                        // beside the well-known ones
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

// Fills in what a plan reads of machines and groups: groups, their nodes and targets, models of new nodes,
// and the limit of new nodes. The groups are there already, with a node that shows what new ones are like;
// `cloud_template`: whether the cloud says so itself. The cluster is as it was observed.
void ApplyFindings(const LoopFindings& findings, const StrongVector<GroupIndex, bool>& cloud_template,
                   const ClusterState& cluster, LoopProblem* problem);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_PROBLEM_H_

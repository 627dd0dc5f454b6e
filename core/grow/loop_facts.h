// The facts of one loop, each made once.
#ifndef LOADLINE_CORE_GROW_LOOP_FACTS_H_
#define LOADLINE_CORE_GROW_LOOP_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/grow/loop_problem.h"
#include "core/grow/loop_resources.h"
#include "core/grow/upcoming_nodes.h"
#include "core/observe/move_objects.h"

namespace loadline {

// Nodes of a group in the cluster, and those that its target has beyond them.
struct GroupCounts {
  int64_t registered = 0;
  int64_t upcoming = 0;
};
using CountsOfGroups = StrongVector<GroupIndex, GroupCounts>;
CountsOfGroups CountNodes(const DrainProblem& drain, NodeGroupSpan groups);

// The facts that follow from the question of a loop alone, for all of its steps.
struct LoopFacts {
  // `problem` outlives the facts. Cost: O(nodes + groups^2).
  explicit LoopFacts(const LoopProblem& problem);

  const ClusterState& cluster;
  NodeGroupSpan groups;
  NodeLimit max_new_nodes;  // of all groups together
  // The number of LoopPlan::waiting that were asked about. Those behind them run on nodes being deleted.
  size_t asked_pods;
  std::vector<Slot> deleting;         // see NodesBeingDeleted()
  absl::flat_hash_set<Slot> leaving;  // the same nodes, to look them up
  // By group: nodes that have registered, have not started, and will not be as its model.
  StrongVector<GroupIndex, std::vector<StartingNodes>> starting;
  NodesByKey nodes;  // none unless nodes are replaced
  CountsOfGroups counts;
  // The node that each group adds, as the maxima of the cluster count it; nullopt: it has no template.
  OffersOfGroups offers;
  ResourceRoom room;                        // what the nodes of the cluster leave of its maxima
  StrongVector<GroupIndex, bool> may_grow;  // for pods and slack, whatever its size
  // Groups that are similar: those with the same number share what they grow by for pods. A group joins the
  // first set to whose first member it is similar.
  StrongVector<GroupIndex, std::optional<int32_t>> balance_sets;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_FACTS_H_

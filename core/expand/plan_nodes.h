// A plan under way: nodes that it adds to a snapshot, and what they hold.
#ifndef LOADLINE_CORE_EXPAND_PLAN_NODES_H_
#define LOADLINE_CORE_EXPAND_PLAN_NODES_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/expand/plan_problem.h"
#include "core/fit/trial_memory.h"
#include "core/pack/packing.h"

namespace loadline {

// New nodes of a group, with the pods that each of them is to hold; by position, each once.
struct WantedNodes {
  GrowableIndex group{};
  int64_t nodes = 0;
  std::vector<PodCount> pods;  // on one node
};

// Returns the sum of counts by position.
inline int64_t Total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// The nodes of a packing, those of each type shared evenly among its groups. Equal ones come together, so
// that the cost is O(runs * groups + entries of pods) whatever the number of nodes; `one_by_one`: each by
// itself, those of the groups in turn, as long as the budget lasts.
std::vector<WantedNodes> NodesOf(const PlanProblem& problem, const Packing& packing,
                                 const GrowableGroups& groups, bool one_by_one, WorkBudget* budget);
// The nodes of an estimate for one group.
std::vector<WantedNodes> NodesOf(GrowableIndex group, const NodeEstimate& estimate);

// The new nodes of a joint plan, with the pods on them and on existing nodes.
class PlanNodes {
 public:
  // `waiting`: pods to be placed, by position.
  PlanNodes(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups,
            std::vector<int64_t> waiting, NodeLimit max_new_nodes, WorkBudget* budget);

  // Adds all nodes at once, as a scheduler sees them, and then places pods: where they are wanted, as far as
  // they fit, and then wherever they fit. Nodes that get no pod are left out. If there are pods that depend
  // on others, this happens in the snapshot, node by node as long as the budget lasts, and the caller has a
  // Fork() open. To be called once.
  void Place(std::vector<WantedNodes> wanted);

  // By position: pods that wait still.
  const std::vector<int64_t>& waiting() const { return waiting_; }
  int64_t pods_waiting() const;
  // New nodes that each group may still get; and all of them together, as a limit.
  StrongVector<GrowableIndex, int64_t> room() const;
  NodeLimit nodes_left() const;
  int64_t node_count() const;
  double cost() const;
  // Pods that went to existing nodes.
  const std::vector<ExistingUse>& existing() const { return existing_; }
  // Returns what the nodes take.
  std::vector<WantedNodes> Contents() const;
  // Returns the nodes, with those alike together; by group, then by what they take.
  std::vector<PlannedNodes> Nodes() const;
  // By position: pods on new nodes.
  std::vector<int64_t> OnNewNodes() const;

 private:
  struct NewNodes {
    WantedNodes content;
    NodeIndex node;  // where pods are placed in the snapshot: there it is one node
  };

  void AddToSnapshot(const std::vector<WantedNodes>& wanted, std::vector<std::vector<PodCount>>* to_place);
  void PlaceInRounds(std::vector<std::vector<PodCount>>* to_place);
  void PlaceTheRest();
  void Record(size_t pods, NodeIndex node);

  Estimator& estimator_;
  Snapshot& snapshot_;
  const GrowableGroups& groups_;
  bool by_count_;  // no pod depends on others: nothing is placed in the snapshot
  int32_t first_new_;
  NodeLimit max_new_nodes_;
  std::vector<int64_t> waiting_;
  StrongVector<GrowableIndex, int64_t> added_;
  std::vector<NewNodes> nodes_;  // in the order in which they came
  std::vector<ExistingUse> existing_;
  WorkBudget* budget_;
  TrialMemory memory_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_PLAN_NODES_H_

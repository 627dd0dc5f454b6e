// Counts the copies of one node group's template that the pending pods need.
#ifndef LOADLINE_CORE_EXPAND_ESTIMATE_H_
#define LOADLINE_CORE_EXPAND_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/expand/node_limits.h"
#include "core/fit/filters.h"
#include "core/fit/fit_search.h"
#include "core/fit/trial_memory.h"
#include "core/fit/verdict.h"

namespace loadline {

class LineRoom;
class RoomColumns;
struct CountedEstimateInput;

// Pods that wait and are equal for every decision.
struct PendingPods {
  IncomingPod pod;
  int64_t count = 1;  // >= 0
};

// A number of the pods at this position in the list that was asked about.
struct PodCount {
  int32_t pods = 0;
  int64_t count = 0;
  friend bool operator==(const PodCount&, const PodCount&) = default;
};

// New nodes with the same pods on each.
struct NodeRun {
  int64_t nodes = 0;
  std::vector<PodCount> pods;  // on one node
  friend bool operator==(const NodeRun&, const NodeRun&) = default;
};

// Pods that an existing node takes.
struct ExistingUse {
  NodeIndex node;
  PodCount pods;
};

// The rules by which nodes are counted.
enum class EstimateMode {
  // Follows the rules at Estimator::Estimate().
  kExact,
  // The placement rules of Cluster Autoscaler, which counts an existing node that takes a pod as a new one.
  kClusterAutoscaler,
};

// The reason for which an estimate ended.
enum class EstimateEnd {
  kComplete,   // what is not placed does not fit
  kNodeLimit,  // more nodes might have taken more pods
  kBudget,     // the work budget ended
};

// The number of nodes of one group that pods need, and the pods that they take.
struct NodeEstimate {
  int64_t nodes = 0;                  // that receive a pod; see EstimateMode
  int64_t pods = 0;                   // placed
  std::vector<int64_t> placed;        // by position of the pending pods
  std::vector<NodeRun> runs;          // the new nodes that receive a pod
  std::vector<ExistingUse> existing;  // pods that only come to fit there beside the new nodes
  EstimateEnd end = EstimateEnd::kComplete;
};

// Pods of one position that a further new node does not take.
struct PodRefusal {
  size_t pods = 0;
  Verdict verdict;
  bool daemons_in_the_way = false;  // the filter would not refuse them without the daemons of the node
  std::string daemon;               // then the first beside which it does not: namespace/name
  // With kNodeAffinity or kTaintToleration, the condition: see UnmetAffinity() and UntoleratedTaint().
  std::string unmet;
};

// Returns the reasons of a refusal for people, with the DaemonSet that is in the way.
std::string TextOf(const PodRefusal& refusal);

// Positions in `pods` in the order of estimation: by cpu / allocatable cpu + memory / allocatable memory of
// one pod, largest first; an allocatable of 0 adds nothing. Ties: by namespace, then by fingerprint, then by
// position. Source: estimator/decreasing_pod_orderer.go of Cluster Autoscaler, which leaves ties open.
std::vector<size_t> EstimationOrder(const ResourceAmounts& allocatable, const std::vector<PendingPods>& pods);

// Answers for one set of pending pods and any number of templates. What is placed and added is taken back
// before a call returns, but for UseExistingRoom(). Not thread-safe.
//
// Cost: when no pod needs more than room (PodFit::OnlyNeedsRoom()), nodes are counted and not simulated:
//       O(groups of pods * distinct contents of nodes). Else O(pods + nodes) placements in the snapshot.
class Estimator {
 public:
  // `snapshot` and `fit` outlive the object. Of `daemons` each node takes those that fit it, in their order.
  // What is known of the pods, and of where they might go, is charged to `budget` and stays so, up to half of
  // what it has: no pod takes more than its portion, those with many rules come last, and namespaces take
  // turns. A pod for which it does not suffice fits nowhere; see cut_short_by().
  Estimator(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
            std::vector<IncomingPod> daemons, WorkBudget* budget, EstimateMode mode = EstimateMode::kExact);
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;
  ~Estimator();

  const std::vector<PendingPods>& pods() const { return pods_; }
  // Returns the limit that ended before all pods and daemons could be looked at.
  BudgetEnd cut_short_by() const { return cut_short_by_; }
  // Positions of the pods that could not, ascending.
  const std::vector<size_t>& cut_off() const { return cut_off_; }
  // Sets the number of waiting pods, by position.
  void set_counts(const std::vector<int64_t>& counts) {
    for (size_t i = 0; i < counts.size(); ++i) pods_[i].count = counts[i];
  }
  bool OnlyNeedsRoom(size_t pods) const { return searches_[pods].only_needs_room; }
  bool AllOnlyNeedRoom() const { return all_only_need_room_; }

  // Places what fits on nodes that are there, those of a higher priority first and then the largest, each on
  // the first node in name order, for good: pods() holds what is left. The caller has a Fork() open if it
  // wants the snapshot back. The memory of what was placed stays charged to the budget.
  std::vector<ExistingUse> UseExistingRoom(WorkBudget* budget);

  // Fills new nodes of `group`, whose model is known, one pod after the other in EstimationOrder(). kExact:
  // each pod is placed on the first new node that takes it; if there is none and it depends on other pods, to
  // an existing one that does; else to one more node, if the limiter permits and an empty one takes it.
  // `refusals`, unless it is nullptr, gets Refusals() of what is left over.
  NodeEstimate Estimate(const NodeGroup& group, NodeLimiter limiter, WorkBudget* budget,
                        std::vector<PodRefusal>* refusals = nullptr);

  // Returns the pods of which `placed` (by position) leaves some over, and that one more node of `group`
  // would not take beside what has been placed: by position, as far as the budget lasts.
  std::vector<PodRefusal> Refusals(const NodeGroup& group, const std::vector<int64_t>& placed,
                                   WorkBudget* budget);

  // Adds an empty new node, with its daemons, for good. The daemons are charged to `memory`; if its budget
  // ends, the copy has not all of them.
  NodeIndex AddCopy(const NodeGroup& group, TrialMemory* memory);
  // Places one of the pods for good.
  void Place(size_t pods, NodeIndex node);
  // Makes columns() where the budget has the memory: it stays charged. False: they may not be asked for.
  bool MakeColumns(WorkBudget* budget);
  // The requests of the pods, by position. After MakeColumns().
  const RoomColumns& columns() const { return *columns_; }
  // The columns that the load line adds to them; nullptr: there is none. After MakeColumns().
  const LineRoom* line_room() const { return line_room_.get(); }
  PodFit& fit(size_t pods) { return fresh_.fit(searches_[pods].fresh); }
  FitSearch& existing() { return existing_; }
  SearchPod existing_pod(size_t pods) const { return searches_[pods].existing; }
  FitSearch& fresh() { return fresh_; }
  SearchPod fresh_pod(size_t pods) const { return searches_[pods].fresh; }

 private:
  struct Searches {
    SearchPod existing;
    SearchPod fresh;
    bool only_needs_room = false;
  };

  void Prepare(std::vector<IncomingPod> daemons, WorkBudget* budget);
  void Note(const PodFit& fit, const WorkBudget& budget);
  NodeEstimate EstimateCounted(const NodeGroup& group, std::vector<size_t> order, NodeLimiter limiter,
                               WorkBudget* budget);
  NodeIndex AddBareCopy(const NodeGroup& group);
  void NameDaemons(const NodeGroup& group, WorkBudget* budget, std::vector<PodRefusal>* refusals);

  Snapshot& snapshot_;
  const FitOptions& options_;
  std::vector<PendingPods> pods_;
  EstimateMode mode_;
  FitSearch existing_;
  FitSearch fresh_;
  std::vector<Searches> searches_;
  std::vector<std::unique_ptr<PodFit>> daemons_;
  bool all_only_need_room_ = true;
  BudgetEnd cut_short_by_ = BudgetEnd::kNotEnded;
  std::vector<size_t> cut_off_;
  std::unique_ptr<RoomColumns> columns_;
  std::unique_ptr<LineRoom> line_room_;
  std::vector<NodeIndex> copies_;  // by the numbers in their names
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_ESTIMATE_H_

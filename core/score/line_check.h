// The load line asked for one pod and many nodes, from the sums that scores are made of.
#ifndef LOADLINE_CORE_SCORE_LINE_CHECK_H_
#define LOADLINE_CORE_SCORE_LINE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/fit/load_line.h"
#include "core/score/limit_columns.h"

namespace loadline {

// Positions among the resources of `policy` of those of the line; empty: some are not among them, or the
// policy counts limits by other rules than the line.
std::vector<size_t> ColumnsOfLine(const LoadLine& line, const LimitPolicy& policy);

// How loaded one node is, for one resource.
struct NodeLoad {
  int64_t line = 0;  // of this node, in thousandths
  int64_t allocatable = 0;
  int64_t limits = 0;  // what the pods there count as; [0, 2^62]
  int64_t ceiling = 0;
  bool above() const { return limits > ceiling; }
};

// The reasons for which the load line keeps a pod off a node.
struct LineVerdict {
  std::vector<std::string> reasons;  // sorted; empty: it need not
  bool unresolvable = false;         // it alone counts as more than the node may hold
};

// Answers as the filter of core/fit does. `line`, `columns`, which have caught up with `cluster`, and
// `cluster` outlive the object. Cost of a question: O(resources of the line); with node labels also a look-up
// of each.
class LineCheck {
 public:
  // `positions`: ColumnsOfLine() of the policy of `columns`, not empty.
  LineCheck(const LoadLine* line, const LimitColumns* columns, std::vector<size_t> positions,
            const ClusterState* cluster);

  NodeLoad Load(Slot slot, size_t resource) const;
  bool Above(Slot slot) const;
  // Keeps() returns whether the node takes the pod; cheap. Its `pod` is the result of MakePod().
  struct Pod {
    bool exempt = false;
    std::vector<PodLimit> limits;  // by resource of the line
    std::vector<bool> stated;      // has a limit above 0
  };
  Pod MakePod(const PodShape& pod) const;
  bool Keeps(const Pod& pod, Slot slot) const;
  LineVerdict Explain(const Pod& pod, Slot slot) const;
  // How much may be added to the pods on the node, so that it takes the pod; below 0: so much must leave. In
  // [-kMaxAmount, kMaxAmount]; kMaxAmount: the pod counts as nothing. Keeps() is Room() >= 0 of all
  // resources.
  int64_t Room(const Pod& pod, Slot slot, size_t resource) const;
  // The reason that Explain() gives where more than that is added.
  std::string Reason(Slot slot, size_t resource) const;
  // Returns what a pod counts as on the node.
  int64_t Count(const PodShape& pod, Slot slot, size_t resource) const;

 private:
  PodLimit LimitOfPod(const PodShape& pod, size_t resource) const;
  LineOnNode LineOf(const Pod& pod, const NodeLoad& node, size_t resource) const;

  const LoadLine& line_;
  const LimitColumns& columns_;
  const std::vector<size_t> positions_;
  const ClusterState& cluster_;
  const LimitSums sums_;  // counts pods, and sums none
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_LINE_CHECK_H_

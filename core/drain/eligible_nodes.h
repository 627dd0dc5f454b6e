// Finds the nodes that may go if their pods may.
#ifndef LOADLINE_CORE_DRAIN_ELIGIBLE_NODES_H_
#define LOADLINE_CORE_DRAIN_ELIGIBLE_NODES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/eligibility.h"
#include "core/drain/trial_follower.h"

namespace loadline {

// Asks CheckEligibility() of every node. What it says of a node is remembered until the node, its pods, or
// what else it turns on have changed. Not thread-safe.
class EligibleNodes {
 public:
  // Judges all nodes of the call, and counts them against its size limits. `changes`: since the last time.
  // Cost: O(nodes + pods of nodes that changed).
  void Judge(const TrialFollower::Changes& changes, DrainCall* call);

 private:
  // The part of a group that CheckEligibility() reads: its size changes all the time, and what counts is
  // whether it is the least one.
  struct GroupBasis {
    bool sized = false;
    bool at_minimum = false;
    std::optional<double> utilization_threshold;
    std::optional<double> gpu_utilization_threshold;
    std::optional<bool> ignore_daemonsets_utilization;
    friend bool operator==(const GroupBasis&, const GroupBasis&) = default;
  };
  // The things beside the node on which the answer depends.
  struct Basis {
    EligibilityOptions options;
    std::vector<GroupBasis> groups;
    std::vector<Slot> chosen;
    std::vector<ReplacedNode> replaced;
    std::vector<Slot> takes_replaced_pods;
    friend bool operator==(const Basis&, const Basis&) = default;
  };

  void ForgetChanged(const TrialFollower::Changes& changes, const DrainCall& call);

  void ForgetMoved(const GroupsOfNodes& group_of);

  Basis basis_;
  GroupsOfNodes group_of_;
  std::vector<std::optional<NodeReason>> known_;  // by slot
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_ELIGIBLE_NODES_H_

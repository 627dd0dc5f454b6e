// One node: whether its pods may move, and the node as part of the plan.
#ifndef LOADLINE_CORE_DRAIN_NODE_TRIAL_H_
#define LOADLINE_CORE_DRAIN_NODE_TRIAL_H_

#include <optional>
#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/drain_trial.h"
#include "core/drain/planned_node.h"
#include "core/drain/trial_follower.h"

namespace loadline {

// A pod or placeholder of a node as one that moves.
MovingPod MovingPodOf(const DrainCall& call, Slot slot, PodRef pod, TrialFollower* follower);

// Gives pods that were planned to move to a node before that place as a hint: where the node is still there,
// and is none of the former plan itself.
void SetHints(const DrainCall& call, const FormerNode& former, std::vector<MovingPod>* pods);

// A node that would go, with what would move from it in the order in which it is placed.
struct NodeTrial {
  PlannedNode planned;  // without moves
  std::vector<MovingPod> pods;
};

// Asks rules and budgets about the pods of a node. nullopt: one keeps the node, which is noted in the call.
// `former`: of the former plan, for hints; or nullptr. Cost: O(pods of the node * log).
std::optional<NodeTrial> AskPods(Slot slot, const FormerNode* former, DrainCall* call,
                                 TrialFollower* follower);

// The node of a trial whose pods have been placed, as part of the plan; takes what they take from budgets.
PlannedNode Accept(NodeTrial trial, const DrainTrial& trial_cluster, DrainCall* call);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_TRIAL_H_

// The brakes on new drains: a cluster that is not known or not well, and pods of earlier drains without a
// place.
#ifndef LOADLINE_CORE_DRAIN_VERIFY_H_
#define LOADLINE_CORE_DRAIN_VERIFY_H_

#include <span>
#include <string>

#include "core/drain/drain_call.h"
#include "core/drain/drain_memory.h"
#include "core/drain/trial_follower.h"
#include "core/drain/vanished_pods.h"

namespace loadline {

// A brake, and what exactly is wrong.
struct BrakeFound {
  DrainBrake brake = DrainBrake::kNone;
  std::string text;
};

// Returns the brake that applies if the cluster is not known or not healthy, or has lost too much since the
// last call. `pods`: all pods of the cluster, counted. Cost: O(owners + pods of nodes being deleted).
BrakeFound FindBrake(const DrainCall& call, const DrainState& state, std::span<const OwnerPods> pods);

// Finds places for pods that nodes being deleted still have, then for replacements of evicted pods that their
// owners have yet to create; they stay in the trial cluster, and the plan has to do with the rest. A brake:
// one fits nowhere, or the work ended before all had a place. The plan takes what such pods need of budgets
// without asking: they move in any case. Cost: O(pods * log) as far as room decides.
BrakeFound PlacePodsUnderWay(const DrainState& state, DrainCall* call, TrialFollower* follower);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_VERIFY_H_

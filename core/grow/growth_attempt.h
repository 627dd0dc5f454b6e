// One way to plan growth for the pods that wait.
#ifndef LOADLINE_CORE_GROW_GROWTH_ATTEMPT_H_
#define LOADLINE_CORE_GROW_GROWTH_ATTEMPT_H_

#include <cstdint>

#include "core/grow/loop_growth.h"

namespace loadline {

// The way in which an attempt plans growth.
struct GrowthWay {
  // Nodes on their way are packed together with new ones, at no cost: what they were asked for is found
  // again. Else pods take the room on them first, the largest ones first, as on nodes that are there.
  bool packs_upcoming = false;
  // Pods are planned onto new nodes as if these had so much less CPU and memory: a part, [0, 1).
  double reserve = 0;
  // See PlanOptions::further. Nodes on their way cost nothing where they are packed: no larger one is
  // cheaper.
  FurtherPods further;
};

// A complete plan of growth that competes with others.
struct GrowthAttempt {
  GrowthWay way;
  WaitingPodsPlan plan;
  GrowthLedger ledger;  // with this growth
  GroupRooms rooms;
  // Pods that have a place in the plan, and none where a scheduler puts them: see LeftAsScheduled(). 0 where
  // nothing grows, or a ranking decides.
  int64_t left_as_scheduled = 0;
  // With `packs_upcoming`, limits on all groups together are not applied, only checked: false makes the
  // attempt invalid.
  bool within_limits = true;
};

// `before`: the ledger without growth for pods. The snapshot is as before when the call returns. Cost: that
// of PlanScaleUp().
GrowthAttempt TryGrowth(const GrowthQuestion& question, const GrowthLedger& before, const GrowthWay& way);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_GROWTH_ATTEMPT_H_

// Words for the reasons for which groups do not grow.
#ifndef LOADLINE_CORE_GROW_WHY_NO_GROWTH_H_
#define LOADLINE_CORE_GROW_WHY_NO_GROWTH_H_

#include <cstddef>
#include <string>

#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/grow/refused_growth.h"
#include "core/observe/loop_findings.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// The reason that keeps a group from growing further than in a plan; the first that applies.
enum class GrowthHold {
  kOptionsUnknown,
  kBacksOff,
  kSized,  // it grows by nothing but how full it is
  kHeld,   // GroupSight::held says why
  kAtMaximum,
  kUnpriced,          // nobody knows what its nodes are like, or cost
  kMaximumOfCluster,  // LoopPlan::at_maximum names the resources
  kNothing,
};

// All of the same loop.
GrowthHold HoldOf(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                  const LoopPlan& plan, GroupIndex group);

// Returns the reasons for which groups do not grow, each with its number of groups, as a sentence for a pod
// that gets no node. `refused`: what new nodes say to that pod; nullptr: they were not asked.
std::string WhyNoGrowth(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                        const LoopPlan& plan, const RefusedPods* refused = nullptr);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_WHY_NO_GROWTH_H_

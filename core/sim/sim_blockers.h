// The pods of a scenario that block drains.
#ifndef LOADLINE_CORE_SIM_SIM_BLOCKERS_H_
#define LOADLINE_CORE_SIM_SIM_BLOCKERS_H_

#include "core/base/strong_vector.h"
#include "core/sim/scenario.h"
#include "core/sim/shapes_of.h"

namespace loadline {

// Returns for each workload whether its pods block drains by LastingBlockers; none does where the settings
// have no `blockers_together`.
StrongVector<SimWorkloadIndex, bool> BlockingWorkloads(const Scenario& scenario, const ShapesOf& shapes);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SIM_BLOCKERS_H_

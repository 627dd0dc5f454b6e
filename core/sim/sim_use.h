// The use of pods by the hour: what scheduler and loop know of it, and the rules by which they count it.
#ifndef LOADLINE_CORE_SIM_SIM_USE_H_
#define LOADLINE_CORE_SIM_SIM_USE_H_

#include <memory>
#include <string>

#include "core/cluster/expected_use.h"
#include "core/fit/load_line.h"
#include "core/sim/scenario.h"

namespace loadline {

// The use of one pod in each hour of the day, UTC; an hour of 0 is not known.
struct SimHours {
  HourlyAmounts cpu = {};
  HourlyAmounts memory = {};
};

// Returns the known use of the pods of a workload, which is their use without deviations. Amounts are at most
// the limits of a pod, where it has some.
SimHours HoursOf(const SimWorkload& workload);

// Returns the name under which pods of a workload find their profile.
std::string SimProfileName(const SimWorkload& workload);

// Returns the profiles that scheduler and loop count by; nullptr: expected use is off.
std::shared_ptr<const ExpectedUse> SimProfiles(const Scenario& scenario);

// Returns the load line that scheduler and loop keep to.
LoadLine SimLoadLine(const Scenario& scenario);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SIM_USE_H_

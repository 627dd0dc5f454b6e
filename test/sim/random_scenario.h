// Scenarios that are drawn, and what is left of one that fails.
#ifndef LOADLINE_TEST_SIM_RANDOM_SCENARIO_H_
#define LOADLINE_TEST_SIM_RANDOM_SCENARIO_H_

#include <cstdint>
#include <functional>
#include <string>

#include "core/sim/scenario.h"

namespace loadline {

// A small cluster with load of all kinds, for some hours to two days. A part of the faults is switched on,
// which one is drawn as well; of seeds that are divisible by four, none.
Scenario RandomScenario(uint64_t seed);

// 1,000 nodes and some 20,000 pods of 200 Deployments at the peak of their daily curves.
Scenario LargeScenario(int64_t days);

// Leaves out groups, workloads, bursts and faults, and makes workloads smaller, as long as `fails`.
Scenario Shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails);

// Returns the differences from the default, a line for each group and workload.
std::string Describe(const Scenario& scenario);

}  // namespace loadline

#endif  // LOADLINE_TEST_SIM_RANDOM_SCENARIO_H_

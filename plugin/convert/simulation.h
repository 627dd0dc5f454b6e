// Messages of simulations.
#ifndef LOADLINE_PLUGIN_CONVERT_SIMULATION_H_
#define LOADLINE_PLUGIN_CONVERT_SIMULATION_H_

#include "absl/status/statusor.h"
#include "core/sim/simulation.h"
#include "loadline/v1/simulation.pb.h"

namespace loadline {

// Decodes a scenario; an unset field gets its default. Errors: kInvalidArgument  names the field
absl::StatusOr<Scenario> DecodeScenario(const v1::SimulateRequest& request);

v1::SimulateResponse EncodeSimulation(const SimResult& result);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SIMULATION_H_

// Options of a fleet as most tests have them.
#ifndef LOADLINE_TEST_PLUGIN_FLEET_OPTIONS_H_
#define LOADLINE_TEST_PLUGIN_FLEET_OPTIONS_H_

#include "loadline/v1/fleet.pb.h"

namespace loadline {

// Sets the times of the autoscaler's defaults, and a bound on deletions that no test reaches.
inline void SetFleetDefaults(v1::FleetOptions* options) {
  options->set_max_node_provision_milliseconds(900'000);
  options->set_max_node_startup_milliseconds(900'000);
  options->set_initial_back_off_milliseconds(300'000);
  options->set_max_back_off_milliseconds(1'800'000);
  options->set_deletion_patience_milliseconds(300'000);
  options->set_max_deletions(10);
}

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_FLEET_OPTIONS_H_

// Asks a loadlined whether it serves: what a probe of a cluster runs.
#ifndef LOADLINE_PLUGIN_DAEMON_HEALTH_CHECK_H_
#define LOADLINE_PLUGIN_DAEMON_HEALTH_CHECK_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace loadline {

// Asks the standard health service at `socket` about all of the server.
// Errors: kUnavailable  nobody listens, there is no answer within `timeout`, or the answer is not "serving"
absl::Status CheckServing(const std::string& socket, std::chrono::milliseconds timeout);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_HEALTH_CHECK_H_

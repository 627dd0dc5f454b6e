// The command line of loadlined.
#ifndef LOADLINE_PLUGIN_DAEMON_OPTIONS_H_
#define LOADLINE_PLUGIN_DAEMON_OPTIONS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loadline/v1/engine_config.pb.h"
#include "plugin/daemon/log.h"

namespace loadline {

// The command line of loadlined.
struct Options {
  std::string socket = "/run/loadline/loadlined.sock";
  mode_t socket_mode = 0600;
  LogFormat log_format = LogFormat::kText;
  v1::EngineConfig engine;                    // checked by the engine
  int32_t threads = 2;                        // that answer calls; small scores have gRPC's own
  int32_t max_waiting_calls = 256;            // for one of them; more are refused
  std::chrono::seconds watchdog_seconds{60};  // see Watchdog; 0: there is none
  std::chrono::seconds request_seconds{60};   // a client may be silent between parts; 0: for ever
  std::string check;                          // not empty: asks this socket instead of serving
  bool help = false;
  bool version = false;
};

// `arguments` without the name of the program; `--name=value` or `--name value`.
// Errors: kInvalidArgument  an unknown flag, a value that is none, a stray argument
absl::StatusOr<Options> ParseOptions(const std::vector<absl::string_view>& arguments);

// Returns the text of --help.
std::string Usage();

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_OPTIONS_H_

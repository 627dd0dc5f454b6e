#include "plugin/daemon/options.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace loadline {
namespace {

constexpr int32_t kMostThreads = 256;
constexpr int32_t kMostWaitingCalls = 65'536;
constexpr int32_t kMostSeconds = 86'400;

struct Flag {
  absl::string_view name;
  absl::string_view value;  // name of its value in the usage; empty: it takes none
  absl::string_view help;
  absl::Status (*set)(absl::string_view value, Options* options);
};

absl::Status SetSocket(absl::string_view value, Options* options) {
  if (value.empty()) return absl::InvalidArgumentError("must not be empty");
  options->socket = std::string(value);
  return absl::OkStatus();
}

absl::Status SetSocketMode(absl::string_view value, Options* options) {
  mode_t mode = 0;
  for (const char digit : value) {
    if (digit < '0' || digit > '7' || mode > 0777) {
      return absl::InvalidArgumentError("must be an octal number such as 0600");
    }
    mode = mode * 8 + static_cast<mode_t>(digit - '0');
  }
  if (value.empty() || mode > 0777) return absl::InvalidArgumentError("must be an octal number up to 0777");
  options->socket_mode = mode;
  return absl::OkStatus();
}

absl::Status SetLogFormat(absl::string_view value, Options* options) {
  if (value != "text" && value != "json") return absl::InvalidArgumentError("must be text or json");
  options->log_format = value == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

template <void (v1::EngineConfig::*kSet)(int32_t)>
absl::Status SetEngineLimit(absl::string_view value, Options* options) {
  int32_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1) {
    return absl::InvalidArgumentError("must be a number from 1");
  }
  (options->engine.*kSet)(number);
  return absl::OkStatus();
}

absl::Status ParseNumber(absl::string_view value, int32_t least, int32_t most, int32_t* number) {
  if (absl::SimpleAtoi(value, number) && *number >= least && *number <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("must be a number from ", least, " to ", most));
}

absl::Status SetThreads(absl::string_view value, Options* options) {
  return ParseNumber(value, 1, kMostThreads, &options->threads);
}

absl::Status SetMaxWaitingCalls(absl::string_view value, Options* options) {
  return ParseNumber(value, 1, kMostWaitingCalls, &options->max_waiting_calls);
}

template <std::chrono::seconds Options::*kTime>
absl::Status SetSeconds(absl::string_view value, Options* options) {
  int32_t seconds = 0;
  absl::Status status = ParseNumber(value, 0, kMostSeconds, &seconds);
  options->*kTime = std::chrono::seconds(seconds);
  return status;
}

absl::Status SetCheck(absl::string_view value, Options* options) {
  if (value.empty()) return absl::InvalidArgumentError("must not be empty");
  options->check = std::string(value);
  return absl::OkStatus();
}

template <void (v1::EngineConfig::*kSet)(int64_t)>
absl::Status SetBytes(absl::string_view value, Options* options) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < int64_t{1} << 20) {
    return absl::InvalidArgumentError("must be a number from 1048576");
  }
  (options->engine.*kSet)(number);
  return absl::OkStatus();
}

absl::Status SetSlackNamespace(absl::string_view value, Options* options) {
  if (value.empty()) return absl::InvalidArgumentError("must not be empty");
  options->engine.set_slack_namespace(std::string(value));
  return absl::OkStatus();
}

absl::Status SetHelp(absl::string_view, Options* options) {
  options->help = true;
  return absl::OkStatus();
}

absl::Status SetVersion(absl::string_view, Options* options) {
  options->version = true;
  return absl::OkStatus();
}

using Config = v1::EngineConfig;

constexpr Flag kFlags[] = {
    {"socket", "PATH", "unix socket to listen on [/run/loadline/loadlined.sock]; PATH.lock is locked",
     SetSocket},
    {"socket-mode", "MODE", "permissions of the socket, octal [0600]", SetSocketMode},
    {"max-views", "N", "most views at a time [16]", SetEngineLimit<&Config::set_max_views>},
    {"max-nodes", "N", "most nodes of one view [131072]", SetEngineLimit<&Config::set_max_nodes>},
    {"max-pods", "N", "most pods of one view [2000000]", SetEngineLimit<&Config::set_max_pods>},
    {"max-pod-shapes", "N", "most pod shapes of one client [2000000]",
     SetEngineLimit<&Config::set_max_pod_shapes>},
    {"max-resources", "N", "most distinct resource names in one view [256]",
     SetEngineLimit<&Config::set_max_resources>},
    {"max-policies", "N", "most score policies kept up to date in one view [8]",
     SetEngineLimit<&Config::set_max_policies>},
    {"threads", "N",
     "threads that answer plans, each one at a time; other calls have as many, at least 2 [2]", SetThreads},
    {"max-waiting-calls", "N", "calls that wait for a thread at most; more are refused [256]",
     SetMaxWaitingCalls},
    {"watchdog-seconds", "N",
     "health is NOT_SERVING while a call runs for N seconds past its timeout, or past its start if it has "
     "none [60]; 0: never",
     SetSeconds<&Options::watchdog_seconds>},
    {"request-seconds", "N",
     "end a call that sets a cluster if its client sends nothing for N seconds before the last part [60]; 0: "
     "never",
     SetSeconds<&Options::request_seconds>},
    {"check", "PATH", "ask the daemon at socket PATH whether it serves and exit: 0 yes, 1 no", SetCheck},
    {"max-question-bytes", "N",
     "most memory of one question, in bytes [256 MiB; at most a quarter of a container's memory]",
     SetBytes<&Config::set_max_question_bytes>},
    {"max-view-bytes", "N",
     "most memory of what one view holds beside ordinary objects, in bytes [256 MiB; at most an eighth of a "
     "container's memory]",
     SetBytes<&Config::set_max_view_bytes>},
    {"slack-namespace", "NAME", "namespace of our own placeholders [loadline-slack]", SetSlackNamespace},
    {"log-format", "FORMAT", "text or json [text]", SetLogFormat},
    {"version", "", "print the version and exit", SetVersion},
    {"help", "", "print this and exit", SetHelp},
};

const Flag* FindFlag(absl::string_view name) {
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<absl::string_view>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view argument = arguments[i];
    if (!absl::StartsWith(argument, "--")) {
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument: ", argument));
    }
    const size_t equals = argument.find('=');
    const absl::string_view name =
        argument.substr(2, equals == absl::string_view::npos ? equals : equals - 2);
    const Flag* const flag = FindFlag(name);
    if (flag == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown flag: --", name));
    const bool has_value = equals != absl::string_view::npos;
    absl::string_view value = has_value ? argument.substr(equals + 1) : absl::string_view();
    if (flag->value.empty()) {
      if (has_value) return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value"));
    } else if (!has_value) {
      if (++i == arguments.size())
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      value = arguments[i];
    }
    if (absl::Status status = flag->set(value, &options); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": ", value, ": ", status.message()));
    }
  }
  return options;
}

std::string Usage() {
  std::string usage =
      "Usage: loadlined [flags]\n\n"
      "Serves the Loadline engine over gRPC on a unix socket.\n\n";
  for (const Flag& flag : kFlags) {
    const std::string name = absl::StrCat("--", flag.name, flag.value.empty() ? "" : " ", flag.value);
    absl::StrAppendFormat(&usage, "  %-22s %s\n", name, flag.help);
  }
  return usage;
}

}  // namespace loadline

// One line per event to stderr, as Kubernetes components write it.
#ifndef LOADLINE_PLUGIN_DAEMON_LOG_H_
#define LOADLINE_PLUGIN_DAEMON_LOG_H_

#include "absl/strings/string_view.h"

namespace loadline {

// The format of log lines: klog's text, or JSON.
enum class LogFormat {
  kText,  // klog: `I1121 10:00:00.000000    4711 main.cc:42] message`
  kJson,  // {"ts":1763719200.000000,"severity":"I","caller":"main.cc:42","msg":"message"}
};

// Call once, before threads start. Also takes over what gRPC logs.
void InitLog(LogFormat format);

// Any thread; one write per line. Control characters in `message` are escaped, and what is beyond 600 bytes
// is cut. Never waits: lines that find no room in a pipe are dropped and counted in a line that follows.
void LogInfo(absl::string_view message, const char* file = __builtin_FILE(), int line = __builtin_LINE());
void LogError(absl::string_view message, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_LOG_H_

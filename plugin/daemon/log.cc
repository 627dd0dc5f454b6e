#include "plugin/daemon/log.h"

#include <grpc/support/log.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <ctime>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plugin/base/mutex.h"

namespace loadline {
namespace {

// Escaped it may grow sixfold; its line still has to fit into PIPE_BUF with the rest.
constexpr size_t kMostMessageBytes = 600;

LogFormat g_format = LogFormat::kText;
Mutex g_mutex;  // between looking for room and writing nobody else of us writes
int64_t g_dropped ABSL_GUARDED_BY(g_mutex) = 0;  // lines

absl::string_view BaseName(absl::string_view file) {
  const size_t slash = file.rfind('/');
  return slash == absl::string_view::npos ? file : file.substr(slash + 1);
}

// A message is one line whatever it quotes. The escapes are those of JSON.
std::string Escape(absl::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
      continue;
    }
    if (quotes && (c == '"' || c == '\\')) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string TextLine(char severity, absl::string_view message, absl::string_view caller, const timeval& now) {
  tm local{};
  localtime_r(&now.tv_sec, &local);
  return absl::StrFormat("%c%02d%02d %02d:%02d:%02d.%06d %7d %s] %s\n", severity, local.tm_mon + 1,
                         local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, now.tv_usec, getpid(),
                         caller, Escape(message, /*quotes=*/false));
}

std::string JsonLine(char severity, absl::string_view message, absl::string_view caller, const timeval& now) {
  return absl::StrFormat("{\"ts\":%d.%06d,\"severity\":\"%c\",\"caller\":\"%s\",\"msg\":\"%s\"}\n",
                         now.tv_sec, now.tv_usec, severity, Escape(caller, true), Escape(message, true));
}

std::string Line(char severity, absl::string_view message, absl::string_view caller) {
  timeval now{};
  gettimeofday(&now, nullptr);
  message = message.substr(0, kMostMessageBytes);
  return g_format == LogFormat::kText ? TextLine(severity, message, caller, now)
                                      : JsonLine(severity, message, caller, now);
}

// A log that nobody reads must not hold up anything: a line that finds no room in the pipe is dropped. Where
// there is room, a line of at most PIPE_BUF bytes fits in whole.
bool WriteIfThereIsRoom(const std::string& line) {
  pollfd out = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, /*timeout=*/0) != 1 || (out.revents & POLLOUT) == 0) return false;
  return write(STDERR_FILENO, line.data(), std::min<size_t>(line.size(), PIPE_BUF)) >= 0;
}

void Log(char severity, absl::string_view message, const char* file, int line) {
  const std::string out = Line(severity, message, absl::StrCat(BaseName(file), ":", line));
  const MutexLock lock(&g_mutex);
  if (g_dropped > 0) {
    const std::string note = absl::StrCat(g_dropped, " lines were dropped: nobody read the log in time");
    if (WriteIfThereIsRoom(Line('E', note, absl::StrCat(BaseName(__FILE__), ":", __LINE__)))) g_dropped = 0;
  }
  if (g_dropped > 0 || !WriteIfThereIsRoom(out)) ++g_dropped;
}

void LogOfGrpc(gpr_log_func_args* args) {
  const char severity = args->severity == GPR_LOG_SEVERITY_ERROR ? 'E' : 'I';
  Log(severity, absl::StrCat("grpc: ", args->message), args->file, args->line);
}

}  // namespace

void InitLog(LogFormat format) {
  g_format = format;
  gpr_set_log_function(LogOfGrpc);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

void LogInfo(absl::string_view message, const char* file, int line) { Log('I', message, file, line); }
void LogError(absl::string_view message, const char* file, int line) { Log('E', message, file, line); }

}  // namespace loadline

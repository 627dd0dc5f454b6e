#include "plugin/daemon/log.h"

#include <grpc/support/log.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace loadline {
namespace {

LogFormat g_format = LogFormat::kText;

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

void Log(char severity, absl::string_view message, const char* file, int line) {
  timeval now{};
  gettimeofday(&now, nullptr);
  const std::string caller = absl::StrCat(BaseName(file), ":", line);
  const std::string out = g_format == LogFormat::kText ? TextLine(severity, message, caller, now)
                                                       : JsonLine(severity, message, caller, now);
  // A log that cannot be written must not hold up anything.
  if (write(STDERR_FILENO, out.data(), out.size()) < 0) return;
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

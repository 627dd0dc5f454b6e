#include "plugin/abi/loadline.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "plugin/convert/config.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/parse.h"
#include "plugin/service/engine.h"

#define LOADLINE_EXPORT __attribute__((visibility("default")))

struct loadline_engine {
  explicit loadline_engine(const loadline::EngineLimits& limits) : engine(limits) {}

  loadline::Engine engine;
};

namespace {

// Ends the process with a text on stderr. To go on is no choice: the hash tables and messages that the engine
// is made of are not whole after an allocation that failed. Allocates nothing.
[[noreturn]] void EndWithoutMemory() {
  constexpr char kText[] =
      "loadline: out of memory: the process ends. Raise the memory limit of this container, or lower "
      "max_question_bytes, max_nodes, max_pods or max_views of the engine's configuration.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  std::abort();
}

// A host that has a handler of its own keeps it. Ours is set for the whole process, and not only for calls of
// this library: much of what the engine is made of may not throw, and would end it without a text.
void InstallNewHandler() {
  if (std::get_new_handler() == nullptr) std::set_new_handler(EndWithoutMemory);
}

// The text of an error with NUL; behind it the size of the details, and these.
char* CopyError(const absl::Status& status) {
  const absl::string_view text = status.message().substr(0, status.message().find('\0'));
  const auto payload = status.GetPayload(loadline::kErrorDetails);
  const std::string details =
      payload.has_value() ? std::string(*payload) : loadline::EncodeError(status, loadline::ErrorDetails());
  const size_t details_size = details.size();
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1 + sizeof(details_size) + details_size));
  if (copy == nullptr) EndWithoutMemory();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  std::memcpy(copy + text.size() + 1, &details_size, sizeof(details_size));
  std::memcpy(copy + text.size() + 1 + sizeof(details_size), details.data(), details_size);
  return copy;
}

int32_t Fail(const absl::Status& status, char** error) {
  if (error != nullptr) *error = CopyError(status);
  return static_cast<int32_t>(status.code());
}

// Runs `body`, which returns a code and has set *error if it is not 0. Nothing is thrown past here: the
// caller is C or Go, where an exception ends the process.
template <typename Body>
int32_t Guard(char** error, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {  // the handler of the host has thrown it
    EndWithoutMemory();
  } catch (const std::exception& e) {
    return Fail(absl::InternalError(e.what()), error);
  } catch (...) {
    return Fail(absl::InternalError("unknown exception"), error);
  }
}

absl::string_view Bytes(const void* data, size_t size) {
  return size == 0 ? absl::string_view() : absl::string_view(static_cast<const char*>(data), size);
}

int32_t Create(const void* config, size_t config_size, loadline_engine** engine, char** error) {
  // Protobuf writes a line to stderr for each text that is not UTF-8; whoever sent it gets an error anyway.
  static google::protobuf::LogHandler* const kFormer = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(kFormer);
  InstallNewHandler();
  const absl::StatusOr<loadline::EngineLimits> limits = loadline::DecodeConfig(Bytes(config, config_size));
  if (!limits.ok()) return Fail(limits.status(), error);
  *engine = new loadline_engine(*limits);
  return 0;
}

int32_t Call(loadline_engine* engine, const char* method, absl::string_view request,
             const loadline::Deadline& deadline, void** response, size_t* response_size, char** error) {
  const absl::StatusOr<std::string> answer = engine->engine.Call(method, request, deadline);
  if (!answer.ok()) return Fail(answer.status(), error);
  if (answer->empty()) return 0;
  *response = std::malloc(answer->size());
  if (*response == nullptr) EndWithoutMemory();
  std::memcpy(*response, answer->data(), answer->size());
  *response_size = answer->size();
  return 0;
}

int32_t CheckedCall(loadline_engine* engine, const char* method, const void* request, size_t request_size,
                    const loadline::Deadline& deadline, void** response, size_t* response_size,
                    char** error) {
  if (response != nullptr) *response = nullptr;
  if (response_size != nullptr) *response_size = 0;
  if (error != nullptr) *error = nullptr;
  if (engine == nullptr || method == nullptr || response == nullptr || response_size == nullptr ||
      error == nullptr || (request == nullptr && request_size > 0)) {
    return Fail(absl::InvalidArgumentError("loadline_call: a pointer is NULL"), error);
  }
  return Guard(error, [&] {
    return Call(engine, method, Bytes(request, request_size), deadline, response, response_size, error);
  });
}

}  // namespace

extern "C" {

LOADLINE_EXPORT int32_t loadline_create(const void* config, size_t config_size, loadline_engine** engine,
                                        char** error) {
  if (error != nullptr) *error = nullptr;
  if (engine == nullptr || error == nullptr || (config == nullptr && config_size > 0)) {
    return Fail(absl::InvalidArgumentError("loadline_create: a pointer is NULL"), error);
  }
  *engine = nullptr;
  if (config_size > loadline::kMaxMessageBytes) {
    return Fail(absl::InvalidArgumentError("loadline_create: the configuration is too large"), error);
  }
  return Guard(error, [&] { return Create(config, config_size, engine, error); });
}

LOADLINE_EXPORT int32_t loadline_call(loadline_engine* engine, const char* method, const void* request,
                                      size_t request_size, int64_t timeout_ns, void** response,
                                      size_t* response_size, char** error) {
  return CheckedCall(engine, method, request, request_size, loadline::Deadline::After(timeout_ns), response,
                     response_size, error);
}

LOADLINE_EXPORT int32_t loadline_try_call(loadline_engine* engine, const char* method, const void* request,
                                          size_t request_size, int64_t timeout_ns, void** response,
                                          size_t* response_size, char** error) {
  return CheckedCall(engine, method, request, request_size,
                     loadline::Deadline::After(timeout_ns).WithoutWaiting(), response, response_size, error);
}

LOADLINE_EXPORT const void* loadline_error_details(const char* error, size_t* size) {
  if (size == nullptr) return nullptr;
  *size = 0;
  if (error == nullptr) return nullptr;
  const char* const behind = error + std::strlen(error) + 1;
  std::memcpy(size, behind, sizeof(*size));
  return behind + sizeof(*size);
}

LOADLINE_EXPORT void loadline_free(void* memory) { std::free(memory); }

LOADLINE_EXPORT void loadline_destroy(loadline_engine* engine) { delete engine; }

LOADLINE_EXPORT const char* loadline_version(void) { return LOADLINE_VERSION; }

}  // extern "C"

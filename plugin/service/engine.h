// The engine: serialized requests in, serialized responses out.
#ifndef LOADLINE_PLUGIN_SERVICE_ENGINE_H_
#define LOADLINE_PLUGIN_SERVICE_ENGINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin/convert/config.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// All views of the clients of one process. Thread-safe.
class Engine {
 public:
  explicit Engine(const EngineLimits& limits) : views_(limits) {}

  // Calls a method by its full gRPC name, such as "/loadline.v1.ClusterState/Sync".
  // Result: equal states and requests give equal bytes.
  // Errors: those of the method; kUnimplemented: no such method; kResourceExhausted: the request has
  //         more than kMaxMessageBytes; kInvalidArgument: the bytes are not the method's request; kInternal:
  //         a check of our own failed, which is counted. The view that was being changed starts over with a
  //         full list then.
  absl::StatusOr<std::string> Call(absl::string_view method, absl::string_view request,
                                   const Deadline& deadline);

  // Returns the views of all clients. For tests.
  Views& views() { return views_; }

 private:
  Views views_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_ENGINE_H_

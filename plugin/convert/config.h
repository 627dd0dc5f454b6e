// How an engine is set up.
#ifndef LOADLINE_PLUGIN_CONVERT_CONFIG_H_
#define LOADLINE_PLUGIN_CONVERT_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/view.h"
#include "plugin/convert/resources.h"

namespace loadline {

// The limits of an engine. A call beyond them is refused with kResourceExhausted.
struct EngineLimits {
  int32_t views = 16;
  // A view that no call has named for so long may be that of a client that is gone: it gives way to a new one
  // where there are as many as there may be. Chosen: a command names its view every few seconds at most, and
  // a client that is only silent sends all again.
  std::chrono::milliseconds silent_view{60'000};
  ViewLimits view;  // of each view
  // The namespace of our own placeholders; a pod that is labelled as one elsewhere is an ordinary pod.
  std::string slack_namespace = kDefaultSlackNamespace;
  int64_t question_bytes = int64_t{256} << 20;  // memory of one question, beside the view
  int32_t policies = 8;  // score policies that each view keeps up to date; the least recently used is dropped
};

// Reads a serialized loadline.v1.EngineConfig; what is 0 in it takes its default.
// Errors: kInvalidArgument  names the field and its range
absl::StatusOr<EngineLimits> DecodeConfig(absl::string_view bytes);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_CONFIG_H_

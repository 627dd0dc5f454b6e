// How much slack is kept, and how it is shaped.
#ifndef LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_
#define LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/base/cpu_memory.h"
#include "core/slack/slack_class.h"
#include "core/slack/slack_size.h"

namespace loadline {

// The defaults are a complete configuration.
struct SlackOptions {
  // Extra room as a share of the basis, in billionths. [0, 1000 * kWholeRate]; on the basis of capacity below
  // kWholeRate, since a cluster that grows by its own size never comes to rest.
  int64_t rate = kWholeRate / 10;
  SlackBasis basis = SlackBasis::kRequested;
  // kNone: version 1 of the proposal; others: what version 2 keeps free for the biggest pods.
  ReserveMode reserve = ReserveMode::kNone;
  // A placeholder has at most one part in so many of a node. [1, 1000]
  int64_t granularity = 5;
  // S6: nor more than the pods of the class request at most, each resource by itself. Unset: with a reserve.
  std::optional<bool> bound_by_pods;
  // Placeholders of one class, and copies of one pod. [1, 100000]
  int64_t max_placeholders = 10'000;
  // Extra room of one class at most.
  std::optional<CpuMemory> max_extra;
  // Placeholders that are no longer wanted stay so long. [0, 2^31) seconds.
  int64_t removal_delay_s = 600;
  // Placeholders get a new size when those of the old one exceed what is wanted by this share, in
  // billionths, and by one placeholder. [0, 1000 * kWholeRate]
  int64_t size_tolerance = kWholeRate / 4;
  // Labels that tell classes apart, beside those that pods select nodes by. Sorted, each once.
  LabelKeys class_labels = DefaultClassLabels();
};

// kInvalidArgument: names the field that is out of its range.
absl::Status CheckSlackOptions(const SlackOptions& options);

inline bool BoundByPods(const SlackOptions& options) {
  return options.bound_by_pods.value_or(options.reserve != ReserveMode::kNone);
}

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_

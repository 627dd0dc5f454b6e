// Options for the amount of slack and its form.
#ifndef LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_
#define LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cpu_memory.h"
#include "core/cluster/startup_taints.h"
#include "core/slack/slack_class.h"
#include "core/slack/slack_size.h"

namespace loadline {

// A rule for classes of nodes. The first rule that matches a class counts, others do not.
struct SlackClassRule {
  std::string class_name;              // empty: any
  Labels labels;                       // that nodes of the class have all; they tell classes apart
  bool off = false;                    // none is kept, and no such node is added for slack
  std::optional<CpuMemory> max_extra;  // in place of SlackOptions::max_extra
};

// A rule for one node group.
struct SlackGroupRule {
  std::string group;
  bool off = false;                  // no node of it is added for slack; a class of such groups keeps none
  std::optional<int64_t> max_nodes;  // nodes that it has when it grows for slack, at most
};

// Names, or what they begin with, of extended resources that nodes of any kind have.
const std::vector<std::string>& DefaultCommonResources();

// The defaults are a complete configuration.
struct SlackOptions {
  // Extra room as a share of the basis, in billionths. [0, 1000 * kWholeRate]; on the basis of capacity below
  // kWholeRate, since a cluster that grows by its own size never rests.
  int64_t rate = kWholeRate / 10;
  SlackBasis basis = SlackBasis::kRequested;
  // kNone: version 1 of the proposal; others: what version 2 keeps free for the biggest pods.
  ReserveMode reserve = ReserveMode::kNone;
  // A placeholder has at most one part in so many of a node. [1, 1000]
  int64_t granularity = 5;
  // Nor more than the pods of the class request at most, each resource by itself. Unset: with a reserve.
  std::optional<bool> bound_by_pods;
  // Placeholders of one class, and copies of one pod. [1, 100000]
  int64_t max_placeholders = 10'000;
  // Copies of all pods together, and of those of one namespace. [1, 100000]
  int64_t max_copies = 10'000;
  int64_t max_copies_per_namespace = 1'000;
  // The most that the copies of one namespace request together: 64 cores and 256 GiB.
  CpuMemory max_copies_room_per_namespace = {64'000, int64_t{256} << 30};
  // Extra room of one class at most.
  std::optional<CpuMemory> max_extra;
  // Placeholders that are no longer wanted stay so long. [0, 2^31) seconds.
  int64_t removal_delay_s = 600;
  // Placeholders get a new size when those of the old one exceed what is wanted by this share, in
  // billionths, and by one placeholder. [0, 1000 * kWholeRate]
  int64_t size_tolerance = kWholeRate / 4;
  // Beside the well-known ones; see startup_taints.h.
  StartupTaints startup_taints;
  // Labels that tell classes apart, beside those that pods select nodes by. Sorted, each once.
  LabelKeys class_labels = DefaultClassLabels();
  std::vector<SlackClassRule> class_rules;
  std::vector<SlackGroupRule> group_rules;
  // Nodes with extended resources, such as GPUs, come also for placeholders that request none of them.
  bool buy_extended_resources = false;
  // Extended resources that do not count as such.
  std::vector<std::string> common_resources = DefaultCommonResources();
};

// The most placeholders of all kinds together. Chosen: the state from plan to plan stays below 2 MiB.
inline constexpr int64_t kMostPlaceholders = 30'000;

// kInvalidArgument: names the field that is out of its range.
absl::Status CheckSlackOptions(const SlackOptions& options);

inline bool BoundByPods(const SlackOptions& options) {
  return options.bound_by_pods.value_or(options.reserve != ReserveMode::kNone);
}

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_OPTIONS_H_

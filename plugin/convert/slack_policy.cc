#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/slack.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr double kMostRate = 1000;
constexpr int kMaxSlackRules = 1'000;

// A share in billionths, rounded to the nearest; `value` is in [0, kMostRate].
int64_t Billionths(double value) { return std::llround(value * static_cast<double>(kWholeRate)); }

absl::Status DecodeRates(const v1::SlackPolicy& message, SlackOptions* options) {
  if (message.has_extra_capacity_min_rate()) {
    const double rate = message.extra_capacity_min_rate();
    if (absl::Status status = CheckNumber("extra_capacity_min_rate", rate, 0, kMostRate); !status.ok()) {
      return status;
    }
    options->rate = Billionths(rate);
  }
  if (message.has_size_tolerance()) {
    const double share = message.size_tolerance();
    if (absl::Status status = CheckNumber("size_tolerance", share, 0, kMostRate); !status.ok()) return status;
    options->size_tolerance = Billionths(share);
  }
  return absl::OkStatus();
}

absl::Status DecodeChoices(const v1::SlackPolicy& message, SlackOptions* options) {
  switch (message.basis()) {
    case v1::SlackPolicy::BASIS_UNSPECIFIED:
    case v1::SlackPolicy::REQUESTED:
      break;
    case v1::SlackPolicy::CAPACITY:
      options->basis = SlackBasis::kCapacity;
      break;
    default:
      return Refused(absl::StrCat("basis: ", static_cast<int>(message.basis()), " is not known"));
  }
  switch (message.reserve()) {
    case v1::SlackPolicy::RESERVE_UNSPECIFIED:
    case v1::SlackPolicy::NONE:
      return absl::OkStatus();
    case v1::SlackPolicy::BIGGEST:
      options->reserve = ReserveMode::kBiggest;
      return absl::OkStatus();
    case v1::SlackPolicy::HULL:
      options->reserve = ReserveMode::kHull;
      return absl::OkStatus();
    case v1::SlackPolicy::PARETO:
      options->reserve = ReserveMode::kPareto;
      return absl::OkStatus();
    default:
      return Refused(absl::StrCat("reserve: ", static_cast<int>(message.reserve()), " is not known"));
  }
}

// Unset amounts set no limit.
template <typename Message>
std::optional<CpuMemory> MaxExtraOf(const Message& message) {
  if (!message.has_max_extra_milli_cpu() && !message.has_max_extra_memory_bytes()) return std::nullopt;
  return CpuMemory{message.has_max_extra_milli_cpu() ? message.max_extra_milli_cpu() : kMaxAmount,
                   message.has_max_extra_memory_bytes() ? message.max_extra_memory_bytes() : kMaxAmount};
}

absl::Status DecodeLimits(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckRange("granularity", message.granularity(), 0, 1000);
  if (status.ok()) status = CheckRange("max_placeholders", message.max_placeholders(), 0, 100'000);
  if (!status.ok()) return status;
  if (message.granularity() > 0) options->granularity = message.granularity();
  if (message.max_placeholders() > 0) options->max_placeholders = message.max_placeholders();
  options->max_extra = MaxExtraOf(message);
  status = CheckRange("max_copies", message.max_copies(), 0, 100'000);
  if (status.ok()) {
    status = CheckRange("max_copies_per_namespace", message.max_copies_per_namespace(), 0, 100'000);
  }
  if (!status.ok()) return status;
  if (message.max_copies() > 0) options->max_copies = message.max_copies();
  if (message.max_copies_per_namespace() > 0) {
    options->max_copies_per_namespace = message.max_copies_per_namespace();
  }
  CpuMemory& room = options->max_copies_room_per_namespace;
  if (message.has_max_copies_milli_cpu_per_namespace()) {
    room.cpu = message.max_copies_milli_cpu_per_namespace();
  }
  if (message.has_max_copies_memory_bytes_per_namespace()) {
    room.memory = message.max_copies_memory_bytes_per_namespace();
  }
  if (message.has_removal_delay_seconds()) options->removal_delay_s = message.removal_delay_seconds();
  if (message.has_bound_by_pods()) options->bound_by_pods = message.bound_by_pods();
  return absl::OkStatus();
}

absl::Status DecodeClassRules(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckSize("class_rules", message.class_rules_size(), kMaxSlackRules);
  for (int i = 0; status.ok() && i < message.class_rules_size(); ++i) {
    const v1::SlackClassRule& rule = message.class_rules(i);
    SlackClassRule& added = options->class_rules.emplace_back();
    added.class_name = rule.class_name();
    added.off = rule.off();
    added.max_extra = MaxExtraOf(rule);
    std::vector<Label> labels;
    for (const v1::ClassSlack::NodeLabel& label : rule.labels()) {
      if (!IsLabelKey(label.key())) {
        status = Refused(
            absl::StrCat("class_rules[", i, "]: labels: ", Quoted(label.key()), " is not a label key"));
      }
      labels.push_back({label.key(), label.value()});
    }
    added.labels = Labels(std::move(labels));
  }
  return status;
}

absl::Status DecodeGroupRules(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckSize("group_rules", message.group_rules_size(), kMaxSlackRules);
  absl::flat_hash_set<std::string> groups;
  for (int i = 0; status.ok() && i < message.group_rules_size(); ++i) {
    const v1::SlackGroupRule& rule = message.group_rules(i);
    const auto refuse = [&](absl::string_view why) {
      status = Refused(absl::StrCat("group_rules[", i, "]: node_group: ", why));
    };
    if (rule.node_group().empty()) refuse("is empty");
    if (!groups.insert(rule.node_group()).second) refuse("is named twice");
    SlackGroupRule& added = options->group_rules.emplace_back();
    added.group = rule.node_group();
    added.off = rule.off();
    if (rule.has_max_nodes()) added.max_nodes = rule.max_nodes();
  }
  return status;
}

absl::StatusOr<LabelKeys> DecodeLabelKeys(const google::protobuf::RepeatedPtrField<std::string>& message) {
  LabelKeys keys(message.begin(), message.end());
  for (const std::string& key : keys) {
    if (!IsLabelKey(key)) return Refused(absl::StrCat("class_labels: ", Quoted(key), " is not a label key"));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

absl::StatusOr<SlackOptions> DecodeSlackPolicy(const v1::SlackPolicy& message) {
  SlackOptions options;
  absl::Status status = DecodeRates(message, &options);
  if (status.ok()) status = DecodeChoices(message, &options);
  if (status.ok()) status = DecodeLimits(message, &options);
  if (status.ok()) status = DecodeClassRules(message, &options);
  if (status.ok()) status = DecodeGroupRules(message, &options);
  if (status.ok()) status = CheckSize("common_resources", message.common_resources_size(), kMaxSlackRules);
  if (!status.ok()) return status;
  options.buy_extended_resources = message.buy_extended_resources();
  if (message.common_resources_size() > 0) {
    options.common_resources.assign(message.common_resources().begin(), message.common_resources().end());
  }
  if (message.class_labels_size() > 0) {
    absl::StatusOr<LabelKeys> keys = DecodeLabelKeys(message.class_labels());
    if (!keys.ok()) return keys.status();
    options.class_labels = *std::move(keys);
  }
  status = CheckSlackOptions(options);
  if (!status.ok()) return status;
  return options;
}

}  // namespace loadline

#include "core/slack/slack_options.h"

#include "absl/strings/str_cat.h"
#include "core/base/check_range.h"

namespace loadline {
namespace {

absl::Status CheckRoom(absl::string_view field, const CpuMemory& room) {
  absl::Status status = CheckRange(absl::StrCat(field, " cpu"), room.cpu, 0, kMaxAmount);
  if (status.ok()) status = CheckRange(absl::StrCat(field, " memory"), room.memory, 0, kMaxAmount);
  return status;
}

}  // namespace

const std::vector<std::string>& DefaultCommonResources() {
  static const std::vector<std::string>* const kNames = new std::vector<std::string>{
      "devices.kubevirt.io/", "networking.gke.io", "smarter-devices/", "vpc.amazonaws.com/"};
  return *kNames;
}

absl::Status CheckSlackOptions(const SlackOptions& options) {
  constexpr int64_t kMostRate = 1000 * kWholeRate;
  absl::Status status = CheckRange("rate in billionths", options.rate, 0, kMostRate);
  if (status.ok() && options.basis == SlackBasis::kCapacity && options.rate >= kWholeRate) {
    status = absl::InvalidArgumentError(
        "rate: is 1 or more on the basis of capacity: a cluster that keeps as much free as it has never "
        "stops growing");
  }
  if (status.ok()) status = CheckRange("granularity", options.granularity, 1, 1000);
  if (status.ok()) status = CheckRange("max_placeholders", options.max_placeholders, 1, 100'000);
  if (status.ok()) status = CheckRange("removal_delay_s", options.removal_delay_s, 0, INT32_MAX);
  if (status.ok()) status = CheckRange("size_tolerance in billionths", options.size_tolerance, 0, kMostRate);
  if (status.ok()) status = CheckRange("max_copies", options.max_copies, 1, 100'000);
  if (status.ok()) {
    status = CheckRange("max_copies_per_namespace", options.max_copies_per_namespace, 1, 100'000);
  }
  if (status.ok()) {
    status = CheckRoom("max_copies_room_per_namespace", options.max_copies_room_per_namespace);
  }
  if (status.ok() && options.max_extra.has_value()) status = CheckRoom("max_extra", *options.max_extra);
  for (const SlackClassRule& rule : options.class_rules) {
    if (status.ok() && rule.max_extra.has_value())
      status = CheckRoom("class_rules: max_extra", *rule.max_extra);
  }
  for (const SlackGroupRule& rule : options.group_rules) {
    if (status.ok()) status = CheckRange("group_rules: max_nodes", rule.max_nodes.value_or(0), 0, kMaxAmount);
  }
  return status;
}

}  // namespace loadline

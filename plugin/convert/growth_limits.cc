#include "plugin/convert/growth_limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int kMostGpuTypes = 100;
constexpr int kMostSimilarityLabels = 100;

using LabelField = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> LabelList(absl::string_view field, const LabelField& labels, Fields* fields) {
  fields->Keep(CheckSize(field, labels.size(), kMostSimilarityLabels));
  for (const std::string& label : labels) fields->Name(field, label);
  return {labels.begin(), labels.end()};
}

}  // namespace

absl::StatusOr<GpuCounts> DecodeGpuCounts(absl::string_view field,
                                          const google::protobuf::RepeatedPtrField<v1::GpuCount>& counts) {
  if (absl::Status status = CheckSize(field, counts.size(), kMostGpuTypes); !status.ok()) return status;
  GpuCounts gpus;
  for (int i = 0; i < counts.size(); ++i) {
    Fields fields;
    fields.Name("gpu_type", counts[i].gpu_type());
    fields.Range("gpus", counts[i].gpus(), 0, INT32_MAX);
    if (fields.status().ok() && !gpus.emplace(counts[i].gpu_type(), counts[i].gpus()).second) {
      fields.Refuse(absl::StrCat("gpu_type: ", Quoted(counts[i].gpu_type()), " occurs twice"));
    }
    if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat(field, "[", i, "]"));
  }
  return gpus;
}

absl::StatusOr<std::optional<SimilarityRules>> DecodeSimilarity(const v1::PlanLoopRequest& request) {
  if (!request.has_balance()) return std::nullopt;
  const v1::GroupSimilarity& message = request.balance();
  Fields fields;
  SimilarityRules rules;
  rules.labels = LabelList("labels", message.labels(), &fields);
  rules.ignored_labels = LabelList("ignored_labels", message.ignored_labels(), &fields);
  if (!rules.labels.empty() && !rules.ignored_labels.empty()) {
    fields.Refuse("ignored_labels: play no part where labels are given");
  }
  if (message.has_max_allocatable_difference()) {
    rules.most_allocatable_difference = message.max_allocatable_difference();
  }
  if (message.has_max_memory_difference()) rules.most_memory_difference = message.max_memory_difference();
  fields.Share("max_allocatable_difference", rules.most_allocatable_difference);
  fields.Share("max_memory_difference", rules.most_memory_difference);
  if (!fields.status().ok()) return Annotate(fields.status(), "balance");
  return rules;
}

absl::StatusOr<std::vector<Nomination>> DecodeNominations(const v1::PlanLoopRequest& request,
                                                          const PodEntries& entries, size_t pods) {
  for (int i = 0; i < request.pods_size(); ++i) {
    for (const v1::NominatedPods& nominated : request.pods(i).nominated()) {
      Fields fields;
      fields.Range("nominated.slot", nominated.slot(), 0, INT32_MAX);
      fields.Range("nominated.count", nominated.count(), 0, INT32_MAX);
      if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat("pods[", i, "]"));
    }
  }
  std::vector<Nomination> nominations;
  for (size_t position = 0; position < pods; ++position) {
    for (const int32_t entry : entries.EntriesOf(position)) {
      for (const v1::NominatedPods& nominated : request.pods(entry).nominated()) {
        nominations.push_back({static_cast<int32_t>(position), Slot{nominated.slot()}, nominated.count()});
      }
    }
  }
  return nominations;
}

absl::Status CheckNotBegun(const v1::PlanLoopRequest& request) {
  for (int i = 0; i < request.groups_size(); ++i) {
    const absl::Status status = CheckBounded("not_begun", request.groups(i).not_begun(), INT32_MAX);
    if (!status.ok()) return Annotate(status, absl::StrCat("groups[", i, "]"));
  }
  return absl::OkStatus();
}

}  // namespace loadline

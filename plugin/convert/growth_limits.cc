#include "plugin/convert/growth_limits.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/labels.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int kMostGpuTypes = 100;
constexpr int kMostSimilarityLabels = 100;
constexpr int kMostMaxima = 1000;

using LabelField = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> LabelList(absl::string_view field, const LabelField& labels, Fields* fields) {
  fields->Keep(CheckSize(field, labels.size(), kMostSimilarityLabels));
  for (const std::string& label : labels) fields->Name(field, label);
  return {labels.begin(), labels.end()};
}

absl::StatusOr<LabelSelector> DecodeNodeSelector(absl::string_view bytes) {
  k8s::v1::LabelSelector message;
  if (absl::Status status = Parse(bytes, "meta.v1.LabelSelector", &message); !status.ok()) {
    return Annotate(status, "selector", " ");
  }
  std::string error;
  LabelSelector selector = ReadLabelSelector(message, /*present=*/true, &error);
  if (!error.empty()) return Refused(absl::StrCat("selector: ", error));
  if (absl::Status status = CheckSelectorSize(message); !status.ok()) return Annotate(status, "selector");
  for (const Requirement& requirement : selector.requirements) {
    if (requirement.key != kHostnameLabel) continue;
    return Refused(absl::StrCat("selector: ", kHostnameLabel, " is not known of new nodes"));
  }
  return selector;
}

absl::StatusOr<NodeMaximum> DecodeMaximum(const v1::NodeMaximum& message) {
  Fields fields;
  fields.Name("name", message.name());
  fields.Range("nodes", message.nodes(), 0, INT32_MAX);
  fields.Range("cores", message.cores(), 0, INT32_MAX);
  fields.Range("memory_bytes", message.memory_bytes(), 0, kMaxAmount);
  if (!fields.status().ok()) return fields.status();
  absl::StatusOr<LabelSelector> selector = DecodeNodeSelector(message.selector());
  if (!selector.ok()) return selector.status();
  absl::StatusOr<GpuCounts> gpus = DecodeGpuCounts("gpus", message.gpus());
  if (!gpus.ok()) return gpus.status();
  NodeMaximum maximum{.name = message.name(), .selector = *std::move(selector), .gpus = *std::move(gpus)};
  if (message.has_nodes()) maximum.nodes = message.nodes();
  if (message.has_cores()) maximum.milli_cpu = message.cores() * 1000;
  if (message.has_memory_bytes()) maximum.memory_bytes = message.memory_bytes();
  return maximum;
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

absl::StatusOr<std::vector<NodeMaximum>> DecodeMaxima(const v1::PlanLoopRequest& request) {
  Fields fields;
  fields.Range("max_cores_total", request.max_cores_total(), 0, INT32_MAX);
  fields.Range("max_memory_total", request.max_memory_total(), 0, kMaxAmount);
  fields.Keep(CheckSize("maxima", request.maxima_size(), kMostMaxima));
  if (!fields.status().ok()) return fields.status();
  NodeMaximum all;
  if (request.has_max_cores_total()) all.milli_cpu = request.max_cores_total() * 1000;
  if (request.has_max_memory_total()) all.memory_bytes = request.max_memory_total();
  absl::StatusOr<GpuCounts> gpus = DecodeGpuCounts("max_gpus_total", request.max_gpus_total());
  if (!gpus.ok()) return gpus.status();
  all.gpus = *std::move(gpus);
  std::vector<NodeMaximum> maxima;
  if (all.milli_cpu.has_value() || all.memory_bytes.has_value() || !all.gpus.empty()) {
    maxima.push_back(std::move(all));
  }
  for (int i = 0; i < request.maxima_size(); ++i) {
    absl::StatusOr<NodeMaximum> maximum = DecodeMaximum(request.maxima(i));
    if (!maximum.ok()) return Annotate(maximum.status(), absl::StrCat("maxima[", i, "]"));
    maxima.push_back(*std::move(maximum));
  }
  return maxima;
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

#include "plugin/convert/resources.h"

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "plugin/convert/text.h"

namespace loadline {

namespace {

bool IsAlwaysKnown(absl::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage";
}

}  // namespace

ReadOptions OptionsOfQuestion(const ResourceNames& of_cluster, const std::string& slack_namespace) {
  // The names of resources that a question may add to those of its cluster. Chosen: far more than a cluster
  // has.
  constexpr size_t kMostNames = 256;
  constexpr size_t kMostOfPods = 64;
  constexpr size_t kMostOfNamespace = 16;
  return {{of_cluster.size() + kMostNames, of_cluster.names_of_pods() + kMostOfPods, kMostOfNamespace},
          slack_namespace};
}

absl::StatusOr<ParsedQuantity> ParseAmount(absl::string_view text) {
  absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(text);
  if (parsed.ok() && parsed->value.IsNegative()) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is negative"));
  }
  return parsed;
}

absl::Status ResourceReader::ReadEntry(const k8s::v1::QuantityEntry& entry, ResourceList* list) {
  if (entry.key().empty()) return absl::InvalidArgumentError("the name of the resource is empty");
  if (absl::Status status = CheckName(entry.key(), kMaxResourceNameLength); !status.ok()) return status;
  ParsedQuantity parsed;
  if (entry.value().has_string()) {
    absl::StatusOr<ParsedQuantity> quantity = ParseAmount(entry.value().string());
    if (!quantity.ok()) return quantity.status();
    parsed = *quantity;
  }
  if (of_pod_ && parsed.value.IsZero() && !IsAlwaysKnown(entry.key())) return absl::OkStatus();
  const std::optional<ResourceId> named =
      of_pod_ ? names_->InternForPod(entry.key(), namespace_name_, options_.names)
              : names_->InternForNode(entry.key(), options_.names);
  if (!named.has_value()) {
    if (of_pod_) (*list)[names_->Intern(kOtherResources)].Add(parsed.value);
    return absl::InvalidArgumentError(kNoRoomForName);
  }
  const ResourceId id = *named;
  (*list)[id] = parsed.value;
  // Millicores reach the bound a thousand times earlier than cores.
  const bool too_many_millicores = id == kCpu && parsed.value > Quantity::FromMilli(kMaxAmount);
  if (parsed.clamped || too_many_millicores) ++clamped_amounts_;
  return absl::OkStatus();
}

absl::Status ResourceReader::Read(const QuantityEntries& entries, absl::string_view field,
                                  ResourceList* list) {
  list->clear();
  absl::Status status;
  size_t read = 0;
  for (const k8s::v1::QuantityEntry& entry : entries) {
    if (++read > kMaxResourceEntries) {
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          field, ": has ", entries.size(), " entries, at most ", kMaxResourceEntries, " are allowed")));
      break;
    }
    const absl::Status of_entry = ReadEntry(entry, list);
    if (status.ok() && !of_entry.ok()) {
      status = Annotate(of_entry, absl::StrCat(field, "[", Quoted(entry.key()), "]"));
    }
  }
  return status;
}

absl::Status ResourceReader::Read(const QuantityEntries& entries, absl::string_view field,
                                  std::optional<ResourceList>* list) {
  list->reset();
  return entries.empty() ? absl::OkStatus() : Read(entries, field, &list->emplace());
}

}  // namespace loadline

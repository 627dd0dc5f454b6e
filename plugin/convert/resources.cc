#include "plugin/convert/resources.h"

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "plugin/convert/text.h"

namespace loadline {

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
  const ResourceId id = names_->Intern(entry.key());
  (*list)[id] = parsed.value;
  // Millicores reach the bound a thousand times earlier than cores.
  const bool too_many_millicores = id == kCpu && parsed.value > Quantity::FromMilli(kMaxAmount);
  if (parsed.clamped || too_many_millicores) ++clamped_amounts_;
  return absl::OkStatus();
}

absl::Status ResourceReader::Read(const QuantityEntries& entries, absl::string_view field,
                                  ResourceList* list) {
  list->clear();
  if (static_cast<size_t>(entries.size()) > kMaxResourceEntries) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": has ", entries.size(), " entries, at most ",
                                                   kMaxResourceEntries, " are allowed"));
  }
  for (const k8s::v1::QuantityEntry& entry : entries) {
    if (absl::Status status = ReadEntry(entry, list); !status.ok()) {
      return Annotate(status, absl::StrCat(field, "[", Quoted(entry.key()), "]"));
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline

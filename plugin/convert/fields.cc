#include "plugin/convert/fields.h"

#include "absl/strings/str_cat.h"
#include "plugin/convert/text.h"

namespace loadline {

absl::Status Refused(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::Status NoSuchValue(absl::string_view field, int value) {
  return Refused(absl::StrCat(field, ": there is no value ", value));
}

absl::Status CheckSize(absl::string_view field, int size, int most) {
  if (size <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(field, ": has ", size, " entries, the limit is ", most));
}

absl::Status CheckEntries(int64_t size, absl::string_view field, int64_t most) {
  if (size <= most) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": has ", size, " entries, at most ", most, " are allowed"));
}

absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": ", value, " is negative"));
}

absl::Status CheckBounded(absl::string_view field, int64_t value, int64_t highest) {
  if (value >= 0 && value <= highest) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": ", value, " is out of range"));
}

absl::Status CheckNumber(absl::string_view field, double value, double lowest, double highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": ", value, " is not in [", lowest, ", ", highest, "]"));
}

void Fields::Range(absl::string_view field, int64_t value, int64_t lowest, int64_t highest) {
  if (value >= lowest && value <= highest) return;  // without a status: there are several for each pod
  Keep(CheckRange(field, value, lowest, highest));
}

void Fields::Less(absl::string_view field, int64_t value, absl::string_view other_field, int64_t other) {
  if (value < other) return;
  Refuse(absl::StrCat(field, ": ", value, " is not less than ", other_field, ", ", other));
}

void Fields::AtMost(absl::string_view field, int64_t value, absl::string_view other_field, int64_t other) {
  if (value <= other) return;
  Refuse(absl::StrCat(field, ": ", value, " is more than ", other_field, ", ", other));
}

void Fields::Share(absl::string_view field, double value) { Keep(CheckNumber(field, value, 0, 1)); }

void Fields::Name(absl::string_view field, absl::string_view name) {
  if (name.empty()) Refuse(absl::StrCat(field, ": is empty"));
  if (const absl::Status status = CheckName(name); !status.ok()) Keep(Annotate(status, field));
}

void Fields::Refuse(absl::string_view text) { Keep(Refused(text)); }

}  // namespace loadline

// Checks of fields of messages, and the errors that they have in common.
#ifndef LOADLINE_PLUGIN_CONVERT_FIELDS_H_
#define LOADLINE_PLUGIN_CONVERT_FIELDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/check_range.h"  // IWYU pragma: export

namespace loadline {

// kInvalidArgument.
absl::Status Refused(absl::string_view text);
// An enum that has no such value.
absl::Status NoSuchValue(absl::string_view field, int value);

// kResourceExhausted for a repeated field with more than `most` entries.
absl::Status CheckSize(absl::string_view field, int size, int most);
// kInvalidArgument for a list of an object that is longer than any in use.
absl::Status CheckEntries(int64_t size, absl::string_view field, int64_t most);

// Errors: kInvalidArgument  names the field; CheckNumber() tells the bounds as well, as CheckRange() does
absl::Status CheckNotNegative(absl::string_view field, int64_t value);
absl::Status CheckBounded(absl::string_view field, int64_t value, int64_t highest);  // not negative either
// A finite number in [lowest, highest].
absl::Status CheckNumber(absl::string_view field, double value, double lowest, double highest);

// Keeps the first error of several fields, so that checks stand in a row.
class Fields {
 public:
  void Range(absl::string_view field, int64_t value, int64_t lowest, int64_t highest);
  void Less(absl::string_view field, int64_t value, absl::string_view other_field, int64_t other);
  void AtMost(absl::string_view field, int64_t value, absl::string_view other_field, int64_t other);
  void Share(absl::string_view field, double value);           // in [0, 1]
  void Name(absl::string_view field, absl::string_view name);  // a name that is not empty
  void Refuse(absl::string_view text);
  void Keep(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_FIELDS_H_

// Checks of plain fields.
#ifndef LOADLINE_PLUGIN_CONVERT_FIELDS_H_
#define LOADLINE_PLUGIN_CONVERT_FIELDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"

namespace loadline {

// Keeps the first error of several fields: kInvalidArgument, which names the field.
class Fields {
 public:
  void Range(absl::string_view field, int64_t value, int64_t lowest, int64_t highest) {
    if (value < lowest || value > highest) {
      Refuse(absl::StrCat(field, ": ", value, " is not in [", lowest, ", ", highest, "]"));
    }
  }
  void Share(absl::string_view field, double value) { Keep(CheckNumber(field, value, 0, 1)); }
  void Name(absl::string_view field, absl::string_view name) {
    if (name.empty()) Refuse(absl::StrCat(field, ": is empty"));
    const absl::Status status = CheckName(name);
    if (!status.ok()) Keep(Annotate(status, field));
  }
  void Refuse(absl::string_view text) { Keep(absl::InvalidArgumentError(text)); }
  void Keep(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_FIELDS_H_

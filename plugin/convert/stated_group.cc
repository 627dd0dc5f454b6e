#include "plugin/convert/stated_group.h"

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/text.h"

namespace loadline {

absl::Status CheckGroupId(absl::string_view id) {
  if (id.empty()) return Refused("is empty");
  if (id.size() > kMaxNameLength) {
    return Refused(absl::StrCat(Quoted(id), " is not the id of a group: it has ", id.size(),
                                " bytes, at most ", kMaxNameLength, " are allowed"));
  }
  if (Printable(id) == std::string(id)) return absl::OkStatus();
  return Refused(absl::StrCat(Quoted(id), " is not the id of a group: it has characters that do not print"));
}

StatedGroup::StatedGroup(absl::string_view id, LeftOutList* left_out) : name_(id), left_out_(left_out) {
  const absl::Status status = CheckGroupId(id);
  if (status.ok()) return;
  name_ = StoredName(id);
  LeaveAlone(absl::StrCat("node_group: ", ReasonOf(status)));
}

std::optional<double> StatedGroup::Number(absl::string_view field, bool stated, double value, double most) {
  if (!stated) return std::nullopt;
  const absl::Status status = CheckNumber(field, value, 0, most);
  if (status.ok()) return value;
  Tell(absl::StrCat(ReasonOf(status), ": it counts as not stated"));
  return std::nullopt;
}

std::optional<int64_t> StatedGroup::Time(absl::string_view field, bool stated, int64_t value, int64_t most) {
  if (!stated) return std::nullopt;
  const absl::Status status = CheckRange(field, value, 0, most);
  if (status.ok()) return value;
  Tell(absl::StrCat(ReasonOf(status), ": it counts as not stated"));
  return std::nullopt;
}

void StatedGroup::Size(absl::string_view field, int64_t value) {
  if (value < 0) LeaveAlone(absl::StrCat(field, ": ", value, " is negative"));
}

void StatedGroup::MinAndMax(int64_t min_nodes, int64_t max_nodes) {
  if (max_nodes >= min_nodes) return;
  LeaveAlone(absl::StrCat("max_nodes: ", max_nodes, " is below min_nodes, ", min_nodes));
}

void StatedGroup::LeaveAlone(absl::string_view text) {
  if (problem_.empty()) problem_ = std::string(text);
  Tell(absl::StrCat(text, ": the group is left as it is"));
}

}  // namespace loadline

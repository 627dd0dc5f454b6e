// Judges what is stated of one node group, value by value, so that a bad one fails no question.
#ifndef LOADLINE_PLUGIN_CONVERT_STATED_GROUP_H_
#define LOADLINE_PLUGIN_CONVERT_STATED_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/cluster/left_out.h"

namespace loadline {

// Checks the id of a node group: printable UTF-8 of 1 to kMaxNameLength bytes. Clouds allow spaces and
// letters of any script. Errors: kInvalidArgument  continues what it is about
absl::Status CheckGroupId(absl::string_view id);

// One node group. An option out of range counts as not stated. A group with an impossible id or size is left
// alone: it neither grows nor loses a node. Either is reported as an object of kNodeGroupKind with the field.
class StatedGroup {
 public:
  // `left_out` outlives it.
  StatedGroup(absl::string_view id, LeftOutList* left_out);

  // The id, or where it is none a printable stand-in that no other id has.
  const std::string& name() const { return name_; }

  // Options. nullopt: not stated, or out of range, and then what holds for all groups holds for this one.
  std::optional<double> Number(absl::string_view field, bool stated, double value, double most);
  std::optional<int64_t> Time(absl::string_view field, bool stated, int64_t value, int64_t most);

  // Checks a number of nodes, which must not be negative.
  void Size(absl::string_view field, int64_t value);
  void MinAndMax(int64_t min_nodes, int64_t max_nodes);
  // Tells of something else that is wrong, and does no harm.
  void Tell(absl::string_view text) { left_out_->Add(kNodeGroupKind, "", name_, text); }
  // The first reason why the group is left alone; empty: it is not.
  const std::string& problem() const { return problem_; }

 private:
  void LeaveAlone(absl::string_view text);

  std::string name_;
  std::string problem_;
  LeftOutList* left_out_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_STATED_GROUP_H_

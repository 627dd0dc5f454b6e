#include "core/cluster/view_bytes.h"

#include "absl/strings/str_cat.h"

namespace loadline {

std::string NoRoomFor(absl::string_view field) {
  return absl::StrCat(field, ": takes more memory than the view has left for its namespace (max_view_bytes)");
}

bool ViewBytes::HasRoom(absl::string_view namespace_name, int64_t bytes, int64_t limit) const {
  return bytes == 0 || held(namespace_name) + bytes <= limit - total_ - bytes;
}

int64_t ViewBytes::held(absl::string_view namespace_name) const {
  const auto found = by_namespace_.find(namespace_name);
  return found == by_namespace_.end() ? 0 : found->second;
}

void ViewBytes::Add(absl::string_view namespace_name, int64_t bytes) {
  if (bytes == 0) return;
  total_ += bytes;
  const auto found = by_namespace_.try_emplace(std::string(namespace_name), 0).first;
  found->second += bytes;
  if (found->second == 0) by_namespace_.erase(found);
}

void ViewBytes::AddShape(const PodShape& shape) {
  int64_t bytes = Counted(BytesOf(shape.labels).bytes);
  if (shape.rules != nullptr) {
    SharedRules& rules = rules_[shape.rules.get()];
    if (++rules.shapes == 1) bytes += rules.bytes = Counted(BytesOf(*shape.rules).bytes);
  }
  Add(shape.namespace_name, bytes);
}

void ViewBytes::RemoveShape(const PodShape& shape) {
  int64_t bytes = Counted(BytesOf(shape.labels).bytes);
  if (const auto rules = rules_.find(shape.rules.get());
      rules != rules_.end() && --rules->second.shapes == 0) {
    bytes += rules->second.bytes;
    rules_.erase(rules);
  }
  Add(shape.namespace_name, -bytes);
}

}  // namespace loadline

// Labels in one text: a quarter of the memory of parsed ones.
#ifndef LOADLINE_CORE_CLUSTER_PACKED_LABELS_H_
#define LOADLINE_CORE_CLUSTER_PACKED_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "core/cluster/labels.h"

namespace loadline {
namespace packed_labels_internal {

inline void Pack(absl::string_view text, std::string* packed) {
  const uint32_t size = static_cast<uint32_t>(text.size());
  char bytes[sizeof(size)];
  std::memcpy(bytes, &size, sizeof(size));
  packed->append(bytes, sizeof(bytes));
  packed->append(text.data(), text.size());
}

inline absl::string_view Unpack(absl::string_view* packed) {
  uint32_t size = 0;
  std::memcpy(&size, packed->data(), sizeof(size));
  const absl::string_view text = packed->substr(sizeof(size), size);
  packed->remove_prefix(sizeof(size) + size);
  return text;
}

}  // namespace packed_labels_internal

inline std::string PackLabels(const Labels& labels) {
  std::string packed;
  size_t bytes = 0;
  for (const Label& label : labels) bytes += 2 * sizeof(uint32_t) + label.key.size() + label.value.size();
  packed.reserve(bytes);
  for (const Label& label : labels) {
    packed_labels_internal::Pack(label.key, &packed);
    packed_labels_internal::Pack(label.value, &packed);
  }
  return packed;
}

// Calls `visit(key, value)` for each label of a text that PackLabels() made.
template <typename Visit>
void VisitLabels(absl::string_view packed, const Visit& visit) {
  while (!packed.empty()) {
    const absl::string_view key = packed_labels_internal::Unpack(&packed);
    visit(key, packed_labels_internal::Unpack(&packed));
  }
}

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_PACKED_LABELS_H_

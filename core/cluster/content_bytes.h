// The memory that the content of objects takes.
#ifndef LOADLINE_CORE_CLUSTER_CONTENT_BYTES_H_
#define LOADLINE_CORE_CLUSTER_CONTENT_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace loadline {

class Labels;
struct ClusterObject;
struct NodeShape;
struct PodRules;

// Counts the memory of a sequence of numbers and texts: the counterpart of FingerprintBuilder that adds up
// what AddTo() visits. A number counts as the largest that it may stand for, the list whose length it is.
class MemoryBuilder {
 public:
  void Add(int64_t) { bytes_ += kListBytes; }
  void Add(absl::string_view text) {
    bytes_ += kTextBytes;
    if (text.size() > kInlineText) bytes_ += static_cast<int64_t>(text.size()) + kAllocation;
  }
  int64_t Finish() const { return bytes_; }

 private:
  // Sizes of std::vector and std::string in libstdc++, and what malloc adds to a block and rounds up.
  static constexpr int64_t kListBytes = 24;
  static constexpr int64_t kTextBytes = 32;
  static constexpr size_t kInlineText = 15;
  static constexpr int64_t kAllocation = 24;

  int64_t bytes_ = 0;
};

// The memory of an object, and the field that takes most of it.
struct ContentBytes {
  int64_t bytes = 0;
  absl::string_view field;  // "spec.tolerations"; a literal
};

// Cost of each: O(bytes of the content).
ContentBytes BytesOf(const Labels& labels);
ContentBytes BytesOf(const PodRules& rules);
ContentBytes BytesOf(const NodeShape& shape);
ContentBytes BytesOf(const ClusterObject& object);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_CONTENT_BYTES_H_

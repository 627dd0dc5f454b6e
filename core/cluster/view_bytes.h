// The memory of a view that no count bounds, shared among namespaces.
#ifndef LOADLINE_CORE_CLUSTER_VIEW_BYTES_H_
#define LOADLINE_CORE_CLUSTER_VIEW_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/cluster/content_bytes.h"
#include "core/cluster/shape_table.h"
#include "core/cluster/shapes.h"

namespace loadline {

// Returns the reason for which the rules and labels of a pod, or the content of an object, are left out.
// `field` is the largest part.
std::string NoRoomFor(absl::string_view field);

// Counts what objects of each namespace take beyond that which ordinary ones do, and which the number of
// objects bounds. Nodes, and objects without a namespace, count as one more namespace, "".
//
// A namespace has room as long as it takes no more than what is left then. One alone has half of the limit,
// and n of them together n / (n + 1), so that something is left for all others.
// Source: the rule is the dynamic threshold of buffers that queues share, with the factor 1 (A. K. Choudhury,
// E. L. Hahne, Dynamic queue length thresholds for shared-memory packet switches, 1998).
class ViewBytes {
 public:
  // The bytes that are not counted: of the rules and of the labels of a pod, and of an object; of a node.
  static constexpr int64_t kOrdinaryObject = 2 << 10;
  static constexpr int64_t kOrdinaryNode = 8 << 10;

  // Returns what counts of so many bytes.
  static int64_t Counted(int64_t bytes, int64_t ordinary = kOrdinaryObject) {
    return bytes > ordinary ? bytes - ordinary : 0;
  }

  // Returns whether a namespace may take so many bytes more under this limit. 0 bytes always have room.
  bool HasRoom(absl::string_view namespace_name, int64_t bytes, int64_t limit) const;
  // Has a namespace take so many bytes more, or less where they are negative.
  void Add(absl::string_view namespace_name, int64_t bytes);

  // Counts a shape that came into use, or is no longer used. Shapes may share their rules, which count once.
  void AddShape(const PodShape& shape);
  void RemoveShape(const PodShape& shape);

  int64_t total() const { return total_; }
  int64_t held(absl::string_view namespace_name) const;

  // Both count the same. For tests.
  friend bool operator==(const ViewBytes& a, const ViewBytes& b) {
    return a.total_ == b.total_ && a.by_namespace_ == b.by_namespace_ && a.rules_ == b.rules_;
  }

 private:
  // Rules by where they are.
  struct SharedRules {
    int32_t shapes = 0;
    int64_t bytes = 0;
    friend bool operator==(const SharedRules&, const SharedRules&) = default;
  };

  int64_t total_ = 0;
  absl::flat_hash_map<std::string, int64_t> by_namespace_;  // none is 0
  absl::flat_hash_map<const PodRules*, SharedRules> rules_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_VIEW_BYTES_H_

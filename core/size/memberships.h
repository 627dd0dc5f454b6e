// Tells which nodes and pods belong to which sized groups.
#ifndef LOADLINE_CORE_SIZE_MEMBERSHIPS_H_
#define LOADLINE_CORE_SIZE_MEMBERSHIPS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"
#include "core/size/group_facts.h"

namespace loadline {

// Tells the groups that a node or a pod belongs to, in ascending order.
class Memberships {
 public:
  using Range = std::pair<int64_t, int64_t>;  // in what groups() reads

  Memberships(std::span<const SizedGroup> groups, const ClusterObjects& objects);

  // False: there are too many.
  bool ok() const { return static_cast<int64_t>(groups_.size()) <= kMostMemberships; }
  std::span<const int32_t> groups(const Range& range) const {
    return {groups_.data() + range.first, static_cast<size_t>(range.second - range.first)};
  }

  // Nodes with all labels of a group. Valid until the shape is gone: nodes of one shape are asked about once.
  Range OfNode(const NodeShape& shape);
  // By IsMember().
  Range OfPod(const PodShape& shape);

 private:
  using Key = std::pair<absl::string_view, absl::string_view>;
  using Index = absl::flat_hash_map<Key, std::vector<int32_t>>;

  static Key KeyOf(const Label& label) { return {label.key, label.value}; }
  const SizedGroup& At(int32_t group) const { return all_[static_cast<size_t>(group)]; }

  void AddCandidates(const Index& index, absl::string_view key, absl::string_view value);
  void AddCandidates(const NodeSelector& selector);
  template <typename Predicate>
  Range Keep(Predicate belongs);

  std::span<const SizedGroup> all_;
  const ClusterObjects& objects_;
  Index by_first_label_;  // every group, by one of its labels
  Index by_label_;        // groups that pods ask for, by each of their labels
  std::vector<int32_t> catch_all_;
  absl::flat_hash_map<const NodeShape*, Range> by_node_shape_;
  std::vector<int32_t> candidates_;
  std::vector<int32_t> groups_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_MEMBERSHIPS_H_

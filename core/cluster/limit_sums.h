// The sums of what the pods of each node of a snapshot count as by their limits.
#ifndef LOADLINE_CORE_CLUSTER_LIMIT_SUMS_H_
#define LOADLINE_CORE_CLUSTER_LIMIT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/cluster/counted_limits.h"
#include "core/cluster/expected_use.h"
#include "core/cluster/topology.h"

namespace loadline {

// The resources to sum: those that have the same id in every cluster (cpu, memory, ephemeral-storage), each
// once by limits, and once in each hour.
struct LimitSumsSpec {
  struct Resource {
    ResourceId id{};
    LimitRules rules;
    // Sums what pods are expected to use in this hour of the day, [0, 24); nullopt: their limits.
    std::optional<int8_t> hour = std::nullopt;
    friend bool operator==(const Resource&, const Resource&) = default;
  };
  std::vector<Resource> resources;
  int32_t max_limit_ratio = 1;  // see LimitCounting
  // The profiles by which pods count in each hour; nullptr: there are none, and pods count by their limits.
  std::shared_ptr<const ExpectedUse> expected = nullptr;
  friend bool operator==(const LimitSumsSpec&, const LimitSumsSpec&) = default;
};

// Sums the effective limits of the pods of each node; the rules for missing limits are the same for all pods.
// Sums are exact, so that a pod can be subtracted again. Kept by a Snapshot, see Snapshot::SumLimits(). Not
// thread-safe; const members may run together.
class LimitSums {
 public:
  explicit LimitSums(LimitSumsSpec spec) : spec_(std::move(spec)) {}

  const LimitSumsSpec& spec() const { return spec_; }
  // Returns the sum over the unfinished pods on the node, for the resource at this position of the spec.
  absl::int128 sum(NodeIndex node, size_t resource) const {
    const size_t at = IndexOf(node) * spec_.resources.size() + resource;
    return at < sums_.size() ? sums_[at] : absl::int128(0);
  }

  // Returns what a pod counts as, but for the node; and on a node of this shape, for the resource at this
  // position of the spec.
  PodLimit LimitOfPod(const PodShape& pod, size_t resource) const;
  CountedLimit Counted(const PodShape& pod, const NodeShape& node, size_t resource) const;

  // A pod came to the node (`sign` 1), or went (-1). `shape`: its number in the snapshot.
  // Cost: O(resources); once per shape what LimitOf() costs.
  void Change(NodeIndex node, const NodeShape& node_shape, int32_t shape, const PodShape& pod, int32_t sign);

 private:
  const LimitSumsSpec spec_;
  std::vector<absl::int128> sums_;  // node * resources + resource; nodes without pods may be missing
  std::vector<std::vector<PodLimit>> limits_;  // by shape; empty: not asked for yet
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_LIMIT_SUMS_H_

// The replacements of evicted pods that nodes have yet to get.
#ifndef LOADLINE_CORE_DRAIN_MISSING_REPLICAS_H_
#define LOADLINE_CORE_DRAIN_MISSING_REPLICAS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/cluster_state.h"
#include "core/drain/drain_state.h"

namespace loadline {

// Counts the replacements that are missing: as many as the owner has fewer replicas than it wants. An owner
// that has created one has as many as it wants, though the new pod waits for a node: while an evicted pod is
// still there and ends, those count that are on nodes and do not end.
class MissingReplicas {
 public:
  // Cost: O(evictions + pods of their nodes), and O(pods) where evicted pods are still there.
  MissingReplicas(const ClusterState& cluster, std::span<const RecentEviction* const> evictions);

  // Returns whether the replacement of an evicted pod is missing: true as often as replicas of its owner are.
  // If the owner is not known, each is.
  bool Take(const RecentEviction& eviction);

 private:
  struct Owner {
    int64_t wanted = 0;
    int64_t missing = 0;
    int64_t ending = 0;    // evicted pods that are still there
    int64_t on_nodes = 0;  // pods that do not end
  };
  void CountPodsOnNodes(const ClusterState& cluster);

  absl::flat_hash_map<std::string, Owner> owners_;  // those whose replicas are known
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_MISSING_REPLICAS_H_

// Counts the pods that vanished from one loop to the next although nothing says why.
#ifndef LOADLINE_CORE_DRAIN_VANISHED_PODS_H_
#define LOADLINE_CORE_DRAIN_VANISHED_PODS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/objects.h"

namespace loadline {

// Pods of one owner, or those of one namespace that have none.
struct OwnerPods {
  // A hash of the namespace in the upper 24 bits, below it one of the UID, or of kind and name; 0 there: no
  // owner. Namespaces that share a hash, which is rare, count as one.
  uint64_t owner = 0;
  // The kind of an owner whose wanted replicas the cluster states; nullopt: it does not.
  std::optional<ObjectKind> kind;
  int64_t pods = 0;      // that have not finished
  int64_t finished = 0;  // that are still there as objects
  friend bool operator==(const OwnerPods&, const OwnerPods&) = default;
};

// Counts all pods on nodes, by owner. Pods of DaemonSets and mirror pods are left out: they come and go with
// their nodes. Not thread-safe.
class PodCounter {
 public:
  // Counts the nodes in slots that changed, each of which may be named more than once; nullopt: all anew.
  // Cost: O(pods there) with a small factor.
  void Follow(const ClusterState& cluster, std::optional<std::span<const Slot>> changes);
  // In ascending order of the owners. Cost: O(owners * log).
  std::vector<OwnerPods> counts() const;

 private:
  // The part of a count that a pod of a shape adds; worked out once, as there are many more pods than shapes.
  struct ShapeCount {
    // The shape's; its number may be another one's later. If two shapes share a fingerprint, which is rare,
    // pods of one owner are counted as those of the other.
    uint64_t fingerprint = 0;
    OwnerPods one;  // its owner and one pod; no pod at all where it is left out
  };

  const OwnerPods& OnePod(const ClusterState& cluster, int32_t shape);
  // Counts the pods of one node, neighbours with one owner together, into on_node_.
  void CountNode(const ClusterState& cluster, Slot slot);
  void Add(const OwnerPods& owner);
  void TakeOff(const OwnerPods& owner);

  std::vector<ShapeCount> shapes_;  // by number
  std::vector<OwnerPods> on_node_;  // room to work in
  // The owners of a node's pods, as they were counted.
  std::vector<std::vector<OwnerPods>> by_slot_;
  absl::flat_hash_map<uint64_t, OwnerPods> by_owner_;
};

// Returns what a PodCounter counts in a cluster that it sees for the first time.
std::vector<OwnerPods> CountPods(const ClusterState& cluster);

// Takes the unfinished pods of some nodes, each named once, off the counts of their cluster.
// Cost: O(pods of the nodes * log).
void TakeAwayPods(const ClusterState& cluster, std::span<const Slot> nodes, std::vector<OwnerPods>* counts);

// The number of pods before, and the number of them that vanished.
struct VanishedCount {
  int64_t before = 0;
  int64_t vanished = 0;
  friend bool operator==(const VanishedCount&, const VanishedCount&) = default;
};

// The same, and what of it one tenant may have done.
struct VanishedCounts {
  VanishedCount all;
  VanishedCount unknown_kind;   // pods without an owner, or with one of a kind that the cluster does not know
  VanishedCount one_namespace;  // of the namespace that lost most
  uint64_t namespace_hash = 0;  // of that namespace, as HashOfNamespace()
};

// Counts the pods in `before` that are not in `now` and have no reason to be gone. Reasons are that the pod
// has finished, that its owner is gone, and that its owner wants no more pods than it has. Pods without an
// owner, or with one that the cluster does not know the kind of, have the first reason only.
// `before` and `now` leave out nodes that were, or are, about to go; `all`: the pods of all nodes now.
VanishedCounts VanishedPods(std::span<const OwnerPods> before, std::span<const OwnerPods> now,
                            std::span<const OwnerPods> all, const ClusterObjects& objects);

// Returns whether so many vanished that the view itself is in doubt: more than `percent` of all, and also of
// those outside of the namespace that lost most, and of those whose owners tell how many they want. One
// tenant makes pods come and go as he likes, and must not hold all removals by it. Fewer than 10 other pods
// prove nothing: then all count.
bool TooManyVanished(const VanishedCounts& counts, int64_t percent);

// In [0, 2^24).
uint64_t HashOfNamespace(absl::string_view name);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_VANISHED_PODS_H_

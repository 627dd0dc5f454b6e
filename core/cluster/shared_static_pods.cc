#include "core/cluster/shared_static_pods.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"

namespace loadline {

std::vector<PodShape> SharedStaticPods(const ClusterState& cluster, std::span<const Slot> nodes) {
  struct Shared {
    PodShape room;
    std::vector<int64_t> nodes;  // with at least one, two, ... of them
  };
  absl::btree_map<uint64_t, Shared> known;
  absl::flat_hash_map<int32_t, uint64_t> room_of;  // by the shape of a static pod
  for (const Slot slot : nodes) {
    absl::flat_hash_map<uint64_t, size_t> here;
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      if (shape.finished || !IsKubeletsMirror(shape)) continue;
      const auto [room, is_new] = room_of.try_emplace(pod.shape, 0);
      if (is_new) {
        PodShape made = RoomOf(shape, cluster.resource_names());
        room->second = made.fingerprint;
        known.try_emplace(made.fingerprint, Shared{std::move(made), {}});
      }
      std::vector<int64_t>& with = known.at(room->second).nodes;
      const size_t number = here[room->second]++;
      if (with.size() <= number) with.push_back(0);
      ++with[number];
    }
  }
  std::vector<PodShape> shared;
  for (const auto& [fingerprint, of] : known) {
    for (const int64_t with : of.nodes) {
      if (2 * with > static_cast<int64_t>(nodes.size())) shared.push_back(of.room);
    }
  }
  return shared;
}

}  // namespace loadline

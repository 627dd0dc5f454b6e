#include "core/drain/vanished_pods.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"
#include "core/cluster/pod_traits.h"

namespace loadline {
namespace {

constexpr std::array<std::pair<absl::string_view, ObjectKind>, 4> kOwnersWithReplicas = {
    {{"ReplicaSet", ObjectKind::kReplicaSet},
     {"StatefulSet", ObjectKind::kStatefulSet},
     {"Job", ObjectKind::kJob},
     {"ReplicationController", ObjectKind::kReplicationController}}};

uint64_t HashOfUid(absl::string_view uid) {
  FingerprintBuilder builder;
  builder.Add(uid);
  return builder.Finish();
}

uint64_t HashOfName(ObjectKind kind, absl::string_view namespace_name, absl::string_view name) {
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(kind));
  builder.Add(namespace_name);
  builder.Add(name);
  return builder.Finish();
}

// The owner of a pod, as it is counted.
OwnerPods OwnerOf(const PodShape& shape) {
  OwnerPods owner;
  const std::optional<PodOwner>& named = TraitsOf(shape).owner;
  if (!named.has_value()) return owner;
  for (const auto& [name, kind] : kOwnersWithReplicas) {
    if (named->kind == name) owner.kind = kind;
  }
  owner.owner = named->uid.empty() ? HashOfName(owner.kind.value_or(ObjectKind::kNamespace),
                                                shape.namespace_name, named->name)
                                   : HashOfUid(named->uid);
  return owner;
}

bool ComesWithItsNode(const PodTraits& traits) {
  return traits.mirror || traits.static_pod || IsDaemonPod(traits);
}

const OwnerPods* Find(std::span<const OwnerPods> counts, uint64_t owner) {
  const auto at = std::lower_bound(counts.begin(), counts.end(), owner,
                                   [](const OwnerPods& entry, uint64_t hash) { return entry.owner < hash; });
  return at != counts.end() && at->owner == owner ? &*at : nullptr;
}

// What each owner wants, by the hash that its pods are counted by.
absl::flat_hash_map<uint64_t, int64_t> WantedReplicas(const ClusterObjects& objects) {
  absl::flat_hash_map<uint64_t, int64_t> wanted;
  for (const auto& [name, kind] : kOwnersWithReplicas) {
    for (const auto& [key, object] : objects.of(kind)) {
      const Workload& workload = std::get<Workload>(object.content);
      if (!workload.uid.empty()) wanted.emplace(HashOfUid(workload.uid), workload.target_replicas);
      wanted.emplace(HashOfName(kind, key.namespace_name, key.name), workload.target_replicas);
    }
  }
  return wanted;
}

}  // namespace

std::vector<OwnerPods> CountPods(const ClusterState& cluster) {
  std::vector<int64_t> of_shape;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (!cluster.Occupied(Slot{i})) continue;
    for (const NodePods::Pod& pod : cluster.pods(Slot{i}).pods()) {
      const size_t shape = static_cast<size_t>(pod.shape);
      if (shape >= of_shape.size()) of_shape.resize(std::max(shape + 1, 2 * of_shape.size()), 0);
      ++of_shape[shape];
    }
  }
  absl::flat_hash_map<uint64_t, OwnerPods> by_owner;
  for (size_t i = 0; i < of_shape.size(); ++i) {
    if (of_shape[i] == 0) continue;
    const PodShape& shape = cluster.pod_shapes()[static_cast<int32_t>(i)];
    if (ComesWithItsNode(TraitsOf(shape))) continue;
    const OwnerPods owner = OwnerOf(shape);
    OwnerPods& count = by_owner.try_emplace(owner.owner, owner).first->second;
    (shape.finished ? count.finished : count.pods) += of_shape[i];
  }
  std::vector<OwnerPods> counts;
  counts.reserve(by_owner.size());
  for (const auto& [owner, count] : by_owner) counts.push_back(count);
  std::sort(counts.begin(), counts.end(),
            [](const OwnerPods& a, const OwnerPods& b) { return a.owner < b.owner; });
  return counts;
}

void TakeAwayPods(const ClusterState& cluster, std::span<const Slot> nodes, std::vector<OwnerPods>* counts) {
  for (const Slot node : nodes) {
    for (const NodePods::Pod& pod : cluster.pods(node).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      if (shape.finished || ComesWithItsNode(TraitsOf(shape))) continue;
      const uint64_t owner = OwnerOf(shape).owner;
      --std::lower_bound(counts->begin(), counts->end(), owner, [](const OwnerPods& entry, uint64_t hash) {
          return entry.owner < hash;
        })->pods;
    }
  }
}

int64_t VanishedPods(std::span<const OwnerPods> before, std::span<const OwnerPods> now,
                     std::span<const OwnerPods> all, const ClusterObjects& objects) {
  std::optional<absl::flat_hash_map<uint64_t, int64_t>> wanted;  // hardly ever asked for
  int64_t vanished = 0;
  for (const OwnerPods& then : before) {
    const OwnerPods* const there = Find(now, then.owner);
    int64_t gone = then.pods;
    if (there != nullptr) gone -= there->pods + std::max<int64_t>(0, there->finished - then.finished);
    if (gone <= 0) continue;
    if (then.kind.has_value()) {
      if (!wanted.has_value()) wanted = WantedReplicas(objects);
      if (const auto owner = wanted->find(then.owner); owner != wanted->end()) {
        const OwnerPods* const has = Find(all, then.owner);
        gone = std::min(gone, owner->second - (has == nullptr ? 0 : has->pods));
      } else if (objects.complete(*then.kind)) {
        gone = 0;  // the owner went, and its pods with it
      }
    }
    vanished += std::max<int64_t>(0, gone);
  }
  return vanished;
}

int64_t TotalPods(std::span<const OwnerPods> counts) {
  int64_t pods = 0;
  for (const OwnerPods& count : counts) pods += count.pods;
  return pods;
}

}  // namespace loadline

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

const OwnerPods& PodCounter::OnePod(const ClusterState& cluster, int32_t shape) {
  if (static_cast<size_t>(shape) >= shapes_.size()) shapes_.resize(static_cast<size_t>(shape) + 1);
  ShapeCount& known = shapes_[static_cast<size_t>(shape)];
  const PodShape& of = cluster.pod_shapes()[shape];
  if (known.fingerprint == of.fingerprint) return known.one;
  known.fingerprint = of.fingerprint;
  known.one = {};
  if (ComesWithItsNode(TraitsOf(of))) return known.one;
  known.one = OwnerOf(of);
  (of.finished ? known.one.finished : known.one.pods) = 1;
  return known.one;
}

void PodCounter::CountNode(const ClusterState& cluster, Slot slot) {
  on_node_.clear();
  if (!cluster.Occupied(slot)) return;
  for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
    const OwnerPods& one = OnePod(cluster, pod.shape);
    if (one.pods + one.finished == 0) continue;
    if (!on_node_.empty() && on_node_.back().owner == one.owner) {
      on_node_.back().pods += one.pods;
      on_node_.back().finished += one.finished;
    } else {
      on_node_.push_back(one);
    }
  }
}

void PodCounter::Add(const OwnerPods& owner) {
  const auto [sum, added] = by_owner_.try_emplace(owner.owner, owner);
  if (added) return;
  sum->second.pods += owner.pods;
  sum->second.finished += owner.finished;
}

void PodCounter::TakeOff(const OwnerPods& owner) {
  const auto sum = by_owner_.find(owner.owner);
  sum->second.pods -= owner.pods;
  sum->second.finished -= owner.finished;
  if (sum->second.pods == 0 && sum->second.finished == 0) by_owner_.erase(sum);
}

void PodCounter::Follow(const ClusterState& cluster, std::optional<std::span<const Slot>> changes) {
  std::vector<Slot> all;
  if (!changes.has_value()) {
    by_slot_.clear();
    by_owner_.clear();
    shapes_.clear();
    for (int32_t i = 0; i < cluster.slot_end(); ++i) all.push_back(Slot{i});
    changes = all;
  }
  by_slot_.resize(static_cast<size_t>(cluster.slot_end()));
  for (const Slot slot : *changes) {
    CountNode(cluster, slot);
    std::vector<OwnerPods>& counted = by_slot_[IndexOf(slot)];
    // Most of what is on a node stays where it was.
    for (size_t i = 0; i < std::max(counted.size(), on_node_.size()); ++i) {
      const bool was = i < counted.size();
      const bool is = i < on_node_.size();
      if (was && is && counted[i] == on_node_[i]) continue;
      if (was) TakeOff(counted[i]);
      if (is) Add(on_node_[i]);
    }
    counted.assign(on_node_.begin(), on_node_.end());
  }
}

std::vector<OwnerPods> PodCounter::counts() const {
  std::vector<OwnerPods> counts;
  counts.reserve(by_owner_.size());
  for (const auto& [owner, count] : by_owner_) counts.push_back(count);
  std::sort(counts.begin(), counts.end(),
            [](const OwnerPods& a, const OwnerPods& b) { return a.owner < b.owner; });
  return counts;
}

std::vector<OwnerPods> CountPods(const ClusterState& cluster) {
  PodCounter counter;
  counter.Follow(cluster, std::nullopt);
  return counter.counts();
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

#include "core/drain/vanished_pods.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"
#include "core/cluster/pod_traits.h"

namespace loadline {
namespace {

// A kind of owner, which only in its API group is the one that Kubernetes keeps pods for: its garbage
// collector removes pods that name a missing owner of a group that it knows, and lets all others live.
struct ReplicaOwner {
  absl::string_view name;
  absl::string_view api_version;  // its beginning
  ObjectKind kind;
};

constexpr std::array<ReplicaOwner, 4> kOwnersWithReplicas = {
    {{"ReplicaSet", "apps/", ObjectKind::kReplicaSet},
     {"StatefulSet", "apps/", ObjectKind::kStatefulSet},
     {"Job", "batch/", ObjectKind::kJob},
     {"ReplicationController", "v1", ObjectKind::kReplicationController}}};

// Clients may leave out the API version.
bool IsOfKind(const PodOwner& owner, absl::string_view kind, absl::string_view api_version) {
  return owner.kind == kind &&
         (owner.api_version.empty() || absl::StartsWith(owner.api_version, api_version));
}

// Bits of OwnerPods::owner below those of the namespace.
constexpr int kOwnerBits = 40;

// With the namespace: an owner is in that of its pods, and pods elsewhere that name its UID are not its own.
uint64_t HashIn(absl::string_view namespace_name, uint64_t owner) {
  return HashOfNamespace(namespace_name) << kOwnerBits | owner >> (64 - kOwnerBits);
}

uint64_t HashOfUid(absl::string_view namespace_name, absl::string_view uid) {
  FingerprintBuilder builder;
  builder.Add(uid);
  return HashIn(namespace_name, builder.Finish());
}

uint64_t HashOfName(ObjectKind kind, absl::string_view namespace_name, absl::string_view name) {
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(kind));
  builder.Add(name);
  return HashIn(namespace_name, builder.Finish());
}

// The owner of a pod, as it is counted.
OwnerPods OwnerOf(const PodShape& shape) {
  OwnerPods owner;
  owner.owner = HashIn(shape.namespace_name, 0);
  const std::optional<PodOwner>& named = TraitsOf(shape).owner;
  if (!named.has_value()) return owner;
  for (const ReplicaOwner& known : kOwnersWithReplicas) {
    if (IsOfKind(*named, known.name, known.api_version)) owner.kind = known.kind;
  }
  owner.owner = named->uid.empty() ? HashOfName(owner.kind.value_or(ObjectKind::kNamespace),
                                                shape.namespace_name, named->name)
                                   : HashOfUid(shape.namespace_name, named->uid);
  return owner;
}

// A DaemonSet is not looked up, other than by OfKnownDaemonSet(): its pods are there for a while when it is
// gone, and must not seem to vanish then. Of one that never was the garbage collector removes the pods.
bool IsNodeBound(const PodTraits& traits) {
  return traits.mirror || traits.static_pod || traits.daemon_by_annotation ||
         (traits.owner.has_value() && IsOfKind(*traits.owner, "DaemonSet", "apps/"));
}

const OwnerPods* Find(std::span<const OwnerPods> counts, uint64_t owner) {
  const auto at = std::lower_bound(counts.begin(), counts.end(), owner,
                                   [](const OwnerPods& entry, uint64_t hash) { return entry.owner < hash; });
  return at != counts.end() && at->owner == owner ? &*at : nullptr;
}

// Returns the number of replicas that each owner wants, by the hash that its pods are counted by.
absl::flat_hash_map<uint64_t, int64_t> WantedReplicas(const ClusterObjects& objects) {
  absl::flat_hash_map<uint64_t, int64_t> wanted;
  for (const ReplicaOwner& known : kOwnersWithReplicas) {
    for (const auto& [key, object] : objects.of(known.kind)) {
      const Workload& workload = std::get<Workload>(object.content);
      if (!workload.uid.empty()) {
        wanted.emplace(HashOfUid(key.namespace_name, workload.uid), workload.target_replicas);
      }
      wanted.emplace(HashOfName(known.kind, key.namespace_name, key.name), workload.target_replicas);
    }
  }
  return wanted;
}

void AddTo(int64_t before, int64_t gone, VanishedCount* count) {
  count->before += before;
  count->vanished += std::max<int64_t>(0, gone);
}

}  // namespace

uint64_t HashOfNamespace(absl::string_view name) {
  FingerprintBuilder builder;
  builder.Add(name);
  return builder.Finish() >> kOwnerBits;
}

const OwnerPods& PodCounter::OnePod(const ClusterState& cluster, int32_t shape) {
  if (static_cast<size_t>(shape) >= shapes_.size()) shapes_.resize(static_cast<size_t>(shape) + 1);
  ShapeCount& known = shapes_[static_cast<size_t>(shape)];
  const PodShape& of = cluster.pod_shapes()[shape];
  if (known.fingerprint == of.fingerprint) return known.one;
  known.fingerprint = of.fingerprint;
  known.one = {};
  if (IsNodeBound(TraitsOf(of))) return known.one;
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
      if (shape.finished || IsNodeBound(TraitsOf(shape))) continue;
      const uint64_t owner = OwnerOf(shape).owner;
      --std::lower_bound(counts->begin(), counts->end(), owner, [](const OwnerPods& entry, uint64_t hash) {
          return entry.owner < hash;
        })->pods;
    }
  }
}

VanishedCounts VanishedPods(std::span<const OwnerPods> before, std::span<const OwnerPods> now,
                            std::span<const OwnerPods> all, const ClusterObjects& objects) {
  std::optional<absl::flat_hash_map<uint64_t, int64_t>> wanted;  // hardly ever asked for
  VanishedCounts counts;
  VanishedCount here;  // in the namespace of `then`: owners of one come one after the other
  for (size_t i = 0; i < before.size(); ++i) {
    const OwnerPods& then = before[i];
    const OwnerPods* const there = Find(now, then.owner);
    int64_t gone = then.pods;
    if (there != nullptr) gone -= there->pods + std::max<int64_t>(0, there->finished - then.finished);
    if (gone > 0 && then.kind.has_value()) {
      if (!wanted.has_value()) wanted = WantedReplicas(objects);
      if (const auto owner = wanted->find(then.owner); owner != wanted->end()) {
        const OwnerPods* const has = Find(all, then.owner);
        gone = std::min(gone, owner->second - (has == nullptr ? 0 : has->pods));
      } else if (objects.complete(*then.kind)) {
        gone = 0;  // the owner went, and its pods with it
      }
    }
    const uint64_t namespace_hash = then.owner >> kOwnerBits;
    if (i > 0 && before[i - 1].owner >> kOwnerBits != namespace_hash) here = {};
    for (VanishedCount* const count : {&counts.all, &here}) AddTo(then.pods, gone, count);
    if (!then.kind.has_value()) AddTo(then.pods, gone, &counts.unknown_kind);
    if (here.vanished < counts.one_namespace.vanished) continue;
    counts.one_namespace = here;
    counts.namespace_hash = namespace_hash;
  }
  return counts;
}

bool TooManyVanished(const VanishedCounts& counts, int64_t percent) {
  constexpr int64_t kLeastOthers =
      10;  // chosen: of fewer, a single one would already be more than 10 percent
  const auto too_many = [&](const VanishedCount& count) {
    return absl::int128(count.vanished) * 100 > absl::int128(count.before) * percent;
  };
  const auto without = [&](const VanishedCount& part) {
    const VanishedCount others = {counts.all.before - part.before, counts.all.vanished - part.vanished};
    return others.before < kLeastOthers || too_many(others);
  };
  return too_many(counts.all) && without(counts.one_namespace) && without(counts.unknown_kind);
}

}  // namespace loadline

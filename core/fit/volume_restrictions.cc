// VolumeRestrictions: a disk in the pod itself must not be used by a pod on the node: same GCE disk unless
// both are read-only, same EBS volume, same iSCSI target name unless both are read-only, same RBD image in
// the same pool under a common monitor unless both are read-only. Then: no pod anywhere may use a claim of
// the incoming pod that has the access mode ReadWriteOncePod.
#include <algorithm>

#include "core/fit/filters.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

bool Overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& text) { return std::binary_search(b.begin(), b.end(), text); });
}

bool Conflict(const PodVolume& a, const PodVolume& b) {
  if (a.kind != b.kind || a.name != b.name) return false;
  switch (a.kind) {
    case VolumeKind::kAwsElasticBlockStore:
      return true;
    case VolumeKind::kGcePersistentDisk:
    case VolumeKind::kIscsi:
      return !(a.read_only && b.read_only);
    case VolumeKind::kRbd:
      return a.pool == b.pool && Overlap(a.monitors, b.monitors) && !(a.read_only && b.read_only);
    case VolumeKind::kClaim:
    case VolumeKind::kEphemeral:
    case VolumeKind::kOtherMigrated:
      return false;
  }
  return false;
}

bool IsDisk(const PodVolume& volume) {
  return volume.kind == VolumeKind::kAwsElasticBlockStore || volume.kind == VolumeKind::kGcePersistentDisk ||
         volume.kind == VolumeKind::kIscsi || volume.kind == VolumeKind::kRbd;
}

class VolumeRestrictions : public NodeFilter {
 public:
  VolumeRestrictions(const FitContext& context, std::vector<std::string> exclusive)
      : NodeFilter(FilterName::kVolumeRestrictions, exclusive.empty() ? Scope::kNode : Scope::kTopology),
        snapshot_(*context.snapshot),
        namespace_(context.pod->shape.namespace_name),
        exclusive_(std::move(exclusive)) {
    for (const PodVolume& volume : context.rules->volumes) {
      if (IsDisk(volume)) disks_.push_back(&volume);
    }
    std::sort(disks_.begin(), disks_.end(),
              [](const PodVolume* a, const PodVolume* b) { return a->name < b->name; });
  }

  int64_t UnitsPerNode() const override { return disks_.empty() ? 0 : snapshot_.volumes_per_node(); }

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (!disks_.empty() && UsesOne(node)) {
      return Refuse(why, StatusClass::kUnschedulable, "node(s) had no available disk");
    }
    if (std::none_of(exclusive_.begin(), exclusive_.end(),
                     [&](const std::string& claim) { return snapshot_.ClaimUsers(namespace_, claim) > 0; })) {
      return true;
    }
    return Refuse(
        why, StatusClass::kUnschedulable,
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
        "in-use by another pod");
  }

  std::optional<Blocked> BlockedBy(NodeIndex) const override { return Blocked{nullptr, 0}; }

 private:
  // Cost: O(volumes of the pods on the node * log disks).
  bool UsesOne(NodeIndex node) const {
    const std::span<const SnapshotPod> pods = snapshot_.pods(node);
    return std::any_of(pods.begin(), pods.end(), [&](const SnapshotPod& pod) {
      const PodRules* const rules = snapshot_.pod_shape(pod.shape).rules.get();
      return rules != nullptr && std::any_of(rules->volumes.begin(), rules->volumes.end(),
                                             [&](const PodVolume& volume) { return IsOneOfOurs(volume); });
    });
  }

  bool IsOneOfOurs(const PodVolume& volume) const {
    auto at =
        std::lower_bound(disks_.begin(), disks_.end(), volume.name,
                         [](const PodVolume* disk, const std::string& name) { return disk->name < name; });
    for (; at != disks_.end() && (*at)->name == volume.name; ++at) {
      if (Conflict(**at, volume)) return true;
    }
    return false;
  }

  const Snapshot& snapshot_;
  const std::string& namespace_;
  const std::vector<std::string> exclusive_;  // claims that one pod at a time may use
  std::vector<const PodVolume*> disks_;       // by name
};

}  // namespace

MadeFilter MakeVolumeRestrictions(const FitContext& context) {
  const ClusterObjects& objects = context.snapshot->objects();
  MadeFilter made;
  std::vector<std::string> exclusive;
  bool disks = false;
  for (const PodVolume& volume : context.rules->volumes) {
    disks = disks || IsDisk(volume);
    if (volume.kind != VolumeKind::kClaim) continue;
    const PersistentVolumeClaim* const claim =
        objects.FindClaim(context.pod->shape.namespace_name, volume.name);
    if (claim != nullptr) {
      const std::vector<std::string>& modes = claim->access_modes;
      if (std::find(modes.begin(), modes.end(), "ReadWriteOncePod") != modes.end())
        exclusive.push_back(volume.name);
    } else if (objects.KnownMissing(ObjectKind::kPersistentVolumeClaim, context.pod->shape.namespace_name,
                                    volume.name)) {
      made.verdict = Refusal(FilterName::kVolumeRestrictions, StatusClass::kUnschedulableAndUnresolvable,
                             {NotFound("persistentvolumeclaim", volume.name)});
      return made;
    } else {
      made.doubt =
          CannotJudge(FilterName::kVolumeRestrictions, NotInView("persistentvolumeclaim", volume.name));
    }
  }
  if (disks || !exclusive.empty())
    made.filter = std::make_unique<VolumeRestrictions>(context, std::move(exclusive));
  return made;
}

}  // namespace loadline

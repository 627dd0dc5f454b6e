#include "core/fit/matching_volume.h"

#include <algorithm>

namespace loadline {
namespace {

bool RefersTo(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.claim.has_value() && volume.claim->name == claim.name &&
         volume.claim->namespace_name == claim.namespace_name &&
         (volume.claim->uid.empty() || volume.claim->uid == claim.uid);
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Returns whether the volume meets what also one that was made for the claim must meet.
bool SuitsByItself(const PersistentVolumeClaim& claim, const PersistentVolume& volume) {
  return volume.capacity.value_or(Quantity()) >= claim.request.value_or(Quantity()) &&
         volume.volume_mode == claim.volume_mode && volume.attributes_class == claim.attributes_class &&
         !volume.deleting;
}

// Returns whether it meets besides what a volume must meet that anybody may have.
bool SuitsAsFree(const PersistentVolumeClaim& claim, const PersistentVolume& volume) {
  return volume.available && volume.storage_class == claim.storage_class &&
         (!claim.selector.has_value() || claim.selector->Matches(volume.labels)) &&
         std::all_of(claim.access_modes.begin(), claim.access_modes.end(),
                     [&](const std::string& mode) { return Contains(volume.access_modes, mode); });
}

}  // namespace

std::vector<const PersistentVolume*> AvailableVolumes(const ClusterObjects& objects,
                                                      const std::string& storage_class) {
  std::vector<const PersistentVolume*> volumes;
  for (const auto& [key, object] : objects.of(ObjectKind::kPersistentVolume)) {
    const PersistentVolume& volume = std::get<PersistentVolume>(object.content);
    if (volume.storage_class == storage_class) volumes.push_back(&volume);
  }
  return volumes;
}

const PersistentVolume* MatchingVolume(const PersistentVolumeClaim& claim,
                                       std::span<const PersistentVolume* const> volumes,
                                       const NodeLabels& node,
                                       const absl::flat_hash_set<const PersistentVolume*>& taken) {
  const PersistentVolume* smallest = nullptr;
  for (const PersistentVolume* volume : volumes) {
    if (taken.contains(volume)) continue;
    const bool ours = RefersTo(*volume, claim);
    if ((volume->claim.has_value() && !ours) || !SuitsByItself(claim, *volume)) continue;
    const bool reachable = !volume->node_affinity.has_value() || volume->node_affinity->Matches(node);
    if (ours) return reachable ? volume : nullptr;
    if (!reachable || !SuitsAsFree(claim, *volume)) continue;
    if (smallest == nullptr || volume->capacity < smallest->capacity) smallest = volume;
  }
  return smallest;
}

}  // namespace loadline

// Finds the persistent volume that a claim would get which waits for its first consumer.
#ifndef LOADLINE_CORE_FIT_MATCHING_VOLUME_H_
#define LOADLINE_CORE_FIT_MATCHING_VOLUME_H_

#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/cluster/labels.h"
#include "core/cluster/objects.h"

namespace loadline {

// Volumes of a class, in name order.
std::vector<const PersistentVolume*> AvailableVolumes(const ClusterObjects& objects,
                                                      const std::string& storage_class);

// The volume that claim and volume agree on by a claimRef, or else the smallest of `volumes` that suits the
// claim on a node with these labels and is not among `taken`; of equal ones the first. nullptr: there is
// none. Cost: O(volumes * requirements). Source: FindMatchingVolume of k8s.io/component-helpers v0.36.3.
const PersistentVolume* MatchingVolume(const PersistentVolumeClaim& claim,
                                       std::span<const PersistentVolume* const> volumes,
                                       const NodeLabels& node,
                                       const absl::flat_hash_set<const PersistentVolume*>& taken);

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_MATCHING_VOLUME_H_

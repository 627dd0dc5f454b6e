// The amounts that a container of a pod counts for, by its spec and by the status of the pod.
#ifndef LOADLINE_CORE_CLUSTER_CONTAINER_AMOUNTS_H_
#define LOADLINE_CORE_CLUSTER_CONTAINER_AMOUNTS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_list.h"
#include "core/cluster/pod_resources.h"

namespace loadline {

// The half of the resources that is summed up.
enum class AmountKind { kRequests, kLimits };

inline const ResourceList& SpecOf(const ContainerResources& container, AmountKind kind) {
  return kind == AmountKind::kRequests ? container.requests : container.limits;
}

// The source of the amounts of containers that add up to one sum.
enum class Reading {
  kSpec,
  kAllocated,  // limits are never allocated: as kActuated
  kActuated,
  kMost,  // per container, of all readings that count
};

// Reads the amounts of one pod's containers; the pod outlives it. Pure: any thread.
// Cost: O(statuses) once, O(entries of the lists * log(resources)) for each container.
class ContainerAmounts {
 public:
  ContainerAmounts(const PodResources& pod, bool use_status);

  // The readings whose sums count, at least one: the pod counts as the most of these sums.
  std::span<const Reading> Readings(AmountKind kind) const;

  // Returns the amounts that a container counts for. Per container, the status of an ordinary init container
  // plays no part.
  ResourceList Of(const ContainerResources& container, AmountKind kind, Reading reading) const;
  ResourceList OfInit(const ContainerResources& container, AmountKind kind, Reading reading) const;

  // Returns the sum that the status of the pod states in place of one over its containers, or nullptr.
  const ResourceList* SumOfStatus(AmountKind kind, Reading reading) const;

 private:
  const ContainerStatusResources* Find(const std::string& name) const;
  ResourceList MostPerContainer(const ContainerResources& container, AmountKind kind) const;
  const ResourceList& ByReading(const ContainerResources& container, const ContainerStatusResources* status,
                                AmountKind kind, Reading reading) const;
  bool per_pod() const { return pod_.resize_rule == ResizeRule::kPerPod; }

  const PodResources& pod_;
  const bool use_status_;
  // Statuses by name, where they are too many to look through them for each container.
  absl::flat_hash_map<absl::string_view, const ContainerStatusResources*> by_name_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_CONTAINER_AMOUNTS_H_

#ifndef LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_
#define LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"

namespace loadline {

// What one container of a pod's spec states.
struct ContainerResources {
  std::string name;
  bool sidecar = false;  // an init container with restartPolicy Always; of no meaning for other containers
  ResourceList requests;
  ResourceList limits;
};

// What a pod's status states of one container.
struct ContainerStatusResources {
  std::string name;
  bool has_resources = false;  // status.resources is there, if empty; without it the rest plays no part
  ResourceList requests;       // status.resources.requests: actuated
  ResourceList limits;         // status.resources.limits: actuated
  ResourceList allocated;      // status.allocatedResources
};

// The part of a pod that its effective requests and limits depend on. No amount is negative.
struct PodResources {
  struct PodLevel {
    ResourceList requests;
    ResourceList limits;
  };
  struct PodLevelStatus {
    ResourceList requests;
    ResourceList limits;
  };

  absl::InlinedVector<ContainerResources, 2> containers;
  std::vector<ContainerResources> init_containers;  // in the order in which they run
  ResourceList overhead;
  std::optional<PodLevel> pod_level;  // spec.resources is there, if empty
  // Of containers, then of init containers. Of several entries with one name the last one holds.
  std::vector<ContainerStatusResources> container_statuses;
  std::optional<PodLevelStatus> pod_level_status;  // status.resources is there, if empty
  ResourceList pod_level_allocated;                // status.allocatedResources
  // The first condition of type PodResizePending has the reason Infeasible: the spec will not be acted upon.
  bool resize_infeasible = false;
};

// Returns what the pod requests, or limits, as a whole: exact, so that it is rounded once when it is read
// out.
//
//   containers = sum of the regular containers and the sidecars
//   step i     = init container i + the sidecars before it
//   pod        = per resource max(containers, each step)
//                cpu, memory, hugepages-*: in its place what the pod level states
//                plus overhead; of limits only where there is one that is not 0
//
// With `use_status`, as for a pod on a node, a container or sidecar whose status has resources counts, per
// resource, the most of spec, actuated and (requests) allocated; after an infeasible resize without the spec.
// So does the pod level; of what it states, what its status lacks is then 0, while a status without any limit
// leaves the limits of the spec in force. An incoming pod has no status to use.
//
// Result: absent where nothing states the resource; an explicit 0 stays an entry.
// Cost:   O(entries of all lists * log(resources)). Pure: any thread.
// Source: PodRequests and PodLimits of k8s.io/component-helpers v0.36.3, with UseStatusResources and
//         InPlacePodLevelResourcesVerticalScalingEnabled both set to `use_status`. Version 0.37 takes the
//         larger of two sums where this takes the sum of the larger ones.
ResourceList EffectiveRequests(const PodResources& pod, const ResourceNames& names, bool use_status);
ResourceList EffectiveLimits(const PodResources& pod, const ResourceNames& names, bool use_status);

// Returns the pod's limits by the two functions that the limit-aware scoring proposal (KEP 217) writes down.
// They know neither sidecars, pod-level resources nor statuses, round each container by itself, and do not
// agree with each other; they serve to reproduce the proposal to the letter.
//
//   incoming:  max(sum of the containers, each init container) + overhead
//   existing:  sum of the containers
//
// The overhead's cpu is read in whole cores and added to millicores: 500m with an overhead of 250m is 501.
// Result: absent where nothing states the resource, which the proposal takes for 0.
ResourceAmounts ProposalIncomingLimits(const PodResources& pod);
ResourceAmounts ProposalExistingLimits(const PodResources& pod);

// Returns what the pod requests as autoscalers count it that know neither sidecars, pod-level resources nor
// statuses: max(sum of the containers, each init container) + overhead, of the spec.
//
// Source: atlassian/escalator 043bb1b, pkg/k8s/scheduler/types.go:101.
ResourceList SimpleRequests(const PodResources& pod);

// Tells whether the pod's quality of service class is BestEffort: nothing requests or limits cpu or memory
// above 0. Where pod-level resources are there, they alone decide, also when they are empty.
//
// Source: ComputePodQOS of k8s.io/kubernetes v1.36.3, pkg/apis/core/v1/helper/qos.
bool IsBestEffort(const PodResources& pod);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_

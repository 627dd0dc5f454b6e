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
  // Those of containers, then those of init containers. If several entries have one name, the last one holds.
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

// How the limits of a pod's containers add up, for one resource of which some of them may have none. A limit
// of 0 caps nothing, and is a missing one. CPU in millicores, every other resource in its own unit.
struct PartialLimit {
  ResourceId resource{};
  // Every app container and sidecar has a limit, or the pod level has one, which then stands for all of them.
  bool bounded = false;
  // Some container has a limit, ordinary init containers included.
  bool stated = false;
  // What the pod counts as if each app container and sidecar without a limit counts its request.
  int64_t by_request = 0;
  // The most of the sums in which an app container or sidecar without a limit counts nothing, and the most of
  // the other sums. The pod counts as the larger one of `with_gap` plus what stands for the gap, and `whole`.
  int64_t with_gap = 0;
  int64_t whole = 0;

  friend bool operator==(const PartialLimit&, const PartialLimit&) = default;
};

// Returns what holds of a pod of one container without overhead, which effective amounts tell in full.
PartialLimit LimitOfOneContainer(ResourceId resource, int64_t effective_request, int64_t effective_limit);

// Returns how the limits of a pod add up, for each resource where LimitOfOneContainer() does not say it, in
// the order of their ids. Containers add up as in EffectiveLimits(); an ordinary init container without a
// limit counts its request, and the overhead is always added.
// Cost: that of EffectiveLimits(). Pure: any thread.
// Source: the sums are those of PodLimits; what stands for a missing limit is our choice, see
//         MissingLimit in counted_limits.h.
std::vector<PartialLimit> PartialLimits(const PodResources& pod, const ResourceNames& names, bool use_status);

// Returns the names of the app containers and sidecars, in this order, that have no limit for `resource`
// where the pod level has none either. Cost: O(containers).
std::vector<std::string> ContainersWithoutLimit(const PodResources& pod, ResourceId resource,
                                                const ResourceNames& names, bool use_status);

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

// Tells whether some app container or sidecar requests no cpu, or no memory, and the pod level does not
// either: the pod may use more than the sum of its requests says. Cost: O(containers).
bool LacksRequests(const PodResources& pod);

// Tells whether the pod's quality of service class is BestEffort: nothing requests or limits cpu or memory
// above 0. Where pod-level resources are there, they alone decide, also when they are empty.
//
// Source: ComputePodQOS of k8s.io/kubernetes v1.36.3, pkg/apis/core/v1/helper/qos.
bool IsBestEffort(const PodResources& pod);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_

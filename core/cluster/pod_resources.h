#ifndef LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_
#define LOADLINE_CORE_CLUSTER_POD_RESOURCES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"

namespace loadline {

// The resources that the spec of a pod states of one container.
struct ContainerResources {
  std::string name;
  bool sidecar = false;  // an init container with restartPolicy Always; of no meaning for other containers
  ResourceList requests;
  ResourceList limits;
};

// The resources that the status of a pod states of one container. A list that is absent differs from an empty
// one.
struct ContainerStatusResources {
  std::string name;
  bool has_resources = false;             // status.resources is there, if empty; it holds the next two
  std::optional<ResourceList> requests;   // status.resources.requests: actuated
  std::optional<ResourceList> limits;     // status.resources.limits: actuated
  std::optional<ResourceList> allocated;  // status.allocatedResources
};

// How a pod on a node counts while it is resized in place: spec, allocated and actuated amounts differ then.
enum class ResizeRule {
  kPerContainer,  // the sum over the containers of the most of each: Kubernetes 1.36
  kPerPod,        // the most of the sums over the containers: Kubernetes 1.37
};

// The rule of Kubernetes 1.<minor>; of a release that is not known that of the nearest one.
constexpr ResizeRule ResizeRuleOf(int minor) {
  return minor < 37 ? ResizeRule::kPerContainer : ResizeRule::kPerPod;
}

// The resources that the spec of a pod states for all of its containers together.
struct PodLevelResources {
  ResourceList requests;
  ResourceList limits;
  // The lists name cpu, memory or huge pages, also such of which an amount of 0 was left out.
  bool sets_requests = false;
  bool sets_limits = false;
};

// The same in the status of a pod.
struct PodLevelStatusResources {
  std::optional<ResourceList> requests;
  std::optional<ResourceList> limits;
};

// The part of a pod that its effective requests and limits depend on. No amount is negative.
struct PodResources {
  absl::InlinedVector<ContainerResources, 2> containers;
  std::vector<ContainerResources> init_containers;  // in the order in which they run
  ResourceList overhead;
  std::optional<PodLevelResources> pod_level;  // spec.resources is there, if empty
  // The statuses of containers, then those of init containers. If several entries have one name, the last one
  // counts; per pod the first one.
  std::vector<ContainerStatusResources> container_statuses;
  std::optional<PodLevelStatusResources> pod_level_status;  // status.resources is there, if empty
  std::optional<ResourceList> pod_level_allocated;          // status.allocatedResources
  // The first condition of type PodResizePending has the reason Infeasible: the spec will not be acted upon.
  bool resize_infeasible = false;
  ResizeRule resize_rule = ResizeRule::kPerContainer;  // of no meaning for a pod without a status
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
// With `use_status`, as for a pod on a node, its status counts as well, by ResizeRule:
//
//   kPerContainer  A container or sidecar whose status has resources counts, per resource, the most of spec,
//                  actuated and (requests) allocated; after an infeasible resize without the spec. So does
//                  the pod level; of what it states, what its status lacks is then 0, while a status without
//                  any limit leaves the limits of the spec in force.
//   kPerPod        Containers add up three times, by spec, actuated and (requests) allocated amounts, and the
//                  most counts; after an infeasible resize without the first sum. What the status of a
//                  container lacks is what its spec says, or nothing after an infeasible resize. Where the
//                  status of the pod has amounts, they stand for the sums. What the pod level then sets is
//                  the most of its spec and the status of the pod.
//
// An incoming pod has no status to use.
//
// Result: absent where nothing states the resource; an explicit 0 stays an entry.
// Cost:   O(entries of all lists * log(resources)). Pure: any thread.
// Source: PodRequests and PodLimits of k8s.io/component-helpers v0.36.3 and v0.37.2, with UseStatusResources
//         and InPlacePodLevelResourcesVerticalScalingEnabled both set to `use_status`.
ResourceList EffectiveRequests(const PodResources& pod, const ResourceNames& names, bool use_status);
ResourceList EffectiveLimits(const PodResources& pod, const ResourceNames& names, bool use_status);

// Tells whether the pod level sets a resource for all containers together: cpu, memory and huge pages.
bool SetsPodLevel(absl::string_view resource);

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

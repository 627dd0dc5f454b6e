// How the limits of a pod add up of which some containers have none.
#ifndef LOADLINE_CORE_CLUSTER_PARTIAL_LIMITS_H_
#define LOADLINE_CORE_CLUSTER_PARTIAL_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/resource_names.h"
#include "core/cluster/pod_resources.h"

namespace loadline {

// How the limits of a pod's containers add up, for one resource of which some of them may have none. A limit
// of 0 caps nothing, and is a missing one. CPU in millicores, every other resource in its own unit.
struct PartialLimit {
  ResourceId resource{};
  // Every app container and sidecar has a limit, or the pod level has one, which then covers all of them.
  bool bounded = false;
  // Some container has a limit, ordinary init containers included.
  bool stated = false;
  // The amount of the pod if each app container and sidecar without a limit counts its request.
  int64_t by_request = 0;
  // The most of the sums in which an app container or sidecar without a limit counts nothing, and the most of
  // the other sums. The pod counts as the larger one of `with_gap` plus the amount in place of the gap, and
  // `whole`.
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
// Source: the sums are those of PodLimits; the amount of a missing limit is our choice, see
//         MissingLimit in counted_limits.h.
std::vector<PartialLimit> PartialLimits(const PodResources& pod, const ResourceNames& names, bool use_status);

// Returns the names of the app containers and sidecars, in this order, that have no limit for `resource`
// where the pod level has none either. Cost: O(containers).
std::vector<std::string> ContainersWithoutLimit(const PodResources& pod, ResourceId resource,
                                                const ResourceNames& names, bool use_status);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_PARTIAL_LIMITS_H_

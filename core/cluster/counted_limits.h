// The amount that the limits of one pod count as on one node: one rule for the score and for the load line.
#ifndef LOADLINE_CORE_CLUSTER_COUNTED_LIMITS_H_
#define LOADLINE_CORE_CLUSTER_COUNTED_LIMITS_H_

#include <cstdint>
#include <optional>

#include "core/base/amount.h"
#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"

namespace loadline {

// The source of a pod's limit.
enum class PodLimits {
  kEffective,  // PodShape::limits, for incoming and existing pods alike
  kProposal,   // PodShape::proposal_limits
};

// The pods that the rules for missing limits hold for.
enum class MissingLimitScope { kAllPods, kIncomingPod };

// The amount in place of a missing limit. With PodLimits::kEffective this is decided container by container:
// a limit at the pod level covers all of them; else each app container and sidecar without a limit counts
// by the rule, an ordinary init container without one counts its request, and the sums are those of effective
// limits, with the overhead. With PodLimits::kProposal the rule is for pods in which no container has a
// limit, and covers the whole pod.
enum class MissingLimit {
  kZero,         // nothing
  kRequest,      // the container's request
  kAllocatable,  // the allocatable of the node: one such container can use all of it
  kFixed,        // a fixed amount, once for all such containers of a pod
};

// The amount that a container without a limit counts as.
struct MissingLimitRule {
  MissingLimit rule = MissingLimit::kZero;
  int64_t fixed = 0;  // with kFixed: millicores or units, [0, 2^62]
  friend bool operator==(const MissingLimitRule&, const MissingLimitRule&) = default;
};

// How limits are counted, whatever the resource.
struct LimitCounting {
  PodLimits pod_limits = PodLimits::kEffective;
  MissingLimitScope missing_limit_scope = MissingLimitScope::kAllPods;
  // One pod counts on one node at most this many times the node's allocatable. [1, 1000]; 0: no bound.
  int32_t max_limit_ratio = 1;
  friend bool operator==(const LimitCounting&, const LimitCounting&) = default;
};

// The rules for missing limits of one resource.
struct LimitRules {
  MissingLimitRule best_effort;  // for pods of QoS class BestEffort
  MissingLimitRule others;       // for all other pods
  friend bool operator==(const LimitRules&, const LimitRules&) = default;
};

// One resource of a pod: what it counts as, but for the node.
struct PodLimit {
  bool limited = false;                     // has a limit, and not 0: if only of some containers
  bool missing = false;                     // a rule stood in for the limit of some container
  bool allocatable = false;                 // counts as the node's allocatable
  int64_t amount = 0;                       // else counts as this much
  int64_t at_most = kMaxAmount;             // as it is not expected to use more, and requests no more
  MissingLimit rule = MissingLimit::kZero;  // if missing: what stood in
};

// The amount that one pod counts as on one node.
struct CountedLimit {
  int64_t amount = 0;
  bool missing = false;  // a rule stood in for the limit of some container
  bool clamped = false;  // to max_limit_ratio times allocatable
};

// `role`: whether the pod is the one to be placed, which some countings treat by other rules. nullopt: the
// resource has no name yet, so that no pod states it. A placeholder of slack counts as its requests at most.
PodLimit PodLimitOf(const LimitCounting& counting, const LimitRules& rules, std::optional<ResourceId> id,
                    const PodShape& shape, PodRole role);

// Returns the amount that `limit` counts as on a node with this much allocatable; nothing where it is 0.
CountedLimit CountOnNode(int32_t max_limit_ratio, const PodLimit& limit, int64_t allocatable);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_COUNTED_LIMITS_H_

// Pods that Cluster Autoscaler takes for equal.
#ifndef LOADLINE_CORE_EXPAND_EQUIVALENCE_H_
#define LOADLINE_CORE_EXPAND_EQUIVALENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// The properties by which a pod is compared.
struct PodIdentity {
  std::string controller_uid;  // empty: no controller
  bool of_daemon_set = false;
  // Hash of labels and spec; of the spec without projected volumes, which differ from pod to pod.
  uint64_t content = 0;
};

// Groups positions in `pods`: pods of one controller that are equal, but no more than 10 groups per
// controller: pods that none of them takes stay alone, as do those of no controller or of a DaemonSet.
// Groups and the positions in each are in the order of their first pod. Cost: O(pods).
// Source: core/scaleup/equivalence/groups.go of Cluster Autoscaler.
std::vector<std::vector<size_t>> EquivalenceGroups(std::span<const PodIdentity> pods);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_EQUIVALENCE_H_

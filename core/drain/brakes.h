// When nothing may be removed, whatever a plan would say.
#ifndef LOADLINE_CORE_DRAIN_BRAKES_H_
#define LOADLINE_CORE_DRAIN_BRAKES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"

namespace loadline {

// Flags of Cluster Autoscaler for the first two, with its defaults.
struct BrakeOptions {
  int64_t ok_total_unready_count = 3;
  int64_t max_total_unready_percentage = 45;
  // How old a view may be.
  int64_t max_view_age_s = 60;
  // Kinds that the view has to hold completely.
  std::vector<ObjectKind> needed = {ObjectKind::kDisruptionBudget, ObjectKind::kReplicaSet,
                                    ObjectKind::kStatefulSet, ObjectKind::kDaemonSet, ObjectKind::kJob};
};

// Returns the reason for which the state of the cluster is uncertain: the view lacks a kind of objects, or is
// too old. `seen_s`: the time at which the state was last known to be current. Empty: the state is certain.
std::string WhatIsNotKnown(const ClusterObjects& objects, const BrakeOptions& options, int64_t seen_s,
                           int64_t now_s);

// Says what is wrong with the cluster: more nodes than both limits are not ready. Empty: nothing. Cost:
// O(nodes).
std::string WhatIsUnhealthy(const ClusterState& state, const BrakeOptions& options);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_BRAKES_H_

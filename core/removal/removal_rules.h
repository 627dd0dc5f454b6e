// How patient the removal of a node is.
#ifndef LOADLINE_CORE_REMOVAL_REMOVAL_RULES_H_
#define LOADLINE_CORE_REMOVAL_REMOVAL_RULES_H_

#include <cstdint>
#include <vector>

namespace loadline {

// Pods from this priority up to that of the next group are evicted together.
struct RemovalPriorityGroup {
  int32_t priority = 0;
  int64_t grace_s = 0;  // what their pods may take to end, whatever they state
};

// The defaults are those of the autoscaler. Times are not negative.
struct RemovalRules {
  int64_t delay_after_taint_ms = 5'000;
  // Between two attempts to evict a pod, give or take a fifth; and how long it is tried. 0: once.
  int64_t eviction_retry_ms = 10'000;
  int64_t max_pod_eviction_ms = 120'000;
  // The time that an evicted pod may take to end, whatever it states; and the time that it may take beyond
  // that.
  int64_t max_grace_s = 600;
  int64_t termination_headroom_ms = 30'000;
  // In place of max_grace_s: pods go group by group, from the lowest priority, those of DaemonSets as well. A
  // pod below the lowest group belongs to it. Sorted by priority, each once.
  std::vector<RemovalPriorityGroup> priority_groups;
  // How often it is looked whether pods have ended, and others still delay the deletion. > 0.
  int64_t poll_ms = 5'000;
  // The time for which independent nodes of a group are gathered for one call of the cloud.
  int64_t batch_interval_ms = 0;
  // The longest time for which annotations may delay the deletion of a node.
  int64_t deletion_delay_ms = 120'000;
  // The rule for pods of DaemonSets that do not say themselves whether they are evicted.
  bool evict_daemon_sets_of_empty = false;
  bool evict_daemon_sets_of_occupied = true;
  // Pods whose budgets refuse their eviction to the end are deleted.
  bool delete_despite_budgets = false;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_REMOVAL_RULES_H_

// Tells which pods without a node wait for one.
#ifndef LOADLINE_CORE_GROW_WAITING_H_
#define LOADLINE_CORE_GROW_WAITING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/pod_role.h"
#include "core/expand/estimate.h"
#include "core/grow/growth_batch.h"

namespace loadline {

// The rules by which pods without a node wait for one.
struct WaitingRules {
  // Pods of a lower priority do not.
  int32_t expendable_priority = kExpendablePriority;
  // Pods of these schedulers do so before they have been tried.
  std::vector<std::string> bypassed_schedulers;
  // Younger pods do not wait yet, unless `any_age`: no group grows for them, and they need room all the same.
  int64_t scale_up_delay_ms = 0;
  bool any_age = false;
};

// The facts of a cluster about equal pods without a node, beside their shape.
struct PendingFacts {
  // A scheduler has tried them, and found no node.
  bool unschedulable = false;
  // That they name.
  absl::string_view scheduler;
  // In place of WaitingRules::scale_up_delay_ms; nullopt: they state none.
  std::optional<int64_t> delay_ms;
  // The age of the youngest of them. >= 0.
  int64_t youngest_age_ms = kLongAgoMs;
};

// The reasons for which pods without a node do not wait for one.
enum class NotWaiting { kExpendable, kOfDaemonSet, kNotTried, kTooYoung };

// Returns the first reason why the pods do not wait; nullopt: they wait. Without a delay, or with one below
// 0, their age says nothing: the clock behind it may be wrong. Pure: any thread. Source: Cluster
// Autoscaler's --expendable-pods-priority-cutoff, --bypassed-scheduler-names, --new-pod-scale-up-delay, and
// the annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay.
std::optional<NotWaiting> WhyNotWaiting(const PodTraits& traits, const PendingFacts& facts,
                                        const WaitingRules& rules);

// Pods on nodes being deleted, see NodesBeingDeleted(), whose replacements need another node, equal ones
// together; in the order of the nodes, then of their shapes.
std::vector<PendingPods> PodsOfNodesBeingDeleted(const ClusterState& cluster, std::span<const Slot> deleting);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_WAITING_H_

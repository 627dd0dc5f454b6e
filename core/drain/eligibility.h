// May this node go at all: what is asked before any pod of it is moved.
#ifndef LOADLINE_CORE_DRAIN_ELIGIBILITY_H_
#define LOADLINE_CORE_DRAIN_ELIGIBILITY_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/drain/node_utilization.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// Flags of Cluster Autoscaler, with its defaults.
struct EligibilityOptions {
  double utilization_threshold = 0.5;
  double gpu_utilization_threshold = 0.5;
  UtilizationOptions utilization;
  bool scale_down_unready_enabled = true;
  friend bool operator==(const EligibilityOptions&, const EligibilityOptions&) = default;
};

// One node, and what is known of it beside the cluster.
struct NodeQuestion {
  Slot slot;
  // nullptr: it is in no group.
  const NodeGroup* group = nullptr;
  // Its deletion has begun.
  bool being_deleted = false;
  // Pods of nodes that go are to move there.
  bool destination = false;
  // Its group is `sized`, and the node is among those that are to go.
  bool chosen = false;
  // It takes part in a replacement: it is removed however full it is, or takes pods of nodes that are
  // removed.
  bool replaced = false;
  bool takes_replaced_pods = false;
  std::span<const DevicePool> pools = {};
};

// The answer whether a node may be removed, apart from its pods.
struct Eligibility {
  NodeReason reason{};  // kNone: it may go if its pods may
  // The utilization, where it was asked for and can be computed.
  std::optional<Utilization> utilization;
};

// Returns the first reason that holds, in the order that eligibility.cc shows; kNone: it may be removed if
// its pods may move. A node of a group that is sized and which is to stay does not count for its minimum.
// Cluster Autoscaler gives no reason for nodes at the minimum or in no group, and knows neither sizes nor
// destinations, nor Karpenter's annotation. That a node failed lately is for who remembers it.
//
// Cost: O(pods of the node). Source: cluster-autoscaler/core/scaledown/eligibility, f7bb0c36.
Eligibility CheckEligibility(const ClusterState& state, const NodeQuestion& question,
                             const EligibilityOptions& options, int64_t now_s);

// How full the node is as it is judged, and the share above which it stays: by the options, and by what its
// group says in their place. nullopt: it cannot be computed.
struct JudgedUtilization {
  std::optional<Utilization> utilization;
  double threshold = 0;
};
JudgedUtilization UtilizationOf(const ClusterState& state, const NodeQuestion& question,
                                const EligibilityOptions& options, int64_t now_s);

// Returns whether the node reports to be ready, and no taint says otherwise.
bool IsReady(const ClusterState& state, Slot slot);

// Returns why pods of nodes that go may not move to this node, whatever they tolerate: "not ready",
// "cordoned", or "virtual", where the pod pays for the room; empty: they may. Nodes that are being deleted
// take none either.
absl::string_view WhyNoDestination(const ClusterState& state, Slot slot);
inline bool TakesMovedPods(const ClusterState& state, Slot slot) {
  return WhyNoDestination(state, slot).empty();
}

// Seconds since 1970 that the value of a taint states; nullopt: no such taint, or its value is not a number.
std::optional<int64_t> TaintTime(const ClusterState& state, Slot slot, absl::string_view key);

// Returns whether the node is being deleted: its deletion was asked for, or a taint says so, see
// SaysBeingDeleted(), or kToBeDeletedTaint of less than 5 minutes, or of the future.
bool IsBeingDeleted(const ClusterState& state, Slot slot, int64_t now_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_ELIGIBILITY_H_

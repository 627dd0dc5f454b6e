// How full a node is, as Cluster Autoscaler computes it.
#ifndef LOADLINE_CORE_DRAIN_NODE_UTILIZATION_H_
#define LOADLINE_CORE_DRAIN_NODE_UTILIZATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/gpu_resources.h"

namespace loadline {

// The pods and labels that count for the utilization of a node.
struct UtilizationOptions {
  // --ignore-daemonsets-utilization, --ignore-mirror-pods-utilization.
  bool ignore_daemonsets = false;
  bool ignore_mirror_pods = false;
  // Labels that tell a node with GPUs, whatever their value.
  GpuLabelKeys gpu_labels;
  friend bool operator==(const UtilizationOptions&, const UtilizationOptions&) = default;
};

// Devices of one pool on a node.
struct DevicePool {
  std::string name;  // "driver.example.com/pool"
  int64_t devices = 0;
  int64_t allocated = 0;
  // All slices that the pool announces are there.
  bool complete = true;
};

// The utilization of a node: requests over allocatable.
struct Utilization {
  double value = 0;
  // The resource, or device pool, that is fullest.
  std::string resource;
  // Each by itself, where both count.
  double cpu = 0;
  double memory = 0;
  friend bool operator==(const Utilization&, const Utilization&) = default;
};

// Returns the larger one of cpu and memory, each
//   requests of the pods that count / (allocatable - requests of the pods that are ignored)
// On a node with a GPU label only GPUs count, those of the first of GpuResources() that it offers, and none
// where they are not there yet; else, on one with device
// pools, only the fullest pool. Ties: cpu before memory, pools by name. Pods that have been terminating for
// long are left out, and finished pods hold nothing. Where ignored pods leave nothing: 0 when no other pod
// requests any, else infinite; there Cluster Autoscaler divides by 0. nullopt: it cannot be computed, as the
// node does not offer cpu or memory, or a pool is incomplete.
//
// Cost: O(pods of the node). Source: cluster-autoscaler/simulator/utilization/info.go, f7bb0c36.
std::optional<Utilization> NodeUtilization(const ClusterState& state, Slot slot,
                                           const UtilizationOptions& options, int64_t now_s,
                                           std::span<const DevicePool> pools = {});

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_UTILIZATION_H_

// The amounts that one node adds to the totals of a cluster, which minima and maxima bound.
#ifndef LOADLINE_CORE_CLUSTER_NODE_OFFER_H_
#define LOADLINE_CORE_CLUSTER_NODE_OFFER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"

namespace loadline {

// GPUs by their type.
using GpuCounts = absl::btree_map<std::string, int64_t>;

// Allocatable amounts: CPU in millicores, memory in bytes, GPUs of one type. [0, kMaxAmount] each.
struct NodeOffer {
  int64_t cpu = 0;
  int64_t memory = 0;
  // Refers to the labels of the node; empty: it carries no label of GPUs.
  absl::string_view gpu_type = {};
  int64_t gpus = 0;
  friend bool operator==(const NodeOffer&, const NodeOffer&) = default;
};

// Returns what the node offers. The type of its GPUs is the value of the first of `gpu_labels` that it
// carries, their number what it offers of GpuResources(), which is 0 until a device plugin runs there. A node
// with devices and none of the labels has no type, and its GPUs count for nothing. Cost: O(labels). Source:
// processors/customresources/gpu_processor.go of Cluster Autoscaler.
NodeOffer OfferOf(const NodeShape& node, const ResourceNames& names, std::span<const std::string> gpu_labels);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_OFFER_H_

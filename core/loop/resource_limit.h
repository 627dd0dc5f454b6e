// The most that all nodes together may offer: --cores-total, --memory-total and --gpu-total.
#ifndef LOADLINE_CORE_LOOP_RESOURCE_LIMIT_H_
#define LOADLINE_CORE_LOOP_RESOURCE_LIMIT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/node_offer.h"
#include "core/expand/node_limits.h"

namespace loadline {

// The sum of what all nodes offer to pods may not exceed it; nullopt: no limit.
struct ClusterMaximum {
  std::optional<int64_t> milli_cpu;
  std::optional<int64_t> memory_bytes;
  // GPUs by their type; those of a type that is not there have no limit.
  GpuCounts gpus = {};
};

// Counts nodes against the maxima of the cluster. Amounts are allocatable, as for the minima, where Cluster
// Autoscaler takes the capacity of nodes: what kubelet and system reserve does not count.
class ResourceRoom {
 public:
  ResourceRoom() = default;  // no limit
  explicit ResourceRoom(const ClusterMaximum& maximum)
      : milli_cpu_(maximum.milli_cpu), memory_bytes_(maximum.memory_bytes), gpus_(maximum.gpus) {}

  bool unlimited() const { return !milli_cpu_.has_value() && !memory_bytes_.has_value() && gpus_.empty(); }

  // Returns the number of nodes with these amounts that may be added; nullopt: any number.
  NodeLimit MostNodes(const NodeOffer& node) const;
  // Takes so many such nodes, present or upcoming. If they are more than may be, nothing is left.
  void Take(const NodeOffer& node, int64_t nodes);
  // The resources of which one such node more would be too much: "cpu", "memory", then the type of its GPUs,
  // which refers to where that of `node` does.
  std::vector<absl::string_view> ExceededBy(const NodeOffer& node) const;

 private:
  // Returns what is left for GPUs of the node.
  std::optional<int64_t> GpusLeft(const NodeOffer& node) const;

  // The rest; nullopt: there is no limit.
  std::optional<int64_t> milli_cpu_;
  std::optional<int64_t> memory_bytes_;
  GpuCounts gpus_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_RESOURCE_LIMIT_H_

// The most that nodes together may offer: --cores-total, --memory-total and --gpu-total, and quotas.
#ifndef LOADLINE_CORE_GROW_RESOURCE_LIMIT_H_
#define LOADLINE_CORE_GROW_RESOURCE_LIMIT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/labels.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_offer.h"
#include "core/expand/node_limits.h"

namespace loadline {

// The sum of what the selected nodes offer to pods may not exceed it; nullopt: no limit.
struct NodeMaximum {
  std::string name;  // empty: the maximum is not named in reasons
  LabelSelector
      selector;  // by default of all nodes; the hostname is no label of new nodes, and never matches
  std::optional<int64_t> nodes;
  std::optional<int64_t> milli_cpu;
  std::optional<int64_t> memory_bytes;
  // GPUs by their type; those of a type that is not there have no limit.
  GpuCounts gpus = {};
  // Groups whose new nodes are selected whatever their templates say: see ResourceRoom::Learn().
  std::vector<GroupIndex> groups = {};
};

// A node as maxima count it.
struct CountedNode : NodeOffer {
  const Labels* labels = nullptr;  // without the hostname, not null where a maximum has a selector
  std::optional<GroupIndex> group = std::nullopt;  // of a new node
};

// Counts nodes against the maxima of the cluster, which may overlap. Amounts are allocatable, as for the
// minima, where Cluster Autoscaler takes the capacity of nodes: what kubelet and system reserve does not
// count.
class ResourceRoom {
 public:
  ResourceRoom() = default;  // no limit
  explicit ResourceRoom(std::vector<NodeMaximum> maxima) : left_(std::move(maxima)) {}

  bool unlimited() const { return left_.empty(); }

  // Takes in the labels of the nodes of a group: its new nodes are selected where more than half of these
  // are. A template often lacks the labels that kubelets or controllers add. Cost: O(maxima * labels).
  void Learn(GroupIndex group, std::span<const Labels* const> labels);
  // Returns the number of such nodes that may be added; nullopt: any number.
  NodeLimit MostNodes(const CountedNode& node) const;
  // Takes so many such nodes, present or upcoming. If they are more than may be, nothing is left.
  void Take(const CountedNode& node, int64_t nodes);
  // Returns what one such node more would exceed: "cpu", "memory", the type of its GPUs, or "nodes", each
  // with " of " and the name of the maximum if it has one.
  std::vector<std::string> ExceededBy(const CountedNode& node) const;
  // Returns whether a tenth is left of each of `maxima`, which this was made of, that counts such a node. A
  // number of nodes counts only for selected nodes: of all nodes, one large node takes fewer than small ones.
  bool LeavesTenth(const CountedNode& node, std::span<const NodeMaximum> maxima) const;

 private:
  std::vector<NodeMaximum> left_;  // the rest of each
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_RESOURCE_LIMIT_H_

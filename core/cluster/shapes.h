// What makes two pods, or two nodes, the same for every decision.
#ifndef LOADLINE_CORE_CLUSTER_SHAPES_H_
#define LOADLINE_CORE_CLUSTER_SHAPES_H_

#include <cstdint>
#include <string>

#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/pod_resources.h"

namespace loadline {

// What pods that differ only in name, UID and node have in common. Amounts: CPU in millicores, every other
// resource in its own unit, [0, 2^62].
struct PodShape {
  // metadata.namespace.
  std::string namespace_name;
  // Succeeded or Failed: holds nothing, all amounts are absent.
  bool finished = false;
  // QoS class BestEffort.
  bool best_effort = false;
  // Effective requests and limits. An absent resource is not requested or not limited.
  ResourceAmounts requests;
  ResourceAmounts limits;
  // Limits as the limit-aware proposal's own functions count them.
  ResourceAmounts proposal_limits;
  // Hash of all of the above, with resources by name: the same in every view and on every machine.
  uint64_t fingerprint = 0;

  friend bool operator==(const PodShape&, const PodShape&) = default;
};

// What is known of a pod whose resources are to be counted.
enum class PodRole {
  kIncoming,  // not placed yet: its status is not read
  kExisting,  // bound or assumed: its status may hold resources of a resize
};

// Works out the shape of a pod. `names` has the names of all resources in `resources`.
PodShape MakePodShape(std::string namespace_name, bool finished, const PodResources& resources,
                      const ResourceNames& names, PodRole role);

// What nodes that differ only in name have in common.
struct NodeShape {
  // What the node offers to pods; an absent resource is not offered.
  ResourceAmounts allocatable;
  // As in PodShape.
  uint64_t fingerprint = 0;

  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};

NodeShape MakeNodeShape(ResourceAmounts allocatable, const ResourceNames& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SHAPES_H_

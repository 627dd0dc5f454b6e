// Pods and nodes of a scenario as the planners and filters know them.
#ifndef LOADLINE_CORE_SIM_SHAPES_OF_H_
#define LOADLINE_CORE_SIM_SHAPES_OF_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/resource_names.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"
#include "core/fit/node_filter.h"
#include "core/sim/scenario.h"

namespace loadline {

// All workloads live in it.
inline constexpr char kSimNamespace[] = "default";

// Shapes are made when they are asked for: who needs one often keeps it.
class ShapesOf {
 public:
  // `scenario` outlives the object.
  explicit ShapesOf(const Scenario& scenario);

  // All that shapes refer to.
  const ResourceNames& names() const { return names_; }

  // A pod without a node.
  IncomingPod Incoming(SimWorkloadIndex workload) const;
  // One on a node. `deleted_s`: it is terminating.
  PodShape OnNode(SimWorkloadIndex workload, bool ready,
                  std::optional<int64_t> deleted_s = std::nullopt) const;
  // Without devices, where they are not offered yet. `labelled`: by hand.
  NodeShape Node(GroupIndex group, bool devices, bool labelled = false) const;
  PodOwner Owner(SimWorkloadIndex workload) const;
  static ObjectKind KindOf(const SimWorkload& workload);
  // Returns the UID of the object itself, whatever its pods say.
  static std::string UidOf(SimWorkloadIndex workload);

 private:
  const SimWorkload& At(SimWorkloadIndex workload) const { return scenario_.workloads[workload]; }
  PodShape Make(SimWorkloadIndex workload, PodTraits traits) const;

  const Scenario& scenario_;
  ResourceNames names_;
  ResourceId pods_;
  ResourceId gpus_;
};

// Returns taints of several platforms that are removed when a node has started; a new node may have one of
// them.
std::span<const Taint> SimStartupTaints();
// Returns the taint that an operator puts on a node.
Taint SimHandTaint();

// Pods of a workload carry it, with the workload's name, so that its budget selects them.
inline constexpr char kSimAppLabel[] = "app";

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SHAPES_OF_H_

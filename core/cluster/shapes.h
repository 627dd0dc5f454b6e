// The properties that make two pods, or two nodes, the same for every decision.
#ifndef LOADLINE_CORE_CLUSTER_SHAPES_H_
#define LOADLINE_CORE_CLUSTER_SHAPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_list.h"
#include "core/base/resource_names.h"
#include "core/cluster/labels.h"
#include "core/cluster/partial_limits.h"
#include "core/cluster/pod_resources.h"
#include "core/cluster/pod_rules.h"
#include "core/cluster/pod_traits.h"

namespace loadline {

// The properties that pods have in common which differ only in name, UID and node. Amounts: CPU in
// millicores, every other resource in its own unit, [0, 2^62].
struct PodShape {
  // metadata.namespace.
  std::string namespace_name;
  // Succeeded or Failed: holds nothing, all amounts are absent.
  bool finished = false;
  // QoS class BestEffort.
  bool best_effort = false;
  // The pod requests cpu and memory, and yet one of its containers does not: see LacksRequests().
  bool partly_requested = false;
  // Effective requests and limits. An absent resource is not requested or not limited.
  ResourceAmounts requests;
  ResourceAmounts limits;
  // How limits add up where not every container has one: by resource, those for which effective amounts do
  // not tell; see LimitOf(). nullptr: none.
  std::shared_ptr<const std::vector<PartialLimit>> partial_limits;
  // Limits as the limit-aware proposal's own functions count them.
  ResourceAmounts proposal_limits;
  // The rules about where it may run; nullptr for a plain pod, which may run anywhere. A finished pod keeps
  // none.
  std::shared_ptr<const PodRules> rules;
  // The traits that planners read; nullptr: a default PodTraits. A finished pod keeps them.
  std::shared_ptr<const PodTraits> traits;
  // The labels of the pod that selectors may ask for: see SelectLabels(). A finished pod keeps none.
  Labels labels;
  // Hash of all of the above but the labels, with resources by name: the same in every view and on every
  // machine.
  uint64_t base_fingerprint = 0;
  // Likewise of all of the above.
  uint64_t fingerprint = 0;

  friend bool operator==(const PodShape& a, const PodShape& b);
};

// The state of a pod whose resources are to be counted.
enum class PodRole {
  kIncoming,  // not placed yet: its status is not read
  kExisting,  // bound or assumed: its status may hold resources of a resize
};

// Works out the shape of a pod, without labels. `names` has the names of all resources in `resources`.
PodShape MakePodShape(std::string namespace_name, bool finished, const PodResources& resources,
                      const ResourceNames& names, PodRole role, PodRules rules = {}, PodTraits traits = {});

// Returns the room that a pod takes: a shape of the same requests and limits, without rules, traits and
// labels.
PodShape RoomOf(const PodShape& shape, const ResourceNames& names);

// Returns how the limits of the pod's containers add up. Cost: O(resources of the pod).
PartialLimit LimitOf(const PodShape& shape, ResourceId resource);

// Returns a hash of what filters read of a pod: namespace, requests with resources by name, rules and labels.
// Pods of two owners that fit the same nodes have the same one. `names` has the names of all resources.
uint64_t FilterFingerprint(const PodShape& shape, const ResourceNames& names);

// Returns what planners read of pods of this shape.
const PodTraits& TraitsOf(const PodShape& shape);

// Keys of labels that selectors refer to, sorted.
using LabelKeys = std::vector<std::string>;

// Gives a shape without labels those of `labels` whose keys are in `keys`. Labels that no selector refers to
// decide nothing and would make a shape of every pod of a StatefulSet or Job.
void SelectLabels(const Labels& labels, const LabelKeys& keys, PodShape* shape);

// Puts `labels` in place of those that the shape has.
void SetLabels(Labels labels, PodShape* shape);

// Takes the rules with selectors over pods out of a shape, and says why in PodTraits::unreadable.
void LeaveOutSelectors(const std::string& reason, PodShape* shape);

// Takes all rules out of a shape but for how the pod ends, and says why in PodTraits::unreadable.
void LeaveOutRules(const std::string& reason, PodShape* shape);

// Returns the hash of a shape with all labels of its pod.
uint64_t FingerprintWithLabels(uint64_t base_fingerprint, const Labels& labels);

// The properties that nodes have in common which differ only in name.
struct NodeShape {
  // The amounts that the node offers to pods; an absent resource is not offered.
  ResourceAmounts allocatable;
  // All but the hostname.
  Labels labels;
  std::vector<Taint> taints;
  // spec.unschedulable.
  bool unschedulable = false;
  // status.declaredFeatures, sorted.
  std::vector<std::string> declared_features;
  // The node whose CSINode shows what a planned node will have. Empty: there is none, or it is no planned
  // node and has one under its own name.
  std::string csi_node;
  // The number of volumes that a planned node takes, by CSI driver, as the template of its group states it.
  // It holds for the drivers of which the CSINode says nothing.
  absl::btree_map<std::string, int64_t> volume_limits;
  // Same as PodRules::unknown_field.
  std::string unknown_field;
  // Hash of all of the above but taints, schedulability, CSINode and limits of volumes, with resources by
  // name.
  uint64_t base_fingerprint = 0;
  // Likewise of all of the above.
  uint64_t fingerprint = 0;

  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};

// Sorts the declared features and works out the fingerprints of a shape of which all else is set. Labels come
// without the hostname.
NodeShape CompleteNodeShape(NodeShape shape, const ResourceNames& names);

// Returns the complete shape of a node that has nothing else.
NodeShape MakeNodeShape(ResourceAmounts allocatable, const ResourceNames& names, Labels labels = {},
                        std::vector<Taint> taints = {}, bool unschedulable = false);

// Returns a copy of a complete shape with these taints and this schedulability: the only way to copy a shape
// in part, so that whatever else a node has is copied too.
NodeShape Retainted(NodeShape shape, std::vector<Taint> taints, bool unschedulable);

// Returns what a node offers, and whether it takes pods, without labels and taints. Nobody can say what fits
// there, as it states more of `field` than was taken.
NodeShape WithoutRules(const NodeShape& shape, absl::string_view field, const ResourceNames& names);

// Returns a copy that is a planned node, which will have what the CSINode of `model` has.
NodeShape WithCsiNodeOf(NodeShape shape, std::string model);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SHAPES_H_

// The model of a new node of a group, and its source.
#ifndef LOADLINE_CORE_CLUSTER_NODE_MODEL_H_
#define LOADLINE_CORE_CLUSTER_NODE_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/cluster/startup_taints.h"

namespace loadline {

// The source of the template of a group.
enum class ModelSource {
  kStated,  // the template of the cloud, or of a file
  kShared,  // the properties that most of its nodes share
  kSingle,  // its only node
};
// Returns "template", "shared by most nodes" or "one node".
absl::string_view Name(ModelSource source);

// The template of the next node of a group, with its source.
struct NodeModel {
  NodeShape shape;  // without a cordon, and without taints that come and go
  ModelSource source = ModelSource::kStated;
  // The number of nodes of the group that were read.
  int64_t nodes = 0;
  // The zones of these nodes, sorted, where they are in several and no template says otherwise. `shape` is of
  // the first of those with the fewest nodes.
  std::vector<std::string> zones;
  // The static pods that kubelet runs on it: requests and limits of those that more than half of the nodes
  // have, such as kube-proxy.
  std::vector<PodShape> static_pods;

  // Equal for models of which new nodes are the same for every decision.
  uint64_t Fingerprint() const;
};

// Adds a new node, which has nothing but its static pods. `name` is also its hostname.
NodeIndex AddNodeOf(const NodeModel& model, const std::string& name, Snapshot* snapshot);

// The value of a label that more than half of the nodes of a group have with different values: no pod selects
// it, and it is a domain of its own.
inline constexpr char kOneOfSeveral[] = "one-of-several";

// Returns whether a node is to go: it is being deleted, or a taint that repels pods says so.
bool IsLeaving(const ClusterState& cluster, Slot slot, const StartupTaints& startup_taints);

// The amounts of nodes that have the same.
struct NodeAmounts {
  const ResourceAmounts* amounts;
  int64_t nodes;
};

// Returns the amounts that nodes share, as in the model of a group without a template; see ModelOfNewNode().
// Cost: O(entries * resources).
ResourceAmounts SharedAmounts(std::span<const NodeAmounts> nodes, const ResourceNames& names);

// The facts about a group from which its model follows.
struct GroupNodes {
  // The template of the cloud or of a file; nullptr: there is none.
  const NodeShape* stated = nullptr;
  // Its nodes; and those of them, sorted, that do not offer all devices of the group yet.
  std::span<const Slot> nodes;
  std::span<const Slot> lacking;
};

// Returns the nodes of a group that show what a new one will be: the healthy ones (ready and schedulable,
// without a taint of a node that starts or is to go) that have all devices, and of which it is known what
// they offer; where there is none, all of them. Where they are of several sizes, those of one type of
// machine: of the template's, else of the most frequent type, the smallest of equally frequent ones. In the
// order of GroupNodes::nodes.
std::vector<Slot> ExamplesOf(const ClusterState& cluster, const GroupNodes& group,
                             const StartupTaints& startup_taints);

// Works out what a new node of a group will be. nullopt: nobody says it, and there is no node.
//
// The nodes that count are those of ExamplesOf().
//
// With a template, labels and taints are those of the template: what people and controllers have put on nodes
// since says nothing of the next one. The labels of kubelets and clouds that it leaves out (zone, type,
// system and architecture) are those of its nodes; without any, the system is Linux and the architecture
// amd64. Amounts are those of the template, or the lower ones that nodes show, unless these are not more than
// half of them: clouds do not know what kubelets reserve, and a template with twice the hardware is newer
// than the nodes. Resources and features of which the template says nothing are those that more than half of
// the nodes have. Devices that no more than half of the healthy nodes offer are left out, if there is a
// healthy node: their driver has not come in the time that a start may take.
//
// Without a template, labels, taints and features are those that more than half of the nodes have. Labels and
// taints are also those of more than half of the nodes that have started, cordoned ones included: the only
// node without a cordon is no model of the others. If more than half carry a label with different values, it
// is kOneOfSeveral; of types of machines the most frequent one counts, and a label that names a machine or a
// pool has no value. The type, the system and the architecture have a value where nodes state it by different
// keys, too. The amount of a resource is the least among the nodes that offer it, where more than half do;
// nodes that offer less than three quarters of what more than half offer at least are passed over, as limited
// by hand. Of devices, which come in whole numbers, it is what more than half offer at least.
//
// Labels that name a zone or a region, see IsZoneLabel(), have one of several values where nodes are in
// several zones. A cloud evens them out, whatever their state: the next node is expected in the zone with the
// fewest nodes, the first by name among equals. A pod that selects another zone gets no node of this group
// until it is that one's turn.
//
// The static pods are those of most nodes, and the CSINode is that of most with a driver, whether or not
// there is a template. Limits of volumes that the template states are kept.
//
// `names`: those of the cluster, and of the resources in `stated`.
//
// The result depends on names of nodes only where nothing else tells CSINodes apart.
// Cost: O(nodes * (labels + resources) + pods of these nodes). Deterministic; pure.
std::optional<NodeModel> ModelOfNewNode(const ClusterState& cluster, const GroupNodes& group,
                                        const StartupTaints& startup_taints, const ResourceNames& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_MODEL_H_

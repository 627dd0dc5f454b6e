// The node groups of a cluster whose owner named none, as its nodes show them.
#ifndef LOADLINE_CORE_OBSERVE_DERIVED_GROUPS_H_
#define LOADLINE_CORE_OBSERVE_DERIVED_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/startup_taints.h"
#include "core/price/capacity_type.h"

namespace loadline {

// A node group that was derived from its nodes.
struct DerivedGroup {
  // Unique. Pool, instance type or size, zone, and what else is not as it is on most nodes anywhere: capacity
  // type, operating system, architecture, roles, taints; behind them labels that divide nodes which are
  // equal in all of that. A long one ends in its fingerprint; see BoundedName().
  std::string name;
  // In name order of the nodes, at least one.
  std::vector<Slot> nodes;
};

// All derived groups, and the group of each node.
struct DerivedGroups {
  StrongVector<GroupIndex, DerivedGroup> groups;  // by name
  GroupsOfNodes group_of;
};

// Puts each machine into one group: nodes are of one group where no pod of the cluster can tell them apart
// and a platform made them alike. They have the same pool, instance type (where none is stated: capacity),
// zone, capacity type, operating system, architecture, roles, lasting taints, and labels that pods of the
// cluster select nodes by. Nodes of the control plane and virtual ones are in none.
//
// A selected label that names machines, such as a serial number, divides nothing, as the hostname does not:
// it has more than 16 values, and more than half as many as nodes have the label. Otherwise one pod could
// make each node a group.
//
// Names of nodes decide nothing. Labels that pods select by divide in the order of their keys, and are in a
// name only where they divide. The part with the first value (none, then in the order of bytes) keeps the
// name. A new or a deleted pod thus renames no group that its label does not divide, and none at all if its
// label is behind all others. If its label is before another one by which a group is divided already, the
// parts of that group get new names.
//
// A node whose GPUs have yet to come is in the group of nodes with GPUs that are like it in all else, if
// there is one alone: it names their type by a label, or it is so young at `now_s` that it may have yet to
// start, and no older node is like it. A node of a pool that its cloud has yet to label is in the only group
// of the pool: it is as young, has a startup taint and no type.
//
// `startup_taints`: names of the cluster beside the well-known ones. `now_s`: seconds since 1970; 0: not
// known. Cost: O(nodes * labels + shapes of pods). Pure.
DerivedGroups DeriveGroups(const ClusterState& cluster, const StartupTaints& startup_taints, int64_t now_s);

// The facts about nodes that prices depend on beside type and size, as far as more than half of those of
// ExamplesOf() agree. One node says nothing of the next one.
struct PriceFacts {
  std::string stated_price;  // as in NodeTraits; empty: there is none
  CapacityType capacity_type = CapacityType::kUnknown;
  std::string cloud;  // the scheme of their provider ids, such as "aws"; empty: none is known
  std::string region;
  std::string operating_system;
};
// Cost: O(nodes * known labels).
PriceFacts PriceFactsOf(const ClusterState& cluster, const GroupNodes& group,
                        const StartupTaints& startup_taints);

// Returns the cloud that more than half of the machines of a cluster are of, as in PriceFacts: that of groups
// without nodes, too. Cost: O(nodes).
std::string CloudOfCluster(const ClusterState& cluster);

// A node that is to come.
struct NodeToCome : PriceFacts {
  NodeModel model;
  ResourceAmounts capacity;  // as NodeTraits::capacity, but never empty
};

// Returns what a new node of a group without a template is: the shape as ModelOfNewNode() has it, with what
// prices read beside it, and the capacity of the nodes by the rule for amounts of models. Precondition: it
// has at least one node. Cost: O(nodes * labels).
NodeToCome NewNodeOf(const ClusterState& cluster, const GroupNodes& group,
                     const StartupTaints& startup_taints);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_DERIVED_GROUPS_H_

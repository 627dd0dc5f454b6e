// Node types at list prices as groups of the core.
#ifndef LOADLINE_TEST_COST_GROUPS_H_
#define LOADLINE_TEST_COST_GROUPS_H_

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/node_group.h"
#include "test/cost/scenarios.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/units.h"

namespace loadline::cost {

// Returns a node of a type.
inline FitNode NodeOf(const std::string& name, const NodeKind& type) {
  return {.name = name,
          .allocatable = {{"cpu", type.milli_cpu}, {"memory", type.memory_mib * kMi}, {"pods", type.pods}}};
}

// Returns the groups of these types, which may grow without end. `Groups`: NodeGroups or GrowableGroups.
template <typename Groups>
Groups GroupsOf(const std::vector<NodeKind>& types, FitCluster* cluster) {
  Groups groups;
  for (const NodeKind& type : types) {
    NodeGroup group;
    group.name = type.name;
    group.max_nodes = 100'000;
    group.model = NodeModel{cluster->Shape(NodeOf(type.name, type))};
    group.usd_per_hour = type.usd_per_hour;
    group.priced.given = type.usd_per_hour;
    group.priced.milli_cpu = type.cpus * 1'000;
    group.priced.memory_bytes = type.memory_mib * kMi;
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace loadline::cost

#endif  // LOADLINE_TEST_COST_GROUPS_H_

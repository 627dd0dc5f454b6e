// A node group and its cloud, to run several passes of SizeGroup() on.
#ifndef LOADLINE_TEST_TESTING_GROUP_SIMULATION_H_
#define LOADLINE_TEST_TESTING_GROUP_SIMULATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/size/size_group.h"

namespace loadline {

class GroupSimulation {
 public:
  // True if nodes that were asked of the cloud appear before the next pass.
  bool nodes_arrive = true;
  CpuMemory node_size;
  SizeOptions options;
  GroupFacts facts;
  GroupState state;
  int64_t cloud_target = 0;

  void AddNodes(int64_t count, NodeClass node_class, int64_t created_ms) {
    for (int64_t i = 0; i < count; ++i) {
      GroupNode node;
      node.name = "node-" + std::to_string(1'000'000 + next_++);
      node.node_class = node_class;
      node.allocatable = node_size;
      node.created_ms = created_ms;
      node.empty = true;
      if (node_class == NodeClass::kTainted) node.tainted_ms = created_ms;
      facts.nodes.push_back(node);
    }
    cloud_target += count;
  }

  // Decides a pass and does what it says. The value of a taint has whole seconds.
  SizeDecision Pass(int64_t now_ms) {
    facts.cloud_target = cloud_target;
    SizeDecision decision = SizeGroup(options, facts, state, now_ms);
    state = decision.next;
    for (const std::vector<size_t>* list : {&decision.taint, &decision.taint_unhealthy}) {
      for (const size_t i : *list) {
        facts.nodes[i].node_class = NodeClass::kTainted;
        facts.nodes[i].tainted_ms = now_ms / 1000 * 1000;
      }
    }
    for (const size_t i : decision.untaint) {
      facts.nodes[i].node_class = NodeClass::kUntainted;
      facts.nodes[i].tainted_ms.reset();
    }
    std::vector<size_t> removed = decision.remove;
    std::sort(removed.begin(), removed.end());
    for (size_t i = removed.size(); i-- > 0;) {
      facts.nodes.erase(facts.nodes.begin() + static_cast<std::ptrdiff_t>(removed[i]));
    }
    cloud_target += decision.ask_cloud - static_cast<int64_t>(removed.size());
    if (nodes_arrive) {
      const int64_t target = cloud_target;
      AddNodes(decision.ask_cloud, NodeClass::kUntainted, now_ms);
      cloud_target = target;
    }
    return decision;
  }

  int64_t Count(NodeClass node_class) const {
    return std::count_if(facts.nodes.begin(), facts.nodes.end(),
                         [&](const GroupNode& node) { return node.node_class == node_class; });
  }

 private:
  int64_t next_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_GROUP_SIMULATION_H_

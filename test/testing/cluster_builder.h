// Builds clusters for tests, in a line per node.
#ifndef LOADLINE_TEST_TESTING_CLUSTER_BUILDER_H_
#define LOADLINE_TEST_TESTING_CLUSTER_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/shapes.h"

namespace loadline {

// Amounts by resource name: cpu in millicores, the rest in units.
using NamedAmounts = std::vector<std::pair<std::string, int64_t>>;

// A pod by what it counts as.
struct TestPod {
  NamedAmounts limits = {};
  NamedAmounts requests = {};
  bool best_effort = false;
  bool finished = false;
};

class ClusterBuilder {
 public:
  // Puts a node with its pods into the next slot.
  ClusterBuilder& Node(const std::string& name, const NamedAmounts& allocatable,
                       const std::vector<TestPod>& pods = {}) {
    return NodeAt(next_slot_++, name, allocatable, pods);
  }

  ClusterBuilder& NodeAt(int32_t slot, const std::string& name, const NamedAmounts& allocatable,
                         const std::vector<TestPod>& pods = {}) {
    NodeShape shape = MakeNodeShape(Amounts(allocatable), names_);
    std::vector<PodContent> contents;
    for (const TestPod& pod : pods) {
      PodShape pod_shape = Shape(pod);
      const uint64_t fingerprint = pod_shape.fingerprint;
      contents.push_back({cluster_->pod_shapes().Acquire(std::move(pod_shape)), 0, "", "", fingerprint});
    }
    cluster_->set_resource_names(names_);
    cluster_->SetNode(Slot{slot}, name, std::move(shape), contents);
    return *this;
  }

  // A pod in this cluster's resource ids.
  PodShape Shape(const TestPod& pod) {
    PodShape shape;
    shape.best_effort = pod.best_effort;
    shape.finished = pod.finished;
    if (!pod.finished) {
      shape.requests = Amounts(pod.requests);
      shape.limits = Amounts(pod.limits);
      shape.proposal_limits = shape.limits;
    }
    shape.fingerprint = ++fingerprint_;
    cluster_->set_resource_names(names_);
    return shape;
  }

  ClusterState& cluster() { return *cluster_; }

 private:
  ResourceAmounts Amounts(const NamedAmounts& amounts) {
    ResourceAmounts result;
    for (const auto& [name, amount] : amounts) result[names_.Intern(name)] = amount;
    return result;
  }

  ResourceNames names_;
  std::unique_ptr<ClusterState> cluster_ = std::make_unique<ClusterState>();
  int32_t next_slot_ = 0;
  uint64_t fingerprint_ = 0;
};

// All occupied slots of a cluster, in order.
inline std::vector<Slot> AllSlots(const ClusterState& cluster) {
  std::vector<Slot> slots;
  for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) {
    if (cluster.Occupied(Slot{slot})) slots.push_back(Slot{slot});
  }
  return slots;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_CLUSTER_BUILDER_H_

// Builds clusters, pods and rules for tests of what fits where.
#ifndef LOADLINE_TEST_TESTING_FIT_CLUSTER_H_
#define LOADLINE_TEST_TESTING_FIT_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/shapes.h"
#include "core/fit/node_filter.h"

namespace loadline {

// The label that says in which zone a node is.
inline constexpr char kZone[] = "topology.kubernetes.io/zone";

// A pod that waits, or one on a node. Amounts by resource name: cpu in millicores, the rest in units.
struct FitPod {
  std::string namespace_name = "default";
  std::vector<std::pair<std::string, int64_t>> requests = {};
  std::vector<Label> labels = {};
  PodRules rules = {};
  PodTraits traits = {};
  std::string name = {};
  std::string uid = {};
  std::vector<std::pair<std::string, int64_t>> limits = {};
};

struct FitNode {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> allocatable = {{"cpu", 4000}, {"memory", 16}, {"pods", 110}};
  std::vector<Label> labels = {};
  std::vector<Taint> taints = {};
  bool unschedulable = false;
  NodeTraits traits = {};
};

class FitCluster {
 public:
  // Puts a node with its pods into the next slot. Its hostname is its name.
  void Add(const FitNode& node, const std::vector<FitPod>& pods = {}) { Put(Slot{next_slot_++}, node, pods); }

  // Into this one, in place of what was there.
  void Put(Slot slot, const FitNode& node, const std::vector<FitPod>& pods) {
    const std::vector<int32_t> former = std::exchange(acquired_[slot], {});
    NodeShape node_shape = Shape(node);
    std::vector<PodContent> contents;
    for (const FitPod& pod : pods) {
      PodShape shape = Shape(pod);
      const uint64_t fingerprint = shape.fingerprint;
      contents.push_back({state_->pod_shapes().Acquire(std::move(shape)), 0, pod.name, pod.uid, fingerprint});
      acquired_[slot].push_back(contents.back().shape);
    }
    state_->set_resource_names(names_);
    state_->SetNode(slot, node.name, std::move(node_shape), contents, node.name, node.traits);
    for (const int32_t shape : former) state_->pod_shapes().Release(shape);
  }
  void Remove(Slot slot) {
    state_->RemoveNode(slot);
    for (const int32_t shape : std::exchange(acquired_[slot], {})) state_->pod_shapes().Release(shape);
  }

  NodeShape Shape(const FitNode& node) {
    ResourceAmounts allocatable;
    for (const auto& [name, amount] : node.allocatable) allocatable[names_.Intern(name)] = amount;
    return MakeNodeShape(std::move(allocatable), names_, Labels(node.labels), node.taints,
                         node.unschedulable);
  }

  PodShape Shape(const FitPod& pod) {
    PodResources resources;
    ContainerResources& container = resources.containers.emplace_back();
    for (const auto& [name, amount] : pod.requests) {
      const ResourceId id = names_.Intern(name);
      container.requests[id] = id == kCpu ? Quantity::FromMilli(amount) : Quantity::FromUnits(amount);
    }
    for (const auto& [name, amount] : pod.limits) {
      const ResourceId id = names_.Intern(name);
      container.limits[id] = id == kCpu ? Quantity::FromMilli(amount) : Quantity::FromUnits(amount);
    }
    PodShape shape = MakePodShape(pod.namespace_name, HasFinished(pod.traits.phase), resources, names_,
                                  PodRole::kIncoming, pod.rules, pod.traits);
    if (!pod.labels.empty()) SetLabels(Labels(pod.labels), &shape);
    return shape;
  }

  IncomingPod Incoming(const FitPod& pod, std::string name = "", std::string uid = "") {
    IncomingPod incoming;
    incoming.shape = Shape(pod);
    incoming.name = std::move(name);
    incoming.uid = std::move(uid);
    incoming.names = names_;
    return incoming;
  }

  ClusterState& state() { return *state_; }
  const ClusterState& state() const { return *state_; }
  // All names that shapes of this cluster refer to.
  const ResourceNames& names() const { return names_; }

 private:
  ResourceNames names_;
  std::unique_ptr<ClusterState> state_ = std::make_unique<ClusterState>();
  int32_t next_slot_ = 0;
  std::map<Slot, std::vector<int32_t>> acquired_;  // shapes of the pods there
};

inline Labels MakeLabels(std::vector<Label> labels) { return Labels(std::move(labels)); }

// Selects pods with that label.
inline LabelSelector Select(const std::string& key, const std::string& value) {
  return {false, {{key, SelectorOperator::kIn, {value}}}};
}

inline AffinityTerm Term(LabelSelector selector, std::string topology_key,
                         std::vector<std::string> namespaces = {"default"}) {
  return {std::move(selector), std::move(topology_key), std::move(namespaces), LabelSelector{true, {}}};
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_FIT_CLUSTER_H_

// Clusters for tests of the drain planner: objects as tests state them, and the questions made of them.
#ifndef LOADLINE_TEST_CORE_DRAIN_DRAIN_CLUSTER_H_
#define LOADLINE_TEST_CORE_DRAIN_DRAIN_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/drain/node_reason.h"
#include "core/drain/planner.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {

inline constexpr int64_t kDrainNow = 1'700'000'000;

struct DrainNode {
  FitNode node;
  std::vector<FitPod> pods = {};
  std::optional<GroupIndex> group = GroupIndex{0};
};

struct DrainBudget {
  std::string namespace_name = "default";
  std::string name;
  DisruptionBudget budget;
};

// A placeholder as a pod.
struct TestPlaceholder {
  std::string name;
  std::string node;
  FitPod pod;
};

struct DrainCluster {
  std::vector<DrainNode> nodes;  // by slot
  std::vector<DrainBudget> budgets;
  NodeGroups groups = {{.name = "group", .target = 100}};
  std::vector<TestPlaceholder> placeholders;
  int64_t now_s = kDrainNow;
};

// A pod of a ReplicaSet; memory in units.
inline FitPod ReplicaPod(std::string name, int64_t milli_cpu, int64_t memory = 0,
                         const std::string& app = "app") {
  FitPod pod{.requests = {{"cpu", milli_cpu}, {"memory", memory}}, .labels = {{"app", app}}};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", app, "uid-" + app};
  pod.traits.ready = true;
  pod.name = name;
  pod.uid = "uid-" + std::move(name);
  return pod;
}

// The model of a DrainCluster, and a question about it. The cluster may change, and the model follows.
class DrainModel {
 public:
  explicit DrainModel(const DrainCluster& cluster) {
    Update(cluster);
    for (const DrainBudget& budget : cluster.budgets) {
      ClusterObject object;
      object.key = {ObjectKind::kDisruptionBudget, budget.namespace_name, budget.name};
      object.content = budget.budget;
      cluster_.state().objects().Set(std::move(object));
    }
  }

  // Puts in what differs.
  void Update(const DrainCluster& cluster) {
    for (size_t i = 0; i < cluster.nodes.size(); ++i) {
      if (i < texts_.size() && texts_[i] == TextOf(cluster.nodes[i])) continue;
      texts_.resize(std::max(texts_.size(), i + 1));
      texts_[i] = TextOf(cluster.nodes[i]);
      cluster_.Put(Slot{static_cast<int32_t>(i)}, cluster.nodes[i].node, cluster.nodes[i].pods);
    }
    problem_.cluster = &cluster_.state();
    problem_.groups = cluster.groups;
    std::vector<std::optional<GroupIndex>> groups;
    for (const DrainNode& node : cluster.nodes) groups.push_back(node.group);
    problem_.group_of = GroupsBySlot(groups);
    problem_.placeholders.clear();
    for (const TestPlaceholder& placeholder : cluster.placeholders) {
      problem_.placeholders.emplace_back(placeholder.name, placeholder.node,
                                         cluster_.Incoming(placeholder.pod));
    }
    cluster_.state().set_resource_names(cluster_.names());
    problem_.now_s = cluster.now_s;
  }

  DrainProblem& problem() { return problem_; }
  const DrainProblem& problem() const { return problem_; }
  FitCluster& cluster() { return cluster_; }
  std::string name(Slot slot) const {
    const absl::string_view name = cluster_.state().name(slot);
    return std::string(name.data(), name.size());
  }

 private:
  // Enough to tell whether the tests changed anything: they give nodes that change other UIDs, and pods other
  // names or requests.
  static std::string TextOf(const DrainNode& node) {
    std::string text = node.node.name + "|" + node.node.traits.uid + (node.node.unschedulable ? "u" : "") +
                       (node.node.traits.ready ? "r" : "");
    for (const FitPod& pod : node.pods) {
      text += "," + pod.name;
      for (const auto& [resource, amount] : pod.requests) text += " " + std::to_string(amount);
    }
    return text;
  }

  FitCluster cluster_;
  DrainProblem problem_;
  std::vector<std::string> texts_;
};

// A plan by names: one line per node.
inline std::string PlanText(const DrainModel& model, const DrainPlan& plan) {
  const ClusterState& state = *model.problem().cluster;
  const auto pod_name = [&](Slot slot, const std::optional<PodRef>& pod) {
    if (!pod.has_value()) return std::string("-");
    if (pod->is_placeholder()) return model.problem().placeholders[pod->position()].name;
    const absl::string_view name = state.pods(slot).name(pod->position());
    return std::string(name.data(), name.size());
  };
  std::string text;
  const auto add = [&](absl::string_view part) { text.append(part.data(), part.size()); };
  for (const DrainRemoval& removal : plan.remove) {
    text += "remove " + model.name(removal.slot) + (removal.empty ? " empty" : "") +
            (removal.risky ? " risky" : "") + " since " + std::to_string(removal.since_s) +
            (removal.start ? " start" : " ");
    add(Name(removal.waits));
    for (const DrainMove& move : removal.moves())
      text += " " + pod_name(removal.slot, move.pod) + ">" + model.name(move.to);
    for (const int32_t pod : removal.waits_for) {
      text += " waits for " + pod_name(removal.slot, PodRef::Pod(static_cast<size_t>(pod)));
    }
    text += "\n";
  }
  for (const DrainKeep& keep : plan.keep) {
    text += "keep " + model.name(keep.slot) + " ";
    add(Name(keep.reason));
    text += " " + pod_name(keep.slot, keep.pod) + " ";
    add(Name(keep.pod_reason));
    text += " since " + std::to_string(keep.since_s) + "\n";
  }
  text += "brake ";
  add(Name(plan.brake));
  text += " " + plan.brake_text + " ";
  add(Name(plan.status));
  return text + "\n";
}

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_DRAIN_DRAIN_CLUSTER_H_

// Questions of growth as tests state them, and what must hold of each plan.
#ifndef LOADLINE_TEST_CORE_EXPAND_GROWTH_QUESTION_H_
#define LOADLINE_TEST_CORE_EXPAND_GROWTH_QUESTION_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/expand/plan.h"
#include "test/core/expand/naive_nodes.h"
#include "test/testing/fit_cluster.h"

namespace loadline {

struct GrowthGroup {
  std::string name;
  int64_t milli_cpu = 1000;
  int64_t memory = 1000;
  double usd = 1;
  int64_t max = 100;
  int64_t current = 0;
  std::string zone = "a";
  std::string pool;
  bool tainted = false;
  std::optional<int64_t> priority = std::nullopt;
};

inline FitNode NodeOfGroup(const GrowthGroup& group) {
  return {
      .name = group.name,
      .allocatable = {{"cpu", group.milli_cpu}, {"memory", group.memory}, {"pods", 110}},
      .labels = {{kZone, group.zone}, {"pool", group.pool}},
      .taints = group.tainted ? std::vector<Taint>{{"dedicated", "", "NoSchedule"}} : std::vector<Taint>()};
}

class PlanningQuestion {
 public:
  void Pods(const FitPod& pod, int64_t count) {
    pods_.push_back({cluster.Incoming(pod), count});
    stated_pods.push_back(pod);
  }
  void Add(const GrowthGroup& group) {
    stated_groups.push_back(NodeOfGroup(group));
    groups.push_back({.name = group.name,
                      .max_nodes = group.max,
                      .target = group.current,
                      .model = NodeModel{cluster.Shape(stated_groups.back())},
                      .usd_per_hour = group.usd,
                      .priority = group.priority});
  }
  void AddOld(const FitNode& node, const std::vector<FitPod>& running = {}) {
    cluster.Add(node, running);
    old.Add(node, running);
  }

  ScaleUpPlan Ask(WorkBudget budget = WorkBudget()) {
    std::vector<PendingPods> pods = pods_;
    for (PendingPods& entry : pods) entry.pod.names = cluster.names();
    Snapshot snapshot(cluster.state());
    const FitOptions fit;
    ScaleUpPlan plan = PlanScaleUp(&snapshot, &fit, std::move(pods), {}, groups, options, &budget);
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(cluster.state().node_count()));
    EXPECT_EQ(snapshot.depth(), 0U);
    return plan;
  }

  const std::vector<PendingPods>& pods() const { return pods_; }

  FitCluster cluster;
  GrowableGroups groups;
  PlanOptions options;
  // The same once more, for the oracle: by position of the pods, of the groups, and nodes that are there.
  std::vector<FitPod> stated_pods;
  StrongVector<GrowableIndex, FitNode> stated_groups;
  NaiveNodes old;

 private:
  std::vector<PendingPods> pods_;
};

inline std::map<std::string, int64_t> NodesOf(const ScaleUpPlan& plan, const PlanningQuestion& question) {
  std::map<std::string, int64_t> nodes;
  for (const PlannedNodes& entry : plan.nodes) {
    nodes[question.groups[entry.group].name] += entry.nodes;
  }
  return nodes;
}

// Checks a plan pod by pod, in any order that works: the pods of the plan are those of the question,
// and each fits where it is put. `stuck`: pods that no order placed. `forgotten`: pods left over for which
// there is room, on a node that is there or on one more that the limits permit.
struct CheckedGrowth {
  bool adds_up = true;
  int64_t stuck = 0;
  int64_t forgotten = 0;
};

class GrowthChecker {
 public:
  GrowthChecker(const PlanningQuestion& question, const ScaleUpPlan& plan)
      : question_(question), plan_(plan), nodes_(question.old) {}

  CheckedGrowth Run() {
    CheckedGrowth check;
    std::vector<int64_t> counts;
    for (const PendingPods& entry : question_.pods()) counts.push_back(entry.count);
    for (const ExistingUse& use : plan_.existing) {
      Want(static_cast<size_t>(use.node), use.pods);
      counts[static_cast<size_t>(use.pods.pods)] -= use.pods.count;
    }
    Place();  // these need not wait for new nodes
    for (const PlannedNodes& entry : plan_.nodes) {
      for (int64_t i = 0; i < entry.nodes; ++i) {
        const size_t node = AddNode(entry.group);
        for (const PodCount& pods : entry.pods) {
          Want(node, pods);
          counts[static_cast<size_t>(pods.pods)] -= pods.count;
        }
      }
    }
    check.adds_up = counts == plan_.unplaced;
    Place();
    check.stuck = static_cast<int64_t>(wanted_.size());
    for (size_t pods = 0; pods < counts.size(); ++pods) check.forgotten += counts[pods] > 0 && HasRoom(pods);
    return check;
  }

 private:
  size_t AddNode(GrowableIndex group) {
    FitNode node = question_.stated_groups[group];
    node.name += "-" + std::to_string(++new_nodes_);
    return nodes_.Add(node);
  }
  void Want(size_t node, const PodCount& pods) {
    for (int64_t i = 0; i < pods.count; ++i) wanted_.emplace_back(node, static_cast<size_t>(pods.pods));
  }
  // Until nothing of what is wanted fits.
  void Place() {
    for (bool progress = true; progress && !wanted_.empty();) {
      std::vector<std::pair<size_t, size_t>> later;
      for (const auto& [node, pods] : wanted_) {
        const FitPod& pod = question_.stated_pods[pods];
        if (nodes_.Fits(pod, node)) {
          nodes_.Place(pod, node);
        } else {
          later.emplace_back(node, pods);
        }
      }
      progress = later.size() < wanted_.size();
      wanted_ = std::move(later);
    }
  }
  bool HasRoom(size_t pods) const {
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_.Fits(question_.stated_pods[pods], node)) return true;
    }
    if (new_nodes_ >= question_.options.max_new_nodes.value_or(new_nodes_ + 1)) return false;
    // One more node may be a domain more, in which pods that spread would have to be first.
    const auto spreads = [](const FitPod& pod) { return !pod.rules.spread.empty(); };
    if (std::any_of(question_.stated_pods.begin(), question_.stated_pods.end(), spreads)) return false;
    for (const GrowableIndex i : question_.groups.indices()) {
      int64_t nodes = question_.groups[i].target;
      for (const PlannedNodes& entry : plan_.nodes) nodes += entry.group == i ? entry.nodes : 0;
      if (nodes >= question_.groups[i].max_nodes) continue;
      NaiveNodes more = nodes_;
      FitNode node = question_.stated_groups[i];
      node.name += "-more";
      if (more.Fits(question_.stated_pods[pods], more.Add(node))) return true;
    }
    return false;
  }

  const PlanningQuestion& question_;
  const ScaleUpPlan& plan_;
  NaiveNodes nodes_;
  int64_t new_nodes_ = 0;
  std::vector<std::pair<size_t, size_t>> wanted_;  // node, pods
};

inline CheckedGrowth CheckGrowth(const PlanningQuestion& question, const ScaleUpPlan& plan) {
  return GrowthChecker(question, plan).Run();
}

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_EXPAND_GROWTH_QUESTION_H_

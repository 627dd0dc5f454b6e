// Clusters for tests of one iteration, and what is asked about them.
#ifndef LOADLINE_TEST_CORE_LOOP_LOOP_FIXTURE_H_
#define LOADLINE_TEST_CORE_LOOP_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/grow/loop_sizes.h"
#include "core/loop/plan_loop.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {

inline constexpr int64_t kLoopNow = 1'700'000'000;

inline FitNode NodeOf(const std::string& name, int64_t milli_cpu) {
  return {.name = name, .allocatable = {{"cpu", milli_cpu}, {"memory", 1'000'000}, {"pods", 110}}};
}

inline FitPod Replica(const std::string& name, int64_t milli_cpu) {
  FitPod pod{.requests = {{"cpu", milli_cpu}}};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", "app", "uid-app"};
  pod.traits.ready = true;
  pod.name = name;
  pod.uid = "uid-" + name;
  return pod;
}

struct TestNode {
  FitNode node;
  std::vector<FitPod> pods;
  std::optional<GroupIndex> group = GroupIndex{0};
};

// A cluster as a test states it, and what is asked about it. Slack and scale-down are off but where a test
// turns them on; a node is removed at once when it may be.
class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    problem_.decisions = {.scale_up = true, .slack = false, .scale_down = false};
    problem_.scale_down.deletion.timers.unneeded_time_s = 0;
    problem_.drain.now_s = kLoopNow;
  }

  void AddGroup(const std::string& name, int64_t milli_cpu, double usd, int64_t target, int64_t max = 10) {
    NodeGroup group;
    group.name = name;
    group.target = target;
    group.max_nodes = max;
    group.usd_per_hour = usd;
    templates_.push_back(NodeOf(name, milli_cpu));
    problem_.groups.push_back(std::move(group));
  }
  void Pending(const FitPod& pod, int64_t count) { pending_.emplace_back(pod, count); }
  void ClearPending() { pending_.clear(); }

  // The planners go on from the last call.
  LoopPlan Plan() {
    FitCluster cluster;
    std::vector<std::optional<GroupIndex>> groups;
    for (const TestNode& node : nodes_) {
      cluster.Add(node.node, node.pods);
      groups.push_back(node.group);
    }
    if (budget_of_all_.has_value()) {
      ClusterObject object;
      object.key = {ObjectKind::kDisruptionBudget, "default", "budget"};
      object.content = *budget_of_all_;
      cluster.state().objects().Set(std::move(object));
    }
    problem_.drain.cluster = &cluster.state();
    problem_.drain.group_of = GroupsBySlot(groups);
    for (const GroupIndex group : templates_.indices())
      problem_.groups[group].model = NodeModel{cluster.Shape(templates_[group])};
    problem_.pending.clear();
    for (const auto& [pod, count] : pending_) problem_.pending.push_back({cluster.Incoming(pod), count});
    problem_.young.clear();
    for (const FitPod& pod : young_) problem_.young.push_back({cluster.Incoming(pod), 1});
    for (auto* const pods : {&problem_.pending, &problem_.young}) {
      for (PendingPods& entry : *pods) entry.pod.names = cluster.names();
    }
    problem_.names = cluster.names();
    cluster.state().set_resource_names(cluster.names());
    // Each call has a cluster of its own: the memory of planners is passed as state.
    SlackPlanner slack;
    slack.Restore(slack_);
    DrainPlanner drain;
    drain.SetState(drain_);
    problem_.deleting = drain_.deleting;
    Snapshot snapshot(cluster.state());
    WorkBudget unlimited;
    problem_.size_pods.clear();
    EXPECT_TRUE(GatherSizes(&problem_, &snapshot, &unlimited).ok());
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(nodes_.size())) << "the snapshot is as before";
    WorkBudget budget = budget_;
    if (prepare_) prepare_(&snapshot, &budget);
    LoopPlan plan = PlanLoop(problem_, {&slack, &drain, &consolidator_}, &snapshot, &budget);
    for (size_t i = 0; i < problem_.sized.size(); ++i) problem_.sized[i].state = plan.sizes[i].next;
    if (note_) note_(plan);
    slack_ = slack.State();
    if (plan.scale_down_problem != nullptr) drain_ = drain.state();
    EXPECT_EQ(snapshot.depth(), 0u);
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(nodes_.size())) << "the snapshot is as before";
    names_.clear();
    for (const TestNode& node : nodes_) names_.push_back(node.node.name);
    return plan;
  }

  std::vector<std::string> Removed(const LoopPlan& plan) const {
    std::vector<std::string> removed;
    for (const DrainRemoval& removal : plan.scale_down.remove) {
      removed.push_back(names_[static_cast<size_t>(removal.slot)]);
    }
    return removed;
  }

  std::vector<TestNode> nodes_;
  std::optional<DisruptionBudget> budget_of_all_;  // covers each pod
  std::vector<FitPod> young_;                      // wait for no node yet
  LoopProblem problem_;
  SlackState slack_;
  DrainState drain_;
  Consolidator consolidator_;
  WorkBudget budget_;  // of each plan
  // Called before a plan, and after it, as long as the cluster is there.
  std::function<void(Snapshot*, WorkBudget*)> prepare_;
  std::function<void(const LoopPlan&)> note_;

  // The shapes of new nodes; by position of the group.
  StrongVector<GroupIndex, FitNode> templates_;

 private:
  std::vector<std::pair<FitPod, int64_t>> pending_;
  std::vector<std::string> names_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_LOOP_LOOP_FIXTURE_H_

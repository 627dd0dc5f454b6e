#include "core/observe/loop_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/startup_taints.h"
#include "core/loop/loop_actions.h"
#include "core/observe/see_fleet.h"
#include "test/core/observe/fleet_world.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// One cluster, one cloud, and loops that look at them.
class LoopFindingsTest : public ::testing::Test {
 protected:
  LoopFindingsTest() {
    options_.fleet = DefaultFleetOptions();
    options_.fleet.ok_unready_nodes = 1'000;
    AddGroup("g", /*target=*/0, /*max_nodes=*/10);
  }

  void AddGroup(const std::string& name, int64_t target, int64_t max_nodes) {
    CloudGroup group;
    group.name = name;
    group.target = target;
    group.max_nodes = max_nodes;
    seen_.groups.push_back(std::move(group));
  }
  CloudGroup& group(int32_t i = 0) { return seen_.groups[GroupIndex{i}]; }

  // A node with its machine; `minutes` old.
  Slot AddNode(const std::string& name, int64_t minutes, bool ready = true, std::vector<Taint> taints = {}) {
    const Slot slot = AddForeign(name, minutes, ready, std::move(taints));
    AddMachine(name, slot);
    return slot;
  }
  Slot AddForeign(const std::string& name, int64_t minutes, bool ready = true,
                  std::vector<Taint> taints = {}) {
    FitNode node{.name = name, .allocatable = allocatable_, .taints = std::move(taints)};
    node.traits.uid = "uid-" + name;
    node.traits.ready = ready;
    node.traits.created_s = (FleetWorld::At(0) - minutes * kFleetMinute) / 1000;
    cluster_.Add(node);
    return Slot{next_++};
  }
  void AddMachine(const std::string& id, std::optional<Slot> slot = std::nullopt) {
    CloudMachine machine;
    machine.id = id;
    machine.state = slot.has_value() ? MachineState::kRunning : MachineState::kCreating;
    machine.node = slot;
    group().machines.push_back(std::move(machine));
    ++group().target;
  }

  LoopFindings Observe(int64_t minute = 0, const LoopOutcomes& outcomes = {}) {
    LoopFindings findings =
        ObserveLoop(cluster_.state(), seen_, outcomes, options_, FleetWorld::At(minute), &memory_);
    seen_.first = false;
    return findings;
  }
  std::vector<LoopAction> Act(const LoopFindings& findings, int64_t minute, const LoopPlan& plan = {}) {
    return ActionsOf(seen_, findings, plan, cluster_.state(), options_, FleetWorld::At(minute), &memory_);
  }

  std::vector<std::pair<std::string, int64_t>> allocatable_ = {{"cpu", 4000}, {"memory", 16}, {"pods", 110}};
  FitCluster cluster_;
  LoopObservation seen_;
  ObserveOptions options_;
  LoopMemory memory_;
  int32_t next_ = 0;
};

TEST_F(LoopFindingsTest, CountsNodesByHowFarTheyAre) {
  const Slot ready = AddNode("ready", 60);
  const Slot old = AddNode("old", 60, /*ready=*/false);
  const Slot young = AddNode("young", 1, /*ready=*/false);
  const Slot starts =
      AddNode("starts", 1, true, {{"node.cloudprovider.kubernetes.io/uninitialized", "", ""}});
  AddForeign("foreign", 60);
  const Slot foreign_young = AddForeign("foreign-young", 1, /*ready=*/false);
  AddMachine("comes");
  ++group().target;  // the cloud has not begun to make it
  const LoopFindings findings = Observe();
  const GroupFindings& of = findings.groups[GroupIndex{0}];
  EXPECT_THAT(of.nodes, ElementsAre(ready, old));
  EXPECT_EQ(of.ready, 1);
  EXPECT_EQ(of.unready, 1);
  EXPECT_EQ(of.upcoming, 4);  // two that start, one that is upcoming, and one that is not begun
  EXPECT_EQ(of.room, 4);      // of 10, with a target of 6
  EXPECT_EQ(of.held, "");
  EXPECT_THAT(findings.not_started, ElementsAre(young, starts, foreign_young));
  LoopProblem problem;
  problem.names = cluster_.names();
  problem.groups.emplace_back();
  ApplyFindings(findings, {false}, cluster_.state(), &problem);
  EXPECT_THAT(problem.drain.not_started, ElementsAre(young, starts)) << "the foreign one is of no group";
  EXPECT_EQ(findings.nodes.all, 6);
  EXPECT_EQ(findings.nodes.ready, 2);
  EXPECT_EQ(findings.nodes.unready, 1);
  EXPECT_EQ(findings.nodes.starting, 2);
}

// A machine that is listed twice counts once, and one without an id has not been begun.
TEST_F(LoopFindingsTest, MachinesThatAreListedOddly) {
  const Slot slot = AddNode("n", 60);
  AddMachine("n", slot);
  AddMachine("");
  const LoopFindings findings = Observe();
  EXPECT_THAT(findings.groups[GroupIndex{0}].nodes, ElementsAre(slot));
  EXPECT_EQ(findings.groups[GroupIndex{0}].upcoming, 1);
  EXPECT_EQ(findings.groups[GroupIndex{0}].target, 3);
}

// A node is that of one machine. Another one that names it counts for nothing: it is not on its way, since it
// would be for ever, nor is it deleted, since pods may run there.
TEST_F(LoopFindingsTest, MachinesThatNameOneNode) {
  AddGroup("h", /*target=*/3, /*max_nodes=*/10);
  const Slot slot = AddNode("n", 60);
  AddMachine("n-again", slot);
  CloudMachine again;
  again.node = slot;
  for (const char* const id : {"h-0", "h-1"}) {
    again.id = id;
    group(1).machines.push_back(again);
  }
  CloudMachine own;
  own.id = "h-2";
  own.node = AddForeign("m", 60);
  group(1).machines.push_back(own);
  for (const int64_t minute : {0, 20, 1'440}) {
    const LoopFindings findings = Observe(minute);
    EXPECT_THAT(findings.groups[GroupIndex{0}].nodes, ElementsAre(slot));
    EXPECT_THAT(findings.groups[GroupIndex{1}].nodes, ElementsAre(*own.node));
    for (const GroupIndex i : findings.groups.indices()) {
      EXPECT_EQ(findings.groups[i].upcoming, 0);
      EXPECT_EQ(findings.groups[i].ready, 1);
      EXPECT_EQ(findings.groups[i].held, "");
      EXPECT_EQ(findings.groups[i].target, seen_.groups[i].target);  // the cloud has these machines
      EXPECT_EQ(findings.groups[i].room, 10 - seen_.groups[i].target);
    }
    EXPECT_EQ(findings.nodes.ready, 2);
    EXPECT_THAT(Act(findings, minute), IsEmpty());
    EXPECT_THAT(
        findings.warnings,
        ElementsAre(
            "machine n-again of node group g is ignored: its node n is that of machine n of node group g",
            "machine h-0 of node group h is ignored: its node n is that of machine n of node group g; "
            "so are 1 other machines of this group"));
  }
}

// A cloud that has more machines than its target has no room for as many.
TEST_F(LoopFindingsTest, RoomByTargetAndByMachines) {
  for (int i = 0; i < 7; ++i) AddNode("n" + std::to_string(i), 60);
  for (const auto& [target, room] :
       std::vector<std::pair<int64_t, int64_t>>{{7, 3}, {4, 3}, {9, 1}, {12, 0}}) {
    group().target = target;
    EXPECT_EQ(Observe().groups.front().room, room) << target;
  }
}

TEST_F(LoopFindingsTest, WhyAGroupMayNotGrow) {
  AddGroup("atomic", 0, 5);
  group(1).atomic = true;
  AddGroup("unknown", 0, 5);
  group(2).problem = "no answer";
  options_.max_new_nodes = 4;
  LoopFindings findings = Observe();
  EXPECT_EQ(findings.groups[GroupIndex{0}].held, "");
  EXPECT_EQ(findings.groups[GroupIndex{1}].held, "grows by all of its 5 nodes or none, and 4 may be added");
  EXPECT_EQ(findings.groups[GroupIndex{2}].held, "it cannot be read: no answer");
  EXPECT_EQ(findings.max_new_nodes, NodeLimit(4));

  AddNode("n", 60);
  AddMachine("comes");
  options_.max_nodes_total = 3;
  findings = Observe();
  EXPECT_EQ(findings.max_new_nodes, NodeLimit(1));  // of 3, one is there and one is upcoming
  options_.max_nodes_total = 2;
  findings = Observe();
  EXPECT_EQ(findings.max_new_nodes, NodeLimit(0));
  EXPECT_EQ(findings.groups[GroupIndex{0}].held, "the cluster may have 2 nodes in all");
}

TEST_F(LoopFindingsTest, NoGroupGrowsInAnUnhealthyCluster) {
  options_.fleet.ok_unready_nodes = 0;
  for (int i = 0; i < 2; ++i) AddNode("n" + std::to_string(i), 60, /*ready=*/false);
  const LoopFindings findings = Observe();
  EXPECT_THAT(findings.held, HasSubstr("ClusterUnhealthy: 2 of 2 nodes are not ready"));
  EXPECT_EQ(findings.groups[GroupIndex{0}].held, findings.held);
}

// The nodes of a group whose options nobody knows belong to no group: by which rules they may go is not
// known.
TEST_F(LoopFindingsTest, NodesOfAnUnknownGroupStay) {
  AddNode("n", 60);
  group().problem = "no answer";
  const LoopFindings findings = Observe();
  EXPECT_THAT(findings.groups[GroupIndex{0}].nodes, IsEmpty());
  EXPECT_EQ(findings.groups[GroupIndex{0}].ready, 1);
}

TEST_F(LoopFindingsTest, NodesStandInPlansAsTheyCount) {
  AddNode("n", 60);
  const Slot young = AddNode("young", 1, /*ready=*/false);
  const Slot marked = AddNode("marked", 60, true, {{kToBeDeletedTaint, "5", "NoSchedule"}});
  seen_.marks.push_back({.slot = marked, .since_s = 77});
  const LoopFindings findings = Observe();
  const std::vector<ShownNode> shown = NodesAsPlanned(cluster_.state(), findings);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].slot, marked);
  EXPECT_THAT(shown[0].shape.taints,
              ElementsAre(Taint{"DeletionCandidateOfClusterAutoscaler", "77", "PreferNoSchedule"}));
  EXPECT_EQ(shown[1].slot, young);
  EXPECT_TRUE(shown[1].shape.unschedulable);
}

// GPUs come minutes after the node is ready: until then it is on its way, and no model of new nodes.
TEST_F(LoopFindingsTest, ANodeWithoutItsDevicesIsOnItsWay) {
  group().template_devices = {FleetKey("nvidia.com/gpu")};
  const Slot slot = AddNode("n", 1);
  LoopFindings findings = Observe();
  EXPECT_THAT(findings.not_started, ElementsAre(slot));
  EXPECT_THAT(findings.groups[GroupIndex{0}].lacking, ElementsAre(slot));
  allocatable_.emplace_back("nvidia.com/gpu", 1);
  const Slot whole = AddNode("whole", 1);
  findings = Observe();
  EXPECT_THAT(findings.groups[GroupIndex{0}].nodes, ElementsAre(whole));
  EXPECT_THAT(findings.groups[GroupIndex{0}].examples, ElementsAre(slot, whole));
  EXPECT_THAT(findings.groups[GroupIndex{0}].lacking, ElementsAre(slot));
}

TEST_F(LoopFindingsTest, DevicesAreExtendedResources) {
  ResourceNames names;
  ResourceAmounts amounts;
  amounts[names.Intern("cpu")] = 1;
  amounts[names.Intern("hugepages-2Mi")] = 1;
  amounts[names.Intern("attachable.kubernetes.io/x")] = 1;
  amounts[names.Intern("none.example/x")] = 0;
  amounts[names.Intern("nvidia.com/gpu")] = 1;
  EXPECT_THAT(DevicesOf(amounts, names), ElementsAre(FleetKey("nvidia.com/gpu")));
}

// The parts of it all that a plan reads.
TEST_F(LoopFindingsTest, PlansUseIt) {
  const Slot a = AddNode("a", 60);
  AddNode("young", 1, /*ready=*/false);
  options_.max_new_nodes = 3;
  for (const bool by_cloud : {false, true}) {
    for (const bool lacks : {false, true}) {
      group().template_devices.clear();
      if (lacks) group().template_devices = {FleetKey("nvidia.com/gpu")};
      memory_ = {};
      const LoopFindings findings = Observe();
      LoopProblem problem;
      problem.names = cluster_.names();
      problem.groups.emplace_back().model =
          NodeModel{cluster_.Shape(FitNode{.name = "cloud", .allocatable = {{"cpu", 1}}})};
      ApplyFindings(findings, {by_cloud}, cluster_.state(), &problem);
      EXPECT_EQ(problem.drain.group_of, AllInFirstGroup(1));
      EXPECT_EQ(problem.groups[GroupIndex{0}].target, 2);
      EXPECT_EQ(problem.groups[GroupIndex{0}].max_nodes, 10);
      EXPECT_EQ(problem.growth.max_new_nodes, NodeLimit(3));
      const NodeModel& model = *problem.groups[GroupIndex{0}].model;
      EXPECT_EQ(model.source, by_cloud ? ModelSource::kStated : ModelSource::kSingle);
      EXPECT_EQ(model.nodes, 1) << "an old node shows that there are no such devices";
      EXPECT_EQ(model.shape.allocatable.Get(kCpu), by_cloud ? 1 : 4000);
      EXPECT_EQ(model.shape == WithCsiNodeOf(cluster_.state().node_shape(a), "a"), !by_cloud);
    }
  }
}

TEST_F(LoopFindingsTest, PlansKnowWhichNodesTheCloudDeletes) {
  AddNode("a", 60);
  const Slot going = AddNode("going", 60);
  seen_.marks.push_back({.slot = going, .deleting_s = FleetWorld::At(0) / 1000, .acknowledged = true});
  LoopProblem problem;
  problem.names = cluster_.names();
  problem.groups.emplace_back();
  ApplyFindings(Observe(), {false}, cluster_.state(), &problem);
  EXPECT_THAT(problem.drain.drained, ElementsAre(going));
}

TEST_F(LoopFindingsTest, WarnsOfWhatPeopleMustMend) {
  AddNode("n", 60);
  Observe(0);
  cluster_.Remove(Slot{0});
  group().machines[0].node.reset();
  EXPECT_THAT(Observe(1).warnings, IsEmpty());
  EXPECT_THAT(Observe(20).warnings,
              ElementsAre(HasSubstr("node group g: 1 machine had nodes that are gone")));
  const Slot stuck = AddNode("stuck", 60);
  seen_.marks.push_back({.slot = stuck, .deleting_s = FleetWorld::At(20) / 1000, .acknowledged = true});
  EXPECT_THAT(
      Observe(26).warnings,
      ElementsAre(HasSubstr("had nodes"),
                  HasSubstr("node stuck: the cloud said 6 min ago that it deletes it, and still lists")));
}

// --- actions ---------------------------------------------------------------------------------------------

// A machine that is late is deleted once; it is not deleted again while the cloud may still list it, unless
// the cloud has said that it does not delete it.
TEST_F(LoopFindingsTest, LateMachinesAreDeletedOnce) {
  AddMachine("late");
  Observe(0);
  LoopFindings findings = Observe(15);
  std::vector<LoopAction> actions = Act(findings, 15);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, LoopAction::Kind::kDeleteMachines);
  EXPECT_THAT(actions[0].machines, ElementsAre(0));
  EXPECT_TRUE(actions[0].late);
  EXPECT_EQ(findings.groups[GroupIndex{0}].target, 0);
  for (const ActionOutcome::Result result : {ActionOutcome::Result::kDone, ActionOutcome::Result::kUnknown}) {
    LoopMemory memory = memory_;
    std::swap(memory, memory_);
    EXPECT_THAT(Act(Observe(16, {.actions = {{actions[0].id, result, ""}}}), 16), IsEmpty());
    std::swap(memory, memory_);
  }
  const LoopMemory before = memory_;
  EXPECT_EQ(Act(Observe(16, {.actions = {{actions[0].id, ActionOutcome::Result::kFailed, "no"}}}), 16).size(),
            1u);
  // Another process, which hears nothing of it, waits as well.
  memory_ = before;
  seen_.first = true;
  EXPECT_THAT(Act(Observe(16), 16), IsEmpty());
}

// Nodes that the cloud has not begun to make are taken back after those that it could not make were deleted.
TEST_F(LoopFindingsTest, TakesBackWhatTheCloudDoesNotBegin) {
  AddMachine("failed");
  group().machines[0].fault = MachineFault{"BROKEN", "no machine", false};
  group().target += 2;
  Observe(0);
  memory_.fleet.machines.clear();
  const LoopFindings findings = Observe(16);
  const std::vector<LoopAction> actions = Act(findings, 16);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0].kind, LoopAction::Kind::kDeleteMachines);
  EXPECT_FALSE(actions[0].late);
  EXPECT_EQ(actions[1].kind, LoopAction::Kind::kTakeBack);
  EXPECT_EQ(actions[1].nodes, 2);
  EXPECT_EQ(actions[1].target, 2);
  EXPECT_EQ(findings.groups[GroupIndex{0}].target, 0);
  EXPECT_EQ(findings.groups[GroupIndex{0}].room, 9);  // the machine is still there
}

TEST_F(LoopFindingsTest, WithoutActingNothingIsDone) {
  options_.acts = false;
  AddMachine("late");
  Observe(0);
  const LoopFindings findings = Observe(15);
  EXPECT_EQ(findings.groups[GroupIndex{0}].target, 1);
  LoopPlan plan;
  plan.growth.push_back({.group = GroupIndex{0}, .for_pods = 1});
  EXPECT_THAT(Act(findings, 15, plan), IsEmpty());
  EXPECT_THAT(memory_.open, IsEmpty());
}

// Nodes start to go unless something has happened a short time ago.
TEST_F(LoopFindingsTest, NodesGoUnlessTheFleetCoolsDown) {
  const Slot slot = AddNode("n", 60);
  LoopPlan plan;
  plan.scale_down.remove.resize(2);
  plan.scale_down.remove[0].slot = slot;
  plan.scale_down.remove[0].start = true;
  const std::vector<LoopAction> actions = Act(Observe(0), 0, plan);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, LoopAction::Kind::kRemove);
  EXPECT_EQ(actions[0].slot, slot);
  EXPECT_THAT(Act(Observe(1, {.tainting_failed = true}), 1, plan), IsEmpty());
  EXPECT_THAT(Act(Observe(3), 3, plan), IsEmpty());
  EXPECT_THAT(Act(Observe(4), 4, plan), SizeIs(1));
}

TEST_F(LoopFindingsTest, ADelayByGroupReachesThePlan) {
  options_.fleet.delays_by_group = true;
  AddNode("n", 60);
  Observe(0);
  ++group().target;
  const LoopFindings findings = Observe(1);
  EXPECT_FALSE(findings.nothing_leaves);
  LoopProblem problem;
  problem.groups.emplace_back().name = "g";
  ApplyFindings(findings, {false}, cluster_.state(), &problem);
  EXPECT_EQ(problem.groups[GroupIndex{0}].stays_until_s, FleetWorld::At(11) / 1000);
  LoopProblem later;
  later.groups.emplace_back().name = "g";
  ApplyFindings(Observe(11), {false}, cluster_.state(), &later);
  EXPECT_EQ(later.groups[GroupIndex{0}].stays_until_s, std::nullopt);
}

// Empty nodes are the first wave, whatever the order of the plan.
TEST_F(LoopFindingsTest, NodesGoInWaves) {
  LoopPlan plan;
  for (const bool empty : {false, true, false}) {
    DrainRemoval& removal = plan.scale_down.remove.emplace_back();
    removal.slot = AddNode(absl::StrCat("n", plan.scale_down.remove.size()), 60);
    removal.start = true;
    removal.empty = empty;
  }
  std::vector<std::pair<Slot, int32_t>> waves;
  for (const LoopAction& action : Act(Observe(0), 0, plan)) waves.emplace_back(action.slot, action.wave);
  const auto& remove = plan.scale_down.remove;
  EXPECT_THAT(waves, ElementsAre(Pair(remove[1].slot, 1), Pair(remove[0].slot, 2), Pair(remove[2].slot, 2)));
}

class GrowthOutcomeTest : public LoopFindingsTest {
 protected:
  // Asks for three nodes at minute 0, and returns the action.
  LoopAction Grow(int64_t for_pods = 2) {
    LoopPlan plan;
    plan.growth.push_back({.group = GroupIndex{0}, .for_pods = for_pods, .for_slack = 3 - for_pods});
    const std::vector<LoopAction> actions = Act(Observe(0), 0, plan);
    EXPECT_EQ(actions.size(), 1u);
    EXPECT_EQ(actions[0].nodes, 3);
    EXPECT_EQ(actions[0].target, 0);
    return actions[0];
  }
};

TEST_F(GrowthOutcomeTest, WhatIsGrantedIsExpectedAndCounted) {
  const LoopAction action = Grow();
  group().target = 3;
  const LoopFindings findings = Observe(1, {.actions = {{action.id, ActionOutcome::Result::kDone, ""}}});
  EXPECT_EQ(findings.groups[GroupIndex{0}].upcoming, 3);
  EXPECT_TRUE(findings.fleet.cools_down);
  EXPECT_EQ(memory_.grown_for_pods_ms, FleetWorld::At(0));
  EXPECT_EQ(memory_.fleet.groups[FleetKey("g")].request->until_ms, FleetWorld::At(15));
}

TEST_F(GrowthOutcomeTest, GrowthForSlackEndsNoBatch) {
  Observe(1, {.actions = {{Grow(/*for_pods=*/0).id, ActionOutcome::Result::kDone, ""}}});
  EXPECT_FALSE(memory_.grown_for_pods_ms.has_value());
}

TEST_F(GrowthOutcomeTest, WhatFailsBacksOffSinceItWasAskedFor) {
  const LoopFindings findings =
      Observe(1, {.actions = {{Grow().id, ActionOutcome::Result::kFailed, "out of quota"}}});
  ASSERT_TRUE(findings.fleet.groups[0].back_off.has_value());
  EXPECT_EQ(findings.fleet.groups[0].back_off->until_ms, FleetWorld::At(5));
  EXPECT_THAT(findings.groups[GroupIndex{0}].held, HasSubstr("out of quota"));
}

TEST_F(GrowthOutcomeTest, ForWhatOthersHaveChangedNobodyBacksOff) {
  const LoopFindings findings =
      Observe(1, {.actions = {{Grow().id, ActionOutcome::Result::kChanged, "changed"}}});
  EXPECT_FALSE(findings.fleet.groups[0].back_off.has_value());
}

TEST_F(GrowthOutcomeTest, WhatWasNotTriedIsForgotten) {
  Grow();
  const LoopFindings findings = Observe(1);
  EXPECT_FALSE(findings.fleet.groups[0].back_off.has_value());
  EXPECT_THAT(memory_.open, IsEmpty());
}

// A process that ends after it has asked tells nothing: the next one sees by the target what came of it.
TEST_F(GrowthOutcomeTest, AnotherProcessAsked) {
  for (const bool grown : {true, false}) {
    memory_ = {};
    group().target = 0;
    Grow();
    group().target = grown ? 3 : 0;
    seen_.first = true;
    const LoopFindings findings = Observe(1);
    EXPECT_EQ(findings.fleet.groups[0].back_off.has_value(), !grown);
    EXPECT_EQ(memory_.fleet.groups[FleetKey("g")].request.has_value(), grown);
  }
}

// Its target of 0 says nothing: the nodes are waited for.
TEST_F(GrowthOutcomeTest, AnotherProcessAskedAGroupThatCannotBeRead) {
  group().target = 0;
  Grow();
  group().target = 0;
  group().problem = "no answer";
  seen_.first = true;
  EXPECT_FALSE(Observe(1).fleet.groups[0].back_off.has_value());
  EXPECT_TRUE(memory_.fleet.groups[FleetKey("g")].request.has_value());
}

TEST_F(GrowthOutcomeTest, IdsOfNobodyArePassedOver) {
  Grow();
  const LoopFindings findings = Observe(1, {.actions = {{999, ActionOutcome::Result::kFailed, "forged"}}});
  EXPECT_FALSE(findings.fleet.groups[0].back_off.has_value());
}

TEST(BatchMemoryTest, ABatchHasAnEnd) {
  LoopMemory memory;
  LoopPlan waits;
  waits.batch_wait_ms = 500;
  NoteBatch(waits, 1'000, &memory);
  NoteBatch(waits, 9'000, &memory);
  EXPECT_EQ(memory.batch_since_ms, 1'000);
  GrowthBatch batch{.idle_ms = 1'000, .max_ms = 10'000};
  BeginBatch(memory, 10'999, &batch);
  EXPECT_EQ(batch.idle_ms, 1'000);
  EXPECT_FALSE(batch.since_growth_ms.has_value());
  BeginBatch(memory, 11'000, &batch);
  EXPECT_EQ(batch.idle_ms, 0);
  NoteBatch(LoopPlan(), 11'000, &memory);
  EXPECT_FALSE(memory.batch_since_ms.has_value());
  memory.grown_for_pods_ms = 11'000;
  BeginBatch(memory, 11'400, &batch);
  EXPECT_EQ(batch.since_growth_ms, 400);
}

TEST_F(LoopFindingsTest, WhetherTimersRun) {
  const auto run = [&](const LoopFindings& findings, const LoopPlan& plan) {
    return TimersRun(seen_, findings, {}, plan);
  };
  LoopFindings nothing;
  LoopPlan plan;
  EXPECT_FALSE(run(nothing, plan));
  plan.no_scale_down = NoScaleDown::kNotDecided;
  EXPECT_FALSE(run(nothing, plan));
  plan.no_scale_down = NoScaleDown::kGrowing;
  EXPECT_TRUE(run(nothing, plan));
  plan = LoopPlan();
  plan.scale_down.remove.emplace_back();
  EXPECT_TRUE(run(nothing, plan));
  plan = LoopPlan();
  LoopFindings findings;
  findings.groups.emplace_back().upcoming = 1;
  EXPECT_TRUE(run(findings, plan));
  findings = LoopFindings();
  findings.fleet.backs_off = true;
  EXPECT_TRUE(run(findings, plan));
  findings = LoopFindings();
  findings.fleet.cools_down = true;
  EXPECT_TRUE(run(findings, plan));
  seen_.under_way.emplace_back();
  EXPECT_TRUE(run(nothing, plan));
}

}  // namespace
}  // namespace loadline

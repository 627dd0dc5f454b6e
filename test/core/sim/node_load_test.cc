#include "core/sim/node_load.h"

#include <gtest/gtest.h>

#include "core/sim/simulation.h"

namespace loadline {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
constexpr GroupIndex kOnlyGroup{0};
constexpr SimWorkloadIndex kOnlyWorkload{0};

// One group of nodes with 4 cores and 16 GiB, which are there from the start, and pods that are limited to 3
// cores and 2 GiB, of which one is without a memory limit.
class NodeLoadTest : public ::testing::Test {
 protected:
  NodeLoadTest() {
    scenario_.groups.push_back({.name = "g", .max_nodes = 10, .allocatable = {4'000, 16 * kGib}});
    scenario_.workloads.push_back(
        {.name = "w", .replicas = 3, .request = {1'000, kGib}, .limit = {3'000, 2 * kGib}});
    scenario_.workloads.push_back({.name = "free", .replicas = 1, .request = {1'000, kGib}, .limit = {1, 0}});
  }
  SimNodeIndex Node(World* world) { return world->AddNode(world->AddMachine(kOnlyGroup), true); }
  Scenario scenario_;
};

TEST_F(NodeLoadTest, CountsLimitsOfThePodsThatAreThere) {
  World world(scenario_);
  NodeLoadWatch watch(&world);
  world.AddObserver(&watch);
  const SimNodeIndex node = Node(&world);
  const SimPodIndex one = world.CreatePod(kOnlyWorkload);
  world.Bind(one, node);
  const SimPodIndex two = world.CreatePod(kOnlyWorkload);
  world.Bind(two, node);
  watch.Look();
  EXPECT_DOUBLE_EQ(watch.Load().cpu_p99, 1.5);
  EXPECT_DOUBLE_EQ(watch.Load().memory_p99, 0.25);
  world.Terminate(one);
  world.Vanish(one);
  const SimPodIndex other = world.CreatePod(SimWorkloadIndex{1});
  world.Bind(other, node);
  NodeLoadWatch later = watch;
  // 3001 of 4000: 75.025 hundredths, rounded up; the highest of 2 moments is the 99th percentile.
  NodeLoadWatch fresh(&world);
  fresh.PodChanged(two);
  fresh.PodChanged(other);
  fresh.Look();
  EXPECT_DOUBLE_EQ(fresh.Load().cpu_p99, 0.76);
  EXPECT_DOUBLE_EQ(fresh.Load().memory_p99, 0.13);
  later.Look();
  EXPECT_DOUBLE_EQ(later.Load().cpu_p99, 1.5);
}

// Two pods of 3 cores on a node of 4, for half an hour; then one, and in the next hour one that uses little.
TEST_F(NodeLoadTest, CountsTheTimeInWhichPodsUseMoreThanThereIs) {
  constexpr int64_t kHourMs = 3'600'000;
  SimUse use;
  use.cpu_milli.fill(3'000);
  use.cpu_milli[1] = 1;
  use.memory_bytes.fill(8 * kGib);
  scenario_.workloads.front().limit.memory = 8 * kGib;
  scenario_.workloads.front().use = use;
  World world(scenario_);
  NodeLoadWatch watch(&world);
  world.AddObserver(&watch);
  const SimNodeIndex node = Node(&world);
  const SimPodIndex one = world.CreatePod(kOnlyWorkload);
  world.Bind(one, node);
  const SimPodIndex two = world.CreatePod(kOnlyWorkload);
  world.Bind(two, node);
  EXPECT_DOUBLE_EQ(watch.UseNow().busiest_cpu, 1.5);
  EXPECT_DOUBLE_EQ(watch.UseNow().busiest_memory, 1);
  EXPECT_EQ(watch.UseNow().overloaded, 1);
  world.set_now_ms(kHourMs / 2);
  world.Terminate(one);
  world.Vanish(one);
  EXPECT_EQ(watch.UseNow().overloaded, 0);
  // It states no use: it uses the core that it requests, and with the other one all that there is.
  world.Bind(world.CreatePod(SimWorkloadIndex{1}), node);
  world.set_now_ms(kHourMs);
  watch.NextHour();
  EXPECT_DOUBLE_EQ(watch.UseNow().busiest_cpu, 1'001.0 / 4'000);
  world.set_now_ms(2 * kHourMs);
  const SimLoad load = watch.Load();
  ASSERT_TRUE(load.overload.has_value());
  EXPECT_DOUBLE_EQ(load.overload->cpu_node_hours, 0.5);
  EXPECT_DOUBLE_EQ(load.overload->cpu_volume, 0.25);
  EXPECT_DOUBLE_EQ(load.overload->memory_node_hours, 0.5) << "above 97 % counts";
  EXPECT_DOUBLE_EQ(load.overload->memory_volume, 0) << "all of it is not too much";
}

TEST_F(NodeLoadTest, TakesThe99thPercentileOverNodesAndMoments) {
  World world(scenario_);
  NodeLoadWatch watch(&world);
  world.AddObserver(&watch);
  const SimNodeIndex node = Node(&world);
  world.Bind(world.CreatePod(kOnlyWorkload), node);
  watch.Look();
  world.RemoveNode(node);
  Node(&world);
  for (int i = 0; i < 98; ++i) watch.Look();
  EXPECT_DOUBLE_EQ(watch.Load().cpu_p99, 0.75) << "rank 99 of 99";
  watch.Look();
  EXPECT_DOUBLE_EQ(watch.Load().cpu_p99, 0) << "rank 99 of 100";
  EXPECT_DOUBLE_EQ(watch.Load().nodes_mean, 1);
  Node(&world);
  watch.Look();
  EXPECT_DOUBLE_EQ(watch.Load().nodes_mean, 102.0 / 101);
  EXPECT_EQ(watch.Load().nodes_max, 2);
}

TEST_F(NodeLoadTest, IsPartOfWhatASimulationTells) {
  scenario_.groups.front().min_nodes = scenario_.groups.front().nodes = 1;
  scenario_.settings.slack_percent = 0;
  WorkBudget unlimited;
  const SimResult result = Simulate(scenario_, &unlimited);
  EXPECT_DOUBLE_EQ(result.load.cpu_p99, 2.26) << "9001 of 4000";
  EXPECT_DOUBLE_EQ(result.load.memory_p99, 0.38) << "6 of 16 GiB";
  EXPECT_DOUBLE_EQ(result.load.nodes_mean, 1);
  EXPECT_EQ(result.load.nodes_max, 1);
}

}  // namespace
}  // namespace loadline

// Autoscaler.PlanLoop loop after loop, on random clusters with a cloud that fails at times:
// what must hold of each answer, and that the cluster comes to rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "test/plugin/messages.h"
#include "test/plugin/simulated_cluster.h"

namespace loadline {
namespace {

constexpr char kPlanLoop[] = "/loadline.v1.Autoscaler/PlanLoop";
constexpr int64_t kLoopSeconds = 30;

SimulatedSize Plus(const SimulatedSize& a, const SimulatedSize& b) {
  return {a.milli_cpu + b.milli_cpu, a.mib + b.mib};
}

// What pods take on one node.
struct Load {
  SimulatedSize size;
  int64_t pods = 0;
  void Add(const SimulatedSize& pod, int64_t count = 1) {
    for (int64_t i = 0; i < count; ++i) size = Plus(size, pod);
    pods += count;
  }
};

// What must hold of one answer. Counts come from the cluster, not from the engine.
class AnswerChecker {
 public:
  AnswerChecker(const SimulatedCluster& cluster, const v1::PlanLoopResponse& response)
      : cluster_(cluster), response_(response) {
    for (size_t workload = 0; workload < cluster.workloads(); ++workload) {
      if (cluster.waiting(workload) == 0) continue;
      workload_of_.push_back(workload);
      wanted_.push_back(cluster.waiting(workload));
    }
    for (const v1::DrainedPods& pods : response.drained()) {
      int64_t workload = -1;
      EXPECT_TRUE(absl::SimpleAtoi(absl::StripPrefix(pods.owner_name(), "app-"), &workload));
      workload_of_.push_back(static_cast<size_t>(workload));
      wanted_.push_back(pods.count());
    }
  }

  void Check() {
    CheckPods();
    CheckGrowth();
    CheckRemovals();
    CheckSlack();
    CheckTexts();
  }

 private:
  const SimulatedSize& SizeOf(const v1::PodRun& run) const {
    return cluster_.pod(workload_of_[static_cast<size_t>(run.pod())]);
  }
  size_t GroupNamed(const std::string& name) const {
    size_t i = 0;
    while (i < cluster_.groups().size() && cluster_.groups()[i].name != name) ++i;
    EXPECT_LT(i, cluster_.groups().size());
    return i;
  }
  static void ExpectFits(const Load& load, const SimulatedSize& room, int64_t slots) {
    EXPECT_LE(load.size.milli_cpu, room.milli_cpu);
    EXPECT_LE(load.size.mib, room.mib);
    EXPECT_LE(load.pods, slots);
  }

  // C2, C3: each pod has one place or none, and the places hold.
  void CheckPods() {
    std::vector<int64_t> found(wanted_.size(), 0);
    const auto count = [&](const v1::PodRun& run, int64_t times = 1) {
      found.at(static_cast<size_t>(run.pod())) += times * run.count();
    };
    for (const v1::ExistingPlacement& placement : response_.existing()) {
      count(placement.pods());
      loads_[placement.slot()].Add(SizeOf(placement.pods()), placement.pods().count());
    }
    for (const v1::UpcomingPlacement& placement : response_.upcoming()) {
      count(placement.pods());
      const size_t group = GroupNamed(placement.node_group());
      EXPECT_TRUE(std::any_of(cluster_.machines().begin(), cluster_.machines().end(),
                              [&](const SimulatedMachine& machine) { return machine.group == group; }));
      std::vector<SimulatedSize>& pods = on_the_way_[group];
      pods.insert(pods.end(), static_cast<size_t>(placement.pods().count()), SizeOf(placement.pods()));
    }
    for (auto& [group, pods] : on_the_way_) CheckUpcoming(group, &pods);
    for (const v1::PlannedNodes& nodes : response_.scale_up().nodes()) {
      Load load;
      for (const v1::PodRun& run : nodes.pods()) {
        count(run, nodes.nodes());
        load.Add(SizeOf(run), run.count());
      }
      EXPECT_GT(load.pods, 0) << "a node for nothing";
      ExpectFits(load, cluster_.groups().at(static_cast<size_t>(nodes.group())).node,
                 SimulatedCluster::kPodsPerNode);
    }
    for (const v1::PodRun& run : response_.scale_up().unplaced()) count(run);
    EXPECT_EQ(found, wanted_);
    for (const auto& [slot, load] : loads_) {
      const SimulatedNode& node = cluster_.nodes().at(slot);
      EXPECT_LT(node.leaves, 0) << "no pod goes to a node that leaves";
      ExpectFits(load, node.free, SimulatedCluster::kPodsPerNode - static_cast<int64_t>(node.pods.size()));
    }
  }

  // C2 of nodes on their way: some way to put the pods onto as many nodes as come.
  void CheckUpcoming(size_t group, std::vector<SimulatedSize>* pods) const {
    std::sort(pods->begin(), pods->end(),
              [](const SimulatedSize& a, const SimulatedSize& b) { return a.milli_cpu > b.milli_cpu; });
    const auto nodes = std::count_if(cluster_.machines().begin(), cluster_.machines().end(),
                                     [&](const SimulatedMachine& machine) { return machine.group == group; });
    std::vector<Load> loads(static_cast<size_t>(nodes));
    int64_t tries = 0;
    EXPECT_TRUE(FindRoom(*pods, 0, cluster_.groups()[group].node, &loads, &tries))
        << pods->size() << " pods have no room on " << nodes << " nodes of " << cluster_.groups()[group].name;
  }
  // True as well where the search takes too long.
  static bool FindRoom(const std::vector<SimulatedSize>& pods, size_t next, const SimulatedSize& node,
                       std::vector<Load>* loads, int64_t* tries) {
    if (next == pods.size()) return true;
    for (size_t i = 0; i < loads->size(); ++i) {
      Load& load = (*loads)[i];
      if (++*tries > 100'000) return true;
      const SimulatedSize with = Plus(load.size, pods[next]);
      if (with.milli_cpu > node.milli_cpu || with.mib > node.mib) continue;
      if (load.pods >= SimulatedCluster::kPodsPerNode) continue;
      const Load before = load;
      load.Add(pods[next]);
      if (FindRoom(pods, next + 1, node, loads, tries)) return true;
      load = before;
      if (before.pods == 0) return false;  // other empty nodes are the same
    }
    return false;
  }

  // C1, and no group that is held.
  void CheckGrowth() {
    std::map<int32_t, int64_t> for_pods;
    for (const v1::PlannedNodes& nodes : response_.scale_up().nodes())
      for_pods[nodes.group()] += nodes.nodes();
    for (const v1::LoopGrowth& growth : response_.growth()) {
      const size_t i = GroupNamed(growth.node_group());
      const SimulatedGroup& group = cluster_.groups()[i];
      EXPECT_EQ(growth.nodes_for_pods(), for_pods[static_cast<int32_t>(i)]);
      EXPECT_GT(growth.nodes_for_pods() + growth.nodes_for_slack(), 0);
      EXPECT_LE(cluster_.CurrentNodes(i) + growth.nodes_for_pods() + growth.nodes_for_slack(),
                group.max_nodes);
      EXPECT_EQ(group.backs_off, 0);
    }
    EXPECT_TRUE(response_.has_scale_down()) << "drains are planned in every loop";
    EXPECT_EQ(response_.no_scale_down(), response_.growth().empty() ? "" : "groups grow");
  }

  // D2, D4, D9, D10: nodes that go are known, not going yet, above the minimum, and their pods fit elsewhere.
  void CheckRemovals() {
    std::set<int32_t> goes;
    std::map<size_t, int64_t> started;
    for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
      const SimulatedNode& node = cluster_.nodes().at(removal.slot());
      EXPECT_TRUE(goes.insert(removal.slot()).second);
      EXPECT_EQ(removal.node(), node.name);
      EXPECT_EQ(removal.uid(), SimulatedCluster::Uid(node.number));
      EXPECT_EQ(removal.provider_id(), SimulatedCluster::ProviderId(node));
      EXPECT_LT(node.leaves, 0);
      if (!removal.start()) continue;
      EXPECT_THAT(response_.growth(), ::testing::IsEmpty()) << "nothing starts to go while groups grow";
      ++started[node.group];
    }
    for (const v1::NodeRemoval& removal : response_.scale_down().remove()) {
      std::vector<bool> moved(cluster_.nodes().at(removal.slot()).pods.size(), false);
      for (const v1::PodMove& move : removal.moves()) {
        EXPECT_FALSE(goes.contains(move.to_slot()));
        if (move.placeholder()) continue;
        const size_t pod = static_cast<size_t>(move.pod());
        EXPECT_FALSE(moved.at(pod));
        moved[pod] = true;
        loads_[move.to_slot()].Add(cluster_.pod(cluster_.nodes().at(removal.slot()).pods[pod].workload));
      }
      EXPECT_THAT(moved, ::testing::Each(true));
    }
    for (const auto& [slot, load] : loads_) {
      const SimulatedNode& node = cluster_.nodes().at(slot);
      EXPECT_LT(node.leaves, 0);
      ExpectFits(load, node.free, SimulatedCluster::kPodsPerNode - static_cast<int64_t>(node.pods.size()));
    }
    for (const auto& [group, count] : started) {
      int64_t stay = 0;
      for (const auto& [slot, node] : cluster_.nodes()) {
        if (node.group == group && node.leaves < 0) ++stay;
      }
      EXPECT_GE(stay - count, cluster_.groups()[group].min_nodes);
    }
  }

  // E1: placeholders lie in room that neither pods nor those that are expected take.
  void CheckSlack() {
    std::map<std::string, Load> loads;
    for (const v1::Placeholder& placeholder : response_.state().slack().placeholders()) {
      if (placeholder.node().empty()) continue;
      // Whole MiB come out of it rounded down, never up.
      loads[placeholder.node()].Add({placeholder.milli_cpu(), placeholder.memory_bytes() >> 20});
    }
    for (const v1::ExistingPlacement& placement : response_.existing()) {
      loads[cluster_.nodes().at(placement.slot()).name].Add(SizeOf(placement.pods()),
                                                            placement.pods().count());
    }
    for (const auto& [slot, node] : cluster_.nodes()) {
      if (!loads.contains(node.name)) continue;
      EXPECT_LE(loads[node.name].size.milli_cpu, node.free.milli_cpu) << node.name;
      EXPECT_LE(loads[node.name].size.mib, node.free.mib) << node.name;
    }
  }

  // I2: what labels of metrics are made of holds no name.
  void CheckTexts() {
    std::set<std::string> texts = {response_.no_scale_down(), response_.scale_down().brake(),
                                   response_.scale_down().status(), response_.scale_down().limit()};
    for (const v1::NodeRemoval& removal : response_.scale_down().remove()) texts.insert(removal.waits());
    for (const v1::NodeKeep& keep : response_.scale_down().keep()) {
      texts.insert(keep.reason());
      texts.insert(keep.pod_reason());
    }
    for (const std::string& text : texts) {
      EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); }))
          << text;
    }
  }

  const SimulatedCluster& cluster_;
  const v1::PlanLoopResponse& response_;
  std::vector<size_t> workload_of_;  // by position of pods in the answer
  std::vector<int64_t> wanted_;      // as many of them
  std::map<int32_t, Load> loads_;    // by slot: what is expected and what moves there
  // By group: pods that count on nodes on their way.
  std::map<size_t, std::vector<SimulatedSize>> on_the_way_;
};

// But for a counter: of placeholders whose node went, only who remembers them says that they were pushed out.
std::string Comparable(const std::string& answer) {
  v1::PlanLoopResponse response;
  EXPECT_TRUE(response.ParseFromString(answer));
  response.mutable_slack()->clear_pushed_out();
  return response.SerializeAsString();
}

// One autoscaler after another at one cluster. Each loop is asked of an engine that remembers the loops
// before and of one that is handed their state; now and then of one that knows nothing but that state.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : cluster_(seed) { Restart(); }

  SimulatedCluster& cluster() { return cluster_; }
  int64_t loops() const { return loops_; }
  void set_slack_rate(double rate) { rate_ = rate; }

  // Another autoscaler takes over, which knows what it sees.
  void Restart() {
    remembers_ = std::make_unique<TypedEngine>();
    is_told_ = std::make_unique<TypedEngine>();
    state_ = {};
    full_list_ = true;
  }

  // Returns whether anything is done.
  bool Loop() {
    ++loops_;
    for (const v1::Changes& changes : full_list_ ? cluster_.FullList(7) : cluster_.Deltas(7)) Sync(changes);
    v1::PlanLoopRequest request = cluster_.Question();
    *request.mutable_changes() = cluster_.At();
    request.mutable_slack()->set_extra_capacity_min_rate(rate_);
    request.mutable_drain()->set_scale_down_unneeded_time_s(2 * kLoopSeconds);
    const std::string answer = Ask(remembers_.get(), request);
    if (!full_list_) *request.mutable_state() = state_;
    EXPECT_TRUE(Comparable(Ask(is_told_.get(), request)) == Comparable(answer)) << "loop " << loops_;  // A4
    if (loops_ % 8 == 0 && !full_list_) {
      v1::PlanLoopRequest alone = request;
      *alone.mutable_own() = cluster_.Own();
      TypedEngine fresh;
      EXPECT_TRUE(Comparable(Ask(&fresh, alone)) == Comparable(answer)) << "loop " << loops_;  // I1
    }
    full_list_ = false;
    v1::PlanLoopResponse response;
    EXPECT_TRUE(response.ParseFromString(answer));
    AnswerChecker(cluster_, response).Check();
    state_ = response.state();
    cluster_.Act(response);
    const auto starts = [](const v1::NodeRemoval& removal) { return removal.start(); };
    return !response.growth().empty() ||
           std::any_of(response.scale_down().remove().begin(), response.scale_down().remove().end(), starts);
  }

 private:
  void Sync(const v1::Changes& changes) {
    v1::SyncRequest request;
    *request.mutable_changes() = changes;
    for (TypedEngine* engine : {remembers_.get(), is_told_.get()}) {
      const auto answer = engine->CallBytes(kSyncMethod, request.SerializeAsString());
      EXPECT_TRUE(answer.ok()) << answer.status();
    }
  }

  static std::string Ask(TypedEngine* engine, const v1::PlanLoopRequest& request) {
    const absl::StatusOr<std::string> answer = engine->CallBytes(kPlanLoop, request.SerializeAsString());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : "";
  }

  SimulatedCluster cluster_;
  std::unique_ptr<TypedEngine> remembers_;
  std::unique_ptr<TypedEngine> is_told_;
  v1::LoopState state_;
  bool full_list_ = true;
  double rate_ = 0.1;
  int64_t loops_ = 0;
};

void AddRandomCluster(Random& random, SimulatedCluster* cluster) {
  const size_t groups = 1 + Below(random, 3);
  for (size_t i = 0; i < groups; ++i) {
    const auto cores = static_cast<int64_t>(size_t{1} << (1 + Below(random, 4)));
    const auto min = static_cast<int64_t>(Below(random, 3));
    const size_t group = cluster->AddGroup(
        {"group" + std::string(1, static_cast<char>('a' + i)),
         {1000 * cores, 4096 * cores},
         static_cast<double>(cores) * (0.04 + 0.001 * static_cast<double>(Below(random, 20))),
         min,
         min + 3 + static_cast<int64_t>(Below(random, 12))});
    for (int64_t n = 0; n < min; ++n) cluster->AddNode(group);
  }
  for (size_t i = 0; i < 2 + Below(random, 4); ++i) {
    cluster->AddWorkload({static_cast<int64_t>(50 * (1 + Below(random, 40))),
                          static_cast<int64_t>(64 * (1 + Below(random, 60)))});
  }
}

void ScaleSome(Random& random, SimulatedCluster* cluster) {
  cluster->Scale(Below(random, cluster->workloads()), static_cast<int64_t>(Below(random, 40)));
}

TEST(LoopSimulationTest, EachAnswerHoldsAndTheClusterComesToRest) {
  int64_t loops = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Simulation simulation(seed);
    SimulatedCluster& cluster = simulation.cluster();
    AddRandomCluster(random, &cluster);
    const bool packs = OneIn(random, 2);
    const auto step = [&] {
      cluster.Step(kLoopSeconds);
      packs ? cluster.Schedule() : cluster.ScheduleAnywhere();
    };
    cluster.set_faults({.failed_machines = 5, .lost_nodes = 12, .start_loops = 4, .drain_loops = 3});
    for (int i = 0; i < 60; ++i) {
      if (OneIn(random, 3)) ScaleSome(random, &cluster);
      if (OneIn(random, 20)) simulation.Restart();
      simulation.Loop();
      step();
      if (testing::Test::HasFailure()) return;
    }
    // Whatever was done before: what load there is finds its nodes, and then nothing moves.
    cluster.set_faults({});
    for (int i = 0; i < 40; ++i) {
      simulation.Loop();
      step();
    }
    for (int i = 0; i < 50; ++i) {
      EXPECT_FALSE(simulation.Loop()) << "loop " << i << " of constant load";
      EXPECT_TRUE(cluster.Quiet());
      step();
      if (testing::Test::HasFailure()) return;
    }
    // Without load and slack no more is left than the minimum.
    for (size_t i = 0; i < cluster.workloads(); ++i) cluster.Scale(i, 0);
    simulation.set_slack_rate(0);
    for (int i = 0; i < 60; ++i) {
      simulation.Loop();
      step();
    }
    for (size_t i = 0; i < cluster.groups().size(); ++i) {
      EXPECT_LE(cluster.CurrentNodes(i), cluster.groups()[i].min_nodes);
    }
    loops += simulation.loops();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(loops, 24 * 200);
}

// D8: a list of pods that is empty is no list of empty nodes.
TEST(LoopSimulationTest, NothingGoesWhenAllPodsVanish) {
  SimulatedCluster cluster(1);
  const size_t group = cluster.AddGroup({"group", {4000, 16'384}, 1, 0, 20});
  const size_t app = cluster.AddWorkload({1000, 1024});
  for (int i = 0; i < 10; ++i) cluster.Fill(cluster.AddNode(group), app, 4);
  TypedEngine engine;
  const auto plan = [&](bool lose_pods) {
    for (v1::Changes& changes : cluster.FullList()) {
      for (v1::NodeRecord& node : *changes.mutable_nodes()) {
        if (lose_pods) node.clear_pods();
      }
      v1::SyncRequest sync;
      *sync.mutable_changes() = std::move(changes);
      EXPECT_TRUE(engine.CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
    }
    v1::PlanLoopRequest request = cluster.Question();
    *request.mutable_changes() = cluster.At();
    request.mutable_drain()->set_scale_down_unneeded_time_s(600);
    const auto answer = engine.CallBytes(kPlanLoop, request.SerializeAsString());
    EXPECT_TRUE(answer.ok()) << answer.status();
    v1::PlanLoopResponse response;
    EXPECT_TRUE(response.ParseFromString(answer.ok() ? *answer : ""));
    cluster.Step(60);
    return response;
  };
  EXPECT_EQ(plan(false).scale_down().brake(), "");
  for (int i = 0; i < 10; ++i) {
    const v1::PlanLoopResponse response = plan(true);
    EXPECT_EQ(response.scale_down().brake(), i == 0 ? "PodsVanished" : "") << "loop " << i;
    for (const v1::NodeRemoval& removal : response.scale_down().remove()) {
      EXPECT_FALSE(removal.start()) << "loop " << i;
    }
  }
  for (int i = 0; i < 20; ++i) EXPECT_THAT(plan(false).scale_down().remove(), ::testing::IsEmpty());
}

// G1: a question about another state of the cluster than the one that is there has no answer.
TEST(LoopSimulationTest, APlanIsMadeForOneStateOfTheCluster) {
  SimulatedCluster cluster(1);
  cluster.AddNode(cluster.AddGroup({"group", {4000, 16'384}, 1, 0, 20}));
  TypedEngine engine;
  v1::SyncRequest sync;
  *sync.mutable_changes() = cluster.FullList()[0];
  ASSERT_TRUE(engine.CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
  v1::PlanLoopRequest request = cluster.Question();
  *request.mutable_changes() = cluster.At();
  ASSERT_TRUE(engine.CallBytes(kPlanLoop, request.SerializeAsString()).ok());
  request.mutable_changes()->set_base_revision(7);
  request.mutable_changes()->set_revision(7);
  EXPECT_EQ(engine.CallBytes(kPlanLoop, request.SerializeAsString()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  *request.mutable_changes() = cluster.At();
  request.mutable_changes()->set_epoch(request.changes().epoch() + 1);
  EXPECT_EQ(engine.CallBytes(kPlanLoop, request.SerializeAsString()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace loadline

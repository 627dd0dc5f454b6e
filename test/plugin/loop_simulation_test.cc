// Autoscaler.PlanLoop loop after loop, on random clusters with a cloud that fails at times: the invariants of
// each answer, and that the cluster rests in the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/answer_checker.h"
#include "test/plugin/messages.h"
#include "test/plugin/simulated_cluster.h"
#include "test/testing/drawn_cases.h"

namespace loadline {
namespace {

constexpr char kPlanLoop[] = "/loadline.v1.Autoscaler/PlanLoop";
constexpr int64_t kLoopSeconds = 30;

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
  void set_limits(const LoopLimits& limits) { limits_ = limits; }

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
    AddLimits(&request);
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
    AnswerChecker(cluster_, limits_, response).Check();
    state_ = response.state();
    cluster_.Act(response);
    const auto starts = [](const v1::NodeRemoval& removal) { return removal.start(); };
    return !response.growth().empty() ||
           std::any_of(response.scale_down().remove().begin(), response.scale_down().remove().end(), starts);
  }

 private:
  void AddLimits(v1::PlanLoopRequest* request) const {
    request->set_max_new_nodes(limits_.max_new_nodes);
    request->set_max_nodes_total(limits_.max_nodes_total);
    v1::DrainOptions* const drain = request->mutable_drain();
    drain->set_scale_down_unneeded_time_s(2 * kLoopSeconds);
    drain->set_max_scale_down_parallelism(limits_.nodes_at_once);
    drain->set_max_drain_parallelism(limits_.drains_at_once);
  }

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
  LoopLimits limits_;
  int64_t loops_ = 0;
};

// The first group is one that each pod without a zone may run on.
void AddRandomGroups(Random& random, SimulatedCluster* cluster) {
  const size_t groups = 1 + Below(random, 3);
  for (size_t i = 0; i < groups; ++i) {
    const auto cores = static_cast<int64_t>(size_t{1} << (1 + Below(random, 4)));
    const auto min = static_cast<int64_t>(Below(random, 3));
    SimulatedGroup group{"group" + std::string(1, static_cast<char>('a' + i)),
                         {1000 * cores, 4096 * cores},
                         static_cast<double>(cores) * (0.04 + 0.001 * static_cast<double>(Below(random, 20))),
                         min,
                         min + 3 + static_cast<int64_t>(Below(random, 12))};
    if (OneIn(random, 2)) group.zone = OneIn(random, 2) ? "east" : "west";
    group.tainted = i > 0 && OneIn(random, 3);
    const size_t added = cluster->AddGroup(group);
    for (int64_t n = 0; n < min; ++n) cluster->AddNode(added);
  }
}

void AddRandomWorkloads(Random& random, SimulatedCluster* cluster) {
  for (size_t i = 0; i < 2 + Below(random, 4); ++i) {
    SimulatedRules rules;
    rules.alone = OneIn(random, 5);
    rules.tolerates = OneIn(random, 3);
    if (OneIn(random, 5)) rules.zone = OneIn(random, 2) ? "east" : "west";
    if (OneIn(random, 3)) rules.max_unavailable = static_cast<int64_t>(Below(random, 4));
    cluster->AddWorkload({static_cast<int64_t>(50 * (1 + Below(random, 40))),
                          static_cast<int64_t>(64 * (1 + Below(random, 60)))},
                         rules);
  }
}

LoopLimits RandomLimits(Random& random) {
  LoopLimits limits;
  if (OneIn(random, 3)) limits.max_new_nodes = static_cast<int32_t>(1 + Below(random, 6));
  if (OneIn(random, 4)) limits.max_nodes_total = static_cast<int32_t>(5 + Below(random, 20));
  if (OneIn(random, 3)) limits.nodes_at_once = static_cast<int32_t>(1 + Below(random, 5));
  if (OneIn(random, 3)) limits.drains_at_once = static_cast<int32_t>(1 + Below(random, 3));
  return limits;
}

void ScaleSome(Random& random, SimulatedCluster* cluster) {
  cluster->Scale(Below(random, cluster->workloads()), static_cast<int64_t>(Below(random, 40)));
}

// How many loops a cluster is changed and fails, may settle, has to be at rest, and may empty.
struct SimulatedLoops {
  int change;
  int settle;
  int rest;
  int empty;
};

// Returns how many loops there were.
int64_t Simulate(uint64_t seed, const SimulatedLoops& loops) {
  Random random(seed);
  Simulation simulation(seed);
  SimulatedCluster& cluster = simulation.cluster();
  AddRandomGroups(random, &cluster);
  AddRandomWorkloads(random, &cluster);
  simulation.set_limits(RandomLimits(random));
  const bool packs = OneIn(random, 2);
  const auto step = [&] {
    cluster.Step(kLoopSeconds);
    packs ? cluster.Schedule() : cluster.ScheduleAnywhere();
  };
  cluster.set_faults({.failed_machines = 5, .lost_nodes = 12, .start_loops = 4, .drain_loops = 3});
  for (int i = 0; i < loops.change && !testing::Test::HasFailure(); ++i) {
    if (OneIn(random, 3)) ScaleSome(random, &cluster);
    if (OneIn(random, 20)) simulation.Restart();
    simulation.Loop();
    step();
  }
  // Whatever was done before: what load there is finds its nodes, and then nothing moves.
  cluster.set_faults({});
  for (int i = 0; i < loops.settle && !testing::Test::HasFailure(); ++i) {
    simulation.Loop();
    step();
  }
  for (int i = 0; i < loops.rest && !testing::Test::HasFailure(); ++i) {
    EXPECT_FALSE(simulation.Loop()) << "loop " << i << " of constant load";
    EXPECT_TRUE(cluster.Quiet());
    step();
  }
  // Without load and slack no more is left than the minimum.
  for (size_t i = 0; i < cluster.workloads(); ++i) cluster.Scale(i, 0);
  simulation.set_slack_rate(0);
  simulation.set_limits({});
  for (int i = 0; i < loops.empty && !testing::Test::HasFailure(); ++i) {
    simulation.Loop();
    step();
  }
  for (size_t i = 0; i < cluster.groups().size(); ++i) {
    EXPECT_LE(cluster.CurrentNodes(i), cluster.groups()[i].min_nodes);
  }
  return simulation.loops();
}

TEST(LoopSimulationTest, EachAnswerHoldsAndTheClusterComesToRest) {
  constexpr SimulatedLoops kLong = {60, 60, 50, 60};
  constexpr SimulatedLoops kShort = {40, 60, 5, 35};
  int64_t loops = 0;
  const int seeds = DrawnCases(50, 120);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    loops += Simulate(static_cast<uint64_t>(seed), seed <= 10 ? kLong : kShort);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(loops, 10 * 230 + (seeds - 10) * 140);
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

// Slack of a cluster: the first plan, and the next one when a hundredth of the nodes has changed.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/slack/slack_planner.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// 30 pods a node, of 300 kinds; nodes of two sizes in three zones.
class Fleet {
 public:
  explicit Fleet(int64_t nodes) : nodes_(static_cast<int32_t>(nodes)) {
    for (int32_t slot = 0; slot < nodes_; ++slot) Put(slot);
  }

  void Put(int32_t slot) {
    const int64_t size = slot % 2 == 0 ? 1 : 2;
    std::vector<FitPod> pods;
    for (int i = 0; i < 30; ++i) {
      const int64_t kind = static_cast<int64_t>(random_() % 300);
      FitPod& pod = pods.emplace_back();
      pod.requests = {{"cpu", size * (100 + kind % 7 * 50)}, {"memory", size * (200 + kind % 11 * 90)}};
      const std::string owner = "owner-" + std::to_string(kind);
      pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", owner, owner};
      pod.name = "pod-" + std::to_string(slot) + "-" + std::to_string(i);
    }
    cluster_.Put(
        Slot{slot},
        {.name = "node-" + std::to_string(slot),
         .allocatable = {{"cpu", size * 10'000}, {"memory", size * 32'000}, {"pods", 110}},
         .labels = {{"topology.kubernetes.io/zone", std::string(1, static_cast<char>('a' + slot % 3))}}},
        pods);
  }

  // Other pods on a hundredth of the nodes.
  void Change() {
    for (int32_t i = 0; i < nodes_ / 100; ++i) {
      Put(static_cast<int32_t>(random_() % static_cast<uint64_t>(nodes_)));
    }
  }

  // A Deployment that asks for copies of its pod.
  void Copies(const std::string& name, int32_t copies) {
    ClusterObject space;
    space.key = {ObjectKind::kNamespace, "", "default"};
    space.content = Namespace{MakeLabels({{kCopiesLabel, kCopiesAllowed}})};
    cluster_.state().objects().Set(std::move(space));
    FitPod pod;
    pod.requests = {{"cpu", 100}, {"memory", 100}};
    pod.labels = {{"app", name}};
    ClusterObject object;
    object.key = {ObjectKind::kDeployment, "default", name};
    Workload workload;
    workload.uid = name;
    workload.slack.copies = copies;
    workload.pod = cluster_.Shape(pod);
    object.content = std::move(workload);
    cluster_.state().objects().Set(std::move(object));
  }

  SlackQuestion Question() const {
    SlackQuestion question;
    question.cluster = &cluster_.state();
    return question;
  }

 private:
  int32_t nodes_;
  FitCluster cluster_;
  std::mt19937_64 random_{77};
};

void BM_PlanSlack(benchmark::State& state) {
  const Fleet fleet(state.range(0));
  for (auto _ : state) {
    SlackPlanner planner;
    WorkBudget unlimited;
    benchmark::DoNotOptimize(planner.Plan(fleet.Question(), &unlimited));
  }
}
BENCHMARK(BM_PlanSlack)->Arg(1'000)->Arg(5'000)->Arg(15'000)->Unit(benchmark::kMillisecond);

void BM_PlanSlackNext(benchmark::State& state) {
  Fleet fleet(state.range(0));
  SlackPlanner planner;
  WorkBudget unlimited;
  planner.Plan(fleet.Question(), &unlimited);
  int64_t moved = 0;
  for (auto _ : state) {
    state.PauseTiming();
    fleet.Change();
    state.ResumeTiming();
    const SlackPlan plan = planner.Plan(fleet.Question(), &unlimited);
    moved += plan.placed;
    benchmark::DoNotOptimize(plan);
  }
  state.counters["placed"] = static_cast<double>(moved) / static_cast<double>(state.iterations());
  state.counters["changed"] = static_cast<double>(state.range(0)) / 100;
}
BENCHMARK(BM_PlanSlackNext)
    ->Arg(1'000)
    ->Arg(5'000)
    ->Arg(15'000)
    ->Iterations(100)
    ->Unit(benchmark::kMillisecond);

// Ten Deployments ask for 1,000 copies each, which all of the filters place.
void BM_PlanSlackCopies(benchmark::State& state) {
  Fleet fleet(state.range(0));
  for (int i = 0; i < 10; ++i) fleet.Copies("app-" + std::to_string(i), 1'000);
  SlackQuestion question = fleet.Question();
  question.options.rate = 0;
  question.options.max_copies_per_namespace = question.options.max_copies;
  question.options.max_copies_room_per_namespace = {kMaxAmount, kMaxAmount};
  const FitOptions fit;
  question.fit = &fit;
  Snapshot snapshot(*question.cluster);
  question.snapshot = [&snapshot] { return &snapshot; };
  int64_t units = 0;
  for (auto _ : state) {
    SlackPlanner planner;
    WorkBudget budget(int64_t{1} << 40);
    const SlackPlan plan = planner.Plan(question, &budget);
    if (plan.placed != 10'000) state.SkipWithError("not all copies have a place");
    units = (int64_t{1} << 40) - budget.units();
  }
  state.counters["units"] = static_cast<double>(units);
}
BENCHMARK(BM_PlanSlackCopies)->Arg(5'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline

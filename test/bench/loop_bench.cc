// One loop of an autoscaler, from the bytes of a question to those of its answer. loadlined allocates with
// mimalloc, and this process with the C library: LD_PRELOAD=libmimalloc.so.2 gives the times of loadlined.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "loadline/v1/loop.pb.h"
#include "plugin/service/engine.h"
#include "test/plugin/simulated_cluster.h"

namespace loadline {
namespace {

constexpr char kPlanLoop[] = "/loadline.v1.Autoscaler/PlanLoop";

std::string Call(absl::string_view method, const std::string& request, Engine* engine,
                 benchmark::State* state) {
  absl::StatusOr<std::string> answer = engine->Call(method, request, Deadline());
  if (answer.ok()) return *std::move(answer);
  state->SkipWithError(std::string(answer.status().message()).c_str());
  return "";
}

std::vector<std::string> Messages(std::vector<v1::Changes> all) {
  std::vector<std::string> messages;
  for (v1::Changes& changes : all) {
    v1::SyncRequest request;
    *request.mutable_changes() = std::move(changes);
    messages.push_back(request.SerializeAsString());
  }
  return messages;
}

void Sync(const std::vector<std::string>& messages, Engine* engine, benchmark::State* state) {
  for (const std::string& message : messages) {
    Call("/loadline.v1.ClusterState/Sync", message, engine, state);
  }
}

v1::PlanLoopResponse Parsed(const std::string& bytes, benchmark::State* state) {
  v1::PlanLoopResponse response;
  if (!response.ParseFromString(bytes)) state->SkipWithError("no answer");
  return response;
}

// Asks for the decisions of Cluster Autoscaler: without slack.
v1::PlanLoopRequest QuestionOf(SimulatedCluster* cluster) {
  v1::PlanLoopRequest request = cluster->Question();
  *request.mutable_changes() = cluster->At();
  request.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  request.add_decisions(v1::PlanLoopRequest::SCALE_DOWN);
  request.set_compact(true);
  return request;
}

// --- the shapes of Cluster Autoscaler's BenchmarkRunOnceScaleDown and BenchmarkRunOnceScaleUp -----------

// 40 pods on each node, each of which takes a hundredth of it: three fifths of the nodes can go.
SimulatedCluster ToShrink(int64_t nodes) {
  SimulatedCluster cluster(1);
  const size_t group = cluster.AddGroup({"group", {10'000, 10'000}, 1, 0, 1'000'000});
  const size_t app = cluster.AddWorkload({100, 100});
  for (int64_t i = 0; i < nodes; ++i) cluster.Fill(cluster.AddNode(group), app, 40);
  return cluster;
}

std::string ShrinkQuestion(SimulatedCluster* cluster) {
  v1::PlanLoopRequest request = QuestionOf(cluster);
  request.mutable_drain()->set_scale_down_unneeded_time_s(0);
  request.mutable_drain()->set_max_scale_down_parallelism(100'000);
  request.mutable_drain()->set_max_drain_parallelism(100'000);
  request.mutable_state()->mutable_drain();  // each time anew, with nothing remembered
  return request.SerializeAsString();
}

void CheckShrunk(const std::string& answer, benchmark::State* state) {
  const v1::PlanLoopResponse response = Parsed(answer, state);
  const auto started =
      std::count_if(response.scale_down().remove().begin(), response.scale_down().remove().end(),
                    [](const v1::NodeRemoval& removal) { return removal.start(); });
  if (started != state->range(0) * 3 / 5) state->SkipWithError("not three fifths of the nodes go");
  state->counters["removed"] = static_cast<double>(started);
  state->counters["answer_bytes"] = static_cast<double>(answer.size());
}

void BM_PlanLoopScaleDown(benchmark::State& state) {
  SimulatedCluster cluster = ToShrink(state.range(0));
  Engine engine{EngineLimits{}};
  Sync(Messages(cluster.FullList()), &engine, &state);
  const std::string request = ShrinkQuestion(&cluster);
  std::string answer;
  for (auto _ : state) answer = Call(kPlanLoop, request, &engine, &state);
  CheckShrunk(answer, &state);
}
BENCHMARK(BM_PlanLoopScaleDown)->Arg(2'000)->Unit(benchmark::kMillisecond);

// The engine has to get the whole cluster first.
void BM_SyncAndPlanLoopScaleDown(benchmark::State& state) {
  SimulatedCluster cluster = ToShrink(state.range(0));
  const std::vector<std::string> messages = Messages(cluster.FullList());
  const std::string request = ShrinkQuestion(&cluster);
  std::string answer;
  for (auto _ : state) {
    Engine engine{EngineLimits{}};
    Sync(messages, &engine, &state);
    answer = Call(kPlanLoop, request, &engine, &state);
  }
  CheckShrunk(answer, &state);
}
BENCHMARK(BM_SyncAndPlanLoopScaleDown)->Arg(2'000)->Unit(benchmark::kMillisecond);

// 50 pods for each of so many nodes wait, and there is no node yet.
SimulatedCluster ToGrow(int64_t nodes) {
  SimulatedCluster cluster(1);
  cluster.AddGroup({"group", {10'000, 10'000}, 1, 0, 1'000'000});
  cluster.Scale(cluster.AddWorkload({200, 200}), 50 * nodes);
  return cluster;
}

void CheckGrown(const std::string& answer, benchmark::State* state) {
  const v1::PlanLoopResponse response = Parsed(answer, state);
  if (response.growth_size() != 1 || response.growth(0).nodes_for_pods() != state->range(0)) {
    state->SkipWithError("the group does not grow as it should");
  }
  if (response.scale_up().unplaced_size() > 0) state->SkipWithError("pods are left over");
  state->counters["answer_bytes"] = static_cast<double>(answer.size());
}

// Equal pods come as one entry, as a client sends them, or each as an entry of its own.
void PlanGrowth(bool pod_by_pod, benchmark::State* state) {
  SimulatedCluster cluster = ToGrow(state->range(0));
  Engine engine{EngineLimits{}};
  Sync(Messages(cluster.FullList()), &engine, state);
  v1::PlanLoopRequest question = QuestionOf(&cluster);
  if (pod_by_pod) {
    question.mutable_pods(0)->set_count(1);
    const v1::PendingPods pod = question.pods(0);
    for (int64_t i = 1; i < 50 * state->range(0); ++i) *question.add_pods() = pod;
  }
  const std::string request = question.SerializeAsString();
  std::string answer;
  for (auto _ : *state) answer = Call(kPlanLoop, request, &engine, state);
  CheckGrown(answer, state);
  state->counters["request_bytes"] = static_cast<double>(request.size());
}

void BM_PlanLoopScaleUp(benchmark::State& state) { PlanGrowth(/*pod_by_pod=*/false, &state); }
BENCHMARK(BM_PlanLoopScaleUp)->Arg(1'000)->Unit(benchmark::kMillisecond);

void BM_PlanLoopScaleUpPodByPod(benchmark::State& state) { PlanGrowth(/*pod_by_pod=*/true, &state); }
BENCHMARK(BM_PlanLoopScaleUpPodByPod)->Arg(1'000)->Unit(benchmark::kMillisecond);

// --- a cluster at work ------------------------------------------------------------------------------------

// Three groups; 15 to 25 pods of 100 workloads on each node, which take a half of it and more.
SimulatedCluster AtWork(int64_t nodes) {
  SimulatedCluster cluster(7);
  Random random(7);
  cluster.AddGroup({"c", {16'000, 32'768}, 0.68, 0, 10'000});
  cluster.AddGroup({"m", {16'000, 65'536}, 0.77, 0, 10'000});
  cluster.AddGroup({"r", {16'000, 131'072}, 1.01, 0, 10'000});
  for (int i = 0; i < 100; ++i) {
    cluster.AddWorkload({static_cast<int64_t>(100 + 10 * Below(random, 81)),
                         static_cast<int64_t>(128 + 16 * Below(random, 121))});
  }
  for (int64_t i = 0; i < nodes; ++i) {
    const int32_t slot = cluster.AddNode(Below(random, 3));
    for (size_t pods = 15 + Below(random, 11); pods > 0; --pods) cluster.Fill(slot, Below(random, 100), 1);
  }
  return cluster;
}

// Returns the resident memory of this process, in MiB.
double ResidentMemory() {
  int64_t all = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

// The lowest one that so large a share of the times does not exceed.
double Quantile(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())))];
}

// Returns the CPU time of this thread, in milliseconds: a busy machine does not add to it.
double CpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Runs so many loops of ten seconds each. In each of them one pod in a hundred ends and another one of its
// workload waits in its place, until a scheduler that spreads pods binds it; machines start and nodes are
// removed as the answer says. A loop is all that the engine gets and is asked.
void BM_PlanLoopAtWork(benchmark::State& state) {
  SimulatedCluster cluster = AtWork(state.range(0));
  cluster.set_faults({.start_loops = 6, .drain_loops = 2});
  Random random(11);
  Engine engine{EngineLimits{}};
  Sync(Messages(cluster.FullList()), &engine, &state);
  std::vector<double> times;
  std::vector<double> cpu_times;
  double memory = 0;
  int64_t grown = 0;
  int64_t removed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<int32_t> slots;
    for (const auto& [slot, node] : cluster.nodes()) slots.push_back(slot);
    for (int64_t i = 0; i < state.range(0) / 5; ++i) cluster.ReplaceOne(slots[Below(random, slots.size())]);
    const std::vector<std::string> changes = Messages(cluster.Deltas());
    v1::PlanLoopRequest question = cluster.Question();
    *question.mutable_changes() = cluster.At();
    question.set_compact(true);
    const std::string request = question.SerializeAsString();
    state.ResumeTiming();
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = CpuTime();
    Sync(changes, &engine, &state);
    const std::string answer = Call(kPlanLoop, request, &engine, &state);
    cpu_times.push_back(CpuTime() - cpu_begin);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    state.PauseTiming();
    const v1::PlanLoopResponse response = Parsed(answer, &state);
    for (const v1::LoopGrowth& growth : response.growth()) {
      grown += growth.nodes_for_pods() + growth.nodes_for_slack();
    }
    for (const v1::NodeRemoval& removal : response.scale_down().remove()) removed += removal.start() ? 1 : 0;
    cluster.ScheduleAnywhere();
    cluster.Act(response);
    cluster.Step(10);
    if (times.size() == 20) memory = ResidentMemory();
    state.ResumeTiming();
  }
  int64_t pods = 0;
  for (const auto& [slot, node] : cluster.nodes()) pods += static_cast<int64_t>(node.pods.size());
  state.counters["p50_ms"] = Quantile(times, 0.5);
  state.counters["p99_ms"] = Quantile(times, 0.99);
  state.counters["max_ms"] = Quantile(times, 1);
  state.counters["cpu_p50_ms"] = Quantile(cpu_times, 0.5);
  state.counters["cpu_p99_ms"] = Quantile(cpu_times, 0.99);
  state.counters["mib_after_20"] = memory;
  state.counters["mib_at_end"] = ResidentMemory();
  state.counters["nodes"] = static_cast<double>(cluster.nodes().size());
  state.counters["pods"] = static_cast<double>(pods);
  state.counters["grown"] = static_cast<double>(grown);
  state.counters["removed"] = static_cast<double>(removed);
}
BENCHMARK(BM_PlanLoopAtWork)->Arg(5'000)->Iterations(500)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline

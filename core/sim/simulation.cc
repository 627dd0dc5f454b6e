#include "core/sim/simulation.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

#include "core/sim/actuation.h"
#include "core/sim/bill_bound.h"
#include "core/sim/cloud.h"
#include "core/sim/controllers.h"
#include "core/sim/invariant_checker.h"
#include "core/sim/node_load.h"
#include "core/sim/observed_cluster.h"
#include "core/sim/scheduler.h"
#include "core/sim/tested_loop.h"

namespace loadline {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kProgressHourMs = 3'600'000;
constexpr int64_t kUnitsOfLoop = 1'000;
constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kSecondMs = 1'000;
constexpr int64_t kWorkOfLoop = 20'000'000;  // as a question that does not say it

int64_t EndOf(const Scenario& scenario) {
  const int64_t days_ms = scenario.days * kDayMs;
  return scenario.duration_s > 0 ? std::min(days_ms, scenario.duration_s * kSecondMs) : days_ms;
}

// Between two samples: whole minutes, or seconds of what is shorter than a day.
int64_t SampleEvery(int64_t end_ms) {
  const int64_t unit_ms = end_ms < kDayMs ? kSecondMs : kMinuteMs;
  return (std::max(unit_ms, end_ms / kMostSimSamples) + unit_ms - 1) / unit_ms * unit_ms;
}

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : world_(scenario),
        shapes_(scenario),
        cloud_(&world_),
        scheduler_(&world_, &shapes_),
        controllers_(&world_),
        seen_(&world_, &shapes_),
        checker_(&world_, &cloud_),
        bound_(&world_),
        load_(&world_),
        actuation_(&world_, &cloud_, &checker_),
        loop_(&world_, &cloud_, &seen_, &actuation_, &checker_, &shapes_),
        end_ms_(EndOf(scenario)),
        sample_ms_(SampleEvery(end_ms_)) {
    // The checker first: what others do about a change is checked against the state behind it.
    world_.AddObserver(&checker_);
    world_.AddObserver(&bound_);
    world_.AddObserver(&load_);
    world_.AddObserver(&scheduler_);
    world_.AddObserver(&controllers_);
    world_.AddObserver(&seen_);
  }

  SimResult Run(WorkBudget* budget) {
    controllers_.Start();
    cloud_.Start();
    world_.After(0, SimEventKind::kSample);
    if (world_.scenario().StatesUse()) world_.After(kProgressHourMs, SimEventKind::kUseHour);
    loop_.Start();
    if (world_.scenario().faults.api_down > 0) world_.After(kProgressHourMs, SimEventKind::kApiHour);
    while (!world_.queue().empty() && world_.queue().first().at_ms <= end_ms_) {
      if (!budget->Spend() || world_.pods_ever() > kMostSimPodsEver) break;
      const SimEvent event = world_.queue().Take();
      world_.set_now_ms(event.at_ms);
      Handle(event, budget);
    }
    const bool many = world_.pods_ever() > kMostSimPodsEver;
    if (!budget->ended() && !many) world_.set_now_ms(end_ms_);
    SimResult result = Result(*budget);
    if (many) result.cut_short_by = "pods";
    return result;
  }

 private:
  void Handle(const SimEvent& event, WorkBudget* budget);
  void HandleOfCloud(const SimEvent& event);
  void RunLoop(bool at_interval, WorkBudget* budget);
  void Sample();
  void CheckSums();
  SimResult Result(const WorkBudget& budget) const;

  World world_;
  ShapesOf shapes_;
  Cloud cloud_;
  Scheduler scheduler_;
  Controllers controllers_;
  ObservedCluster seen_;
  InvariantChecker checker_;
  BillBoundWatch bound_;
  NodeLoadWatch load_;
  Actuation actuation_;
  TestedLoop loop_;
  const int64_t end_ms_;
  const int64_t sample_ms_;
  int64_t next_progress_ms_ = kProgressHourMs;
  size_t waits_sampled_ = 0;
  std::vector<SimSample> series_;
};

void Simulation::Handle(const SimEvent& event, WorkBudget* budget) {
  // One of them, by its kind.
  const SimPodIndex pod{event.subject};
  const SimNodeIndex node{event.subject};
  const SimWorkloadIndex workload{event.subject};
  switch (event.kind) {
    case SimEventKind::kLoadStep:
      return controllers_.FollowLoad();
    case SimEventKind::kReconcile:
      return controllers_.Reconcile(workload);
    case SimEventKind::kWave:
      return controllers_.StartWave(workload);
    case SimEventKind::kSchedule:
      return scheduler_.Run();
    case SimEventKind::kPodRunning:
      return world_.SetRunning(pod);
    case SimEventKind::kPodFinished:
      return controllers_.FinishPod(pod);
    case SimEventKind::kPodGone:
      return world_.Vanish(pod);
    case SimEventKind::kActuate:
      return actuation_.Step(node);
    case SimEventKind::kLoop:
      return RunLoop(event.subject == 0, budget);
    case SimEventKind::kRemovalEnded:
      return loop_.RemovalEnded();
    case SimEventKind::kLeaderHour:
      return loop_.LeaderHour();
    case SimEventKind::kSample:
      return Sample();
    case SimEventKind::kMachineUp:
    case SimEventKind::kNodeReady:
    case SimEventKind::kDevicesReady:
    case SimEventKind::kMachineGone:
    case SimEventKind::kSpotHour:
    case SimEventKind::kSpotEnd:
    case SimEventKind::kNodeFaultHour:
    case SimEventKind::kNodeBack:
    case SimEventKind::kPodsOfLostNode:
    case SimEventKind::kMachineFails:
    case SimEventKind::kMachineTaken:
    case SimEventKind::kNodeReturns:
    case SimEventKind::kNodeFlaps:
    case SimEventKind::kHandHour:
    case SimEventKind::kHandMarkHour:
    case SimEventKind::kHandMarkEnds:
    case SimEventKind::kStartupEnds:
      return HandleOfCloud(event);
    case SimEventKind::kApiHour:
      return world_.ApiHour();
    case SimEventKind::kUseHour:
      load_.NextHour();
      return world_.After(kProgressHourMs, SimEventKind::kUseHour);
  }
}

void Simulation::HandleOfCloud(const SimEvent& event) {
  // Likewise.
  const SimNodeIndex node{event.subject};
  const SimMachineIndex machine{event.subject};
  switch (event.kind) {
    case SimEventKind::kMachineUp:
      return cloud_.MachineUp(machine);
    case SimEventKind::kNodeReady:
      return cloud_.NodeReady(node);
    case SimEventKind::kDevicesReady:
      return world_.OfferDevices(node);
    case SimEventKind::kMachineGone:
      return cloud_.MachineGone(machine);
    case SimEventKind::kSpotHour:
      return cloud_.SpotHour(machine);
    case SimEventKind::kSpotEnd:
      return cloud_.SpotEnd(machine);
    case SimEventKind::kNodeFaultHour:
      return cloud_.NodeFaultHour();
    case SimEventKind::kNodeBack:
      return cloud_.NodeBack(node);
    case SimEventKind::kPodsOfLostNode:
      return cloud_.PodsOfLostNode(node);
    case SimEventKind::kMachineFails:
      return cloud_.MachineFails(machine);
    case SimEventKind::kMachineTaken:
      return cloud_.MachineTaken(machine);
    case SimEventKind::kNodeReturns:
      return cloud_.NodeReturns(machine);
    case SimEventKind::kNodeFlaps:
      return cloud_.NodeFlaps(node);
    case SimEventKind::kHandHour:
      return cloud_.HandHour();
    case SimEventKind::kHandMarkHour:
      return cloud_.HandMarkHour();
    case SimEventKind::kHandMarkEnds:
      return cloud_.HandMarkEnds(event.subject);
    case SimEventKind::kStartupEnds:
      return world_.TakeStartupTaint(node);
    default:
      return;
  }
}

void Simulation::RunLoop(bool at_interval, WorkBudget* budget) {
  // The work of a loop is not bounded by that of the simulation: its answers depend on neither.
  WorkBudget of_loop(kWorkOfLoop);
  loop_.Run(at_interval, &of_loop);
  budget->Spend(kUnitsOfLoop);
}

SimWaits WaitsOf(std::vector<int64_t> waited_ms) {
  SimWaits waits;
  waits.pods = static_cast<int64_t>(waited_ms.size());
  waits.histogram.resize(std::size(kWaitBounds) + 1);
  if (waited_ms.empty()) return waits;
  std::sort(waited_ms.begin(), waited_ms.end());
  int64_t sum = 0;
  for (const int64_t waited : waited_ms) {
    sum += waited;
    const auto bound = std::find_if(std::begin(kWaitBounds), std::end(kWaitBounds),
                                    [&](int64_t seconds) { return waited <= seconds * 1000; });
    ++waits.histogram[static_cast<size_t>(bound - std::begin(kWaitBounds))];
  }
  // Nearest rank.
  const auto percentile = [&](size_t percent) {
    const size_t rank = (waited_ms.size() * percent + 99) / 100;
    return static_cast<double>(waited_ms[std::max<size_t>(1, rank) - 1]) / 1000;
  };
  waits.mean = static_cast<double>(sum) / static_cast<double>(waits.pods) / 1000;
  waits.p50 = percentile(50);
  waits.p95 = percentile(95);
  waits.max = percentile(100);
  return waits;
}

void Simulation::Sample() {
  SimSample& sample = series_.emplace_back();
  load_.Look();
  sample.at_s = world_.now_ms() / 1000;
  sample.nodes = static_cast<int64_t>(world_.nodes().size());
  for (const GroupIndex group : world_.scenario().groups.indices()) {
    for (const SimMachineIndex machine : cloud_.machines(group))
      sample.on_the_way += world_.machine(machine).node.has_value() ? 0 : 1;
  }
  sample.pods = world_.pods_alive();
  sample.waiting = world_.waiting();
  sample.usd_per_hour = cloud_.UsdPerHour();
  sample.bound_usd_per_hour = bound_.UsdPerHour();
  const std::vector<int64_t>& waited_ms = world_.counts().waited_ms;
  const SimWaits waits =
      WaitsOf({waited_ms.begin() + static_cast<std::ptrdiff_t>(waits_sampled_), waited_ms.end()});
  waits_sampled_ = waited_ms.size();
  sample.wait_p50 = waits.p50;
  sample.wait_p95 = waits.p95;
  sample.wait_max = waits.max;
  sample.use = load_.UseNow();
  if (world_.now_ms() >= next_progress_ms_) {
    next_progress_ms_ += kProgressHourMs;
    checker_.CheckProgress();
    CheckSums();
  }
  world_.After(sample_ms_, SimEventKind::kSample);
}

void Simulation::CheckSums() {
  if (!seen_.IsUpToDate()) return;
  for (const SimNodeIndex node : world_.nodes()) {
    if (const std::optional<CpuMemory> requested = seen_.RequestedOn(node))
      checker_.CheckSums(node, *requested);
  }
}

SimResult Simulation::Result(const WorkBudget& budget) const {
  SimResult result;
  const SimCounts& counts = world_.counts();
  result.digest = world_.digest();
  result.loops = loop_.loops();
  result.usd = cloud_.Usd();
  result.bound_usd = bound_.Usd();
  result.waits = WaitsOf(counts.waited_ms);
  result.load = load_.Load();
  result.moves = loop_.moves();
  result.evictions = counts.evictions;
  result.refused_evictions = counts.refused_evictions;
  result.growths = counts.growths;
  result.nodes_added = counts.nodes_added;
  result.nodes_removed = counts.nodes_removed;
  result.left_waiting = world_.waiting();
  result.violations = checker_.violations();
  result.series = series_;
  result.cut_short_by = std::string(Name(budget.end()));
  return result;
}

}  // namespace

SimResult Simulate(const Scenario& scenario, WorkBudget* budget) {
  Simulation simulation(scenario);
  return simulation.Run(budget);
}

}  // namespace loadline

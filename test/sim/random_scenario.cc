#include "test/sim/random_scenario.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sim/random_stream.h"

namespace loadline {
namespace {

constexpr int64_t kSimGiB = int64_t{1} << 30;
// Beyond those of the simulator.
constexpr SimPurpose kScenarioPurpose{1000};
constexpr SimPurpose kUnreadPurpose{1001};
constexpr SimPurpose kZonePurpose{1002};
constexpr SimPurpose kDelayPurpose{1003};
constexpr SimPurpose kMarksPurpose{1004};
constexpr SimPurpose kExpendablePurpose{1005};

SimGroup RandomGroup(int index, RandomStream* random) {
  SimGroup group;
  group.name = absl::StrCat("g", index);
  group.allocatable.cpu = 2000 << random->Between(0, 3);
  group.allocatable.memory = group.allocatable.cpu / 1000 * kSimGiB * random->Between(2, 8);
  group.usd_per_hour = static_cast<double>(group.allocatable.cpu) / 25'000;
  group.max_nodes = random->Between(5, 40);
  group.min_nodes = random->Chance(300'000) ? random->Between(0, 4) : 0;
  group.nodes = random->Between(group.min_nodes, std::min<int64_t>(group.max_nodes, group.min_nodes + 4));
  group.start_s_min = random->Between(20, 120);
  group.start_s_max = group.start_s_min + random->Between(0, 120);
  group.spot = random->Chance(300'000);
  group.tainted = index > 0 && random->Chance(200'000);
  if (random->Chance(150'000)) {
    group.gpus = random->Between(1, 4);
    group.usd_per_hour *= 5;
  }
  return group;
}

void DrawLoad(RandomStream* random, SimWorkload* workload) {
  workload->replicas = random->Between(1, 30);
  if (random->Chance(600'000)) workload->daily_percent = random->Between(10, 100);
  if (random->Chance(300'000)) workload->weekend_percent = random->Between(10, 100);
  workload->peak_s = random->Between(0, 86'399);
  if (random->Chance(400'000)) {
    workload->bursts.push_back(
        {random->Between(0, 80'000), random->Between(300, 20'000), random->Between(1, 60)});
  }
  if (random->Chance(300'000)) workload->rollout_every_s = random->Between(7'200, 50'000);
  if (random->Chance(500'000)) {
    workload->max_unavailable = random->Between(0, 5);
    workload->two_budgets = random->Chance(100'000);
  }
}

SimWorkload RandomWorkload(int index, const StrongVector<GroupIndex, SimGroup>& groups,
                           RandomStream* random) {
  SimWorkload workload;
  workload.name = absl::StrCat("w", index);
  workload.request.cpu = random->Between(1, 15) * 100;
  workload.request.memory = random->Between(1, 24) * (kSimGiB / 8);
  if (random->Chance(500'000)) workload.limit = Times(workload.request, random->Between(1, 4));
  workload.grace_s = random->Between(0, 60);
  workload.start_s_max = workload.start_s_min + random->Between(0, 60);
  workload.priority = static_cast<int32_t>(random->Between(0, 2) * 100);
  workload.not_evictable = random->Chance(50'000);
  workload.forged_owner = random->Chance(50'000);
  const int64_t kind = random->Between(0, 9);
  const SimGroup& group =
      groups[static_cast<GroupIndex>(random->Between(0, static_cast<int64_t>(groups.size()) - 1))];
  if (random->Chance(300'000)) {
    workload.group = group.name;
    workload.gpus = group.gpus > 0 ? random->Between(0, 1) : 0;
  }
  DrawLoad(random, &workload);
  if (kind == 0) {
    workload.kind = SimWorkloadKind::kDaemon;
    workload.replicas = 0;
    workload.group.clear();
    workload.gpus = 0;
    workload.request = {100, kSimGiB / 8};
    workload.max_unavailable = -1;
    workload.two_budgets = workload.forged_owner = false;
  } else if (kind <= 2) {
    workload.kind = SimWorkloadKind::kBatch;
    workload.first_s = random->Between(0, 10'000);
    workload.every_s = random->Between(3'600, 40'000);
    workload.run_s_max = random->Between(60, 5'000);
  } else if (kind == 3) {
    workload.kind = SimWorkloadKind::kTrace;
    workload.replicas = 0;
    int64_t at_s = 0;
    for (int i = 0; i < 20; ++i) {
      at_s += random->Between(0, 5'000);
      workload.arrivals.push_back({at_s, random->Between(1, 10)});
    }
  }
  return workload;
}

// Moves that cost little, so that there are some.
void DrawReplacement(RandomStream* random, SimSettings* settings) {
  settings->replace = random->Chance(400'000);
  ReplacementPolicy& policy = settings->replacement;
  policy.options.least_saving_percent = static_cast<double>(random->Between(0, 10));
  policy.options.payback_hours = static_cast<double>(random->Between(1, 8));
  policy.options.max_nodes_at_once = random->Between(1, 10);
  policy.options.max_nodes_per_move = random->Between(1, 24);
  policy.options.max_pods_at_once = random->Between(20, 200);
  policy.prices.usd_per_pod = static_cast<double>(random->Between(0, 10)) / 10'000;
  policy.rest_ms = random->Between(0, 60) * 60'000;
}

// Each is on in a sixth.
void DrawFurtherFaults(RandomStream* random, SimFaults* faults) {
  const auto maybe = [&](int64_t low, int64_t high) {
    return random->Chance(160'000) ? random->Between(low, high) : 0;
  };
  faults->lost_answer = maybe(10'000, 500'000);
  faults->failed_list = maybe(10'000, 500'000);
  faults->failed_machine = maybe(10'000, 300'000);
  faults->taken_back = maybe(10'000, 500'000);
  faults->stuck_deletion = maybe(10'000, 500'000);
  faults->stuck_deletion_s = random->Between(600, 20'000);
  faults->hand_scaling = maybe(10'000, 300'000);
  faults->node_flaps = maybe(1'000, 50'000);
  faults->node_returns = maybe(1'000, 50'000);
  faults->doubled_event = maybe(1'000, 500'000);
  faults->broken_list = maybe(10'000, 500'000);
  faults->failed_write = maybe(10'000, 500'000);
  faults->api_down = maybe(10'000, 500'000);
  faults->api_down_s = random->Between(10, 3'600);
  faults->stuck_pod = maybe(10'000, 300'000);
  faults->stuck_pod_s = random->Between(60, 5'000);
  faults->leader_ends = maybe(10'000, 500'000);
  faults->leader_ends_acting = maybe(10'000, 300'000);
  if (faults->leader_ends + faults->leader_ends_acting == 0) return;
  faults->failed_state_write = maybe(10'000, 1'000'000);
  faults->leader_clock_ms = maybe(100, 30'000);
}

// Each is on in a third of the scenarios that have any.
SimFaults RandomFaults(RandomStream* random) {
  SimFaults faults;
  const auto maybe = [&](int64_t low, int64_t high) {
    return random->Chance(330'000) ? random->Between(low, high) : 0;
  };
  faults.watch_lag_ms_max = maybe(100, 20'000);
  faults.lost_event = maybe(100, 20'000);
  faults.stock_out = maybe(20'000, 500'000);
  faults.stock_out_s = random->Between(300, 10'000);
  faults.phantom = maybe(10'000, 300'000);
  faults.slow_start = maybe(10'000, 300'000);
  faults.late_devices_s = maybe(10, 600);
  faults.calls_per_minute = maybe(1, 10);
  faults.failed_call = maybe(10'000, 500'000);
  faults.spot_interruption = maybe(10'000, 300'000);
  faults.node_unready = maybe(1'000, 100'000);
  faults.node_unready_s = random->Between(20, 1'500);
  faults.node_lost = maybe(1'000, 30'000);
  DrawFurtherFaults(random, &faults);
  return faults;
}

// Draws marks of operators and platforms on single nodes, and pods that select by such marks.
void DrawMarks(RandomStream* random, Scenario* scenario) {
  SimFaults& faults = scenario->faults;
  if (random->Chance(250'000)) {
    faults.hand_mark = random->Between(50'000, 1'000'000);
    faults.hand_mark_s = random->Between(600, 20'000);
    for (SimWorkload& workload : scenario->workloads) {
      workload.labelled_nodes_only = random->Chance(200'000) && workload.kind != SimWorkloadKind::kDaemon;
    }
  }
  if (random->Chance(250'000)) {
    faults.startup_taint = random->Between(100'000, 1'000'000);
    faults.startup_taint_s = random->Between(10, 1'200);
  }
}

std::string DescribeMoves(const ReplacementPolicy& policy) {
  const ConsolidationOptions& options = policy.options;
  return absl::StrCat("replace: saving ", options.least_saving_percent, " percent, payback ",
                      options.payback_hours, " h, nodes ", options.max_nodes_at_once, " and ",
                      options.max_nodes_per_move, ", pods ", options.max_pods_at_once, ", pod ",
                      policy.prices.usd_per_pod, " USD, rest ", policy.rest_ms / 1000);
}

}  // namespace

Scenario RandomScenario(uint64_t seed) {
  RandomStream random(seed, kScenarioPurpose);
  Scenario scenario;
  scenario.seed = seed;
  scenario.days = random.Between(1, 2);
  const int64_t groups = random.Between(1, 4);
  for (int i = 0; i < groups; ++i) scenario.groups.push_back(RandomGroup(i, &random));
  const int64_t workloads = random.Between(1, 8);
  for (int i = 0; i < workloads; ++i) {
    scenario.workloads.push_back(RandomWorkload(i, scenario.groups, &random));
  }
  SimSettings& settings = scenario.settings;
  settings.score = static_cast<SimScore>(random.Between(0, 2));
  settings.scan_interval_s = random.Between(1, 3) * 10;
  settings.unneeded_time_s = random.Between(0, 10) * 60;
  settings.unready_time_s = settings.unneeded_time_s + random.Between(0, 10) * 60;
  if (random.Chance(500'000)) settings.after_add_s = random.Between(0, 10) * 60;
  settings.slack_percent = random.Chance(500'000) ? 0 : random.Between(1, 50);
  settings.after_delete_s = random.Chance(300'000) ? random.Between(0, 5) * 60 : 0;
  if (random.Chance(300'000)) {
    settings.batch_max_ms = random.Between(0, 60'000);
    settings.batch_idle_ms = random.Between(0, settings.batch_max_ms);
  }
  settings.utilization_threshold = static_cast<double>(random.Between(3, 10)) / 10;
  settings.max_scale_down_parallelism = random.Between(1, 10);
  settings.max_drain_parallelism = random.Between(1, settings.max_scale_down_parallelism);
  scenario.load_step_s = random.Between(1, 10) * 60;
  if (seed % 4 != 0) scenario.faults = RandomFaults(&random);
  DrawReplacement(&random, &settings);
  if (random.Chance(300'000)) settings.node_budget = random.Between(1, 4);
  RandomStream zones(seed, kZonePurpose);
  if (zones.Chance(300'000)) {
    for (SimGroup& group : scenario.groups)
      group.zone = std::string(1, static_cast<char>('a' + zones.Between(0, 2)));
    for (SimWorkload& workload : scenario.workloads) {
      if (zones.Chance(300'000)) workload.max_zone_skew = zones.Between(1, 3);
    }
  }
  RandomStream delay(seed, kDelayPurpose);
  if (delay.Chance(200'000)) settings.new_pod_scale_up_delay_s = delay.Between(1, 600);
  RandomStream marks(seed, kMarksPurpose);
  if (seed % 4 != 0) DrawMarks(&marks, &scenario);
  RandomStream expendable(seed, kExpendablePurpose);
  if (expendable.Chance(200'000)) {
    for (SimWorkload& workload : scenario.workloads) {
      if (expendable.Chance(300'000)) workload.priority = -100;
    }
  }
  RandomStream unread(seed, kUnreadPurpose);
  if (seed % 4 != 0 && unread.Chance(160'000)) {
    scenario.faults.unread_group = unread.Between(10'000, 500'000);
    scenario.faults.unread_group_s = unread.Between(60, 3'600);
  }
  return scenario;
}

Scenario LargeScenario(int64_t days) {
  Scenario scenario;
  scenario.days = days;
  scenario.groups.push_back({.name = "small",
                             .max_nodes = 1'500,
                             .nodes = 900,
                             .allocatable = {8'000, 32 * kSimGiB},
                             .usd_per_hour = 0.4});
  scenario.groups.push_back({.name = "large",
                             .max_nodes = 300,
                             .nodes = 20,
                             .allocatable = {32'000, 128 * kSimGiB},
                             .usd_per_hour = 1.7});
  for (int i = 0; i < 200; ++i) {
    SimWorkload& workload = scenario.workloads.emplace_back();
    workload.name = absl::StrCat("app-", i);
    workload.replicas = 100;
    workload.request = {250 + i % 7 * 50, (1 + i % 4) * kSimGiB / 2};
    workload.daily_percent = 20 + i % 5 * 10;
    workload.weekend_percent = 20;
    workload.peak_s = 12 * 3600 + i % 6 * 1800;
    if (i % 2 == 0) workload.max_unavailable = 10;
  }
  return scenario;
}

Scenario Shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails) {
  const auto try_one = [&](const std::function<void(Scenario*)>& change) {
    Scenario smaller = scenario;
    change(&smaller);
    if (!CheckScenario(smaller).ok() || !fails(smaller)) return false;
    scenario = std::move(smaller);
    return true;
  };
  try_one([](Scenario* s) { s->days = 1; });
  try_one([](Scenario* s) { s->settings.replace = false; });
  try_one([](Scenario* s) { s->settings.new_pod_scale_up_delay_s = 0; });
  for (size_t number = scenario.workloads.size(); number-- > 0;) {
    const auto at = static_cast<std::ptrdiff_t>(number);
    const auto i = IndexAt<SimWorkloadIndex>(number);
    if (try_one([&](Scenario* s) { s->workloads.values().erase(s->workloads.begin() + at); })) continue;
    try_one([&](Scenario* s) { s->workloads[i].bursts.clear(); });
    try_one([&](Scenario* s) { s->workloads[i].labelled_nodes_only = false; });
    try_one([&](Scenario* s) { s->workloads[i].rollout_every_s = 0; });
    try_one([&](Scenario* s) { s->workloads[i].daily_percent = s->workloads[i].weekend_percent = 0; });
    while (try_one([&](Scenario* s) { s->workloads[i].replicas /= 2; }) &&
           scenario.workloads[i].replicas > 0) {
    }
  }
  for (size_t i = scenario.groups.size(); i-- > 0;) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    try_one([&](Scenario* s) { s->groups.values().erase(s->groups.begin() + at); });
  }
  const SimFaults none;
  for (const SimFaultField& field : SimFaultFields()) {
    if (scenario.faults.*field.value == none.*field.value) continue;
    try_one([&](Scenario* s) { s->faults.*field.value = none.*field.value; });
  }
  return scenario;
}

std::string Describe(const Scenario& scenario) {
  std::string text = absl::StrCat("seed ", scenario.seed, ", ", scenario.days, " days\n");
  for (const SimGroup& group : scenario.groups) {
    absl::StrAppend(&text, "group ", group.name, ": ", group.min_nodes, "..", group.max_nodes, " from ",
                    group.nodes, ", cpu ", group.allocatable.cpu, ", memory ", group.allocatable.memory,
                    ", gpus ", group.gpus, group.spot ? ", spot" : "", group.tainted ? ", tainted" : "",
                    "\n");
  }
  for (const SimWorkload& workload : scenario.workloads) {
    absl::StrAppend(
        &text, "workload ", workload.name, ": kind ", static_cast<int>(workload.kind), ", ",
        workload.replicas, " of cpu ", workload.request.cpu, ", memory ", workload.request.memory, ", gpus ",
        workload.gpus, ", daily ", workload.daily_percent, ", weekend ", workload.weekend_percent,
        ", bursts ", workload.bursts.size(), ", rollout ", workload.rollout_every_s, ", budget ",
        workload.max_unavailable, workload.two_budgets ? " twice" : "",
        workload.not_evictable ? ", not evictable" : "", workload.forged_owner ? ", forged owner" : "",
        workload.labelled_nodes_only ? ", labelled nodes only" : "", ", group ", workload.group, "\n");
  }
  const SimSettings& settings = scenario.settings;
  absl::StrAppend(
      &text, "settings: scan ", settings.scan_interval_s, ", unneeded ", settings.unneeded_time_s,
      ", unready ", settings.unready_time_s, ", threshold ", settings.utilization_threshold, ", at once ",
      settings.max_scale_down_parallelism, " and ", settings.max_drain_parallelism, ", of a group ",
      settings.node_budget, ", after add ", settings.after_add_s, " delete ", settings.after_delete_s,
      ", slack ", settings.slack_percent, ", batch ", settings.batch_idle_ms, " to ", settings.batch_max_ms,
      ", delay ", settings.new_pod_scale_up_delay_s,
      settings.replace ? absl::StrCat("\n", DescribeMoves(settings.replacement)) : "", "\nfaults:");
  const SimFaults none;
  for (const SimFaultField& field : SimFaultFields()) {
    const int64_t value = scenario.faults.*field.value;
    if (value != none.*field.value) absl::StrAppend(&text, " ", field.name, " ", value);
  }
  absl::StrAppend(&text, "\n");
  return text;
}

}  // namespace loadline

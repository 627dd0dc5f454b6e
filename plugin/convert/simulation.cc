#include "plugin/convert/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin/convert/consolidate.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/replacement.h"
#include "plugin/convert/text.h"
#include "plugin/convert/usage.h"

namespace loadline {
namespace {

constexpr int64_t kMostMib = int64_t{1} << 30;
constexpr int64_t kBytesOfMib = int64_t{1} << 20;
constexpr int64_t kSecondsOfHour = 3600;
constexpr int kMostSimEntries = 200'000;

int64_t OrDefault(int64_t value, int64_t otherwise) { return value == 0 ? otherwise : value; }

void ReadRange(const v1::SecondsRange& message, int64_t* shortest, int64_t* longest) {
  *shortest = message.min();
  *longest = message.max();
}

SimGroup DecodeSimGroup(const v1::SimulatedGroup& message) {
  SimGroup group;
  group.name = message.name();
  group.min_nodes = message.min();
  group.max_nodes = message.max();
  group.nodes = OrDefault(message.nodes(), message.min());
  group.allocatable = {message.milli_cpu(), message.memory_mib() * kBytesOfMib};
  group.pods = OrDefault(message.pods(), group.pods);
  group.gpus = message.gpus();
  group.usd_per_hour = message.usd_per_hour();
  if (message.has_ready_seconds()) group.ready_s = message.ready_seconds();
  if (message.has_stop_seconds()) group.stop_s = message.stop_seconds();
  if (message.has_start_seconds()) {
    ReadRange(message.start_seconds(), &group.start_s_min, &group.start_s_max);
  }
  group.spot = message.spot();
  group.tainted = message.tainted();
  group.zone = message.zone();
  return group;
}

SimWorkloadKind DecodeKind(v1::SimulatedWorkload::Kind kind) {
  switch (kind) {
    case v1::SimulatedWorkload::BATCH:
      return SimWorkloadKind::kBatch;
    case v1::SimulatedWorkload::DAEMON:
      return SimWorkloadKind::kDaemon;
    case v1::SimulatedWorkload::TRACE:
      return SimWorkloadKind::kTrace;
    default:
      return SimWorkloadKind::kDeployment;
  }
}

void DecodeLoad(const v1::SimulatedWorkload& message, SimWorkload* workload) {
  workload->daily_percent = message.daily_percent();
  workload->weekend_percent = message.weekend_percent();
  if (message.has_peak_hour()) workload->peak_s = message.peak_hour() * kSecondsOfHour;
  for (const v1::SimulatedBurst& burst : message.bursts()) {
    workload->bursts.push_back({burst.at_seconds(), burst.for_seconds(), burst.replicas()});
  }
  for (const v1::SimulatedArrival& arrival : message.arrivals()) {
    workload->arrivals.push_back({arrival.at_seconds(), arrival.count()});
  }
  workload->rollout_every_s = message.rollout_every_seconds();
  if (message.has_max_unavailable()) workload->max_unavailable = message.max_unavailable();
  workload->first_s = message.first_seconds();
  workload->every_s = message.every_seconds();
  if (message.has_run_seconds()) {
    ReadRange(message.run_seconds(), &workload->run_s_min, &workload->run_s_max);
  }
}

SimUse DecodeSimUse(const v1::SimulatedUse& message) {
  SimUse use;
  switch (message.pattern()) {
    case v1::SimulatedUse::FLAT:
      use.pattern = SimUsePattern::kFlat;
      break;
    case v1::SimulatedUse::OFFICE_HOURS:
      use.pattern = SimUsePattern::kOfficeHours;
      break;
    case v1::SimulatedUse::NIGHT_BATCH:
      use.pattern = SimUsePattern::kNightBatch;
      break;
    default:
      break;
  }
  use.cpu_peak_percent = message.cpu_peak_percent();
  use.memory_peak_percent = message.memory_peak_percent();
  use.phase_hours = message.phase_hours();
  std::copy(message.cpu_milli().begin(), message.cpu_milli().end(), use.cpu_milli.begin());
  std::copy(message.memory_bytes().begin(), message.memory_bytes().end(), use.memory_bytes.begin());
  use.deviation_percent = message.deviation_percent();
  return use;
}

SimWorkload DecodeSimWorkload(const v1::SimulatedWorkload& message) {
  SimWorkload workload;
  workload.name = message.name();
  workload.kind = DecodeKind(message.kind());
  workload.replicas = message.replicas();
  workload.request = {message.milli_cpu(), message.memory_mib() * kBytesOfMib};
  workload.limit = {message.limit_milli_cpu(), message.limit_memory_mib() * kBytesOfMib};
  workload.gpus = message.gpus();
  workload.priority = message.priority();
  workload.group = message.group();
  if (message.has_grace_seconds()) workload.grace_s = message.grace_seconds();
  workload.not_evictable = message.not_evictable();
  workload.two_budgets = message.two_budgets();
  workload.forged_owner = message.forged_owner();
  workload.apart = message.apart();
  workload.max_zone_skew = message.max_zone_skew();
  workload.labelled_nodes_only = message.labelled_nodes_only();
  if (message.has_pod_start_seconds()) {
    ReadRange(message.pod_start_seconds(), &workload.start_s_min, &workload.start_s_max);
  }
  if (message.has_use()) workload.use = DecodeSimUse(message.use());
  DecodeLoad(message, &workload);
  return workload;
}

absl::Status DecodeSimReplacement(const v1::SimulatedSettings& message, SimSettings* settings) {
  settings->replace = message.replace();
  const absl::StatusOr<DecodedConsolidationPolicy> policy =
      DecodeConsolidationPolicy(message.consolidation());
  if (!policy.ok()) return Annotate(policy.status(), "scenario.settings.consolidation");
  UseConsolidationPolicy(*policy, &settings->replacement);
  return absl::OkStatus();
}

// Anything that is no line becomes one that CheckScenario() refuses.
int64_t DecodeLine(double line) {
  const double thousandths = std::round(line * kLineUnit);
  return thousandths >= 0 && thousandths <= kHighestLine ? static_cast<int64_t>(thousandths) : -1;
}

absl::Status DecodeLines(const v1::SimulatedSettings& message, SimSettings* settings) {
  const absl::StatusOr<ExpectedUseOptions> expected = DecodeExpectedUse(message.expected_use());
  if (!expected.ok()) return Annotate(expected.status(), "scenario.settings.expected_use");
  settings->expected_use = *expected;
  const auto line = [](const v1::SimulatedLine& of) {
    return SimLine{DecodeLine(of.cpu()), DecodeLine(of.memory())};
  };
  settings->limits_line = line(message.max_limits_over_allocatable());
  settings->expected_line = line(message.max_expected_over_allocatable());
  return absl::OkStatus();
}

SimSettings DecodeSimSettings(const v1::SimulatedSettings& message) {
  SimSettings settings;
  if (message.score() == v1::SimulatedSettings::MOST_ALLOCATED) settings.score = SimScore::kMostAllocated;
  if (message.score() == v1::SimulatedSettings::LIMIT_AWARE) settings.score = SimScore::kLimitAware;
  settings.scan_interval_s = OrDefault(message.scan_seconds(), settings.scan_interval_s);
  if (message.has_utilization_threshold()) settings.utilization_threshold = message.utilization_threshold();
  if (message.has_unneeded_seconds()) settings.unneeded_time_s = message.unneeded_seconds();
  if (message.has_unready_seconds()) settings.unready_time_s = message.unready_seconds();
  settings.max_scale_down_parallelism =
      OrDefault(message.max_scale_down_parallelism(), settings.max_scale_down_parallelism);
  settings.max_drain_parallelism = OrDefault(message.max_drain_parallelism(), settings.max_drain_parallelism);
  settings.node_budget = message.node_budget();
  if (message.has_eviction_retry_milliseconds())
    settings.eviction_retry_ms = message.eviction_retry_milliseconds();
  if (message.has_poll_milliseconds()) settings.poll_ms = message.poll_milliseconds();
  settings.scale_down = !message.no_scale_down();
  settings.downscale_order = message.downscale_order();
  settings.new_pod_scale_up_delay_s = message.new_pod_scale_up_delay_seconds();
  settings.max_node_provision_s =
      OrDefault(message.max_node_provision_seconds(), settings.max_node_provision_s);
  if (message.has_delay_after_add_seconds()) settings.after_add_s = message.delay_after_add_seconds();
  if (message.has_delay_after_delete_seconds())
    settings.after_delete_s = message.delay_after_delete_seconds();
  if (message.has_delay_after_failure_seconds()) {
    settings.after_failure_s = message.delay_after_failure_seconds();
  }
  if (message.has_batch_idle_milliseconds()) settings.batch_idle_ms = message.batch_idle_milliseconds();
  if (message.has_batch_max_milliseconds()) settings.batch_max_ms = message.batch_max_milliseconds();
  if (message.has_slack_percent()) settings.slack_percent = message.slack_percent();
  settings.blockers_together = message.blockers_together();
  return settings;
}

void DecodeFurtherFaults(const v1::SimulatedFaults& message, SimFaults* faults) {
  faults->lost_answer = message.lost_answer();
  faults->failed_list = message.failed_list();
  faults->unread_group = message.unread_group();
  faults->unread_group_s = OrDefault(message.unread_group_seconds(), faults->unread_group_s);
  faults->failed_machine = message.failed_machine();
  faults->taken_back = message.taken_back();
  faults->stuck_deletion = message.stuck_deletion();
  faults->stuck_deletion_s = OrDefault(message.stuck_deletion_seconds(), faults->stuck_deletion_s);
  faults->hand_scaling = message.hand_scaling();
  faults->hand_mark = message.hand_mark();
  faults->hand_mark_s = OrDefault(message.hand_mark_seconds(), faults->hand_mark_s);
  faults->startup_taint = message.startup_taint();
  faults->startup_taint_s = OrDefault(message.startup_taint_seconds(), faults->startup_taint_s);
  faults->node_flaps = message.node_flaps();
  faults->node_returns = message.node_returns();
  faults->doubled_event = message.doubled_event();
  faults->broken_list = message.broken_list();
  faults->failed_write = message.failed_write();
  faults->api_down = message.api_down();
  faults->api_down_s = OrDefault(message.api_down_seconds(), faults->api_down_s);
  faults->stuck_pod = message.stuck_pod();
  faults->stuck_pod_s = OrDefault(message.stuck_pod_seconds(), faults->stuck_pod_s);
  faults->leader_ends = message.leader_ends();
  faults->leader_ends_acting = message.leader_ends_acting();
  faults->failed_state_write = message.failed_state_write();
  faults->leader_clock_ms = message.leader_clock_milliseconds();
}

SimFaults DecodeSimFaults(const v1::SimulatedFaults& message) {
  SimFaults faults;
  faults.watch_lag_ms_min = message.watch_lag_milliseconds_min();
  faults.watch_lag_ms_max = OrDefault(message.watch_lag_milliseconds_max(), faults.watch_lag_ms_min);
  faults.lost_event = message.lost_event();
  faults.relist_s = OrDefault(message.relist_seconds(), faults.relist_s);
  faults.stock_out = message.stock_out();
  faults.stock_out_s = OrDefault(message.stock_out_seconds(), faults.stock_out_s);
  faults.phantom = message.phantom();
  faults.slow_start = message.slow_start();
  faults.late_devices_s = message.late_devices_seconds();
  faults.calls_per_minute = message.calls_per_minute();
  faults.failed_call = message.failed_call();
  faults.spot_interruption = message.spot_interruption();
  faults.node_unready = message.node_unready();
  faults.node_unready_s = OrDefault(message.node_unready_seconds(), faults.node_unready_s);
  faults.node_lost = message.node_lost();
  DecodeFurtherFaults(message, &faults);
  return faults;
}

absl::Status CheckHours(const std::string& of, const v1::SimulatedUse& use) {
  if (use.pattern() < 0 || use.pattern() > v1::SimulatedUse::NIGHT_BATCH) {
    return NoSuchValue(absl::StrCat(of, ".pattern"), use.pattern());
  }
  constexpr int kHours = static_cast<int>(kHoursOfDay);
  for (const int entries : {use.cpu_milli_size(), use.memory_bytes_size()}) {
    if (entries == 0 || (entries == kHours && use.pattern() == v1::SimulatedUse::PATTERN_UNSPECIFIED)) {
      continue;
    }
    return Refused(absl::StrCat(of, ": cpu_milli and memory_bytes have ", kHours,
                                " entries or none, and none with a pattern"));
  }
  return absl::OkStatus();
}

// Checks what has no counterpart in core/, or would be lost on the way there.
absl::Status CheckSimMessage(const v1::Scenario& message) {
  Fields fields;
  fields.Keep(CheckSize("scenario.groups", message.groups_size(), static_cast<int>(kMostSimGroups)));
  fields.Keep(CheckSize("scenario.workloads", message.workloads_size(), static_cast<int>(kMostSimWorkloads)));
  if (!fields.status().ok()) return fields.status();
  for (int i = 0; i < message.groups_size(); ++i) {
    fields.Range(absl::StrCat("scenario.groups[", i, "].memory_mib"), message.groups(i).memory_mib(), 0,
                 kMostMib);
  }
  for (int i = 0; i < message.workloads_size(); ++i) {
    const v1::SimulatedWorkload& workload = message.workloads(i);
    const std::string of = absl::StrCat("scenario.workloads[", i, "]");
    fields.Range(absl::StrCat(of, ".memory_mib"), workload.memory_mib(), 0, kMostMib);
    fields.Range(absl::StrCat(of, ".limit_memory_mib"), workload.limit_memory_mib(), 0, kMostMib);
    fields.Range(absl::StrCat(of, ".peak_hour"), workload.peak_hour(), 0, 23);
    fields.Keep(CheckSize(absl::StrCat(of, ".bursts"), workload.bursts_size(), 1000));
    fields.Keep(CheckSize(absl::StrCat(of, ".arrivals"), workload.arrivals_size(), kMostSimEntries));
    fields.Keep(CheckHours(absl::StrCat(of, ".use"), workload.use()));
    if (workload.kind() < 0 || workload.kind() > v1::SimulatedWorkload::TRACE) {
      fields.Keep(NoSuchValue(absl::StrCat(of, ".kind"), workload.kind()));
    }
  }
  const int score = message.settings().score();
  if (score < 0 || score > v1::SimulatedSettings::LIMIT_AWARE) {
    fields.Keep(NoSuchValue("scenario.settings.score", score));
  }
  return fields.status();
}

}  // namespace

absl::StatusOr<Scenario> DecodeScenario(const v1::SimulateRequest& request) {
  const v1::Scenario& message = request.scenario();
  if (absl::Status status = CheckSimMessage(message); !status.ok()) return status;
  if (absl::Status status = CheckNotNegative("seed", request.seed()); !status.ok()) return status;
  Scenario scenario;
  for (const v1::SimulatedGroup& group : message.groups()) scenario.groups.push_back(DecodeSimGroup(group));
  for (const v1::SimulatedWorkload& workload : message.workloads()) {
    scenario.workloads.push_back(DecodeSimWorkload(workload));
  }
  scenario.settings = DecodeSimSettings(message.settings());
  if (absl::Status status = DecodeSimReplacement(message.settings(), &scenario.settings); !status.ok()) {
    return status;
  }
  if (absl::Status status = DecodeLines(message.settings(), &scenario.settings); !status.ok()) return status;
  scenario.faults = DecodeSimFaults(message.faults());
  scenario.days = request.days();
  scenario.duration_s = message.duration_seconds();
  scenario.seed = static_cast<uint64_t>(request.seed());
  scenario.load_step_s = OrDefault(message.load_step_seconds(), scenario.load_step_s);
  if (absl::Status status = CheckScenario(scenario); !status.ok()) return status;
  return scenario;
}

v1::SimulateResponse EncodeSimulation(const SimResult& result) {
  v1::SimulateResponse response;
  response.set_digest(result.digest);
  response.set_loops(result.loops);
  response.set_usd(result.usd);
  v1::SimulatedWaits* const waits = response.mutable_waits();
  waits->set_pods(result.waits.pods);
  waits->set_mean(result.waits.mean);
  waits->set_p50(result.waits.p50);
  waits->set_p95(result.waits.p95);
  waits->set_max(result.waits.max);
  for (size_t i = 0; i < result.waits.histogram.size(); ++i) {
    v1::SimulatedWaitCount* const count = waits->add_histogram();
    count->set_at_most_seconds(i < std::size(kWaitBounds) ? kWaitBounds[i] : -1);
    count->set_pods(result.waits.histogram[i]);
  }
  v1::SimulatedLoad* const load = response.mutable_load();
  load->set_limits_over_allocatable_cpu_p99(result.load.cpu_p99);
  load->set_limits_over_allocatable_memory_p99(result.load.memory_p99);
  load->set_nodes_mean(result.load.nodes_mean);
  load->set_nodes_max(result.load.nodes_max);
  if (const std::optional<SimOverload>& overload = result.load.overload; overload.has_value()) {
    v1::SimulatedOverload* const reported = response.mutable_overload();
    reported->set_cpu_node_hours(overload->cpu_node_hours);
    reported->set_memory_node_hours(overload->memory_node_hours);
    reported->set_cpu_volume(overload->cpu_volume);
    reported->set_memory_volume(overload->memory_volume);
  }
  v1::SimulatedMoves* const moves = response.mutable_moves();
  moves->set_begun(result.moves.begun);
  moves->set_done(result.moves.done);
  moves->set_given_up(result.moves.given_up);
  response.set_evictions(result.evictions);
  response.set_refused_evictions(result.refused_evictions);
  response.set_growths(result.growths);
  response.set_bound_usd(result.bound_usd);
  response.set_nodes_added(result.nodes_added);
  response.set_nodes_removed(result.nodes_removed);
  response.set_left_waiting(result.left_waiting);
  for (const std::string& violation : result.violations) response.add_violations(violation);
  for (const SimSample& sample : result.series) {
    v1::SimulatedMoment* const moment = response.add_series();
    moment->set_at_seconds(sample.at_s);
    moment->set_nodes(sample.nodes);
    moment->set_on_the_way(sample.on_the_way);
    moment->set_pods(sample.pods);
    moment->set_waiting(sample.waiting);
    moment->set_usd_per_hour(sample.usd_per_hour);
    moment->set_bound_usd_per_hour(sample.bound_usd_per_hour);
    moment->set_wait_p50(sample.wait_p50);
    moment->set_wait_p95(sample.wait_p95);
    moment->set_wait_max(sample.wait_max);
    moment->set_busiest_cpu(sample.use.busiest_cpu);
    moment->set_busiest_memory(sample.use.busiest_memory);
    moment->set_nodes_overloaded(sample.use.overloaded);
  }
  return response;
}

}  // namespace loadline

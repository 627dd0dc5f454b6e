#include "core/sim/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/check_range.h"
#include "core/fit/load_line.h"
#include "core/score/limit_policy.h"

namespace loadline {
namespace {

constexpr int64_t kSecondsOfDay = 86'400;
constexpr int64_t kMostSimAmount = int64_t{1} << 50;
constexpr double kMostSimUsd = 1e6;

// A field and what it may be.
struct FieldRange {
  absl::string_view field;
  int64_t value;
  int64_t lowest;
  int64_t highest;
};

template <size_t n>
absl::Status CheckFields(const std::string& of, const FieldRange (&ranges)[n]) {
  for (const FieldRange& range : ranges) {
    const std::string field = of.empty() ? std::string(range.field) : absl::StrCat(of, ".", range.field);
    if (absl::Status status = CheckRange(field, range.value, range.lowest, range.highest); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSimName(const std::string& of, const std::string& name,
                          absl::flat_hash_set<std::string>* names) {
  const auto fine = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || name.size() > 63 || !std::all_of(name.begin(), name.end(), fine)) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, ".name: must be 1 to 63 of a-z, 0-9 and -"));  // the name itself may be anything
  }
  if (!names->insert(name).second) {
    return absl::InvalidArgumentError(absl::StrCat(of, ".name: ", name, " occurs twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckSimGroup(const std::string& of, const SimGroup& group) {
  if (absl::Status status =
          CheckFields(of, {{"max", group.max_nodes, 0, kMostSimNodes},
                           {"min", group.min_nodes, 0, group.max_nodes},
                           {"nodes", group.nodes, group.min_nodes, group.max_nodes},
                           {"cpu", group.allocatable.cpu, 1, kMostSimAmount},
                           {"memory", group.allocatable.memory, 1, kMostSimAmount},
                           {"pods", group.pods, 1, 10'000},
                           {"gpus", group.gpus, 0, 1'000},
                           {"startSeconds.min", group.start_s_min, 1, kSecondsOfDay},
                           {"startSeconds.max", group.start_s_max, group.start_s_min, kSecondsOfDay},
                           {"readySeconds", group.ready_s, 0, 3600},
                           {"stopSeconds", group.stop_s, 0, 3600}});
      !status.ok()) {
    return status;
  }
  if (!std::isfinite(group.usd_per_hour) || group.usd_per_hour < 0 || group.usd_per_hour > kMostSimUsd) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, ".usdPerHour: must be in [0, ", static_cast<int64_t>(kMostSimUsd), "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckLoad(const std::string& of, const SimWorkload& workload) {
  for (size_t i = 0; i < workload.bursts.size(); ++i) {
    const SimBurst& burst = workload.bursts[i];
    if (absl::Status status = CheckFields(absl::StrCat(of, ".bursts[", i, "]"),
                                          {{"at", burst.at_s, 0, kMostSimSeconds},
                                           {"for", burst.for_s, 1, kMostSimSeconds},
                                           {"replicas", burst.replicas, 1, kMostSimPods}});
        !status.ok()) {
      return status;
    }
  }
  for (size_t i = 0; i < workload.arrivals.size(); ++i) {
    const SimArrival& arrival = workload.arrivals[i];
    if (absl::Status status = CheckFields(
            absl::StrCat(of, ".arrivals[", i, "]"),
            {{"at", arrival.at_s, 0, kMostSimSeconds}, {"count", arrival.count, 1, kMostSimPods}});
        !status.ok()) {
      return status;
    }
    if (i > 0 && arrival.at_s < workload.arrivals[i - 1].at_s) {
      return absl::InvalidArgumentError(
          absl::StrCat(of, ".arrivals[", i, "].at: is before the one in front"));
    }
  }
  const bool waves = workload.kind == SimWorkloadKind::kBatch;
  return CheckFields(of, {{"replicas", workload.replicas, 0, kMostSimPods},
                          {"dailyPercent", workload.daily_percent, 0, 100},
                          {"weekendPercent", workload.weekend_percent, 0, 100},
                          {"peakSeconds", workload.peak_s, 0, kSecondsOfDay - 1},
                          {"rolloutEverySeconds", workload.rollout_every_s, 0, kMostSimSeconds},
                          {"surgePercent", workload.surge_percent, 1, 100},
                          {"maxUnavailable", workload.max_unavailable, -1, kMostSimPods},
                          {"firstSeconds", workload.first_s, 0, kMostSimSeconds},
                          {"everySeconds", workload.every_s, waves ? 10 : 0, kMostSimSeconds},
                          {"runSeconds.min", workload.run_s_min, 1, kMostSimSeconds},
                          {"runSeconds.max", workload.run_s_max, workload.run_s_min, kMostSimSeconds},
                          {"maxZoneSkew", workload.max_zone_skew, 0, kMostSimPods},
                          {"graceSeconds", workload.grace_s, 0, 3600},
                          {"podStartSeconds.min", workload.start_s_min, 0, 3600},
                          {"podStartSeconds.max", workload.start_s_max, workload.start_s_min, 3600}});
}

absl::Status CheckUse(const std::string& of, const SimWorkload& workload) {
  const SimUse& use = *workload.use;
  if (absl::Status status = CheckFields(of, {{"cpuPeakPercent", use.cpu_peak_percent, 0, 100},
                                             {"memoryPeakPercent", use.memory_peak_percent, 0, 100},
                                             {"phaseHours", use.phase_hours, 0, 23},
                                             {"deviationPercent", use.deviation_percent, 0, 1'000}});
      !status.ok()) {
    return status;
  }
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    if (absl::Status status = CheckFields(of, {{"cpuMilli", use.cpu_milli[hour], 0, kMostSimAmount},
                                               {"memoryBytes", use.memory_bytes[hour], 0, kMostSimAmount}});
        !status.ok()) {
      return status;
    }
  }
  if (use.pattern == SimUsePattern::kHours) return absl::OkStatus();
  if (use.cpu_peak_percent == 0 && use.memory_peak_percent == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, ".pattern: needs cpuPeakPercent, memoryPeakPercent or both"));
  }
  if ((use.cpu_peak_percent > 0 && workload.limit.cpu == 0) ||
      (use.memory_peak_percent > 0 && workload.limit.memory == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, ".pattern: is a share of the limit, and the pods have none"));
  }
  return absl::OkStatus();
}

absl::Status CheckSimWorkload(const std::string& of, const SimWorkload& workload,
                              const absl::flat_hash_set<std::string>& groups) {
  if (absl::Status status = CheckLoad(of, workload); !status.ok()) return status;
  if (workload.use.has_value()) {
    if (absl::Status status = CheckUse(absl::StrCat(of, ".use"), workload); !status.ok()) return status;
  }
  if (absl::Status status = CheckFields(of, {{"cpu", workload.request.cpu, 0, kMostSimAmount},
                                             {"memory", workload.request.memory, 0, kMostSimAmount},
                                             {"cpuLimit", workload.limit.cpu, 0, kMostSimAmount},
                                             {"memoryLimit", workload.limit.memory, 0, kMostSimAmount},
                                             {"gpus", workload.gpus, 0, 1'000},
                                             {"priority", workload.priority, -1'000'000'000, 1'000'000'000}});
      !status.ok()) {
    return status;
  }
  if (!workload.group.empty() && !groups.contains(workload.group)) {
    return absl::InvalidArgumentError(absl::StrCat(of, ".group: there is no group of this name"));
  }
  return absl::OkStatus();
}

absl::Status CheckReplacement(const ReplacementPolicy& policy) {
  const ConsolidationOptions& options = policy.options;
  const auto usd = [](double value) { return value >= 0 && value <= kMostSimUsd; };
  const bool prices = std::all_of(policy.prices.by_priority.begin(), policy.prices.by_priority.end(),
                                  [&](const DisturbancePrice& price) { return usd(price.usd); });
  if (!usd(options.least_saving_usd_per_hour) || !usd(policy.prices.usd_per_pod) || !prices) {
    return absl::InvalidArgumentError(absl::StrCat("settings.consolidation: US dollars must be in [0, ",
                                                   static_cast<int64_t>(kMostSimUsd), "]"));
  }
  if (!(options.least_saving_percent >= 0 && options.least_saving_percent <= 100)) {
    return absl::InvalidArgumentError("settings.consolidation.leastSavingPercent: must be in [0, 100]");
  }
  if (!(options.payback_hours > 0 && options.payback_hours <= kMostSimDays * 24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("settings.consolidation.paybackHours: must be in (0, ", kMostSimDays * 24, "]"));
  }
  return CheckFields("settings.consolidation",
                     {{"maxNodesPerMove", options.max_nodes_per_move, 1, kMostSimNodes},
                      {"maxNodesAtOnce", options.max_nodes_at_once, 1, std::numeric_limits<int32_t>::max()},
                      {"maxPodsAtOnce", options.max_pods_at_once, 1, std::numeric_limits<int32_t>::max()},
                      {"restSeconds", policy.rest_ms / 1000, 0, kMostSimSeconds}});
}

absl::Status CheckLines(const SimSettings& settings) {
  const std::pair<absl::string_view, int64_t> lines[] = {
      {"maxLimitsOverAllocatable.cpu", settings.limits_line.cpu},
      {"maxLimitsOverAllocatable.memory", settings.limits_line.memory},
      {"maxExpectedOverAllocatable.cpu", settings.expected_line.cpu},
      {"maxExpectedOverAllocatable.memory", settings.expected_line.memory}};
  for (const auto& [field, line] : lines) {
    if (line == 0 || (line >= kLowestLine && line <= kHighestLine)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("settings.", field, ": must be 0 or in [0.1, ", kHighestLine / kLineUnit, "]"));
  }
  if (!settings.expected_use.on && settings.expected_line.any()) {
    return absl::InvalidArgumentError("settings.maxExpectedOverAllocatable: needs expectedUse.mode ON");
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const SimSettings& settings) {
  if (absl::Status status = CheckLines(settings); !status.ok()) return status;
  if (absl::Status status = CheckReplacement(settings.replacement); !status.ok()) return status;
  if (!(settings.utilization_threshold >= 0 && settings.utilization_threshold <= 1)) {
    return absl::InvalidArgumentError("settings.utilizationThreshold: must be in [0, 1]");
  }
  if (settings.blockers_together != 0 && settings.score != SimScore::kLimitAware) {
    return absl::InvalidArgumentError("settings.blockersTogether: needs score LIMIT_AWARE");
  }
  return CheckFields("settings",
                     {{"scanSeconds", settings.scan_interval_s, 1, 3600},
                      {"unneededSeconds", settings.unneeded_time_s, 0, kSecondsOfDay},
                      {"unreadySeconds", settings.unready_time_s, 0, kSecondsOfDay},
                      {"maxScaleDownParallelism", settings.max_scale_down_parallelism, 1, 1'000},
                      {"maxDrainParallelism", settings.max_drain_parallelism, 1, 1'000},
                      {"nodeBudget", settings.node_budget, 0, 1'000},
                      {"maxNodeProvisionSeconds", settings.max_node_provision_s, 60, kSecondsOfDay},
                      {"delayAfterAddSeconds", settings.after_add_s, 0, kSecondsOfDay},
                      {"delayAfterDeleteSeconds", settings.after_delete_s, 0, kSecondsOfDay},
                      {"delayAfterFailureSeconds", settings.after_failure_s, 0, kSecondsOfDay},
                      {"evictionRetryMilliseconds", settings.eviction_retry_ms, 100, 3'600'000},
                      {"pollMilliseconds", settings.poll_ms, 100, 3'600'000},
                      {"slackPercent", settings.slack_percent, 0, 1'000},
                      {"blockersTogether", settings.blockers_together, 0, kMostBlockersTogether},
                      {"newPodScaleUpDelaySeconds", settings.new_pod_scale_up_delay_s, 0, 1800},
                      {"batchMaxMilliseconds", settings.batch_max_ms, 0, 3'600'000},
                      {"batchIdleMilliseconds", settings.batch_idle_ms, 0, settings.batch_max_ms}});
}

constexpr SimFaultField kFaultFields[] = {
    {"watchLagMilliseconds.min", &SimFaults::watch_lag_ms_min, 0, 60'000},
    {"watchLagMilliseconds.max", &SimFaults::watch_lag_ms_max, 0, 60'000},
    {"lostEvent", &SimFaults::lost_event},
    {"relistSeconds", &SimFaults::relist_s, 10, kSecondsOfDay},
    {"stockOut", &SimFaults::stock_out},
    {"stockOutSeconds", &SimFaults::stock_out_s, 1, kMostSimSeconds},
    {"phantom", &SimFaults::phantom},
    {"slowStart", &SimFaults::slow_start},
    {"lateDevicesSeconds", &SimFaults::late_devices_s, 0, 3600},
    {"callsPerMinute", &SimFaults::calls_per_minute, 0, 100'000},
    {"failedCall", &SimFaults::failed_call},
    {"spotInterruption", &SimFaults::spot_interruption},
    {"nodeUnready", &SimFaults::node_unready},
    {"nodeUnreadySeconds", &SimFaults::node_unready_s, 1, 3600},
    {"nodeLost", &SimFaults::node_lost},
    {"lostAnswer", &SimFaults::lost_answer},
    {"failedList", &SimFaults::failed_list},
    {"unreadGroup", &SimFaults::unread_group},
    {"unreadGroupSeconds", &SimFaults::unread_group_s, 1, 3600},
    {"failedMachine", &SimFaults::failed_machine},
    {"takenBack", &SimFaults::taken_back},
    {"stuckDeletion", &SimFaults::stuck_deletion},
    {"stuckDeletionSeconds", &SimFaults::stuck_deletion_s, 1, kMostSimSeconds},
    {"handScaling", &SimFaults::hand_scaling},
    {"handMark", &SimFaults::hand_mark},
    {"handMarkSeconds", &SimFaults::hand_mark_s, 1, kMostSimSeconds},
    {"startupTaint", &SimFaults::startup_taint},
    {"startupTaintSeconds", &SimFaults::startup_taint_s, 1, kSecondsOfDay},
    {"nodeFlaps", &SimFaults::node_flaps},
    {"nodeReturns", &SimFaults::node_returns},
    {"doubledEvent", &SimFaults::doubled_event},
    {"brokenList", &SimFaults::broken_list},
    {"failedWrite", &SimFaults::failed_write},
    {"apiDown", &SimFaults::api_down},
    {"apiDownSeconds", &SimFaults::api_down_s, 1, kSecondsOfDay},
    {"stuckPod", &SimFaults::stuck_pod},
    {"stuckPodSeconds", &SimFaults::stuck_pod_s, 1, kSecondsOfDay},
    {"leaderEnds", &SimFaults::leader_ends},
    {"leaderEndsActing", &SimFaults::leader_ends_acting},
    {"failedStateWrite", &SimFaults::failed_state_write},
    {"leaderClockMilliseconds", &SimFaults::leader_clock_ms, 0, 3'600'000},
};

absl::Status CheckFaults(const SimFaults& faults) {
  for (const SimFaultField& field : kFaultFields) {
    const FieldRange range[] = {{field.name, faults.*field.value, field.lowest, field.highest}};
    if (absl::Status status = CheckFields("faults", range); !status.ok()) return status;
  }
  return CheckFields(
      "faults", {{"watchLagMilliseconds.max", faults.watch_lag_ms_max, faults.watch_lag_ms_min, 60'000}});
}

// All together: each part is within its own bounds already.
absl::Status CheckSums(const Scenario& scenario) {
  int64_t nodes = 0;
  for (const SimGroup& group : scenario.groups) nodes += group.max_nodes;
  int64_t pods = 0;
  int64_t arrivals = 0;
  for (const SimWorkload& workload : scenario.workloads) {
    pods += workload.kind == SimWorkloadKind::kDaemon ? nodes : workload.replicas;
    for (const SimBurst& burst : workload.bursts) pods += burst.replicas;
    for (const SimArrival& arrival : workload.arrivals) arrivals += arrival.count;
  }
  return CheckFields("", {{"groups: nodes of all", nodes, 1, kMostSimNodes},
                          {"workloads: replicas of all", pods, 0, kMostSimPods},
                          {"workloads: arrivals of all", arrivals, 0, kMostSimArrivals}});
}

// 1000 at the peak, 0 twelve hours from it: 3 t^2 - 2 t^3 of the distance that is left.
int64_t CurveAt(int64_t peak_s, int64_t at_s) {
  constexpr int64_t kHalf = kSecondsOfDay / 2;
  const int64_t since = ((at_s - peak_s) % kSecondsOfDay + kSecondsOfDay) % kSecondsOfDay;
  const int64_t distance = since <= kHalf ? since : kSecondsOfDay - since;
  const int64_t t = 1000 - distance * 1000 / kHalf;
  return t * t * (3000 - 2 * t) / 1'000'000;
}

}  // namespace

std::span<const SimFaultField> SimFaultFields() { return kFaultFields; }

absl::Status CheckScenario(const Scenario& scenario) {
  if (absl::Status status = CheckFields(
          "", {{"days", scenario.days, 1, kMostSimDays},
               {"durationSeconds", scenario.duration_s, 0, kMostSimSeconds},
               {"loadStepSeconds", scenario.load_step_s, 10, kSecondsOfDay},
               {"groups: their number", static_cast<int64_t>(scenario.groups.size()), 1, kMostSimGroups},
               {"workloads: their number", static_cast<int64_t>(scenario.workloads.size()), 0,
                kMostSimWorkloads}});
      !status.ok()) {
    return status;
  }
  absl::flat_hash_set<std::string> groups;
  for (size_t i = 0; i < scenario.groups.size(); ++i) {
    const std::string of = absl::StrCat("groups[", i, "]");
    absl::Status status = CheckSimName(of, scenario.groups.values()[i].name, &groups);
    if (status.ok()) status = CheckSimGroup(of, scenario.groups.values()[i]);
    if (!status.ok()) return status;
  }
  absl::flat_hash_set<std::string> workloads;
  for (size_t i = 0; i < scenario.workloads.size(); ++i) {
    const std::string of = absl::StrCat("workloads[", i, "]");
    absl::Status status = CheckSimName(of, scenario.workloads.values()[i].name, &workloads);
    if (status.ok()) status = CheckSimWorkload(of, scenario.workloads.values()[i], groups);
    if (!status.ok()) return status;
  }
  absl::Status status = CheckSettings(scenario.settings);
  if (status.ok()) status = CheckFaults(scenario.faults);
  return status.ok() ? CheckSums(scenario) : status;
}

int64_t WantedReplicas(const SimWorkload& workload, int64_t at_s) {
  const int64_t missing = workload.daily_percent * (1000 - CurveAt(workload.peak_s, at_s));  // 1/100,000
  int64_t wanted = workload.replicas * (100'000 - missing) / 100'000;
  if (at_s / kSecondsOfDay % 7 >= 5) wanted = wanted * (100 - workload.weekend_percent) / 100;
  for (const SimBurst& burst : workload.bursts) {
    if (at_s >= burst.at_s && at_s - burst.at_s < burst.for_s) wanted += burst.replicas;
  }
  return wanted;
}

}  // namespace loadline

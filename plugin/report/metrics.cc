#include "plugin/report/metrics.h"

#include <cstdint>
#include <string>

#include "absl/container/btree_map.h"
#include "plugin/report/facts.h"

namespace loadline {
namespace {

absl::string_view HoldLabel(v1::GroupSight::Hold hold) {
  switch (hold) {
    case v1::GroupSight::HOLD_UNSPECIFIED:
    case v1::GroupSight::SIZED:
      return "none";
    case v1::GroupSight::BACKS_OFF:
      return "backoff";
    case v1::GroupSight::AT_MAXIMUM:
      return "maximum";
    case v1::GroupSight::UNPRICED:
      return "unpriced";
    default:
      return "other";
  }
}

// Each label has a value, so that one that is gone is reported as 0.
void TellGroups(const v1::LoopFleetAnswer& fleet, v1::LoopReport* report) {
  absl::btree_map<absl::string_view, int64_t> groups{
      {"none", 0}, {"backoff", 0}, {"maximum", 0}, {"unpriced", 0}, {"other", 0}};
  for (const v1::GroupSight& group : fleet.groups()) ++groups[HoldLabel(group.hold())];
  for (const auto& [label, count] : groups) {
    AddMetric("node_groups", {label}, static_cast<double>(count), report);
  }
}

void TellNodes(const v1::LoopFleetAnswer& fleet, v1::LoopReport* report) {
  const v1::NodeCounts counts = CountsOfAll(fleet);
  AddMetric("nodes", {"ready"}, counts.registered().ready(), report);
  AddMetric("nodes", {"unready"}, counts.registered().unready(), report);
  AddMetric("nodes", {"notStarted"}, counts.registered().not_started(), report);
  AddMetric("nodes", {"unregistered"}, counts.unregistered(), report);
  AddMetric("nodes", {"longUnregistered"}, counts.long_unregistered(), report);
}

// Thousands may fail at once, for few reasons.
void TellFailures(const v1::LoopFleetAnswer& fleet, v1::LoopReport* report) {
  if (!fleet.state_problem().empty()) AddMetric("errors_total", {"state"}, 1, report);
  absl::btree_map<absl::string_view, int64_t> creations, groups;
  for (const v1::FailedCreations& failed : fleet.failed_creations()) {
    creations[ReasonName(failed.reason())] += failed.machines();
  }
  for (const v1::FleetFailure& failure : fleet.failures()) ++groups[ReasonName(failure.back_off().reason())];
  for (const auto& [reason, machines] : creations) {
    AddMetric("failed_node_creations_total", {reason}, static_cast<double>(machines), report);
  }
  for (const auto& [reason, count] : groups) {
    AddMetric("failed_scale_ups_total", {reason}, static_cast<double>(count), report);
  }
}

void TellScaleDown(const v1::PlanLoopResponse& answer, v1::LoopReport* report) {
  const v1::PlanDrainResponse& drain = answer.scale_down();
  AddMetric("scale_down_in_cooldown", {}, answer.fleet().cools_down() ? 1 : 0, report);
  if (!drain.brake().empty()) AddMetric("scale_down_brake", {drain.brake()}, 1, report);
  AddMetric("unneeded_nodes", {}, drain.remove_size(), report);
  absl::btree_map<absl::string_view, int64_t> reasons;
  for (const v1::StayReason& stay : drain.stay()) reasons[stay.first().reason()] += stay.slots_size();
  for (const auto& [reason, nodes] : reasons) {
    AddMetric("unremovable_nodes", {reason}, static_cast<double>(nodes), report);
  }
}

// A part that was not cut short is reported as well, so that a rate can be taken before the first one.
void TellCutShort(const v1::PlanLoopResponse& answer, v1::LoopReport* report) {
  const auto tell = [&](absl::string_view part, absl::string_view by) {
    AddMetric("plans_cut_short_total", {part}, by.empty() ? 0 : 1, report);
  };
  tell("scaleUp", answer.scale_up().cut_short_by());
  tell("slack", answer.slack().cut_short());
  tell("drain", answer.scale_down().cut_short_by());
}

}  // namespace

void AddMetric(absl::string_view name, std::initializer_list<absl::string_view> labels, double value,
               v1::LoopReport* report) {
  v1::MetricValue* const metric = report->add_metrics();
  metric->set_name(std::string(name));
  for (const absl::string_view label : labels) metric->add_labels(std::string(label));
  metric->set_value(value);
}

void TellMetrics(const LoopReportInput& input, v1::LoopReport* report) {
  const v1::LoopFleetAnswer& fleet = input.answer.fleet();
  AddMetric("unschedulable_pods", {}, report->status().cluster_wide().scale_up().pending_pods(), report);
  AddMetric("cluster_safe_to_autoscale", {}, fleet.unhealthy().empty() ? 1 : 0, report);
  TellNodes(fleet, report);
  // Else somebody else knows what holds groups.
  if (Decides(input.question, v1::PlanLoopRequest::SCALE_UP)) TellGroups(fleet, report);
  TellFailures(fleet, report);
  TellScaleDown(input.answer, report);
  TellCutShort(input.answer, report);
}

}  // namespace loadline

#include "plugin/report/status.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/base/texts.h"
#include "plugin/report/facts.h"
#include "plugin/report/move_report.h"
#include "plugin/report/slack_report.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

// Returns the growth of a group, and its purpose.
std::string GrowthText(const v1::LoopGrowth& growth) {
  std::string text = absl::StrCat(growth.node_group(), ": ", growth.nodes_for_pods(), " for pods, ",
                                  growth.nodes_for_slack(), " for slack");
  const auto add = [&](int64_t nodes, absl::string_view what) {
    if (nodes > 0) absl::StrAppend(&text, ", ", nodes, " ", what);
  };
  add(growth.nodes_for_utilization(), "for utilization");
  add(growth.nodes_for_minimum(), "for the minimum");
  add(growth.nodes_for_replacement(), "to replace others");
  return absl::StrFormat("%s, %.4f USD per hour", text, growth.usd_per_hour());
}

// Returns the result of growth before it is carried out, under Cluster Autoscaler's names.
absl::string_view GrowthResult(const LoopReportInput& input) {
  if (!Decides(input.question, v1::PlanLoopRequest::SCALE_UP)) return "ScaleUpNotTried";
  if (input.answer.batch_wait_milliseconds() > 0) return "ScaleUpInCooldown";  // it waits for further pods
  if (!input.answer.growth().empty()) return "ScaleUpSuccessful";
  if (!input.answer.scale_up().unplaced().empty()) return "ScaleUpNoOptionsAvailable";
  return "ScaleUpNotNeeded";
}

v1::ScaleUpStatus ScaleUpOf(const LoopReportInput& input) {
  v1::ScaleUpStatus status;
  int64_t upcoming = 0;
  int backing_off = 0;
  for (const v1::GroupSight& group : input.answer.fleet().groups()) {
    upcoming += Upcoming(group);
    if (group.has_back_off()) ++backing_off;
  }
  const bool all_back_off = backing_off > 0 && backing_off == input.answer.fleet().groups_size();
  status.set_status(upcoming > 0 ? "InProgress" : all_back_off ? "Backoff" : "NoActivity");
  status.set_result(std::string(GrowthResult(input)));
  const int64_t waiting = WaitingPodsOf(input.question, input.answer);
  const int64_t unplaced = UnplacedPodsOf(input.question, input.answer);
  status.set_pending_pods(
      Clamped32(waiting + input.question.deferred_pods() + int64_t{input.question.left_out_pods()}));
  status.set_placed(Clamped32(waiting - unplaced));
  status.set_unplaced(Clamped32(unplaced));
  status.set_deferred(input.question.deferred_pods());
  if (unplaced > 0) status.set_why(input.answer.fleet().why_no_growth());
  for (const v1::LoopGrowth& growth : input.answer.growth()) {
    if (status.growth_size() == kMostStatusEntries) break;
    status.add_growth(GrowthText(growth));
  }
  return status;
}

// Returns the result of the plan before nodes are removed. Nodes that might start while something cools down
// do not.
std::string ScaleDownResult(const LoopReportInput& input) {
  const v1::PlanDrainResponse& drain = input.answer.scale_down();
  if (drain.status().empty()) return "ScaleDownNotTried";
  const v1::LoopFleetAnswer& fleet = input.answer.fleet();
  if (!input.question.fleet().acts() || !fleet.cools_down()) return drain.status();
  const bool begins = std::any_of(fleet.actions().begin(), fleet.actions().end(),
                                  [](const v1::LoopAction& action) { return action.has_remove_slot(); });
  const bool might = std::any_of(drain.remove().begin(), drain.remove().end(),
                                 [](const v1::NodeRemoval& removal) { return removal.start(); });
  return !begins && might ? "ScaleDownInCooldown" : drain.status();
}

void AddReasonsToStay(const LoopReportInput& input, v1::ScaleDownStatus* status) {
  absl::btree_map<absl::string_view, int64_t> counts;
  for (const v1::StayReason& stay : input.answer.scale_down().stay()) {
    const v1::NodeKeep& first = stay.first();
    int64_t& count = counts[first.reason()];
    if (count == 0 && !first.advice().empty() && status->why_size() < kMostStatusEntries) {
      status->add_why(absl::StrCat(input.name_of(first.slot()), ": ", first.reason(), ": ", first.advice()));
    }
    count += stay.slots_size();
  }
  std::vector<std::pair<absl::string_view, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [reason, nodes] : sorted) {
    if (status->top_blockers_size() == kMostStatusEntries) break;
    v1::Blocker* const blocker = status->add_top_blockers();
    blocker->set_reason(std::string(reason));
    blocker->set_nodes(Clamped32(nodes));
  }
}

v1::ScaleDownStatus ScaleDownOf(const LoopReportInput& input) {
  const v1::PlanDrainResponse& drain = input.answer.scale_down();
  v1::ScaleDownStatus status;
  status.set_status(drain.remove().empty() ? "NoCandidates" : "CandidatesPresent");
  status.set_result(ScaleDownResult(input));
  status.set_brake(
      std::string(absl::StripAsciiWhitespace(absl::StrCat(drain.brake(), " ", drain.brake_text()))));
  status.set_limit(drain.limit());
  status.set_candidates(drain.remove_size());
  for (const v1::NodeRemoval& removal : drain.remove()) {
    if (status.next_size() == kMostStatusEntries) break;
    const std::string when =
        removal.start() ? "now"
                        : absl::StrCat(removal.waits(), ", timer ends ", TimeText(removal.ready_at_s()));
    status.add_next(absl::StrCat(input.name_of(removal.slot()), ": ", when));
  }
  AddReasonsToStay(input, &status);
  return status;
}

void AddWarnings(const LoopReportInput& input, v1::AutoscalerStatus* status) {
  for (const std::string& warning : input.answer.fleet().warnings()) {
    if (status->warnings_size() < kMostLines) status->add_warnings(warning);
  }
  for (const std::string& warning : input.answer.price_sources().warnings()) status->add_warnings(warning);
  const auto cut = [&](absl::string_view by, absl::string_view missing) {
    if (by.empty()) return;
    status->add_warnings(absl::StrCat("the plan is cut short by ", by, ": ", missing));
  };
  cut(input.answer.scale_up().cut_short_by(), "more might grow, or at less cost");
  cut(input.answer.slack().cut_short(), "some slack may have no node, and no node is asked for it");
  cut(input.answer.scale_down().cut_short_by(), "not all nodes were looked at to see whether they can go");
}

v1::NodeGroupStatus GroupStatusOf(const v1::LoopGroup& group, const v1::GroupSight& findings,
                                  int64_t candidates) {
  v1::NodeGroupStatus status;
  status.set_name(group.growth().node_group());
  status.set_model_source(findings.model_source());
  v1::NodeGroupHealth* const health = status.mutable_health();
  *health->mutable_node_counts() = CountsOf(findings);
  health->set_status(health->node_counts().long_unregistered() > 0 ? "Unhealthy" : "Healthy");
  health->set_cloud_provider_target(group.cloud().target());
  health->set_min_size(group.scale_down().min_nodes());
  health->set_max_size(group.growth().max_nodes());
  v1::NodeGroupScaleUpStatus* const up = status.mutable_scale_up();
  up->set_status(Upcoming(findings) > 0 ? "InProgress" : "NoActivity");
  if (findings.has_back_off()) {
    up->set_status("Backoff");
    up->mutable_backoff_info()->set_error_code(std::string(ReasonName(findings.back_off().reason())));
    up->mutable_backoff_info()->set_error_message(CutText(findings.back_off().text(), kMostCloudText));
    up->mutable_backoff_info()->set_until(TimeText(findings.back_off().until_milliseconds() / 1000));
  }
  status.mutable_scale_down()->set_status(candidates > 0 ? "CandidatesPresent" : "NoCandidates");
  status.mutable_scale_down()->set_candidates(Clamped32(candidates));
  return status;
}

void AddGroups(const LoopReportInput& input, const GroupOfSlot& group_of,
               const std::vector<v1::NodeGroupSizeStatus>& sizes, v1::AutoscalerStatus* status) {
  std::vector<int64_t> candidates(static_cast<size_t>(input.question.groups_size()));
  for (const auto& [slot, group] : group_of) ++candidates[static_cast<size_t>(group)];
  absl::flat_hash_map<absl::string_view, size_t> sized;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sized[input.answer.size().groups(static_cast<int>(i)).node_group()] = i;
  }
  for (int i = 0; i < input.question.groups_size(); ++i) {
    const v1::LoopGroup& group = input.question.groups(i);
    v1::NodeGroupStatus* const message = status->add_node_groups();
    *message = GroupStatusOf(group, input.answer.fleet().groups(i), candidates[static_cast<size_t>(i)]);
    if (const auto size = sized.find(group.growth().node_group()); size != sized.end()) {
      *message->mutable_size() = sizes[size->second];
    }
  }
}

}  // namespace

v1::AutoscalerStatus StatusOf(const LoopReportInput& input, const GroupOfSlot& group_of,
                              const std::vector<v1::NodeGroupSizeStatus>& sizes) {
  v1::AutoscalerStatus status;
  const bool acts = input.question.fleet().acts();
  status.set_time(TimeText(input.question.now_s()));
  status.set_autoscaler_status("Running");
  status.set_mode(acts ? "act" : "observe");
  if (const int64_t left = input.answer.fleet().abandoned_nodes(); left > 0 && !acts) {
    status.set_message(absl::StrCat(Counted(left, "node"), left == 1 ? " carries" : " carry",
                                    " taints of mode act, which alone takes them off"));
  }
  AddWarnings(input, &status);
  *status.mutable_prices() = input.answer.price_sources();
  v1::ClusterWideStatus* const all = status.mutable_cluster_wide();
  *all->mutable_scale_up() = ScaleUpOf(input);
  *all->mutable_scale_down() = ScaleDownOf(input);
  *all->mutable_health()->mutable_node_counts() = CountsOfAll(input.answer.fleet());
  const bool unhealthy = absl::StartsWith(all->scale_down().brake(), "Cluster");
  all->mutable_health()->set_status(unhealthy ? "Unhealthy" : "Healthy");
  if (Decides(input.question, v1::PlanLoopRequest::SLACK)) {
    *all->mutable_slack() = SlackStatusOf(input.answer.slack());
  }
  if (Decides(input.question, v1::PlanLoopRequest::REPLACE)) {
    *all->mutable_replacement() = ReplacementStatusOf(input.answer.replacement());
  }
  AddGroups(input, group_of, sizes, &status);
  return status;
}

}  // namespace loadline

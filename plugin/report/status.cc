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
#include "core/fleet/texts.h"
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
absl::string_view GrowthResult(const LoopTold& told) {
  if (!Decides(told.question, v1::PlanLoopRequest::SCALE_UP)) return "ScaleUpNotTried";
  if (told.answer.batch_wait_milliseconds() > 0) return "ScaleUpInCooldown";  // it waits for further pods
  if (!told.answer.growth().empty()) return "ScaleUpSuccessful";
  if (!told.answer.scale_up().unplaced().empty()) return "ScaleUpNoOptionsAvailable";
  return "ScaleUpNotNeeded";
}

v1::ScaleUpStatus ScaleUpOf(const LoopTold& told) {
  v1::ScaleUpStatus status;
  int64_t upcoming = 0;
  int backing_off = 0;
  for (const v1::GroupSight& group : told.answer.fleet().groups()) {
    upcoming += Upcoming(group);
    if (group.has_back_off()) ++backing_off;
  }
  const bool all_back_off = backing_off > 0 && backing_off == told.answer.fleet().groups_size();
  status.set_status(upcoming > 0 ? "InProgress" : all_back_off ? "Backoff" : "NoActivity");
  status.set_result(std::string(GrowthResult(told)));
  const int64_t waiting = WaitingPodsOf(told.question, told.answer);
  const int64_t unplaced = UnplacedPodsOf(told.question, told.answer);
  status.set_pending_pods(
      Clamped32(waiting + told.question.deferred_pods() + int64_t{told.question.left_out_pods()}));
  status.set_placed(Clamped32(waiting - unplaced));
  status.set_unplaced(Clamped32(unplaced));
  status.set_deferred(told.question.deferred_pods());
  if (unplaced > 0) status.set_why(told.answer.fleet().why_no_growth());
  for (const v1::LoopGrowth& growth : told.answer.growth()) {
    if (status.growth_size() == kMostStatusEntries) break;
    status.add_growth(GrowthText(growth));
  }
  return status;
}

// Returns the result of the plan before nodes are removed. Nodes that might start while something cools down
// do not.
std::string ScaleDownResult(const LoopTold& told) {
  const v1::PlanDrainResponse& drain = told.answer.scale_down();
  if (drain.status().empty()) return "ScaleDownNotTried";
  const v1::LoopFleetAnswer& fleet = told.answer.fleet();
  if (!told.question.fleet().acts() || !fleet.cools_down()) return drain.status();
  const bool begins = std::any_of(fleet.actions().begin(), fleet.actions().end(),
                                  [](const v1::LoopAction& action) { return action.has_remove_slot(); });
  const bool might = std::any_of(drain.remove().begin(), drain.remove().end(),
                                 [](const v1::NodeRemoval& removal) { return removal.start(); });
  return !begins && might ? "ScaleDownInCooldown" : drain.status();
}

void AddReasonsToStay(const LoopTold& told, v1::ScaleDownStatus* status) {
  absl::btree_map<absl::string_view, int64_t> counts;
  for (const v1::StayReason& stay : told.answer.scale_down().stay()) {
    const v1::NodeKeep& first = stay.first();
    int64_t& count = counts[first.reason()];
    if (count == 0 && !first.advice().empty() && status->why_size() < kMostStatusEntries) {
      status->add_why(absl::StrCat(told.name_of(first.slot()), ": ", first.reason(), ": ", first.advice()));
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

v1::ScaleDownStatus ScaleDownOf(const LoopTold& told) {
  const v1::PlanDrainResponse& drain = told.answer.scale_down();
  v1::ScaleDownStatus status;
  status.set_status(drain.remove().empty() ? "NoCandidates" : "CandidatesPresent");
  status.set_result(ScaleDownResult(told));
  status.set_brake(
      std::string(absl::StripAsciiWhitespace(absl::StrCat(drain.brake(), " ", drain.brake_text()))));
  status.set_limit(drain.limit());
  status.set_candidates(drain.remove_size());
  for (const v1::NodeRemoval& removal : drain.remove()) {
    if (status.next_size() == kMostStatusEntries) break;
    const std::string when =
        removal.start() ? "now"
                        : absl::StrCat(removal.waits(), ", timer ends ", TimeText(removal.ready_at_s()));
    status.add_next(absl::StrCat(told.name_of(removal.slot()), ": ", when));
  }
  AddReasonsToStay(told, &status);
  return status;
}

void AddWarnings(const LoopTold& told, v1::AutoscalerStatus* status) {
  for (const std::string& warning : told.answer.fleet().warnings()) {
    if (status->warnings_size() < kMostLines) status->add_warnings(warning);
  }
  for (const std::string& warning : told.answer.price_sources().warnings()) status->add_warnings(warning);
  const auto cut = [&](absl::string_view by, absl::string_view missing) {
    if (by.empty()) return;
    status->add_warnings(absl::StrCat("the plan is cut short by ", by, ": ", missing));
  };
  cut(told.answer.scale_up().cut_short_by(), "more might grow, or at less cost");
  cut(told.answer.slack().cut_short(), "some slack may have no node, and no node is asked for it");
  cut(told.answer.scale_down().cut_short_by(), "not all nodes were looked at to see whether they can go");
}

v1::NodeGroupStatus GroupStatusOf(const v1::LoopGroup& group, const v1::GroupSight& sight,
                                  int64_t candidates) {
  v1::NodeGroupStatus status;
  status.set_name(group.growth().node_group());
  status.set_model_source(sight.model_source());
  v1::NodeGroupHealth* const health = status.mutable_health();
  *health->mutable_node_counts() = CountsOf(sight);
  health->set_status(health->node_counts().long_unregistered() > 0 ? "Unhealthy" : "Healthy");
  health->set_cloud_provider_target(group.cloud().target());
  health->set_min_size(group.scale_down().min_nodes());
  health->set_max_size(group.growth().max_nodes());
  v1::NodeGroupScaleUpStatus* const up = status.mutable_scale_up();
  up->set_status(Upcoming(sight) > 0 ? "InProgress" : "NoActivity");
  if (sight.has_back_off()) {
    up->set_status("Backoff");
    up->mutable_backoff_info()->set_error_code(std::string(ReasonName(sight.back_off().reason())));
    up->mutable_backoff_info()->set_error_message(CutText(sight.back_off().text(), kMostCloudText));
    up->mutable_backoff_info()->set_until(TimeText(sight.back_off().until_milliseconds() / 1000));
  }
  status.mutable_scale_down()->set_status(candidates > 0 ? "CandidatesPresent" : "NoCandidates");
  status.mutable_scale_down()->set_candidates(Clamped32(candidates));
  return status;
}

void AddGroups(const LoopTold& told, const GroupOfSlot& group_of,
               const std::vector<v1::NodeGroupSizeStatus>& sizes, v1::AutoscalerStatus* status) {
  std::vector<int64_t> candidates(static_cast<size_t>(told.question.groups_size()));
  for (const auto& [slot, group] : group_of) ++candidates[static_cast<size_t>(group)];
  absl::flat_hash_map<absl::string_view, size_t> sized;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sized[told.answer.size().groups(static_cast<int>(i)).node_group()] = i;
  }
  for (int i = 0; i < told.question.groups_size(); ++i) {
    const v1::LoopGroup& group = told.question.groups(i);
    v1::NodeGroupStatus* const message = status->add_node_groups();
    *message = GroupStatusOf(group, told.answer.fleet().groups(i), candidates[static_cast<size_t>(i)]);
    if (const auto size = sized.find(group.growth().node_group()); size != sized.end()) {
      *message->mutable_size() = sizes[size->second];
    }
  }
}

}  // namespace

v1::AutoscalerStatus StatusOf(const LoopTold& told, const GroupOfSlot& group_of,
                              const std::vector<v1::NodeGroupSizeStatus>& sizes) {
  v1::AutoscalerStatus status;
  const bool acts = told.question.fleet().acts();
  status.set_time(TimeText(told.question.now_s()));
  status.set_autoscaler_status("Running");
  status.set_mode(acts ? "act" : "observe");
  if (const int64_t left = told.answer.fleet().abandoned_nodes(); left > 0 && !acts) {
    status.set_message(absl::StrCat(Counted(left, "node"), left == 1 ? " carries" : " carry",
                                    " taints of mode act, which alone takes them off"));
  }
  AddWarnings(told, &status);
  *status.mutable_prices() = told.answer.price_sources();
  v1::ClusterWideStatus* const all = status.mutable_cluster_wide();
  *all->mutable_scale_up() = ScaleUpOf(told);
  *all->mutable_scale_down() = ScaleDownOf(told);
  *all->mutable_health()->mutable_node_counts() = CountsOfAll(told.answer.fleet());
  const bool unhealthy = absl::StartsWith(all->scale_down().brake(), "Cluster");
  all->mutable_health()->set_status(unhealthy ? "Unhealthy" : "Healthy");
  if (Decides(told.question, v1::PlanLoopRequest::SLACK)) {
    *all->mutable_slack() = SlackStatusOf(told.answer.slack());
  }
  if (Decides(told.question, v1::PlanLoopRequest::REPLACE)) {
    *all->mutable_replacement() = ReplacementStatusOf(told.answer.replacement());
  }
  AddGroups(told, group_of, sizes, &status);
  return status;
}

}  // namespace loadline

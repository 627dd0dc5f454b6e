#include "plugin/convert/loop_fleet.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/grow/loop_resources.h"
#include "core/grow/why_no_growth.h"
#include "core/observe/see_fleet.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fleet.h"
#include "plugin/convert/node_marks.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr size_t kMaxUidBytes = 256;
constexpr size_t kMostWarningBytes = 1024;
constexpr int kMostModelZones = 16;
constexpr size_t kMostZoneBytes = 63;

absl::Status CheckOccupied(int32_t slot, const ClusterState& cluster) {
  if (slot >= 0 && cluster.Occupied(Slot{slot})) return absl::OkStatus();
  return Refused(absl::StrCat("slot: there is no node in ", slot));
}

absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t most) {
  if (text.size() <= most) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": has ", text.size(), " bytes, at most ", most, " are allowed"));
}

absl::StatusOr<CloudMachine> DecodeCloudMachine(const v1::CloudMachine& message,
                                                const ClusterState& cluster) {
  CloudMachine machine;
  const bool plain = CheckName(message.id(), kMaxMachineIdBytes).ok();
  machine.id = plain ? message.id() : StoredName(message.id());
  const absl::StatusOr<MachineState> state = DecodeMachineState(message.state());
  if (!state.ok()) return state.status();
  machine.state = *state;
  if (message.has_fault()) {
    machine.fault = DecodeMachineFault(message.fault());
  }
  if (message.has_slot()) {
    if (absl::Status status = CheckOccupied(message.slot(), cluster); !status.ok()) return status;
    machine.node = Slot{message.slot()};
  }
  return machine;
}

// Checks what is stated of a group whose state the engine is to find out.
absl::Status CheckRawGroup(const v1::LoopGroup& message) {
  if (!message.has_cloud()) return Refused("cloud: required with PlanLoopRequest.fleet");
  if (message.growth().current_nodes() != 0 || message.scale_down().slots_size() > 0 ||
      !message.held().empty()) {
    return Refused(
        "states current_nodes, slots or held, which the engine finds out with PlanLoopRequest.fleet");
  }
  return absl::OkStatus();
}

// nullopt: as for all groups.
std::optional<int64_t> PeriodOf(absl::string_view field, int64_t period_ms, StatedGroup* group) {
  return group->Time(field, period_ms != 0, period_ms, kMaxFleetTimeMs);
}

absl::StatusOr<CloudGroup> DecodeCloudGroup(const v1::LoopGroup& message, const NodeGroup& growth,
                                            const ResourceNames& names, const ClusterState& cluster,
                                            LeftOutList* left_out) {
  const v1::CloudGroup& cloud = message.cloud();
  if (absl::Status status = CheckRawGroup(message); !status.ok()) return status;
  StatedGroup stated(message.growth().node_group(), left_out);
  stated.Size("cloud.target", cloud.target());
  stated.Size("min_nodes", message.scale_down().min_nodes());
  stated.Size("max_nodes", message.growth().max_nodes());
  stated.MinAndMax(message.scale_down().min_nodes(), message.growth().max_nodes());
  CloudGroup group;
  group.name = stated.name();
  group.min_nodes = std::max(0, message.scale_down().min_nodes());
  group.max_nodes = growth.max_nodes;
  group.target = std::max(0, cloud.target());
  group.atomic = message.scale_down().atomic();
  group.problem = Printable(cloud.problem(), kMaxFleetErrorBytes);
  if (group.problem.empty()) group.problem = stated.problem();
  group.provision_ms =
      PeriodOf("cloud.max_node_provision_milliseconds", cloud.max_node_provision_milliseconds(), &stated);
  group.startup_ms =
      PeriodOf("cloud.max_node_startup_milliseconds", cloud.max_node_startup_milliseconds(), &stated);
  if (cloud.cloud_template() && growth.model.has_value()) {
    group.template_devices = DevicesOf(growth.model->shape.allocatable, names);
  }
  group.machines.reserve(static_cast<size_t>(cloud.machines_size()));
  bool all_plain = true;  // the first odd id is reported
  for (int i = 0; i < cloud.machines_size(); ++i) {
    const auto field = [i] { return absl::StrCat("cloud.machines[", i, "]"); };
    absl::StatusOr<CloudMachine> machine = DecodeCloudMachine(cloud.machines(i), cluster);
    if (!machine.ok()) return Annotate(machine.status(), field());
    if (machine->id != cloud.machines(i).id() && std::exchange(all_plain, false)) {
      stated.Tell(absl::StrCat(field(), ": id: is not a name: the machine is called ", machine->id));
    }
    group.machines.push_back(*std::move(machine));
  }
  return group;
}

absl::StatusOr<ActionOutcome> DecodeActionOutcome(const v1::ActionOutcome& message) {
  ActionOutcome outcome{message.id(), ActionOutcome::Result::kDone,
                        Printable(message.error(), kMaxFleetErrorBytes)};
  switch (message.result()) {
    case v1::ActionOutcome::DONE:
      return outcome;
    case v1::ActionOutcome::CHANGED:
      outcome.result = ActionOutcome::Result::kChanged;
      return outcome;
    case v1::ActionOutcome::FAILED:
      outcome.result = ActionOutcome::Result::kFailed;
      return outcome;
    case v1::ActionOutcome::UNKNOWN:
      outcome.result = ActionOutcome::Result::kUnknown;
      return outcome;
    default:
      return NoSuchValue("result", static_cast<int>(message.result()));
  }
}

absl::Status DecodeUids(absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& uids,
                        std::vector<std::string>* out) {
  for (int i = 0; i < uids.size(); ++i) {
    absl::Status status = CheckLength(absl::StrCat(field, "[", i, "]"), uids.Get(i), kMaxUidBytes);
    if (!status.ok()) return status;
    out->push_back(uids.Get(i));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoopOutcomes> DecodeLoopOutcomes(const v1::LoopFleet& message) {
  absl::Status status = CheckSize("outcomes", message.outcomes_size(), kMaxActionOutcomes);
  if (status.ok()) status = CheckSize("removals", message.removals_size(), kMaxFleetMachines);
  if (status.ok()) status = CheckSize("acknowledged", message.acknowledged_size(), kMaxFleetMachines);
  if (status.ok()) {
    status = CheckSize("soft_taints_tried", message.soft_taints_tried_size(), kMaxFleetMachines);
  }
  if (!status.ok()) return status;
  LoopOutcomes outcomes;
  outcomes.tainting_failed = message.tainting_failed();
  for (int i = 0; i < message.outcomes_size(); ++i) {
    absl::StatusOr<ActionOutcome> outcome = DecodeActionOutcome(message.outcomes(i));
    if (!outcome.ok()) return Annotate(outcome.status(), absl::StrCat("outcomes[", i, "]"));
    outcomes.actions.push_back(*std::move(outcome));
  }
  for (int i = 0; i < message.removals_size(); ++i) {
    absl::StatusOr<RemovalOutcome> removal = DecodeRemoval(message.removals(i));
    if (!removal.ok()) return Annotate(removal.status(), absl::StrCat("removals[", i, "]"));
    outcomes.removals.push_back(*std::move(removal));
  }
  status = DecodeUids("acknowledged", message.acknowledged(), &outcomes.acknowledged);
  if (status.ok()) {
    status = DecodeUids("soft_taints_tried", message.soft_taints_tried(), &outcomes.soft_taints_tried);
  }
  if (!status.ok()) return status;
  return outcomes;
}

absl::Status DecodeRemovalsUnderWay(const v1::LoopFleet& message, const ClusterState& cluster,
                                    LoopObservation* seen) {
  absl::Status status = CheckSize("under_way", message.under_way_size(), kMaxFleetMachines);
  for (int i = 0; i < message.under_way_size() && status.ok(); ++i) {
    const v1::RemovalUnderWay& removal = message.under_way(i);
    RemovalUnderWay& of = seen->under_way.emplace_back();
    of.group = removal.node_group();
    if (!removal.has_slot()) continue;
    status = Annotate(CheckOccupied(removal.slot(), cluster), absl::StrCat("under_way[", i, "]"));
    of.slot = Slot{removal.slot()};
  }
  return status;
}

v1::GroupSight::Hold EncodeHold(GrowthHold hold) {
  switch (hold) {
    case GrowthHold::kOptionsUnknown:
      return v1::GroupSight::OPTIONS_UNKNOWN;
    case GrowthHold::kBacksOff:
      return v1::GroupSight::BACKS_OFF;
    case GrowthHold::kSized:
      return v1::GroupSight::SIZED;
    case GrowthHold::kHeld:
      return v1::GroupSight::HELD;
    case GrowthHold::kAtMaximum:
      return v1::GroupSight::AT_MAXIMUM;
    case GrowthHold::kUnpriced:
      return v1::GroupSight::UNPRICED;
    case GrowthHold::kMaximumOfCluster:
      return v1::GroupSight::CLUSTER_MAXIMUM;
    case GrowthHold::kNothing:
      return v1::GroupSight::HOLD_UNSPECIFIED;
  }
  return v1::GroupSight::HOLD_UNSPECIFIED;
}

v1::GroupSight EncodeGroupSight(const GroupFindings& group, const FleetGroupView& view) {
  v1::GroupSight message;
  message.set_node_group(view.name);
  message.set_ready(group.ready);
  message.set_unready(group.unready);
  message.set_starting(view.starting);
  message.set_coming(view.coming);
  message.set_failed(static_cast<int64_t>(view.failed.size()));
  message.set_late(static_cast<int64_t>(view.late.size()));
  message.set_lost(view.lost);
  message.set_not_begun(view.not_begun - group.take_back);
  message.set_room(group.room);
  message.set_going(static_cast<int64_t>(group.going.size()));
  if (view.back_off.has_value()) *message.mutable_back_off() = EncodeBackOff(*view.back_off);
  message.set_held(Printable(group.held, kMostBackOffText));
  return message;
}

void EncodeModel(const NodeGroup& group, v1::GroupSight* message) {
  if (!group.model.has_value()) return;
  message->set_model_source(std::string(Name(group.model->source)));
  message->set_model_nodes(group.model->nodes);
  for (const std::string& zone : group.model->zones) {
    if (message->model_zones_size() < kMostModelZones)
      message->add_model_zones(Printable(zone, kMostZoneBytes));
  }
}

void EncodeTarget(const LoopAction& action, const std::string& group, v1::ChangeTarget* message) {
  message->set_node_group(group);
  message->set_nodes(action.nodes);
  message->set_expected_target(action.target);
}

v1::LoopAction EncodeAction(const LoopAction& action, const LoopObservation& seen) {
  v1::LoopAction message;
  message.set_id(action.id);
  const std::string group = action.group.has_value() ? seen.groups[*action.group].name : "";
  switch (action.kind) {
    case LoopAction::Kind::kDeleteMachines:
      message.mutable_delete_machines()->set_node_group(group);
      message.mutable_delete_machines()->set_late(action.late);
      message.mutable_delete_machines()->mutable_machines()->Add(action.machines.begin(),
                                                                 action.machines.end());
      break;
    case LoopAction::Kind::kTakeBack:
      EncodeTarget(action, group, message.mutable_take_back());
      break;
    case LoopAction::Kind::kSwap:
      EncodeTarget(action, group, message.mutable_take_back());
      message.set_after_growth(true);
      break;
    case LoopAction::Kind::kGiveBack:
      message.set_give_back_slot(static_cast<int32_t>(action.slot));
      break;
    case LoopAction::Kind::kRemove:
      message.set_remove_slot(static_cast<int32_t>(action.slot));
      message.set_wave(action.wave);
      break;
    case LoopAction::Kind::kGrow:
      EncodeTarget(action, group, message.mutable_grow());
      break;
    case LoopAction::Kind::kSoftTaint:
      message.mutable_soft_taint()->set_slot(static_cast<int32_t>(action.slot));
      message.mutable_soft_taint()->set_since_s(action.since_s);
      break;
    case LoopAction::Kind::kTakeSoftTaint:
      message.set_take_soft_taint_slot(static_cast<int32_t>(action.slot));
      break;
  }
  return message;
}

}  // namespace

absl::StatusOr<DecodedLoopFleet> DecodeLoopFleet(const v1::PlanLoopRequest& request,
                                                 const DecodedProblem& growth, const LoopDecisions& decisions,
                                                 const ClusterState& cluster) {
  const v1::LoopFleet& message = request.fleet();
  absl::Status status = CheckRange("fleet.now_milliseconds", message.now_milliseconds(), 1, kMaxFleetTimeMs);
  if (status.ok()) status = CheckSize("groups", request.groups_size(), kMaxFleetGroups);
  int64_t machines = 0;
  for (const v1::LoopGroup& group : request.groups()) machines += group.cloud().machines_size();
  if (status.ok() && machines > kMaxFleetMachines) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("cloud.machines: there are ", machines, ", the limit is ", kMaxFleetMachines));
  }
  if (!status.ok()) return status;
  DecodedLoopFleet fleet;
  fleet.now_ms = message.now_milliseconds();
  absl::StatusOr<FleetOptions> options = DecodeFleetOptions(message.options());
  if (!options.ok()) return Annotate(options.status(), "fleet.options");
  fleet.options = {*options,
                   growth.startup_taints,
                   message.acts(),
                   decisions.scale_up,
                   message.swaps(),
                   request.max_new_nodes(),
                   request.max_nodes_total(),
                   message.options().max_soft_taints()};
  absl::StatusOr<LoopOutcomes> outcomes = DecodeLoopOutcomes(message);
  if (!outcomes.ok()) return Annotate(outcomes.status(), "fleet");
  fleet.outcomes = *std::move(outcomes);
  fleet.seen.first = message.first();
  for (int i = 0; i < request.groups_size(); ++i) {
    absl::StatusOr<CloudGroup> group =
        DecodeCloudGroup(request.groups(i), growth.groups[fleet.seen.groups.end_index()], growth.names,
                         cluster, &fleet.left_out);
    if (!group.ok()) return Annotate(group.status(), absl::StrCat("groups[", i, "]"));
    fleet.seen.groups.push_back(*std::move(group));
    fleet.cloud_template.push_back(request.groups(i).cloud().cloud_template());
  }
  fleet.seen.marks =
      DecodeMarks(message.marks(), cluster, fleet.now_ms, options->deletion_patience_ms, &fleet.left_out);
  status = DecodeRemovalsUnderWay(message, cluster, &fleet.seen);
  if (!status.ok()) return Annotate(status, "fleet");
  return fleet;
}

v1::LoopFleetAnswer EncodeLoopFleet(const LoopObservation& seen, const LoopFindings& findings,
                                    const LoopProblem& problem, const LoopPlan& plan,
                                    const std::vector<LoopAction>& actions) {
  v1::LoopFleetAnswer answer;
  for (const GroupIndex i : findings.groups.indices()) {
    *answer.add_groups() = EncodeGroupSight(findings.groups[i], findings.fleet.groups[IndexOf(i)]);
    answer.mutable_groups()->rbegin()->set_hold(EncodeHold(HoldOf(seen, findings, problem, plan, i)));
    EncodeModel(problem.groups[i], &*answer.mutable_groups()->rbegin());
  }
  answer.set_nodes(findings.nodes.all);
  answer.set_ready_nodes(findings.nodes.ready);
  answer.set_unready_nodes(findings.nodes.unready);
  answer.set_held(findings.held);
  answer.set_unhealthy(findings.fleet.unhealthy);
  answer.set_cools_down(findings.fleet.cools_down);
  for (const FleetFailure& failure : findings.fleet.failures) *answer.add_failures() = EncodeFailure(failure);
  for (const FailedCreations& failed : findings.fleet.failed_creations) {
    *answer.add_failed_creations() = EncodeFailedCreations(failed);
  }
  for (const std::string& warning : findings.warnings) {
    answer.add_warnings(Printable(warning, kMostWarningBytes));
  }
  for (const std::string& warning : WarningsOfMaxima(problem.maxima, problem.groups, problem.drain)) {
    answer.add_warnings(Printable(warning, kMostWarningBytes));
  }
  for (const LoopAction& action : actions) *answer.add_actions() = EncodeAction(action, seen);
  answer.set_abandoned_nodes(static_cast<int64_t>(findings.marked.abandoned.size()));
  return answer;
}

void EncodeWhyNoGrowth(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                       const LoopPlan& plan, const std::vector<RefusedPods>& refused,
                       const PodEntries& entries, v1::LoopFleetAnswer* answer) {
  for (const RefusedPods& kind : refused) {
    v1::PodsWithoutNode* const message = answer->add_pods_without_node();
    for (const int32_t entry : entries.EntriesOf(kind.pods)) message->add_pods(entry);
    message->set_why(Printable(WhyNoGrowth(seen, findings, problem, plan, &kind), kMostWarningBytes));
  }
  // A client says this of the kinds that are not listed, too.
  const auto kinds = std::count_if(plan.scale_up.unplaced.begin(), plan.scale_up.unplaced.end(),
                                   [](int64_t pods) { return pods > 0; });
  const bool all_listed = !refused.empty() && refused.size() == static_cast<size_t>(kinds);
  answer->set_why_no_growth(all_listed
                                ? answer->pods_without_node(0).why()
                                : Printable(WhyNoGrowth(seen, findings, problem, plan), kMostWarningBytes));
}

}  // namespace loadline

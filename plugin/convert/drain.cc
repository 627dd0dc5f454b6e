#include "plugin/convert/drain.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/node_kind.h"
#include "core/drain/node_reason.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/drain_pod.h"
#include "plugin/convert/drain_state.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/startup_taints.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Sets `left_alone` where none of its nodes may go.
NodeGroup DecodeGroup(const v1::DrainGroup& message, LeftOutList* left_out, bool* left_alone) {
  StatedGroup stated(message.node_group(), left_out);
  stated.Size("min_nodes", message.min_nodes());
  if (message.has_max_nodes()) stated.MinAndMax(message.min_nodes(), message.max_nodes());
  stated.Size("target", message.target());
  NodeGroup group;
  group.name = stated.name();
  group.min_nodes = std::max(0, message.min_nodes());
  group.target = message.has_target() ? std::max(0, message.target()) : message.slots_size();
  group.atomic = message.atomic();
  group.sized = message.sized();
#define FIELD(name) #name, message.has_##name(), message.name()
  group.utilization_threshold = stated.Number(FIELD(scale_down_utilization_threshold), 1);
  group.gpu_utilization_threshold = stated.Number(FIELD(scale_down_gpu_utilization_threshold), 1);
  group.unneeded_time_s = stated.Time(FIELD(scale_down_unneeded_time_s), kMaxDrainTime);
  group.unready_time_s = stated.Time(FIELD(scale_down_unready_time_s), kMaxDrainTime);
  group.node_price = stated.Number(FIELD(node_usd_per_hour), kMaxPrice);
#undef FIELD
  if (message.has_ignore_daemonsets_utilization()) {
    group.ignore_daemonsets_utilization = message.ignore_daemonsets_utilization();
  }
  *left_alone = !stated.problem().empty();
  return group;
}

absl::Status DecodeGroups(const v1::PlanDrainRequest& request, const ClusterState& cluster,
                          DrainProblem* problem, LeftOutList* left_out) {
  if (absl::Status status = CheckSize("groups", request.groups_size(), kMaxDrainGroups); !status.ok()) {
    return status;
  }
  std::set<std::string> names;
  for (int i = 0; i < request.groups_size(); ++i) {
    const v1::DrainGroup& message = request.groups(i);
    if (message.node_group().empty()) return Refused(absl::StrCat("groups[", i, "]: node_group: is empty"));
    bool left_alone = false;
    NodeGroup group = DecodeGroup(message, left_out, &left_alone);
    const std::string where = absl::StrCat("groups[", i, "] ", Quoted(group.name));
    if (!names.insert(group.name).second) return Refused(absl::StrCat(where, ": is named twice"));
    for (const int32_t slot : message.slots()) {
      if (!cluster.Occupied(Slot{slot}) || slot < 0) {
        return Refused(absl::StrCat(where, ": slot ", slot, " holds no node"));
      }
      if (problem->group_of[Slot{slot}].has_value()) {
        return Refused(absl::StrCat(where, ": slot ", slot, " is in two groups"));
      }
      if (!left_alone && MayBeInGroup(cluster, Slot{slot}))
        problem->group_of.Set(Slot{slot}, problem->groups.end_index());
    }
    problem->groups.push_back(std::move(group));
  }
  if (!request.derive_groups()) return absl::OkStatus();
  const absl::StatusOr<StartupTaints> startup_taints = DecodeStartupTaints(request.startup_taints());
  if (!startup_taints.ok()) return startup_taints.status();
  return PutIntoDerivedGroups(*startup_taints, kMaxDrainGroups, problem).status();
}

absl::Status DecodePlaceholders(const v1::PlanDrainRequest& request, const ReadOptions& read, View* view,
                                DrainProblem* problem, LeftOutList* left_out) {
  if (absl::Status status = CheckSize("placeholders", request.placeholders_size(), kMaxDrainPlaceholders);
      !status.ok()) {
    return status;
  }
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < request.placeholders_size(); ++i) {
    const v1::DrainPlaceholder& message = request.placeholders(i);
    const auto refuse = [&](const absl::Status& status) {
      return Annotate(status, absl::StrCat("placeholders[", i, "] ", Quoted(message.name())));
    };
    Fields fields;
    fields.Name("name", message.name());
    if (!names.insert(message.name()).second) fields.Refuse("is named twice");
    if (!fields.status().ok()) return refuse(fields.status());
    absl::StatusOr<DrainPod> pod = ReadDrainPod(message.pod(), view, read);
    absl::Status status = pod.status();
    if (pod.ok() && !pod->unknown_resource.empty()) {
      status = Refused(
          absl::StrCat("requests ", Quoted(pod->unknown_resource), ", which the cluster does not have"));
    }
    if (!status.ok()) left_out->Add("Placeholder", "", message.name(), status.message());
    // Answers refer to placeholders by position.
    IncomingPod placeholder;
    if (status.ok()) placeholder.shape = std::move(pod->shape);
    placeholder.names = view->cluster().resource_names();
    problem->placeholders.emplace_back(message.name(), message.node(), std::move(placeholder));
  }
  return absl::OkStatus();
}

absl::Status DecodePools(const v1::PlanDrainRequest& request, const ClusterState& cluster,
                         DrainProblem* problem) {
  for (int i = 0; i < request.pools_size(); ++i) {
    const v1::DrainDevicePool& message = request.pools(i);
    Fields fields;
    if (message.slot() < 0 || !cluster.Occupied(Slot{message.slot()})) {
      fields.Refuse(absl::StrCat("slot ", message.slot(), " holds no node"));
    }
    if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat("pools[", i, "]"));
    // A driver writes the numbers: where they cannot be, the pool is one that does not tell all.
    const bool complete = !message.incomplete() && message.devices() >= 0 && message.allocated() >= 0;
    problem->pools[Slot{message.slot()}].push_back({StoredName(message.name()),
                                                    std::max(0, message.devices()),
                                                    std::max(0, message.allocated()), complete});
  }
  return absl::OkStatus();
}

// Empty for "None".
template <typename Enum>
std::string NameUnlessNone(Enum value) {
  return value == Enum::kNone ? std::string() : std::string(Name(value));
}

// Reasons of filters name objects of tenants.
constexpr size_t kMaxAdviceLength = 1'024;

class Encoder {
 public:
  Encoder(const DrainProblem& problem, const DrainOptions& options, bool compact)
      : problem_(problem), options_(options), compact_(compact) {
    if (!compact) budgets_.emplace(*problem.cluster);
  }

  void Encode(const DrainRemoval& removal, v1::NodeRemoval* message) const {
    if (!compact_ || removal.start) EncodeDetails(removal, message);
    message->set_slot(static_cast<int32_t>(removal.slot));
    message->set_empty(removal.empty);
    message->set_risky(removal.risky);
    message->set_pods_to_move(
        std::count_if(removal.moves().begin(), removal.moves().end(),
                      [](const DrainMove& move) { return !move.pod.is_placeholder(); }));
    message->set_since_s(removal.since_s);
    message->set_ready_at_s(removal.ready_at_s);
    message->set_start(removal.start);
    message->set_waits(NameUnlessNone(removal.waits));
  }

  // Nodes that stay, one by one, or by reason.
  void EncodeKeeps(const DrainPlan& plan, v1::PlanDrainResponse* response) const {
    if (!compact_) {
      for (const DrainKeep& keep : plan.keep) Encode(plan, keep, response->add_keep());
      return;
    }
    std::map<std::tuple<NodeReason, PodReason, BudgetRefusal>, v1::StayReason*> reported;
    for (const DrainKeep& keep : plan.keep) {
      v1::StayReason*& reason = reported[{keep.reason, keep.pod_reason, keep.budget}];
      if (reason == nullptr) {
        reason = response->add_stay();
        Encode(plan, keep, reason->mutable_first());
      }
      reason->add_slots(static_cast<int32_t>(keep.slot));
    }
  }

  // Budgets that moves take from.
  void EncodeBudgets(const DrainPlan& plan, v1::PlanDrainResponse* response) const {
    if (compact_) return;
    std::set<BudgetIndex> used;
    for (const DrainRemoval& removal : plan.remove) {
      const std::span<const NodePods::Pod> pods = cluster().pods(removal.slot).pods();
      for (const DrainMove& move : removal.moves()) {
        if (move.pod.is_placeholder()) continue;
        const BudgetUse& use = budgets_->UseOf(pods[move.pod.position()].shape);
        if (use.takes) used.insert(*use.budget);
      }
    }
    for (const BudgetIndex budget : used) {
      v1::BudgetLeft* const message = response->add_budgets();
      message->set_namespace_(budgets_->key(budget).namespace_name);
      message->set_name(budgets_->key(budget).name);
      message->set_left(budgets_->left(budget));
    }
  }

 private:
  const ClusterState& cluster() const { return *problem_.cluster; }

  void Encode(const DrainPlan& plan, const DrainKeep& keep, v1::NodeKeep* message) const {
    message->set_slot(static_cast<int32_t>(keep.slot));
    message->set_node(std::string(cluster().name(keep.slot)));
    message->set_reason(std::string(Name(keep.reason)));
    message->set_node_group(GroupOf(keep.slot));
    if (keep.pod.has_value()) EncodeKeeping(keep.slot, *keep.pod, message);
    message->set_pod_reason(NameUnlessNone(keep.pod_reason));
    message->set_budget_refusal(NameUnlessNone(keep.budget));
    message->set_since_s(keep.since_s);
    message->set_advice(Printable(WhatWouldHelp(problem_, options_, plan, keep), kMaxAdviceLength));
  }

  void EncodeDetails(const DrainRemoval& removal, v1::NodeRemoval* message) const {
    const NodeTraits& traits = cluster().traits(removal.slot);
    message->set_node(std::string(cluster().name(removal.slot)));
    message->set_uid(traits.uid);
    message->set_provider_id(traits.provider_id);
    message->set_node_group(GroupOf(removal.slot));
    message->set_reason(!traits.ready ? "unready" : removal.empty ? "empty" : "underutilized");
    for (const DrainMove& move : removal.moves()) Encode(removal.slot, move, message->add_moves());
    message->mutable_waits_for()->Add(removal.waits_for.begin(), removal.waits_for.end());
  }

  std::string GroupOf(Slot slot) const {
    const std::optional<GroupIndex> group = problem_.group_of[slot];
    return group.has_value() ? problem_.groups[*group].name : std::string();
  }

  // A number of the message: that of a pod, or of a placeholder counted down from -1.
  void EncodeKeeping(Slot slot, PodRef pod, v1::NodeKeep* message) const {
    const int32_t position = static_cast<int32_t>(pod.position());
    message->set_pod(pod.is_placeholder() ? -1 - position : position);
    if (pod.is_placeholder()) {
      message->set_pod_name(problem_.placeholders[pod.position()].name);
      return;
    }
    const auto [namespace_name, name] = PodAt(slot, pod);
    message->set_pod_namespace(std::string(namespace_name));
    message->set_pod_name(std::string(name));
  }

  std::pair<absl::string_view, absl::string_view> PodAt(Slot slot, PodRef pod) const {
    const NodePods& pods = cluster().pods(slot);
    const size_t i = pod.position();
    return {cluster().pod_shapes()[pods.pods()[i].shape].namespace_name, pods.name(i)};
  }

  void Encode(Slot from, const DrainMove& move, v1::PodMove* message) const {
    message->set_placeholder(move.pod.is_placeholder());
    message->set_pod(static_cast<int32_t>(move.pod.position()));
    message->set_to_slot(static_cast<int32_t>(move.to));
    if (compact_) return;
    message->set_to(std::string(cluster().name(move.to)));
    if (move.pod.is_placeholder()) {
      message->set_name(problem_.placeholders[move.pod.position()].name);
      return;
    }
    const auto [namespace_name, name] = PodAt(from, move.pod);
    message->set_namespace_(std::string(namespace_name));
    message->set_name(std::string(name));
    const BudgetUse& use = budgets_->UseOf(cluster().pods(from).pods()[move.pod.position()].shape);
    if (use.takes) message->set_budget(budgets_->key(*use.budget).name);
  }

  const DrainProblem& problem_;
  const DrainOptions& options_;
  const bool compact_;
  std::optional<DisruptionBudgets> budgets_;
};

}  // namespace

absl::StatusOr<DerivedGroups> PutIntoDerivedGroups(const StartupTaints& startup_taints, int most,
                                                   DrainProblem* problem) {
  if (!problem->groups.empty()) return Refused("groups: must be empty if groups are derived");
  DerivedGroups derived = DeriveGroups(*problem->cluster, startup_taints, problem->now_s);
  if (derived.groups.size() > static_cast<size_t>(most)) {
    return absl::ResourceExhaustedError(absl::StrCat("the nodes form ", derived.groups.size(),
                                                     " node groups, at most ", most,
                                                     " are allowed: name groups"));
  }
  problem->group_of = derived.group_of;
  for (const DerivedGroup& group : derived.groups) {
    NodeGroup& added = problem->groups.emplace_back();
    added.name = group.name;
    added.target = static_cast<int64_t>(group.nodes.size());
  }
  return derived;
}

absl::StatusOr<DrainProblem> DecodeDrainProblem(const v1::PlanDrainRequest& request, const ReadOptions& read,
                                                View* view, LeftOutList* left_out) {
  Fields fields;
  fields.Range("now_s", request.now_s(), 1, kMaxDrainTime);
  fields.Range("seen_s", request.seen_s(), 0, kMaxDrainTime);
  if (!fields.status().ok()) return fields.status();
  DrainProblem problem;
  problem.now_s = request.now_s();
  // Placeholders may bring labels by which pods differ.
  absl::Status status = DecodePlaceholders(request, read, view, &problem, left_out);
  problem.cluster = &view->cluster();
  if (status.ok()) status = DecodeGroups(request, view->cluster(), &problem, left_out);
  if (status.ok()) status = DecodePools(request, view->cluster(), &problem);
  if (!status.ok()) return status;
  return problem;
}

void TellTooCostlyBudgets(const DrainPlan& plan, LeftOutList* left_out) {
  for (const ObjectKey& budget : plan.too_costly_budgets) {
    left_out->Add("PodDisruptionBudget", budget.namespace_name, budget.name,
                  "is the first of a namespace in which it costs too much to find out which pods the budgets "
                  "mean: they cover all of its pods and let none of them go");
  }
}

v1::PlanDrainResponse EncodeDrainPlan(const DrainPlan& plan, const DrainProblem& problem,
                                      const DrainOptions& options, bool compact) {
  const Encoder encoder(problem, options, compact);
  v1::PlanDrainResponse response;
  for (const DrainRemoval& removal : plan.remove) encoder.Encode(removal, response.add_remove());
  encoder.EncodeKeeps(plan, &response);
  for (const auto& [slot, since_s] : plan.behind_budgets) {
    v1::UnneededBehindBudget* const node = response.add_behind_budgets();
    node->set_slot(static_cast<int32_t>(slot));
    node->set_since_s(since_s);
  }
  encoder.EncodeBudgets(plan, &response);
  response.set_brake(NameUnlessNone(plan.brake));
  response.set_brake_text(plan.brake_text);
  response.set_status(std::string(Name(plan.status)));
  response.set_limit(NameUnlessNone(plan.limit));
  response.set_evaluated(plan.evaluated);
  response.set_skipped(plan.skipped);
  response.set_usd_per_hour_saved(plan.price_saved);
  response.set_cut_short_by(std::string(Name(plan.cut_short_by)));
  *response.mutable_other_nodes() = EncodeOtherNodes(*problem.cluster, problem.group_of);
  return response;
}

}  // namespace loadline

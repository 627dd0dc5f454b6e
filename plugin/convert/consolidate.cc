#include "plugin/convert/consolidate.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/gpu_resources.h"
#include "core/drain/node_reason.h"
#include "core/observe/see_fleet.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"
#include "plugin/convert/time_windows.h"

namespace loadline {
namespace {

constexpr int kMostDisturbancePrices = 64;
constexpr int kMostNamespaces = 10'000;
// The bytes of an answer that moves, and nodes that stay, may take.
constexpr size_t kMoveBytes = size_t{2} << 20;
constexpr size_t kKeepBytes = size_t{1} << 20;

absl::Status DecodeDisturbancePrices(const v1::ConsolidationPolicy& message, DisturbancePrices* prices) {
  if (absl::Status status =
          CheckSize("usd_by_priority", message.usd_by_priority_size(), kMostDisturbancePrices);
      !status.ok()) {
    return status;
  }
  std::map<int32_t, double> sorted;
  for (int i = 0; i < message.usd_by_priority_size(); ++i) {
    const v1::DisturbancePrice& price = message.usd_by_priority(i);
    const std::string at = absl::StrCat("usd_by_priority[", i, "]");
    if (absl::Status status = CheckNumber("usd", price.usd(), 0, kMaxPrice); !status.ok())
      return Annotate(status, at);
    if (!sorted.emplace(price.from_priority(), price.usd()).second) {
      return Annotate(Refused(absl::StrCat("from_priority: ", price.from_priority(), " occurs twice")), at);
    }
  }
  for (const auto& [priority, usd] : sorted) prices->by_priority.push_back({priority, usd});
  return absl::OkStatus();
}

// Writes the answer, and knows what of it there is room for.
class ConsolidationEncoder {
 public:
  ConsolidationEncoder(const DrainProblem& drain, const NodeGroups& groups)
      : drain_(drain), groups_(groups), state_(*drain.cluster) {}

  v1::ConsolidationMove Encode(const ConsolidationMove& move) const {
    v1::ConsolidationMove message;
    for (const Slot slot : move.remove) message.add_remove(std::string(state_.name(slot)));
    for (size_t i = 0; i < move.add.size(); ++i) {
      v1::GroupAddition* const add = message.add_add();
      add->set_node_group(GroupName(move.add[i].group));
      add->set_nodes(ToInt32(move.add[i].nodes));
      add->set_first_number(move.first_number[i]);
    }
    for (const PodTransfer& pod : move.pods) Encode(pod, message.add_pods());
    message.set_saves(move.saves);
    message.set_disrupted(move.disrupted);
    message.set_disturbance_usd(move.disturbance);
    message.set_turns(move.turns);
    message.set_wave(move.wave);
    return message;
  }

  v1::ConsolidationKeep Encode(const KeptNode& kept, const FixedNode* fixed,
                               std::optional<GroupIndex> group) const {
    v1::ConsolidationKeep message;
    message.set_node(std::string(state_.name(kept.slot)));
    if (group.has_value()) message.set_node_group(GroupName(*group));
    message.set_reason(std::string(ReasonName(kept, fixed)));
    message.set_usd_per_hour(kept.usd_per_hour);
    message.set_worth(kept.worth);
    if (IsFixed(kept, fixed)) {
      std::string advice = AdviceFor(*fixed);
      if (advice != EntryOf(fixed->reason).advice) message.set_advice(std::move(advice));
    }
    if (fixed == nullptr || !fixed->pod.has_value()) return message;
    const size_t position = fixed->pod->position();
    const NodePods& pods = state_.pods(kept.slot);
    message.set_pod_namespace(state_.pod_shapes()[pods.pods()[position].shape].namespace_name);
    message.set_pod_name(std::string(pods.name(position)));
    if (fixed->pod_reason != PodReason::kNone) message.set_pod_reason(std::string(Name(fixed->pod_reason)));
    if (fixed->budget != BudgetRefusal::kNone) message.set_budget_refusal(std::string(Name(fixed->budget)));
    return message;
  }

  static absl::string_view ReasonName(const KeptNode& kept, const FixedNode* fixed) {
    return IsFixed(kept, fixed) ? Name(fixed->reason) : Name(kept.reason);
  }
  static std::string AdviceForReason(const KeptNode& kept, const FixedNode* fixed,
                                     const ConsolidationOptions& options) {
    return IsFixed(kept, fixed) ? std::string(EntryOf(fixed->reason).advice) : AdviceOf(kept.reason, options);
  }

 private:
  static bool IsFixed(const KeptNode& kept, const FixedNode* fixed) {
    return kept.reason == KeepReason::kFixed && fixed != nullptr;
  }

  // Returns what a drain would say. No reason of these depends on options of drains, or on a plan.
  std::string AdviceFor(const FixedNode& fixed) const {
    DrainKeep keep;
    keep.slot = fixed.slot;
    keep.reason = fixed.reason;
    keep.pod = fixed.pod;
    keep.pod_reason = fixed.pod_reason;
    keep.budget = fixed.budget;
    return WhatWouldHelp(drain_, DrainOptions(), DrainPlan(), keep);
  }

  const std::string& GroupName(GroupIndex group) const { return groups_[group].name; }

  void Encode(const PodTransfer& pod, v1::PodTransfer* message) const {
    const size_t position = static_cast<size_t>(pod.position);
    if (pod.placeholder) {
      message->set_name(drain_.placeholders[position].name);
      message->set_placeholder(true);
    } else {
      const NodePods& pods = state_.pods(pod.from);
      message->set_namespace_(state_.pod_shapes()[pods.pods()[position].shape].namespace_name);
      message->set_name(std::string(pods.name(position)));
    }
    message->set_from(std::string(state_.name(pod.from)));
    message->set_to(pod.to.is_new() ? absl::StrCat(GroupName(*pod.to.group), "#", pod.to.number)
                                    : std::string(state_.name(pod.to.slot)));
  }

  const DrainProblem& drain_;
  const NodeGroups& groups_;
  const ClusterState& state_;
};

void EncodeGroupBills(const ConsolidationQuestion& question, const NodeGroups& groups,
                      v1::PlanConsolidationResponse* response) {
  StrongVector<GroupIndex, int64_t> nodes(groups.size(), 0);
  StrongVector<GroupIndex, int64_t> nodes_as_new(groups.size(), 0);  // that cost as much as a new one
  StrongVector<GroupIndex, double> others(groups.size(), 0);         // US dollars per hour
  for (const ConsolidationNode& node : question.problem.nodes) {
    if (!node.group.has_value()) continue;
    ++nodes[*node.group];
    if (node.usd_per_hour == groups[*node.group].usd_per_hour) {
      ++nodes_as_new[*node.group];
    } else {
      others[*node.group] += node.usd_per_hour.value_or(0);
    }
  }
  for (const GroupIndex i : groups.indices()) {
    v1::GroupBill* const bill = response->add_groups();
    bill->set_node_group(groups[i].name);
    bill->set_nodes(nodes[i]);
    if (!groups[i].usd_per_hour.has_value()) {
      response->add_groups_left_out(groups[i].name);
      continue;
    }
    bill->set_usd_per_hour(*groups[i].usd_per_hour * static_cast<double>(nodes_as_new[i]) + others[i]);
    *bill->mutable_node_price() = EncodeNodePrice(groups[i].price);
  }
}

void EncodeNamespaces(std::vector<std::pair<std::string, double>> namespaces,
                      v1::PlanConsolidationResponse* response) {
  if (namespaces.size() > kMostNamespaces) {
    std::stable_sort(namespaces.begin(), namespaces.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    namespaces.resize(kMostNamespaces);
    std::sort(namespaces.begin(), namespaces.end());
  }
  for (const auto& [name, usd] : namespaces) {
    v1::NamespaceBill* const bill = response->add_namespaces();
    bill->set_name(name);
    bill->set_usd_per_hour(usd);
  }
}

}  // namespace

namespace {

absl::Status DecodeTimes(const v1::ConsolidationPolicy& message, DecodedConsolidationPolicy* decoded) {
  if (message.has_rest_seconds()) {
    Fields fields;
    fields.Range("rest_seconds", message.rest_seconds(), 0, INT32_MAX);
    if (!fields.status().ok()) return fields.status();
    decoded->rest_s = message.rest_seconds();
  }
  if (!message.has_windows()) return absl::OkStatus();
  absl::StatusOr<TimeWindows> windows = DecodeTimeWindows(message.windows(), /*most=*/16'384);
  if (!windows.ok()) return Annotate(windows.status(), "windows", ".");
  decoded->windows = *std::move(windows);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedConsolidationPolicy> DecodeConsolidationPolicy(const v1::ConsolidationPolicy& message) {
  DecodedConsolidationPolicy decoded;
  ConsolidationOptions& options = decoded.options;
  switch (message.mode()) {
    case v1::ConsolidationPolicy::MODE_UNSPECIFIED:
    case v1::ConsolidationPolicy::REPLACE:
      options.mode = ConsolidationMode::kReplace;
      break;
    case v1::ConsolidationPolicy::REMOVE:
      options.mode = ConsolidationMode::kRemove;
      break;
    case v1::ConsolidationPolicy::OFF:
      options.mode = ConsolidationMode::kOff;
      break;
    default:
      return NoSuchValue("mode", static_cast<int>(message.mode()));
  }
  Fields fields;
  const auto number = [&](absl::string_view field, bool has, double value, double lowest, double highest,
                          double* to) {
    if (!has) return;
    fields.Keep(CheckNumber(field, value, lowest, highest));
    *to = value;
  };
  const auto count = [&](absl::string_view field, bool has, int64_t value, int64_t highest, int64_t* to) {
    if (!has) return;
    fields.Range(field, value, 1, highest);
    *to = value;
  };
#define FIELD(name) #name, message.has_##name(), message.name()
  number(FIELD(least_saving_usd_per_hour), 0, kMaxPrice, &options.least_saving_usd_per_hour);
  number(FIELD(least_saving_percent), 0, 100, &options.least_saving_percent);
  number(FIELD(usd_per_disturbed_pod), 0, kMaxPrice, &decoded.prices.usd_per_pod);
  number(FIELD(payback_hours), 1e-6, 8760, &options.payback_hours);
  count(FIELD(max_nodes_per_move), 10'000, &options.max_nodes_per_move);
  count(FIELD(max_nodes_at_once), INT32_MAX, &options.max_nodes_at_once);
  count(FIELD(max_pods_at_once), INT32_MAX, &options.max_pods_at_once);
#undef FIELD
  if (message.has_least_spot_groups()) {
    fields.Range("least_spot_groups", message.least_spot_groups(), 0, INT32_MAX);
    options.least_spot_groups = message.least_spot_groups();
  }
  if (!fields.status().ok()) return fields.status();
  if (absl::Status status = DecodeDisturbancePrices(message, &decoded.prices); !status.ok()) return status;
  if (absl::Status status = DecodeTimes(message, &decoded); !status.ok()) return status;
  return decoded;
}

v1::PlanLoopRequest LoopPart(const v1::PlanConsolidationRequest& request) {
  v1::PlanLoopRequest part;
  part.set_now_s(request.now_s());
  *part.mutable_groups() = request.groups();
  *part.mutable_daemon_pods() = request.daemon_pods();
  *part.mutable_drain() = request.drain();
  *part.mutable_fit() = request.fit();
  *part.mutable_startup_taints() = request.startup_taints();
  part.set_max_nodes_total(request.max_nodes_total());
  return part;
}

v1::ConsolidationBill EncodeBill(const ConsolidationBill& bill, const PriceTally& prices) {
  v1::ConsolidationBill message;
  message.set_now(bill.now);
  if (prices.MostlyKnown()) message.set_bound(bill.bound);
  message.set_proven(bill.proven && prices.MostlyKnown());
  message.set_reachable(bill.reachable);
  message.set_fixed(bill.fixed);
  message.set_unpriced_nodes(bill.unpriced_nodes);
  return message;
}

NodeGroups DerivedLoopGroups(const DerivedGroups& derived, const DrainProblem& drain,
                             const StartupTaints& startup_taints, const PriceModel& prices) {
  constexpr int64_t kAnyNumber = 1 << 20;  // chosen: more nodes than any cluster has
  NodeGroups groups;
  for (const GroupIndex index : drain.groups.indices()) {
    const std::vector<Slot>& nodes = derived.groups[index].nodes;
    const std::vector<Slot> lacking =
        NodesLackingDevices(*drain.cluster, nodes, /*model=*/nullptr, drain.cluster->resource_names(),
                            startup_taints, drain.now_s);
    NodeToCome made = NewNodeOf(*drain.cluster, {nullptr, nodes, lacking}, startup_taints);
    const DecodedTemplate priced = TemplateOf(made, drain.cluster->resource_names());
    NodeGroup& group = groups.emplace_back(drain.groups[index]);
    group.max_nodes = kAnyNumber;
    group.model = std::move(made.model);
    group.priced = priced.node;
    group.has_gpu = priced.has_gpu;
    group.price = PriceNode(prices, priced.node);
    if (group.price.source == PriceSource::kNone) continue;
    group.usd_per_hour = group.node_price = group.price.price;
  }
  return groups;
}

void EncodeDerivedGroups(const DerivedGroups& derived, const NodeGroups& groups, const ResourceNames& names,
                         v1::PlanConsolidationResponse* response) {
  const std::optional<ResourceId> pods = names.Find("pods");
  int64_t untyped = 0;
  for (const GroupIndex i : groups.indices()) {
    v1::DerivedGroup* const message = response->add_derived_groups();
    const DerivedGroup& of = derived.groups[i];
    message->set_node_group(of.name);
    for (const Slot slot : of.nodes) message->add_slots(static_cast<int32_t>(slot));
    const NodeShape& node = groups[i].model->shape;
    message->set_milli_cpu(node.allocatable.Get(kCpu));
    message->set_memory_bytes(node.allocatable.Get(kMemory));
    if (pods.has_value()) message->set_pods(node.allocatable.Get(*pods));
    message->set_gpus(GpusOf(node.allocatable, names));
    message->set_spot(groups[i].priced.spot);
    message->set_repels(std::any_of(node.taints.begin(), node.taints.end(),
                                    [](const Taint& taint) { return taint.Repels(); }));
    if (groups[i].priced.instance_type.empty()) untyped += static_cast<int64_t>(of.nodes.size());
  }
  response->set_untyped_nodes(untyped);
}

void EncodeConsolidation(const ConsolidationPlan& plan, const ConsolidationOptions& options,
                         const ConsolidationQuestion& question, const DrainProblem& drain,
                         const NodeGroups& groups, const PriceTally& prices,
                         v1::PlanConsolidationResponse* response) {
  const ConsolidationEncoder encoder(drain, groups);
  *response->mutable_bill() = EncodeBill(plan.bill, prices);
  *response->mutable_other_nodes() = EncodeOtherNodes(*drain.cluster, drain.group_of);
  size_t bytes = 0;
  for (const ConsolidationMove& move : plan.moves) {
    v1::ConsolidationMove message = encoder.Encode(move);
    bytes += message.ByteSizeLong() + kEntryOverhead;
    if (bytes > kMoveBytes) break;
    *response->add_moves() = std::move(message);
  }
  response->set_moves_total(static_cast<int64_t>(plan.moves.size()));
  absl::flat_hash_map<Slot, const FixedNode*> fixed;
  for (const FixedNode& node : question.fixed) fixed[node.slot] = &node;
  absl::flat_hash_map<Slot, std::optional<GroupIndex>> group_of;
  for (const ConsolidationNode& node : question.problem.nodes) group_of[node.slot] = node.group;
  std::map<std::string, v1::ConsolidationReason> reasons;
  bytes = 0;
  for (const KeptNode& kept : plan.keep) {
    const auto found = fixed.find(kept.slot);
    const FixedNode* const why = found == fixed.end() ? nullptr : found->second;
    v1::ConsolidationReason& reason = reasons[std::string(ConsolidationEncoder::ReasonName(kept, why))];
    reason.set_nodes(reason.nodes() + 1);
    reason.set_usd_per_hour(reason.usd_per_hour() + kept.usd_per_hour);
    if (reason.nodes() == 1) reason.set_advice(ConsolidationEncoder::AdviceForReason(kept, why, options));
    if (bytes > kKeepBytes) continue;
    v1::ConsolidationKeep message = encoder.Encode(kept, why, group_of[kept.slot]);
    bytes += message.ByteSizeLong() + kEntryOverhead;
    if (bytes <= kKeepBytes) *response->add_keep() = std::move(message);
  }
  response->set_keep_total(static_cast<int64_t>(plan.keep.size()));
  for (auto& [name, reason] : reasons) {
    reason.set_reason(name);
    *response->add_reasons() = std::move(reason);
  }
  EncodeGroupBills(question, groups, response);
  EncodeNamespaces(plan.namespaces, response);
  for (const ShadowPrice& price : plan.shadow_prices) {
    v1::ShadowPrice* const message = response->add_shadow_prices();
    message->set_resource(std::string(drain.cluster->resource_names().name(price.resource)));
    message->set_usd_per_hour(price.usd * (price.resource == kCpu ? 1000 : 1));
  }
  response->set_cut_short_by(std::string(Name(plan.cut_short_by)));
}

}  // namespace loadline

#include "plugin/convert/drain.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/refusals.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int64_t kMaxTime = int64_t{1} << 40;

// --- pods that stand for others ----------------------------------------------------------------------------

struct ReadPod {
  PodShape shape;
  std::string name;
  std::string uid;
  // A resource that neither nodes nor pods of the cluster know; empty: none.
  std::string unknown_resource;
  ResourceNames names;  // of the shape
};

// Reads a pod as one that comes, whatever is becoming of the one that it was.
absl::StatusOr<ReadPod> ReadIncoming(absl::string_view bytes, View* view, const ReadOptions& read) {
  k8s::v1::Pod message;
  if (bytes.size() > kMaxObjectBytes ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Refused("is not a k8s.io.api.core.v1.Pod, or too large");
  }
  message.mutable_metadata()->clear_deletion_timestamp();
  // Clients leave the status of incoming pods out, and a budget counts an eviction whatever became of the
  // pod.
  message.mutable_status()->clear_conditions();
  k8s::v1::PodCondition* const ready = message.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  ResourceNames names = view->cluster().resource_names();
  const size_t known = names.size();
  ResourceReader reader(&names, read);
  PodDecoder decoder(&reader);
  absl::StatusOr<PodShape> shape = decoder.Decode(message.SerializeAsString(), PodRole::kIncoming);
  if (!shape.ok()) return shape.status();
  SelectorKeys wish{shape->namespace_name, {}};
  if (shape->rules != nullptr) shape->rules->AddLabelKeys(&wish.keys);
  if (!view->SelectLabelKeys({&wish, 1})[0]) return Refused(kTooManyLabelKeys);
  SelectLabels(decoder.labels(), view->label_keys(), &*shape);
  ReadPod pod{*std::move(shape), decoder.name(), decoder.uid(), "", {}};
  if (names.size() > known)
    pod.unknown_resource = std::string(names.name(ResourceId{static_cast<int32_t>(known)}));
  pod.names = std::move(names);
  return pod;
}

// --- groups
// --------------------------------------------------------------------------------------------------

absl::StatusOr<DrainGroup> DecodeGroup(const v1::DrainGroup& message) {
  Fields fields;
  fields.Name("node_group", message.node_group());
  fields.Range("min_nodes", message.min_nodes(), 0, INT32_MAX);
  if (message.has_max_nodes() && message.max_nodes() < message.min_nodes()) {
    fields.Refuse(
        absl::StrCat("max_nodes: ", message.max_nodes(), " is below min_nodes, ", message.min_nodes()));
  }
  fields.Range("target", message.target(), 0, INT32_MAX);
  fields.Share("scale_down_utilization_threshold", message.scale_down_utilization_threshold());
  fields.Share("scale_down_gpu_utilization_threshold", message.scale_down_gpu_utilization_threshold());
  fields.Range("scale_down_unneeded_time_s", message.scale_down_unneeded_time_s(), 0, kMaxTime);
  fields.Range("scale_down_unready_time_s", message.scale_down_unready_time_s(), 0, kMaxTime);
  fields.Keep(CheckNumber("node_usd_per_hour", message.node_usd_per_hour(), 0, kMaxPrice));
  if (!fields.status().ok()) return fields.status();
  DrainGroup group;
  group.name = message.node_group();
  group.min_nodes = message.min_nodes();
  group.target = message.has_target() ? message.target() : message.slots_size();
  group.atomic = message.atomic();
  if (message.has_scale_down_utilization_threshold()) {
    group.utilization_threshold = message.scale_down_utilization_threshold();
  }
  if (message.has_scale_down_gpu_utilization_threshold()) {
    group.gpu_utilization_threshold = message.scale_down_gpu_utilization_threshold();
  }
  if (message.has_ignore_daemonsets_utilization()) {
    group.ignore_daemonsets_utilization = message.ignore_daemonsets_utilization();
  }
  if (message.has_scale_down_unneeded_time_s()) group.unneeded_time_s = message.scale_down_unneeded_time_s();
  if (message.has_scale_down_unready_time_s()) group.unready_time_s = message.scale_down_unready_time_s();
  if (message.has_node_usd_per_hour()) group.node_price = message.node_usd_per_hour();
  return group;
}

absl::Status DecodeGroups(const v1::PlanDrainRequest& request, const ClusterState& cluster,
                          DrainProblem* problem) {
  if (absl::Status status = CheckSize("groups", request.groups_size(), kMaxDrainGroups); !status.ok()) {
    return status;
  }
  problem->group_of.assign(static_cast<size_t>(cluster.slot_end()), -1);
  std::set<std::string> names;
  for (int i = 0; i < request.groups_size(); ++i) {
    const v1::DrainGroup& message = request.groups(i);
    absl::StatusOr<DrainGroup> group = DecodeGroup(message);
    if (!group.ok()) return Annotate(group.status(), absl::StrCat("groups[", i, "]"));
    const std::string where = absl::StrCat("groups[", i, "] ", Quoted(group->name));
    if (!names.insert(group->name).second) return Refused(absl::StrCat(where, ": is named twice"));
    for (const int32_t slot : message.slots()) {
      if (!cluster.Occupied(Slot{slot}) || slot < 0) {
        return Refused(absl::StrCat(where, ": slot ", slot, " holds no node"));
      }
      int32_t& group_of = problem->group_of[IndexOf(Slot{slot})];
      if (group_of >= 0) return Refused(absl::StrCat(where, ": slot ", slot, " is in two groups"));
      group_of = i;
    }
    problem->groups.push_back(*std::move(group));
  }
  return absl::OkStatus();
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
    absl::StatusOr<ReadPod> pod = ReadIncoming(message.pod(), view, read);
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
    fields.Name("name", message.name());
    fields.Range("devices", message.devices(), 0, INT32_MAX);
    fields.Range("allocated", message.allocated(), 0, INT32_MAX);
    if (message.slot() < 0 || !cluster.Occupied(Slot{message.slot()})) {
      fields.Refuse(absl::StrCat("slot ", message.slot(), " holds no node"));
    }
    if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat("pools[", i, "]"));
    problem->pools[Slot{message.slot()}].push_back(
        {message.name(), message.devices(), message.allocated(), !message.incomplete()});
  }
  return absl::OkStatus();
}

// --- state
// ---------------------------------------------------------------------------------------------------

template <typename Hints>
std::vector<DestinationHint> DecodeHints(const Hints& messages) {
  std::vector<DestinationHint> hints;
  for (const v1::DestinationHint& hint : messages) hints.push_back({hint.pod(), hint.node()});
  return hints;
}

template <typename Message>
void EncodeHints(const std::vector<DestinationHint>& hints, Message* message) {
  for (const DestinationHint& hint : hints) {
    v1::DestinationHint* const entry = message->add_hints();
    entry->set_pod(hint.pod);
    entry->set_node(hint.node);
  }
}

// Adds an eviction to a state. One that asks for what the cluster does not have could not be placed anyway.
void AddEviction(const v1::EvictedPod& message, const std::string& field, const ReadOptions& read, View* view,
                 DecodedDrainState* state) {
  absl::StatusOr<ReadPod> pod = ReadIncoming(message.pod(), view, read);
  if (!pod.ok()) {
    k8s::v1::ObjectMeta metadata;
    ReadName(message.pod(), &metadata);
    state->left_out.Add("Pod", metadata.namespace_(), metadata.name().empty() ? field : metadata.name(),
                        pod.status().message());
    return;
  }
  if (!pod->unknown_resource.empty()) return;
  state->state.recent_evictions.push_back(
      {std::move(pod->shape), pod->name, pod->uid, message.node(), message.at_s(), pod->names});
  state->evicted.push_back(message);
}

// What tells an eviction from others: a pod with a UID is evicted once.
std::string KeyOf(const RecentEviction& eviction) {
  if (!eviction.uid.empty()) return absl::StrCat("uid/", eviction.uid);
  return absl::StrCat("name/", eviction.shape.namespace_name, "/", eviction.name, "/", eviction.node, "/",
                      eviction.at_s);
}

// Takes out those of `state` from position `first` on that it has before: progress that is told twice counts
// once.
void RemoveRepeats(size_t first, DecodedDrainState* state) {
  absl::flat_hash_set<std::string> known;
  size_t kept = 0;
  std::vector<RecentEviction>& evictions = state->state.recent_evictions;
  for (size_t i = 0; i < evictions.size(); ++i) {
    if (!known.insert(KeyOf(evictions[i])).second && i >= first) continue;
    if (kept != i) {
      evictions[kept] = std::move(evictions[i]);
      state->evicted[kept] = std::move(state->evicted[i]);
    }
    ++kept;
  }
  evictions.resize(kept);
  state->evicted.resize(kept);
}

// Moves a node from those that may go to those that are being deleted. Of one that is not known to be the
// former, a drain is assumed.
void Start(const std::string& name, int64_t now_s, const ClusterState& cluster, DrainState* state) {
  const auto is_named = [&](const auto& node) { return node.node == name; };
  const std::optional<Slot> slot = cluster.Find(name);
  if (!slot.has_value() || absl::c_any_of(state->deleting, is_named)) return;
  DeletingNode deleting = {name, cluster.traits(*slot).uid, now_s, /*drain=*/true, {}};
  const auto found = absl::c_find_if(state->unneeded, is_named);
  if (found != state->unneeded.end()) {
    deleting.risky = found->risky;
    deleting.left_out = found->start;
    deleting.drain = absl::c_any_of(found->hints, [](const DestinationHint& hint) {
      return !absl::StartsWith(hint.pod, "placeholder/");
    });
    deleting.hints = std::move(found->hints);
    state->unneeded.erase(found);
  }
  state->deleting.push_back(std::move(deleting));
}

absl::Status CheckTimes(const v1::DrainState& message) {
  Fields fields;
  const auto check = [&](absl::string_view field, const auto& entries) {
    fields.Keep(CheckSize(field, entries.size(), kMaxDrainStateNodes));
    for (int i = 0; i < entries.size(); ++i) {
      fields.Range(absl::StrCat(field, "[", i, "].since_s"), entries[i].since_s(), 0, kMaxTime);
    }
  };
  check("unneeded", message.unneeded());
  check("deleting", message.deleting());
  check("failed", message.failed());
  fields.Keep(CheckSize("recent_evictions", message.recent_evictions_size(), kMaxEvictedPods));
  for (int i = 0; i < message.recent_evictions_size(); ++i) {
    fields.Range(absl::StrCat("recent_evictions[", i, "].at_s"), message.recent_evictions(i).at_s(), 0,
                 kMaxTime);
  }
  fields.Range("at_s", message.at_s(), 0, kMaxTime);
  fields.Range("nodes", message.nodes(), 0, INT32_MAX);
  fields.Keep(CheckSize("pods", message.pods_size(), kMaxDrainStateOwners));
  for (int i = 0; i < message.pods_size(); ++i) {
    const v1::OwnerPods& pods = message.pods(i);
    fields.Range(absl::StrCat("pods[", i, "].pods"), pods.pods(), 0, INT32_MAX);
    fields.Range(absl::StrCat("pods[", i, "].finished"), pods.finished(), 0, INT32_MAX);
    if (i > 0 && message.pods(i - 1).owner() >= pods.owner()) {
      fields.Refuse(absl::StrCat("pods[", i, "].owner is not above that of the entry before"));
    }
    if (pods.kind() == v1::OBJECT_KIND_UNSPECIFIED) continue;
    if (const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(pods.kind()); !kind.ok()) {
      fields.Keep(Annotate(kind.status(), absl::StrCat("pods[", i, "].kind")));
    }
  }
  return fields.status();
}

// --- answers
// -------------------------------------------------------------------------------------------------

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

// Empty for "None".
template <typename Enum>
std::string NameUnlessNone(Enum value) {
  return value == Enum::kNone ? std::string() : Text(Name(value));
}

class Encoder {
 public:
  Encoder(const DrainProblem& problem, bool compact) : problem_(problem), compact_(compact) {
    if (!compact) budgets_.emplace(*problem.cluster);
  }

  void Encode(const DrainRemoval& removal, v1::NodeRemoval* message) const {
    const NodeTraits& traits = cluster().traits(removal.slot);
    message->set_slot(static_cast<int32_t>(removal.slot));
    message->set_node(Text(cluster().name(removal.slot)));
    message->set_uid(traits.uid);
    message->set_provider_id(traits.provider_id);
    message->set_empty(removal.empty);
    message->set_risky(removal.risky);
    for (const DrainMove& move : removal.moves) Encode(removal.slot, move, message->add_moves());
    message->mutable_waits_for()->Add(removal.waits_for.begin(), removal.waits_for.end());
    message->set_since_s(removal.since_s);
    message->set_ready_at_s(removal.ready_at_s);
    message->set_start(removal.start);
    message->set_waits(NameUnlessNone(removal.waits));
    message->set_node_group(GroupOf(removal.slot));
  }

  // Budgets that moves take from.
  void EncodeBudgets(const DrainPlan& plan, v1::PlanDrainResponse* response) const {
    if (compact_) return;
    std::set<int32_t> used;
    for (const DrainRemoval& removal : plan.remove) {
      const std::span<const NodePods::Pod> pods = cluster().pods(removal.slot).pods();
      for (const DrainMove& move : removal.moves) {
        if (move.placeholder()) continue;
        const BudgetUse& use = budgets_->UseOf(pods[static_cast<size_t>(move.pod)].shape);
        if (use.takes) used.insert(use.budget);
      }
    }
    for (const int32_t budget : used) {
      v1::BudgetLeft* const message = response->add_budgets();
      message->set_namespace_(budgets_->key(budget).namespace_name);
      message->set_name(budgets_->key(budget).name);
      message->set_left(budgets_->left(budget));
    }
  }

  void Encode(const DrainKeep& keep, v1::NodeKeep* message) const {
    message->set_slot(static_cast<int32_t>(keep.slot));
    message->set_node(Text(cluster().name(keep.slot)));
    message->set_reason(Text(Name(keep.reason)));
    message->set_node_group(GroupOf(keep.slot));
    if (keep.pod != DrainKeep::kNoPod) {
      message->set_pod(keep.pod);
      if (keep.pod >= 0) {
        const auto [namespace_name, name] = PodAt(keep.slot, keep.pod);
        message->set_pod_namespace(Text(namespace_name));
        message->set_pod_name(Text(name));
      } else {
        message->set_pod_name(PlaceholderAt(keep.pod).name);
      }
    }
    message->set_pod_reason(NameUnlessNone(keep.pod_reason));
    message->set_budget_refusal(NameUnlessNone(keep.budget));
    message->set_since_s(keep.since_s);
    if (!compact_) message->set_advice(WhatWouldHelp(problem_, keep));
  }

 private:
  const ClusterState& cluster() const { return *problem_.cluster; }

  std::string GroupOf(Slot slot) const {
    const int32_t group = problem_.group_of[IndexOf(slot)];
    return group < 0 ? std::string() : problem_.groups[static_cast<size_t>(group)].name;
  }

  const DrainPlaceholder& PlaceholderAt(int32_t pod) const {
    return problem_.placeholders[static_cast<size_t>(-1 - pod)];
  }

  std::pair<absl::string_view, absl::string_view> PodAt(Slot slot, int32_t pod) const {
    const NodePods& pods = cluster().pods(slot);
    const size_t i = static_cast<size_t>(pod);
    return {cluster().pod_shapes()[pods.pods()[i].shape].namespace_name, pods.name(i)};
  }

  void Encode(Slot from, const DrainMove& move, v1::PodMove* message) const {
    message->set_placeholder(move.placeholder());
    message->set_pod(move.placeholder() ? static_cast<int32_t>(move.placeholder_index()) : move.pod);
    message->set_to_slot(static_cast<int32_t>(move.to));
    if (compact_) return;
    message->set_to(Text(cluster().name(move.to)));
    if (move.placeholder()) {
      message->set_name(PlaceholderAt(move.pod).name);
      return;
    }
    const auto [namespace_name, name] = PodAt(from, move.pod);
    message->set_namespace_(Text(namespace_name));
    message->set_name(Text(name));
    const size_t i = static_cast<size_t>(move.pod);
    const BudgetUse& use = budgets_->UseOf(cluster().pods(from).pods()[i].shape);
    if (use.takes) message->set_budget(budgets_->key(use.budget).name);
  }

  const DrainProblem& problem_;
  const bool compact_;
  std::optional<DisruptionBudgets> budgets_;
};

}  // namespace

absl::StatusOr<DrainProblem> DecodeDrainProblem(const v1::PlanDrainRequest& request, const ReadOptions& read,
                                                View* view, LeftOutList* left_out) {
  Fields fields;
  fields.Range("now_s", request.now_s(), 1, kMaxTime);
  fields.Range("seen_s", request.seen_s(), 0, kMaxTime);
  if (!fields.status().ok()) return fields.status();
  DrainProblem problem;
  problem.now_s = request.now_s();
  // Placeholders may bring labels that pods are told apart by.
  absl::Status status = DecodePlaceholders(request, read, view, &problem, left_out);
  problem.cluster = &view->cluster();
  if (status.ok()) status = DecodeGroups(request, view->cluster(), &problem);
  if (status.ok()) status = DecodePools(request, view->cluster(), &problem);
  if (!status.ok()) return status;
  return problem;
}

absl::StatusOr<DecodedDrainState> DecodeDrainState(const v1::DrainState& message, const ReadOptions& read,
                                                   View* view) {
  if (absl::Status status = CheckTimes(message); !status.ok()) return status;
  DecodedDrainState decoded;
  DrainState& state = decoded.state;
  for (const v1::UnneededNode& node : message.unneeded()) {
    state.unneeded.push_back(
        {node.node(), node.uid(), node.since_s(), DecodeHints(node.hints()), node.risky(), node.start()});
  }
  for (const v1::DeletingNode& node : message.deleting()) {
    state.deleting.push_back({node.node(), node.uid(), node.since_s(), node.drain(),
                              DecodeHints(node.hints()), node.risky(), node.left_out()});
  }
  for (const v1::FailedNode& node : message.failed()) {
    state.failed.push_back({node.node(), node.uid(),
                            NodeReasonNamed(node.reason()).value_or(NodeReason::kNone), node.pod(),
                            node.since_s()});
  }
  for (int i = 0; i < message.recent_evictions_size(); ++i) {
    AddEviction(message.recent_evictions(i), absl::StrCat("recent_evictions[", i, "]"), read, view, &decoded);
  }
  state.resume_at = message.resume_at();
  if (message.has_at_s()) state.at_s = message.at_s();
  if (message.has_nodes()) state.nodes = message.nodes();
  for (const v1::OwnerPods& pods : message.pods()) {
    OwnerPods& count = state.pods.emplace_back();
    count.owner = pods.owner();
    if (pods.kind() != v1::OBJECT_KIND_UNSPECIFIED) count.kind = *DecodeObjectKind(pods.kind());
    count.pods = pods.pods();
    count.finished = pods.finished();
  }
  return decoded;
}

v1::DrainState EncodeDrainState(const DrainState& state, const std::vector<v1::EvictedPod>& evicted) {
  v1::DrainState message;
  for (const UnneededNode& node : state.unneeded) {
    v1::UnneededNode* const entry = message.add_unneeded();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_since_s(node.since_s);
    entry->set_risky(node.risky);
    entry->set_start(node.start);
    EncodeHints(node.hints, entry);
  }
  for (const DeletingNode& node : state.deleting) {
    v1::DeletingNode* const entry = message.add_deleting();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_since_s(node.since_s);
    entry->set_drain(node.drain);
    entry->set_risky(node.risky);
    entry->set_left_out(node.left_out);
    EncodeHints(node.hints, entry);
  }
  for (const FailedNode& node : state.failed) {
    v1::FailedNode* const entry = message.add_failed();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_reason(Text(Name(node.reason)));
    entry->set_pod(node.pod);
    entry->set_since_s(node.since_s);
  }
  message.mutable_recent_evictions()->Add(evicted.begin(), evicted.end());
  message.set_resume_at(state.resume_at);
  if (state.at_s >= 0) message.set_at_s(state.at_s);
  if (state.nodes >= 0) message.set_nodes(state.nodes);
  for (const OwnerPods& count : state.pods) {
    v1::OwnerPods* const pods = message.add_pods();
    pods->set_owner(count.owner);
    if (count.kind.has_value()) pods->set_kind(EncodeObjectKind(*count.kind));
    pods->set_pods(count.pods);
    pods->set_finished(count.finished);
  }
  return message;
}

bool TellsMore(const v1::DrainProgress& message, const ClusterState& cluster, const DrainState& state) {
  const auto is_deleting = [&](const std::string& name) {
    return absl::c_any_of(state.deleting, [&](const DeletingNode& node) { return node.node == name; });
  };
  return message.evicted_size() > 0 || absl::c_any_of(message.failed(), is_deleting) ||
         absl::c_any_of(message.started(), [&](const std::string& name) {
           return cluster.Find(name).has_value() && !is_deleting(name);
         });
}

absl::Status ApplyDrainProgress(const v1::DrainProgress& message, int64_t now_s, const ReadOptions& read,
                                View* view, DecodedDrainState* state) {
  if (absl::Status status = CheckSize("evicted", message.evicted_size(), kMaxEvictedPods); !status.ok()) {
    return status;
  }
  for (const std::string& name : message.started()) Start(name, now_s, view->cluster(), &state->state);
  for (const std::string& name : message.failed()) {
    std::erase_if(state->state.deleting, [&](const DeletingNode& node) { return node.node == name; });
  }
  const size_t known = state->evicted.size();
  for (int i = 0; i < message.evicted_size(); ++i) {
    const std::string field = absl::StrCat("evicted[", i, "]");
    if (message.evicted(i).at_s() < 0 || message.evicted(i).at_s() > kMaxTime) {
      return Refused(absl::StrCat(field, ": at_s: ", message.evicted(i).at_s(), " is out of range"));
    }
    AddEviction(message.evicted(i), field, read, view, state);
  }
  RemoveRepeats(known, state);
  return absl::OkStatus();
}

void ReadEvictionsAgain(const ReadOptions& read, View* view, DecodedDrainState* state) {
  DecodedDrainState again;
  for (const v1::EvictedPod& evicted : state->evicted) {
    AddEviction(evicted, "recent_evictions", read, view, &again);
  }
  state->state.recent_evictions = std::move(again.state.recent_evictions);
  state->evicted = std::move(again.evicted);
}

void ForgetEvictions(int64_t now_s, int64_t kept_s, std::vector<v1::EvictedPod>* evicted) {
  // The clock may have been set back since: an eviction of the future would be kept until then.
  for (v1::EvictedPod& pod : *evicted) pod.set_at_s(std::min(pod.at_s(), now_s));
  std::erase_if(*evicted, [&](const v1::EvictedPod& pod) { return now_s - pod.at_s() >= kept_s; });
}

v1::PlanDrainResponse EncodeDrainPlan(const DrainPlan& plan, const DrainProblem& problem, bool compact) {
  const Encoder encoder(problem, compact);
  v1::PlanDrainResponse response;
  for (const DrainRemoval& removal : plan.remove) encoder.Encode(removal, response.add_remove());
  for (const DrainKeep& keep : plan.keep) encoder.Encode(keep, response.add_keep());
  encoder.EncodeBudgets(plan, &response);
  response.set_brake(NameUnlessNone(plan.brake));
  response.set_brake_text(plan.brake_text);
  response.set_status(Text(Name(plan.status)));
  response.set_limit(NameUnlessNone(plan.limit));
  response.set_evaluated(plan.evaluated);
  response.set_skipped(plan.skipped);
  response.set_usd_per_hour_saved(plan.price_saved);
  response.set_cut_short_by(Text(Name(plan.cut_short_by)));
  return response;
}

}  // namespace loadline

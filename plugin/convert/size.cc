#include "plugin/convert/size.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/cluster/pod_role.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/node.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr int32_t kMaxThresholdPercent = 1'000'000;

absl::StatusOr<SizeMode> DecodeMode(v1::SizeOptions::Mode mode) {
  switch (mode) {
    case v1::SizeOptions::MODE_UNSPECIFIED:
    case v1::SizeOptions::DEFAULT:
      return SizeMode::kDefault;
    case v1::SizeOptions::COMPAT:
      return SizeMode::kCompat;
    default:
      return Refused(absl::StrCat("mode: ", static_cast<int>(mode), " is not known"));
  }
}

absl::Status CheckOptions(const v1::SizeOptions& options) {
  Fields fields;
  fields.Range("min_nodes", options.min_nodes(), 0, kMaxAmount);
  fields.AtMost("min_nodes", options.min_nodes(), "max_nodes", options.max_nodes());
  fields.Range("cloud_min", options.cloud_min(), 0, kMaxAmount);
  fields.Range("cloud_max", options.cloud_max(), 0, kMaxAmount);
  fields.Range("taint_lower_percent", options.taint_lower_percent(), 1, kMaxThresholdPercent);
  fields.Less("taint_lower_percent", options.taint_lower_percent(), "taint_upper_percent",
              options.taint_upper_percent());
  fields.Less("taint_upper_percent", options.taint_upper_percent(), "scale_up_percent",
              options.scale_up_percent());
  fields.Range("scale_up_percent", options.scale_up_percent(), 1, kMaxThresholdPercent);
  fields.Range("slow_rate", options.slow_rate(), 0, kMaxAmount);
  fields.AtMost("slow_rate", options.slow_rate(), "fast_rate", options.fast_rate());
  fields.Range("soft_grace_milliseconds", options.soft_grace_milliseconds(), 1, kMaxAmount);
  fields.Less("soft_grace_milliseconds", options.soft_grace_milliseconds(), "hard_grace_milliseconds",
              options.hard_grace_milliseconds());
  fields.Range("hard_grace_milliseconds", options.hard_grace_milliseconds(), 1, kMaxAmount);
  fields.Range("cool_down_milliseconds", options.cool_down_milliseconds(), 1, kMaxAmount);
  fields.Range("max_node_age_milliseconds", options.max_node_age_milliseconds(), 0, kMaxAmount);
  fields.Range("unhealthy_grace_milliseconds", options.unhealthy_grace_milliseconds(), 0, kMaxAmount);
  if (options.unhealthy_grace_milliseconds() > 0) {
    fields.Range("newest_percent", options.newest_percent(), 1, 100);
    fields.Range("max_unhealthy_percent", options.max_unhealthy_percent(), 0, 99);
  }
  return fields.status();
}

absl::StatusOr<SizeOptions> DecodeOptions(const v1::SizeOptions& message) {
  const absl::StatusOr<SizeMode> mode = DecodeMode(message.mode());
  if (!mode.ok()) return mode.status();
  if (absl::Status status = CheckOptions(message); !status.ok()) return status;
  SizeOptions options;
  options.mode = *mode;
  options.min_nodes = message.min_nodes();
  options.max_nodes = message.max_nodes();
  options.cloud_min = message.has_cloud_min() ? message.cloud_min() : message.min_nodes();
  options.cloud_max = message.has_cloud_max() ? message.cloud_max() : message.max_nodes();
  options.scale_up_percent = message.scale_up_percent();
  options.taint_upper_percent = message.taint_upper_percent();
  options.taint_lower_percent = message.taint_lower_percent();
  options.slow_rate = message.slow_rate();
  options.fast_rate = message.fast_rate();
  options.grace = {message.soft_grace_milliseconds(), message.hard_grace_milliseconds()};
  options.cool_down_ms = message.cool_down_milliseconds();
  options.scale_on_starve = message.scale_on_starve();
  options.max_node_age_ms = message.max_node_age_milliseconds();
  options.health = {message.unhealthy_grace_milliseconds(), message.newest_percent(),
                    message.max_unhealthy_percent()};
  options.subtract_daemons = !message.ignore_daemon_sets();
  return options;
}

absl::StatusOr<Labels> DecodeLabels(const v1::SizedGroup& message) {
  if (message.labels().empty()) return Refused("labels: has none, so that no node is of the group");
  std::vector<Label> labels;
  std::set<std::string> keys;
  for (const v1::GroupLabel& label : message.labels()) {
    if (label.key().empty()) return Refused("labels: a key is empty");
    if (label.key() == kHostnameLabel)
      return Refused(absl::StrCat("labels: ", kHostnameLabel, " is of one node"));
    if (!keys.insert(label.key()).second) {
      return Refused(absl::StrCat("labels: key ", Quoted(label.key()), " occurs twice"));
    }
    labels.push_back({label.key(), label.value()});
  }
  return Labels(std::move(labels));
}

absl::StatusOr<SizedGroup> DecodeGroup(const v1::SizedGroup& message, ResourceReader* resources) {
  absl::Status status = CheckGroupId(message.node_group());
  if (!status.ok()) return Annotate(status, "node_group");
  SizedGroup group;
  group.name = message.node_group();
  absl::StatusOr<Labels> labels = DecodeLabels(message);
  if (!labels.ok()) return labels.status();
  group.pods = {*std::move(labels), message.catch_all()};
  if (!message.has_options()) return Refused("options: missing");
  absl::StatusOr<SizeOptions> options = DecodeOptions(message.options());
  if (!options.ok()) return Annotate(options.status(), "options");
  group.options = *options;
  if (message.has_cloud_target()) {
    status = CheckNotNegative("cloud_target", message.cloud_target());
    if (!status.ok()) return status;
    group.cloud_target = message.cloud_target();
  }
  if (message.template_node().empty()) return group;
  absl::StatusOr<DecodedNode> node = NodeDecoder(resources).Decode(message.template_node());
  if (!node.ok()) return Annotate(node.status(), "template_node", " ");
  group.new_node = std::move(node->shape);
  return group;
}

absl::Status DecodeGroups(const v1::MeasureUtilizationRequest& request, absl::string_view field,
                          ResourceReader* resources, DecodedSizing* decoded) {
  std::set<std::string> names;
  std::map<std::pair<std::vector<Label>, bool>, int> by_labels;
  for (int i = 0; i < request.groups_size(); ++i) {
    const std::string at = absl::StrCat(field, "[", i, "]");
    absl::StatusOr<SizedGroup> group = DecodeGroup(request.groups(i), resources);
    if (!group.ok()) return Annotate(group.status(), at);
    if (!names.insert(group->name).second) {
      return Refused(absl::StrCat(at, ": node_group ", Quoted(group->name), " is named twice"));
    }
    const Labels& labels = group->pods.labels;
    const auto [same, fresh] =
        by_labels.try_emplace({{labels.begin(), labels.end()}, group->pods.catch_all}, i);
    if (!fresh) {
      return Refused(absl::StrCat(at, ": labels: are those of node group ",
                                  Quoted(request.groups(same->second).node_group())));
    }
    decoded->groups.push_back(*std::move(group));
  }
  return absl::OkStatus();
}

absl::StatusOr<Waiting> DecodeWaiting(v1::WaitingPods::For waits_for) {
  switch (waits_for) {
    case v1::WaitingPods::FOR_UNSPECIFIED:
    case v1::WaitingPods::NODE:
      return Waiting::kForNode;
    case v1::WaitingPods::GATE:
      return Waiting::kForGate;
    case v1::WaitingPods::START:
      return Waiting::kToStart;
    default:
      return Refused(absl::StrCat("waits_for: ", static_cast<int>(waits_for), " is not known"));
  }
}

absl::Status DecodePods(const v1::MeasureUtilizationRequest& request, absl::string_view field,
                        const LabelKeys& keys, ResourceReader* resources, DecodedSizing* decoded) {
  PodDecoder decoder(resources);
  for (int i = 0; i < request.pods_size(); ++i) {
    const v1::WaitingPods& message = request.pods(i);
    const std::string at = absl::StrCat(field, "[", i, "]");
    const absl::StatusOr<Waiting> waiting = DecodeWaiting(message.waits_for());
    if (!waiting.ok()) return Annotate(waiting.status(), at);
    if (absl::Status status = CheckNotNegative("count", message.count()); !status.ok()) {
      return Annotate(status, at);
    }
    absl::StatusOr<PodShape> shape = decoder.Decode(message.pod(), PodRole::kIncoming);
    if (!shape.ok()) {
      decoded->left_out.Add("Pod", decoder.message().metadata().namespace_(),
                            decoder.name().empty() ? at : decoder.name(), shape.status().message());
      continue;
    }
    SelectLabels(decoder.labels(), keys, &*shape);
    decoded->waiting.push_back({*std::move(shape), message.count(), *waiting});
  }
  return absl::OkStatus();
}

absl::Status DecodeDaemons(const v1::MeasureUtilizationRequest& request, ResourceReader* resources,
                           DecodedSizing* decoded) {
  PodDecoder decoder(resources);
  for (int i = 0; i < request.daemon_pods_size(); ++i) {
    absl::StatusOr<PodShape> shape = decoder.Decode(request.daemon_pods(i), PodRole::kIncoming);
    if (!shape.ok()) return Annotate(shape.status(), absl::StrCat("daemon_pods[", i, "]"), " ");
    if (!IsExpendable(TraitsOf(*shape))) decoded->daemons.emplace_back().shape = *std::move(shape);
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupState> DecodeState(const v1::GroupSizeState& message) {
  Fields fields;
  fields.Range("cached_node.milli_cpu", message.cached_node().milli_cpu(), 0, kMaxAmount);
  fields.Range("cached_node.memory_bytes", message.cached_node().memory_bytes(), 0, kMaxAmount);
  fields.Range("locked_milliseconds", message.locked_milliseconds(), 0, kMaxAmount);
  fields.Range("requested", message.requested(), 0, kMostNodes);
  fields.Range("expected", message.expected(), 0, kMostNodes);
  fields.Range("asked_milliseconds", message.asked_milliseconds(), 0, kMaxAmount);
  fields.Range("asked_target", message.asked_target(), 0, kMostNodes);
  if (!fields.status().ok()) return fields.status();
  GroupState state;
  if (message.has_cached_node()) {
    state.cached_node = {message.cached_node().milli_cpu(), message.cached_node().memory_bytes()};
  }
  if (message.has_locked_milliseconds()) state.locked_ms = message.locked_milliseconds();
  state.requested = message.requested();
  if (message.has_expected()) state.expected = message.expected();
  if (message.has_asked_milliseconds()) {
    state.asked = {message.asked_milliseconds(), message.asked_target()};
  }
  return state;
}

absl::Status DecodeStates(const v1::SizeState& message, DecodedSizing* decoded) {
  if (absl::Status status = CheckSize("groups", message.groups_size(), kMaxSizedGroups); !status.ok()) {
    return status;
  }
  std::map<std::string, GroupState> by_name;
  for (int i = 0; i < message.groups_size(); ++i) {
    const std::string at = absl::StrCat("groups[", i, "]");
    const absl::StatusOr<GroupState> state = DecodeState(message.groups(i));
    if (!state.ok()) return Annotate(state.status(), at);
    if (!by_name.emplace(message.groups(i).node_group(), *state).second) {
      return Refused(
          absl::StrCat(at, ": node_group ", Quoted(message.groups(i).node_group()), " is named twice"));
    }
  }
  for (const SizedGroup& group : decoded->groups) decoded->states.push_back(by_name[group.name]);
  return absl::OkStatus();
}

v1::GroupSize::Action EncodeAction(SizeAction action) {
  switch (action) {
    case SizeAction::kNothing:
      return v1::GroupSize::NOTHING;
    case SizeAction::kScaleUp:
      return v1::GroupSize::SCALE_UP;
    case SizeAction::kRemoveSlowly:
      return v1::GroupSize::REMOVE_SLOWLY;
    case SizeAction::kRemoveFast:
      return v1::GroupSize::REMOVE_FAST;
  }
  return v1::GroupSize::ACTION_UNSPECIFIED;
}

// The message names the reasons in the order of the core, behind one that is not set.
constexpr v1::GroupSize::Reason EncodeReason(SizeReason reason) {
  return static_cast<v1::GroupSize::Reason>(static_cast<int>(reason) + 1);
}
static_assert(EncodeReason(SizeReason::kWithinThresholds) == v1::GroupSize::WITHIN_THRESHOLDS);
static_assert(EncodeReason(SizeReason::kBelowMinimum) == v1::GroupSize::BELOW_MINIMUM);
static_assert(EncodeReason(SizeReason::kAtMaximum) == v1::GroupSize::AT_MAXIMUM);
static_assert(EncodeReason(SizeReason::kLocked) == v1::GroupSize::LOCKED);
static_assert(EncodeReason(SizeReason::kNoCapacity) == v1::GroupSize::NO_CAPACITY);
static_assert(EncodeReason(SizeReason::kNodeTooSmall) == v1::GroupSize::NODE_TOO_SMALL);

v1::Utilization EncodeUsage(const Usage& usage) {
  v1::Utilization message;
  switch (usage.kind) {
    case UsageKind::kPercent:
      message.set_kind(v1::Utilization::PERCENT);
      break;
    case UsageKind::kFromZero:
      message.set_kind(v1::Utilization::FROM_ZERO);
      break;
    case UsageKind::kNoCapacity:
      message.set_kind(v1::Utilization::NO_CAPACITY);
      break;
  }
  message.set_cpu_percent(usage.cpu);
  message.set_memory_percent(usage.memory);
  return message;
}

void EncodeWarnings(const std::vector<SizedGroup>& groups, const GatheredGroup& gathered,
                    const SizeDecision& decision, v1::GroupSize* message) {
  const auto warn = [&](v1::SizeWarning::Kind kind, int64_t count = 0) {
    v1::SizeWarning* const warning = message->add_warnings();
    warning->set_kind(kind);
    warning->set_count(count);
    return warning;
  };
  if (gathered.facts.nodes.empty()) warn(v1::SizeWarning::NO_NODES);
  if (decision.mixed_nodes) warn(v1::SizeWarning::MIXED_NODES);
  if (decision.daemons_crowd) warn(v1::SizeWarning::DAEMON_SHARE);
  if (gathered.pods_without_requests > 0) {
    warn(v1::SizeWarning::PODS_WITHOUT_REQUESTS, gathered.pods_without_requests);
  }
  if (gathered.shared_nodes > 0) {
    warn(v1::SizeWarning::SHARED_NODES, gathered.shared_nodes)
        ->set_node_group(groups[static_cast<size_t>(gathered.shares_with)].name);
  }
  if (gathered.uncounted_pods > 0) warn(v1::SizeWarning::UNCOUNTED_PODS, gathered.uncounted_pods);
  if (gathered.pods_too_large > 0) {
    warn(v1::SizeWarning::PODS_TOO_LARGE, gathered.pods_too_large)->set_first_pod(gathered.too_large);
  }
  if (gathered.starving_unknown) warn(v1::SizeWarning::STARVING_UNKNOWN);
}

}  // namespace

absl::StatusOr<DecodedSizing> DecodeSizing(const v1::MeasureUtilizationRequest& request,
                                           const v1::SizeState& kept, ResourceNames names,
                                           const LabelKeys& keys, const std::string& slack_namespace,
                                           const SizingFields& fields) {
  absl::Status status = CheckRange("now_milliseconds", request.now_milliseconds(), 1, kMaxAmount);
  if (status.ok()) status = CheckSize(fields.groups, request.groups_size(), kMaxSizedGroups);
  if (status.ok()) status = CheckSize(fields.pods, request.pods_size(), kMaxWaitingPods);
  if (status.ok()) status = CheckSize("daemon_pods", request.daemon_pods_size(), kMaxSizeDaemons);
  if (!status.ok()) return status;
  DecodedSizing decoded;
  decoded.now_ms = request.now_milliseconds();
  ResourceReader resources(&names, OptionsOfQuestion(names, slack_namespace));
  status = DecodeGroups(request, fields.groups, &resources, &decoded);
  if (status.ok()) status = DecodePods(request, fields.pods, keys, &resources, &decoded);
  if (status.ok()) status = DecodeDaemons(request, &resources, &decoded);
  if (!status.ok()) return status;
  status = DecodeStates(request.has_state() ? request.state() : kept, &decoded);
  if (!status.ok()) return Annotate(status, fields.state);
  decoded.clamped_amounts = resources.clamped_amounts();
  decoded.names = resources.names();
  for (IncomingPod& daemon : decoded.daemons) daemon.names = decoded.names;
  for (size_t i = 0; i < decoded.groups.size(); ++i) {
    decoded.groups[i].cached_node = decoded.states[i].cached_node;
  }
  return decoded;
}

v1::GroupSize EncodeSize(const std::vector<SizedGroup>& groups, size_t group, const GatheredGroup& gathered,
                         const SizeDecision& decision) {
  v1::GroupSize message;
  message.set_node_group(groups[group].name);
  message.set_action(EncodeAction(decision.action));
  message.set_reason(EncodeReason(decision.reason));
  const absl::string_view reason = Name(decision.reason);
  message.set_reason_text(reason.data(), reason.size());
  message.set_delta(decision.delta);
  message.set_wanted_delta(decision.wanted);
  message.set_ask_cloud(decision.ask_cloud);
  *message.mutable_utilization() = EncodeUsage(decision.usage);
  if (decision.usage_after.has_value()) {
    *message.mutable_utilization_after() = EncodeUsage(*decision.usage_after);
  }
  message.set_requested_milli_cpu(decision.requests.cpu);
  message.set_requested_memory_bytes(decision.requests.memory);
  message.set_capacity_milli_cpu(decision.capacity.cpu);
  message.set_capacity_memory_bytes(decision.capacity.memory);
  message.set_pods(gathered.facts.pods);
  message.set_pending_pods(gathered.facts.pending_pods);
  const auto count = [&](NodeClass node_class) {
    return std::count_if(gathered.facts.nodes.begin(), gathered.facts.nodes.end(),
                         [&](const GroupNode& node) { return node.node_class == node_class; });
  };
  message.set_untainted_nodes(count(NodeClass::kUntainted));
  message.set_tainted_nodes(count(NodeClass::kTainted));
  message.set_force_tainted_nodes(count(NodeClass::kForceTainted));
  message.set_cordoned_nodes(count(NodeClass::kCordoned));
  const auto encode = [&](const std::vector<size_t>& nodes,
                          google::protobuf::RepeatedPtrField<v1::SizedNode>* list) {
    for (const size_t i : nodes) {
      v1::SizedNode* const node = list->Add();
      node->set_slot(static_cast<int32_t>(gathered.slots[i]));
      node->set_node(gathered.facts.nodes[i].name);
    }
  };
  encode(decision.taint_unhealthy, message.mutable_taint_unhealthy());
  encode(decision.untaint, message.mutable_untaint());
  encode(decision.taint, message.mutable_taint());
  encode(decision.remove, message.mutable_remove());
  EncodeWarnings(groups, gathered, decision, &message);
  return message;
}

v1::GroupSizeState EncodeState(const std::string& group_name, const GroupState& state) {
  v1::GroupSizeState message;
  message.set_node_group(group_name);
  if (state.cached_node.has_value()) {
    message.mutable_cached_node()->set_milli_cpu(state.cached_node->cpu);
    message.mutable_cached_node()->set_memory_bytes(state.cached_node->memory);
  }
  if (state.locked_ms.has_value()) message.set_locked_milliseconds(*state.locked_ms);
  message.set_requested(state.requested);
  if (state.expected.has_value()) message.set_expected(std::min(*state.expected, kMostNodes));
  if (state.asked.has_value()) {
    message.set_asked_milliseconds(state.asked->ms);
    message.set_asked_target(std::min(state.asked->target, kMostNodes));
  }
  return message;
}

}  // namespace loadline

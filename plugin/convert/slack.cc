#include "plugin/convert/slack.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr double kMostRate = 1000;
constexpr size_t kMaxOwnerLength = 4096;
constexpr int kMaxSlackRules = 1'000;
constexpr int kMaxToldClasses = 1'000;
constexpr size_t kMaxReasonBytes = 1024;

// A share in billionths, rounded to the nearest; `value` is in [0, kMostRate].
int64_t Billionths(double value) { return std::llround(value * static_cast<double>(kWholeRate)); }

absl::Status DecodeRates(const v1::SlackPolicy& message, SlackOptions* options) {
  if (message.has_extra_capacity_min_rate()) {
    const double rate = message.extra_capacity_min_rate();
    if (absl::Status status = CheckNumber("extra_capacity_min_rate", rate, 0, kMostRate); !status.ok()) {
      return status;
    }
    options->rate = Billionths(rate);
  }
  if (message.has_size_tolerance()) {
    const double share = message.size_tolerance();
    if (absl::Status status = CheckNumber("size_tolerance", share, 0, kMostRate); !status.ok()) return status;
    options->size_tolerance = Billionths(share);
  }
  return absl::OkStatus();
}

absl::Status DecodeChoices(const v1::SlackPolicy& message, SlackOptions* options) {
  switch (message.basis()) {
    case v1::SlackPolicy::BASIS_UNSPECIFIED:
    case v1::SlackPolicy::REQUESTED:
      break;
    case v1::SlackPolicy::CAPACITY:
      options->basis = SlackBasis::kCapacity;
      break;
    default:
      return Refused(absl::StrCat("basis: ", static_cast<int>(message.basis()), " is not known"));
  }
  switch (message.reserve()) {
    case v1::SlackPolicy::RESERVE_UNSPECIFIED:
    case v1::SlackPolicy::NONE:
      return absl::OkStatus();
    case v1::SlackPolicy::BIGGEST:
      options->reserve = ReserveMode::kBiggest;
      return absl::OkStatus();
    case v1::SlackPolicy::HULL:
      options->reserve = ReserveMode::kHull;
      return absl::OkStatus();
    case v1::SlackPolicy::PARETO:
      options->reserve = ReserveMode::kPareto;
      return absl::OkStatus();
    default:
      return Refused(absl::StrCat("reserve: ", static_cast<int>(message.reserve()), " is not known"));
  }
}

// Unset amounts set no limit.
template <typename Message>
std::optional<CpuMemory> MaxExtraOf(const Message& message) {
  if (!message.has_max_extra_milli_cpu() && !message.has_max_extra_memory_bytes()) return std::nullopt;
  return CpuMemory{message.has_max_extra_milli_cpu() ? message.max_extra_milli_cpu() : kMaxAmount,
                   message.has_max_extra_memory_bytes() ? message.max_extra_memory_bytes() : kMaxAmount};
}

absl::Status DecodeLimits(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckRange("granularity", message.granularity(), 0, 1000);
  if (status.ok()) status = CheckRange("max_placeholders", message.max_placeholders(), 0, 100'000);
  if (!status.ok()) return status;
  if (message.granularity() > 0) options->granularity = message.granularity();
  if (message.max_placeholders() > 0) options->max_placeholders = message.max_placeholders();
  options->max_extra = MaxExtraOf(message);
  status = CheckRange("max_copies", message.max_copies(), 0, 100'000);
  if (status.ok()) {
    status = CheckRange("max_copies_per_namespace", message.max_copies_per_namespace(), 0, 100'000);
  }
  if (!status.ok()) return status;
  if (message.max_copies() > 0) options->max_copies = message.max_copies();
  if (message.max_copies_per_namespace() > 0) {
    options->max_copies_per_namespace = message.max_copies_per_namespace();
  }
  CpuMemory& room = options->max_copies_room_per_namespace;
  if (message.has_max_copies_milli_cpu_per_namespace()) {
    room.cpu = message.max_copies_milli_cpu_per_namespace();
  }
  if (message.has_max_copies_memory_bytes_per_namespace()) {
    room.memory = message.max_copies_memory_bytes_per_namespace();
  }
  if (message.has_removal_delay_seconds()) options->removal_delay_s = message.removal_delay_seconds();
  if (message.has_bound_by_pods()) options->bound_by_pods = message.bound_by_pods();
  return absl::OkStatus();
}

absl::Status DecodeClassRules(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckSize("class_rules", message.class_rules_size(), kMaxSlackRules);
  for (int i = 0; status.ok() && i < message.class_rules_size(); ++i) {
    const v1::SlackClassRule& rule = message.class_rules(i);
    SlackClassRule& added = options->class_rules.emplace_back();
    added.class_name = rule.class_name();
    added.off = rule.off();
    added.max_extra = MaxExtraOf(rule);
    std::vector<Label> labels;
    for (const v1::ClassSlack::NodeLabel& label : rule.labels()) {
      if (!IsLabelKey(label.key())) {
        status = Refused(
            absl::StrCat("class_rules[", i, "]: labels: ", Quoted(label.key()), " is not a label key"));
      }
      labels.push_back({label.key(), label.value()});
    }
    added.labels = Labels(std::move(labels));
  }
  return status;
}

absl::Status DecodeGroupRules(const v1::SlackPolicy& message, SlackOptions* options) {
  absl::Status status = CheckSize("group_rules", message.group_rules_size(), kMaxSlackRules);
  absl::flat_hash_set<std::string> groups;
  for (int i = 0; status.ok() && i < message.group_rules_size(); ++i) {
    const v1::SlackGroupRule& rule = message.group_rules(i);
    const auto refuse = [&](absl::string_view why) {
      status = Refused(absl::StrCat("group_rules[", i, "]: node_group: ", why));
    };
    if (rule.node_group().empty()) refuse("is empty");
    if (!groups.insert(rule.node_group()).second) refuse("is named twice");
    SlackGroupRule& added = options->group_rules.emplace_back();
    added.group = rule.node_group();
    added.off = rule.off();
    if (rule.has_max_nodes()) added.max_nodes = rule.max_nodes();
  }
  return status;
}

absl::StatusOr<LabelKeys> DecodeLabelKeys(const google::protobuf::RepeatedPtrField<std::string>& message) {
  LabelKeys keys(message.begin(), message.end());
  for (const std::string& key : keys) {
    if (!IsLabelKey(key)) return Refused(absl::StrCat("class_labels: ", Quoted(key), " is not a label key"));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// A text, or in its place a position in the names of the state.
absl::Status Resolve(absl::string_view field, int64_t position, const v1::SlackState& state,
                     std::string* text) {
  if (position == 0) return absl::OkStatus();
  if (absl::Status status = CheckRange(field, position, 1, state.names_size()); !status.ok()) return status;
  *text = state.names(static_cast<int>(position - 1));
  return absl::OkStatus();
}

absl::StatusOr<Placeholder> DecodePlaceholder(v1::Placeholder message, const v1::SlackState& state) {
  Placeholder placeholder;
  absl::Status status = CheckRange("id", message.id(), 1, state.next_id() - 1);
  if (status.ok()) status = Resolve("owner_name", message.owner_name(), state, message.mutable_owner());
  if (status.ok()) status = Resolve("node_name", message.node_name(), state, message.mutable_node());
  if (status.ok()) {
    status = Resolve("last_node_name", message.last_node_name(), state, message.mutable_last_node());
  }
  if (status.ok()) status = CheckRange("milli_cpu", message.milli_cpu(), 0, kMaxAmount);
  if (status.ok()) status = CheckRange("memory_bytes", message.memory_bytes(), 0, kMaxAmount);
  if (status.ok()) status = Annotate(CheckName(message.node()), "node");
  if (status.ok()) status = Annotate(CheckName(message.last_node()), "last_node");
  if (status.ok() && (message.owner().empty() || message.owner().size() > kMaxOwnerLength)) {
    status =
        Refused(absl::StrCat("owner: has ", message.owner().size(), " bytes, not 1 to ", kMaxOwnerLength));
  }
  if (!status.ok()) return status;
  switch (message.kind()) {
    case v1::Placeholder::STANDARD:
      break;
    case v1::Placeholder::RESERVED:
      placeholder.kind = PlaceholderKind::kReserved;
      break;
    case v1::Placeholder::MIRRORED:
      placeholder.kind = PlaceholderKind::kMirrored;
      break;
    default:
      return Refused(absl::StrCat("kind: ", static_cast<int>(message.kind()), " is not known"));
  }
  placeholder.id = message.id();
  placeholder.owner = message.owner();
  placeholder.size = {message.milli_cpu(), message.memory_bytes()};
  placeholder.node = message.node();
  placeholder.last_node = message.last_node().empty() ? message.node() : message.last_node();
  return placeholder;
}

v1::Placeholder::Kind EncodeKind(PlaceholderKind kind) {
  switch (kind) {
    case PlaceholderKind::kStandard:
      return v1::Placeholder::STANDARD;
    case PlaceholderKind::kReserved:
      return v1::Placeholder::RESERVED;
    case PlaceholderKind::kMirrored:
      return v1::Placeholder::MIRRORED;
  }
  return v1::Placeholder::KIND_UNSPECIFIED;
}

v1::SlackStatus EncodeStatus(SlackStatus status) {
  switch (status) {
    case SlackStatus::kReady:
      return v1::SLACK_READY;
    case SlackStatus::kMissing:
      return v1::SLACK_MISSING;
    case SlackStatus::kLimited:
      return v1::SLACK_LIMITED;
    case SlackStatus::kUnplaceable:
      return v1::SLACK_UNPLACEABLE;
  }
  return v1::SLACK_STATUS_UNSPECIFIED;
}

void Encode(const CpuMemory& amounts, v1::CpuAndMemory* message) {
  message->set_milli_cpu(amounts.cpu);
  message->set_memory_bytes(amounts.memory);
}

void EncodeClass(const ClassSlack& slack, v1::ClassSlack* message) {
  message->set_name(Printable(slack.key.name, kMaxOwnerLength));
  for (const Label& label : slack.key.labels) {
    auto* const added = message->add_labels();
    added->set_key(Printable(label.key));
    added->set_value(Printable(label.value));
  }
  for (const Label& label : slack.rules.node_selector) {
    auto* const added = message->add_needed_labels();
    added->set_key(label.key);
    added->set_value(label.value);
  }
  if (slack.rules.node_affinity.has_value()) {
    for (const NodeSelectorTerm& term : slack.rules.node_affinity->terms) {
      for (const Requirement& absent : term.labels) message->add_absent_labels(absent.key);
    }
  }
  for (const Taint& taint : slack.key.taints) {
    auto* const added = message->add_taints();
    added->set_key(Printable(taint.key));
    added->set_value(Printable(taint.value));
    added->set_effect(Printable(taint.effect));
  }
  message->set_nodes(slack.nodes);
  Encode(slack.empty.room, message->mutable_empty_node());
  message->set_empty_node_pods(slack.empty.slots);
  Encode(slack.basis, message->mutable_basis());
  Encode(slack.extra, message->mutable_extra());
  Encode(slack.reserved, message->mutable_reserved());
  Encode(slack.unit, message->mutable_unit());
  Encode(slack.sum, message->mutable_sum());
  Encode(slack.ready, message->mutable_ready());
  message->set_count(slack.count);
  message->set_placed(slack.placed);
  message->set_status(EncodeStatus(slack.status));
  message->set_reason(Printable(slack.reason, kMaxReasonBytes));
}

void EncodeMirrored(const MirroredSlack& mirrored, v1::MirroredSlack* message) {
  message->set_key(Printable(mirrored.pod.key, kMaxOwnerLength));
  for (const std::string& source : mirrored.pod.sources)
    message->add_sources(Printable(source, kMaxReasonBytes));
  message->set_wanted(mirrored.pod.copies);
  message->set_count(mirrored.count);
  message->set_placed(mirrored.placed);
  message->set_status(EncodeStatus(mirrored.status));
  message->set_reason(Printable(mirrored.reason, kMaxReasonBytes));
}

void EncodeShape(const PlaceholderGroup& group, int64_t count, int64_t placed, v1::ShapeSlack* message) {
  message->set_owner(group.owner);
  message->set_kind(EncodeKind(group.kind));
  Encode(group.size, message->mutable_size());
  message->set_count(count);
  message->set_placed(placed);
}

void EncodeLiteral(const LiteralSlackPlan& literal, v1::LiteralSlack* message) {
  Encode(literal.capacity, message->mutable_capacity());
  message->set_nodes(literal.nodes);
  message->set_placeholders(literal.standard.count);
  message->set_milli_cpu(literal.standard.cpu);
  message->set_memory_bytes(literal.standard.memory);
  Encode(literal.most_cpu, message->mutable_most_cpu());
  Encode(literal.most_memory, message->mutable_most_memory());
  message->set_after_biggest_milli_cpu(literal.after_biggest.cpu);
  message->set_after_biggest_memory_bytes(literal.after_biggest.memory);
  message->set_after_hull_milli_cpu(literal.after_hull.cpu);
  message->set_after_hull_memory_bytes(literal.after_hull.memory);
}

}  // namespace

absl::StatusOr<SlackOptions> DecodeSlackPolicy(const v1::SlackPolicy& message) {
  SlackOptions options;
  absl::Status status = DecodeRates(message, &options);
  if (status.ok()) status = DecodeChoices(message, &options);
  if (status.ok()) status = DecodeLimits(message, &options);
  if (status.ok()) status = DecodeClassRules(message, &options);
  if (status.ok()) status = DecodeGroupRules(message, &options);
  if (status.ok()) status = CheckSize("common_resources", message.common_resources_size(), kMaxSlackRules);
  if (!status.ok()) return status;
  options.buy_extended_resources = message.buy_extended_resources();
  if (message.common_resources_size() > 0) {
    options.common_resources.assign(message.common_resources().begin(), message.common_resources().end());
  }
  if (message.class_labels_size() > 0) {
    absl::StatusOr<LabelKeys> keys = DecodeLabelKeys(message.class_labels());
    if (!keys.ok()) return keys.status();
    options.class_labels = *std::move(keys);
  }
  status = CheckSlackOptions(options);
  if (!status.ok()) return status;
  return options;
}

absl::StatusOr<SlackState> DecodeSlackState(const v1::SlackState& message) {
  SlackState state;
  if (absl::Status status = CheckRange("next_id", message.next_id(), 1, kMaxAmount); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckSize("placeholders", message.placeholders_size(), kMaxPlaceholders);
      !status.ok()) {
    return status;
  }
  state.next_id = message.next_id();
  for (int i = 0; i < message.placeholders_size(); ++i) {
    absl::StatusOr<Placeholder> placeholder = DecodePlaceholder(message.placeholders(i), message);
    if (placeholder.ok() && i > 0 && placeholder->id <= state.placeholders.back().id) {
      placeholder =
          Refused(absl::StrCat("id: ", placeholder->id, " does not follow ", state.placeholders.back().id));
    }
    if (!placeholder.ok()) return Annotate(placeholder.status(), absl::StrCat("placeholders[", i, "]"));
    state.placeholders.push_back(*std::move(placeholder));
  }
  state.class_labels.assign(message.class_labels().begin(), message.class_labels().end());
  if (absl::Status status = CheckSize("selected_labels", message.selected_labels_size(), kMostRemembered);
      !status.ok()) {
    return status;
  }
  state.selected_labels.assign(message.selected_labels().begin(), message.selected_labels().end());
  std::sort(state.selected_labels.begin(), state.selected_labels.end());
  for (const v1::SlackState::Excess& excess : message.excesses()) {
    state.excesses.push_back({excess.class_name(), excess.since_seconds()});
  }
  return state;
}

// Each name once: of thousands of placeholders there are a few owners, and some on each node.
v1::SlackState EncodeSlackState(const SlackState& state) {
  v1::SlackState message;
  absl::flat_hash_map<std::string, int32_t> positions;
  const auto position_of = [&](const std::string& name) {
    if (name.empty()) return 0;
    const auto [at, added] = positions.try_emplace(name, message.names_size() + 1);
    if (added) message.add_names(name);
    return at->second;
  };
  message.set_next_id(state.next_id);
  for (const Placeholder& placeholder : state.placeholders) {
    v1::Placeholder* const added = message.add_placeholders();
    added->set_id(placeholder.id);
    added->set_kind(EncodeKind(placeholder.kind));
    added->set_owner_name(position_of(placeholder.owner));
    added->set_milli_cpu(placeholder.size.cpu);
    added->set_memory_bytes(placeholder.size.memory);
    added->set_node_name(position_of(placeholder.node));
    if (placeholder.last_node != placeholder.node) {
      added->set_last_node_name(position_of(placeholder.last_node));
    }
  }
  for (const std::string& key : state.class_labels) message.add_class_labels(key);
  for (const std::string& key : state.selected_labels) message.add_selected_labels(key);
  for (const SlackState::Excess& excess : state.excesses) {
    auto* const added = message.add_excesses();
    added->set_class_name(excess.class_name);
    added->set_since_seconds(excess.since_s);
  }
  return message;
}

absl::StatusOr<DecodedSlack> DecodeSlack(const v1::PlanSlackRequest& request, const ResourceNames& names,
                                         const ReadOptions& options_of_pods) {
  DecodedSlack decoded;
  absl::StatusOr<SlackOptions> options = DecodeSlackPolicy(request.policy());
  if (!options.ok()) return Annotate(options.status(), "policy");
  decoded.options = *std::move(options);
  if (request.has_state()) {
    absl::StatusOr<SlackState> state = DecodeSlackState(request.state());
    if (!state.ok()) return Annotate(state.status(), "state");
    decoded.state = *std::move(state);
  }
  if (absl::Status status = CheckRange("now_seconds", request.now_seconds(), 0, kMaxAmount); !status.ok()) {
    return status;
  }
  v1::ScaleUpProblem problem;
  *problem.mutable_groups() = request.groups();
  *problem.mutable_daemon_pods() = request.daemon_pods();
  *problem.mutable_fit() = request.fit();
  absl::StatusOr<DecodedProblem> read =
      DecodeProblem(problem, request.pods(), PodGrouping::kShape, names, options_of_pods);
  if (!read.ok()) return read.status();
  decoded.problem = *std::move(read);
  decoded.groups_known = request.groups_known() || request.groups_size() > 0;
  return decoded;
}

std::vector<SlackGroup> SlackGroups(const DecodedProblem& problem) {
  const PodRules no_rules;
  const std::optional<ResourceId> pods = problem.names.Find("pods");
  std::vector<SlackGroup> groups;
  for (const DecodedGroup& decoded : problem.groups) {
    if (!decoded.has_template) continue;
    const NodeShape& shape = decoded.group.node.shape;
    SlackGroup group;
    group.shape = shape;
    group.empty = {CpuMemoryOf(shape.allocatable), pods.has_value() ? shape.allocatable.Get(*pods) : 0};
    for (const IncomingPod& daemon : problem.daemons) {
      const PodRules& rules = daemon.shape.rules == nullptr ? no_rules : *daemon.shape.rules;
      const NodeLabels labels{&shape.labels, nullptr, ""};
      if (!ToleratesTaints(rules, shape) || !MatchesNodeAffinity(rules, labels)) continue;
      group.empty.room = Minus(group.empty.room, CpuMemoryOf(daemon.shape.requests));
      group.empty.slots = std::max<int64_t>(0, group.empty.slots - 1);
    }
    group.may_add = std::max<int64_t>(0, decoded.group.size.max - decoded.group.size.current);
    group.name = decoded.group.node.name;
    group.nodes = decoded.group.size.current;
    group.usd_per_hour = decoded.priced.given.has_value() ? decoded.priced.given : decoded.priced.annotated;
    groups.push_back(std::move(group));
  }
  return groups;
}

v1::PlanSlackResponse EncodeSlackPlan(const SlackPlan& plan) {
  v1::PlanSlackResponse response;
  for (const ClassSlack& slack : plan.classes) {
    if (response.classes_size() < kMaxToldClasses) EncodeClass(slack, response.add_classes());
  }
  response.set_classes_total(static_cast<int64_t>(plan.classes.size()));
  for (const MirroredSlack& mirrored : plan.mirrored) EncodeMirrored(mirrored, response.add_mirrored());
  for (const ShapeSlack& shape : plan.shapes) {
    EncodeShape(shape.group, shape.count, shape.placed, response.add_shapes());
  }
  for (const SlackDemand& demand : plan.demands) {
    v1::SlackDemand* const added = response.add_demands();
    added->set_class_name(demand.class_name);
    added->set_nodes(demand.nodes);
    for (const AskedPlaceholders& asked : demand.placeholders) {
      EncodeShape(asked.group, asked.count, 0, added->add_placeholders());
    }
  }
  for (const WishError& error : plan.errors) {
    v1::SlackWishError* const added = response.add_errors();
    added->set_source(Printable(error.source, kMaxReasonBytes));
    added->set_text(Printable(error.text, kMaxReasonBytes));
  }
  response.set_errors_total(plan.errors_total);
  const absl::string_view cut_short = Name(plan.cut_short);
  response.set_cut_short(std::string(cut_short));
  for (const std::string& name : plan.overcommitted) response.add_overcommitted_nodes(name);
  response.set_added(plan.added);
  response.set_removed(plan.removed);
  response.set_pushed_out(plan.pushed_out);
  response.set_placed(plan.placed);
  if (plan.literal.has_value()) EncodeLiteral(*plan.literal, response.mutable_literal());
  return response;
}

}  // namespace loadline

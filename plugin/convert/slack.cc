#include "plugin/convert/slack.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/fit/filters.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// The bounds of an answer. Chosen: it stays far below 4 MiB; all classes are counted.
constexpr int kMaxReportedClasses = 1'000;
constexpr size_t kMaxReasonBytes = 1024;

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
  message->set_kind(EncodePlaceholderKind(group.kind));
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
  *problem.mutable_startup_taints() = request.startup_taints();
  problem.set_now_seconds(request.now_seconds());
  absl::StatusOr<DecodedProblem> read =
      DecodeProblem(problem, request.pods(), PodGrouping::kShape, names, options_of_pods);
  if (!read.ok()) return read.status();
  decoded.problem = *std::move(read);
  decoded.options.startup_taints = decoded.problem.startup_taints;
  decoded.groups_known = request.groups_known() || request.groups_size() > 0;
  return decoded;
}

SlackGroupList SlackGroups(DecodedProblem* problem) {
  const PodRules no_rules;
  const std::optional<ResourceId> pods = problem->names.Find("pods");
  SlackGroupList groups;
  for (NodeGroup& of : problem->groups) {
    if (!of.model.has_value()) continue;
    of.usd_per_hour = of.priced.given.has_value() ? of.priced.given : of.priced.annotated;
    const NodeShape& shape = of.model->shape;
    SlackGroup group;
    group.of = &of;
    group.empty = {CpuMemoryOf(shape.allocatable), pods.has_value() ? shape.allocatable.Get(*pods) : 0};
    for (const IncomingPod& daemon : problem->daemons) {
      const PodRules& rules = daemon.shape.rules == nullptr ? no_rules : *daemon.shape.rules;
      const NodeLabels labels{&shape.labels, nullptr, ""};
      if (!ToleratesTaints(rules, shape) || !MatchesNodeAffinity(rules, labels)) continue;
      group.empty.room = Minus(group.empty.room, CpuMemoryOf(daemon.shape.requests));
      group.empty.slots = std::max<int64_t>(0, group.empty.slots - 1);
    }
    group.may_add = std::max<int64_t>(0, of.max_nodes - of.target);
    group.nodes = of.target;
    groups.push_back(std::move(group));
  }
  return groups;
}

v1::PlanSlackResponse EncodeSlackPlan(const SlackPlan& plan) {
  v1::PlanSlackResponse response;
  for (const ClassSlack& slack : plan.classes) {
    if (response.classes_size() < kMaxReportedClasses) EncodeClass(slack, response.add_classes());
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

#include "plugin/convert/removal.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/removal/step_removal.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Values of an enum are those of the message, in the same order, behind its unspecified one.
template <typename Enum>
Enum Decode(absl::string_view field, int value, Enum last, Fields* fields) {
  if (value < 1 || value > static_cast<int>(last) + 1) {
    fields->Keep(NoSuchValue(field, value));
    return last;
  }
  return static_cast<Enum>(value - 1);
}

RemovalRules DecodeRules(const v1::RemovalRules& message, Fields* fields) {
  RemovalRules rules;
  const auto read = [&](absl::string_view field, int64_t value, int64_t lowest, int64_t* to) {
    fields->Range(field, value, lowest, kMaxRemovalPatience);
    *to = value;
  };
  read("rules.delay_after_taint_milliseconds", message.delay_after_taint_milliseconds(), 0,
       &rules.delay_after_taint_ms);
  read("rules.eviction_retry_milliseconds", message.eviction_retry_milliseconds(), 0,
       &rules.eviction_retry_ms);
  read("rules.max_pod_eviction_milliseconds", message.max_pod_eviction_milliseconds(), 0,
       &rules.max_pod_eviction_ms);
  read("rules.max_grace_seconds", message.max_grace_seconds(), 0, &rules.max_grace_s);
  read("rules.termination_headroom_milliseconds", message.termination_headroom_milliseconds(), 0,
       &rules.termination_headroom_ms);
  read("rules.poll_milliseconds", message.poll_milliseconds(), 1, &rules.poll_ms);
  read("rules.batch_interval_milliseconds", message.batch_interval_milliseconds(), 0,
       &rules.batch_interval_ms);
  read("rules.deletion_delay_milliseconds", message.deletion_delay_milliseconds(), 0,
       &rules.deletion_delay_ms);
  fields->Keep(CheckSize("rules.priority_groups", message.priority_groups_size(), kMaxRemovalGroups));
  for (const v1::RemovalPriorityGroup& group : message.priority_groups()) {
    fields->Range("rules.priority_groups.grace_seconds", group.grace_seconds(), 0, kMaxRemovalPatience);
    if (!rules.priority_groups.empty() && rules.priority_groups.back().priority >= group.priority()) {
      fields->Refuse("rules.priority_groups: must be sorted by priority, each once");
    }
    rules.priority_groups.push_back({.priority = group.priority(), .grace_s = group.grace_seconds()});
  }
  rules.evict_daemon_sets_of_empty = message.evict_daemon_sets_of_empty();
  rules.evict_daemon_sets_of_occupied = message.evict_daemon_sets_of_occupied();
  rules.delete_despite_budgets = message.delete_despite_budgets();
  return rules;
}

Removal DecodeState(const v1::RemovalState& message, size_t groups, Fields* fields) {
  Removal removal;
  const auto time = [&](absl::string_view field, int64_t value) {
    fields->Range(field, value, 0, kMaxRemovalTimeMs);
    return value;
  };
  if (message.stage() != v1::RemovalState::STAGE_UNSPECIFIED) {
    removal.stage = Decode("state.stage", message.stage(), RemovalStage::kEnded, fields);
  }
  removal.empty = message.empty();
  removal.since_ms = time("state.since_ms", message.since_ms());
  if (message.has_accepted_ms()) removal.accepted_ms = time("state.accepted_ms", message.accepted_ms());
  removal.looked_ms = time("state.looked_ms", message.looked_ms());
  fields->Keep(CheckSize("state.pods", message.pods_size(), kMaxRemovalPods));
  const int64_t last_group = static_cast<int64_t>(std::max<size_t>(groups, 1)) - 1;
  for (const v1::PodRemoval& pod : message.pods()) {
    fields->Range("state.pods.group", pod.group(), 0, last_group);
    fields->Range("state.pods.grace_seconds", pod.grace_seconds(), 0, kMaxRemovalPatience);
    removal.pods.push_back({.uid = pod.uid(),
                            .name = pod.name(),
                            .grace_s = pod.grace_seconds(),
                            .group = pod.group(),
                            .best_effort = pod.best_effort(),
                            .accepted = pod.accepted(),
                            .despite_budget = pod.despite_budget(),
                            .attempts = time("state.pods.attempts", pod.attempts()),
                            .until_ms = time("state.pods.until_ms", pod.until_ms()),
                            .next_ms = time("state.pods.next_ms", pod.next_ms())});
  }
  if (!std::is_sorted(removal.pods.begin(), removal.pods.end(),
                      [](const PodRemoval& a, const PodRemoval& b) { return a.group < b.group; })) {
    fields->Refuse("state.pods: must be sorted by group");
  }
  return removal;
}

SeenPods DecodePods(const v1::SeenPods& message, Fields* fields) {
  SeenPods seen{.error = message.error(), .pods = {}};
  fields->Keep(CheckSize("pods.pods", message.pods_size(), kMaxRemovalPods));
  for (const v1::RemovalPod& pod : message.pods()) {
    RemovalPod& to = seen.pods.emplace_back();
    to.uid = pod.uid();
    to.name = pod.name();
    to.planned = Decode("pods.pods.planned", pod.planned(), PlannedPod::kChanged, fields);
    to.priority = pod.priority();
    if (pod.has_grace_seconds()) {  // anything may be stated
      to.grace_s = std::clamp<int64_t>(pod.grace_seconds(), 0, kMaxRemovalPatience);
    }
    if (pod.has_deleted_s()) to.deleted_s = pod.deleted_s();
    to.finished = pod.finished();
    to.mirror = pod.mirror();
    to.placeholder = pod.placeholder();
    to.daemon_set = pod.daemon_set();
    if (pod.has_evict_daemon_set()) to.evict_daemon_set = pod.evict_daemon_set();
  }
  return seen;
}

RemovalFacts DecodeSight(const v1::StepRemovalRequest& message, Fields* fields) {
  RemovalFacts seen;
  if (message.has_node()) {
    const v1::SeenNode& node = message.node();
    fields->Keep(CheckSize("node.delays", node.delays_size(), kMaxRemovalDelays));
    seen.node = {.standing = Decode("node.standing", node.standing(), NodeStanding::kUnreadable, fields),
                 .error = node.error(),
                 .delays = {node.delays().begin(), node.delays().end()}};
  }
  if (message.has_pods()) seen.pods = DecodePods(message.pods(), fields);
  fields->Keep(CheckSize("evictions", message.evictions_size(), kMaxRemovalPods));
  for (const v1::EvictionAnswer& answer : message.evictions()) {
    fields->Range("evictions.retry_after_seconds", answer.retry_after_seconds(), 0, INT32_MAX);
    EvictionAnswer& to = seen.evictions.emplace_back();
    to.uid = answer.uid();
    to.code = answer.code();
    if (answer.cause() != v1::EvictionAnswer::CAUSE_UNSPECIFIED) {
      to.cause = Decode("evictions.cause", answer.cause() + 1, EvictionAnswer::Cause::kNamespaceEnds, fields);
    }
    to.retry_after_s = answer.retry_after_seconds();
    to.error = answer.error();
  }
  if (message.has_marked()) {
    seen.marked = {
        .standing = Decode("marked.standing", message.marked().standing(), NodeStanding::kUnreadable, fields),
        .error = message.marked().error()};
  }
  if (message.has_asked()) {
    seen.asked = {
        .result = Decode("asked.result", message.asked().result(), AskOutcome::Result::kUnknown, fields),
        .error = message.asked().error()};
  }
  const v1::RemovalSiblings& siblings = message.siblings();
  fields->Range("siblings.not_ready", siblings.not_ready(), 0, INT32_MAX);
  fields->Range("siblings.not_marked", siblings.not_marked(), 0, INT32_MAX);
  seen.siblings = {.atomic = siblings.atomic(),
                   .not_ready = siblings.not_ready(),
                   .not_marked = siblings.not_marked(),
                   .failed = siblings.failed()};
  if (siblings.has_gathered_since_ms()) {
    fields->Range("siblings.gathered_since_ms", siblings.gathered_since_ms(), 0, kMaxRemovalTimeMs);
    seen.siblings.gathered_since_ms = siblings.gathered_since_ms();
  }
  return seen;
}

void EncodeState(const Removal& removal, v1::RemovalState* message) {
  message->set_stage(static_cast<v1::RemovalState::Stage>(static_cast<int>(removal.stage) + 1));
  message->set_empty(removal.empty);
  message->set_since_ms(removal.since_ms);
  if (removal.accepted_ms >= 0) message->set_accepted_ms(removal.accepted_ms);
  message->set_looked_ms(removal.looked_ms);
  for (const PodRemoval& pod : removal.pods) {
    v1::PodRemoval& to = *message->add_pods();
    to.set_uid(pod.uid);
    to.set_name(pod.name);
    to.set_grace_seconds(pod.grace_s);
    to.set_group(pod.group);
    to.set_best_effort(pod.best_effort);
    to.set_accepted(pod.accepted);
    to.set_despite_budget(pod.despite_budget);
    to.set_attempts(pod.attempts);
    to.set_until_ms(pod.until_ms);
    to.set_next_ms(pod.next_ms);
  }
}

}  // namespace

absl::StatusOr<RemovalQuestion> DecodeRemovalQuestion(const v1::StepRemovalRequest& message) {
  Fields fields;
  RemovalQuestion question;
  question.rules = DecodeRules(message.rules(), &fields);
  question.removal = DecodeState(message.state(), question.rules.priority_groups.size(), &fields);
  fields.Range("now_ms", message.now_ms(), 0, kMaxRemovalTimeMs);
  question.now_ms = message.now_ms();
  question.seen = DecodeSight(message, &fields);
  if (!fields.status().ok()) return fields.status();
  return question;
}

v1::StepRemovalResponse EncodeRemovalStep(const RemovalOrders& orders, const Removal& removal) {
  v1::StepRemovalResponse message;
  EncodeState(removal, message.mutable_state());
  for (const EvictionOrder& order : orders.evictions) {
    v1::EvictionOrder& to = *message.add_evictions();
    to.set_uid(order.uid);
    to.set_grace_seconds(order.grace_s);
    to.set_first(order.first);
    to.set_despite_budget(order.despite_budget);
    to.set_best_effort(order.best_effort);
  }
  message.set_mark(orders.mark);
  message.set_ask(orders.ask);
  message.set_due_ms(orders.due_ms);
  message.set_look_at_node(orders.look_at_node);
  message.set_look_at_pods(orders.look_at_pods);
  if (orders.end.has_value()) {
    v1::RemovalEnd& end = *message.mutable_end();
    end.set_result(static_cast<v1::RemovalEnd::Result>(static_cast<int>(orders.end->result) + 1));
    end.set_error(orders.end->error);
    end.set_give_back(orders.end->give_back);
    end.set_fails_siblings(orders.end->fails_siblings);
  }
  for (const absl::string_view counted : orders.counted) message.add_counted(std::string(counted));
  message.set_note(orders.note);
  message.set_told_stage(std::string(Name(removal.stage)));
  return message;
}

}  // namespace loadline

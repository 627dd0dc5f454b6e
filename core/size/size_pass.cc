#include "core/size/size_pass.h"

#include <algorithm>
#include <utility>

namespace loadline::size_internal {

Pass::Pass(const SizeOptions& options, const GroupFacts& facts, const GroupState& state, int64_t now_ms)
    : options_(options), facts_(facts), now_ms_(now_ms) {
  const int64_t nodes = static_cast<int64_t>(facts.nodes.size());
  decision_.next = state;
  LearnWhatTheCloudTook();
  // Nodes that were asked for count until they are there, or it is plain that they do not come.
  if (state.expected.value_or(0) <= nodes || !AwaitsNodes(state)) decision_.next.expected.reset();
  const bool trusts_state = options.mode == SizeMode::kDefault;
  target_ = facts.cloud_target.value_or(trusts_state ? decision_.next.expected.value_or(nodes) : nodes);
  for (const GroupNode& node : facts.nodes) classes_.push_back(node.node_class);
  decision_.requests = facts.requests;
}

void Pass::LearnWhatTheCloudTook() {
  std::optional<GroupState::Asked>& asked = decision_.next.asked;
  if (!asked.has_value() || !facts_.cloud_target.has_value()) return;
  if (*facts_.cloud_target > asked->target) decision_.next.locked_ms = asked->ms;
  asked.reset();
}

bool Pass::AwaitsNodes(const GroupState& state) const {
  const std::optional<int64_t> since =
      state.asked.has_value() ? std::optional<int64_t>(state.asked->ms) : state.locked_ms;
  return since.has_value() && now_ms_ - *since < std::max(kMostWaitForNodesMs, options_.cool_down_ms);
}

std::vector<size_t> Pass::OfClass(NodeClass node_class) const {
  std::vector<size_t> nodes;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i] == node_class) nodes.push_back(i);
  }
  return nodes;
}

bool Pass::Subtracts() const { return options_.mode == SizeMode::kDefault && options_.subtract_daemons; }

CpuMemory Pass::Net(const GroupNode& node) const {
  return Subtracts() ? Minus(node.allocatable, node.daemons) : node.allocatable;
}

// Nodes that are not ready are tainted however many they are: they are no capacity anyway.
void Pass::TaintUnhealthy() {
  for (size_t i = 0; i < classes_.size(); ++i) {
    const GroupNode& node = facts_.nodes[i];
    if (classes_[i] != NodeClass::kUntainted || node.ready) continue;
    if (!HealthCounts(node, options_.health, now_ms_)) continue;
    classes_[i] = NodeClass::kTainted;
    decision_.taint_unhealthy.push_back(i);
  }
}

void Pass::Measure() {
  untainted_ = OfClass(NodeClass::kUntainted);
  decision_.untainted = static_cast<int64_t>(untainted_.size());
  CpuMemory allocatable, daemons;
  for (const size_t i : untainted_) {
    const GroupNode& node = facts_.nodes[i];
    decision_.capacity = Plus(decision_.capacity, Net(node));
    allocatable = Plus(allocatable, node.allocatable);
    daemons = Plus(daemons, node.daemons);
    decision_.mixed_nodes |= node.allocatable != facts_.nodes[untainted_[0]].allocatable;
  }
  // Their share leaves less than the threshold: a node with nothing but daemons is above it already.
  const int32_t left = 100 - options_.scale_up_percent;
  decision_.daemons_crowd = daemons != CpuMemory{} && IsAbove(daemons, allocatable, left);
  decision_.usage = ShippedUsage(decision_.requests, decision_.capacity, decision_.untainted);
}

bool Pass::Locked() const {
  const std::optional<int64_t>& locked = decision_.next.locked_ms;
  return locked.has_value() && now_ms_ - *locked < options_.cool_down_ms;
}

bool Pass::TooOld() const {
  if (options_.max_node_age_ms <= 0 || untainted_.empty() || decision_.untainted != options_.min_nodes ||
      !OfClass(NodeClass::kTainted).empty()) {
    return false;
  }
  return std::any_of(untainted_.begin(), untainted_.end(), [&](size_t i) {
    return now_ms_ - facts_.nodes[i].created_ms > options_.max_node_age_ms;
  });
}

int64_t Pass::Grow(int64_t count) {
  std::vector<size_t> tainted = OfClass(NodeClass::kTainted);
  if (options_.health.grace_ms > 0) std::erase_if(tainted, [&](size_t i) { return !facts_.nodes[i].ready; });
  decision_.untaint = NewestFirst(facts_.nodes, std::move(tainted), count);
  const int64_t untainted = static_cast<int64_t>(decision_.untaint.size());
  decision_.ask_cloud = CloudIncrease(count - untainted, target_, options_.cloud_max);
  if (decision_.ask_cloud > 0) {
    if (facts_.cloud_target.has_value()) {
      decision_.next.asked = {now_ms_, *facts_.cloud_target};
    } else {
      decision_.next.locked_ms = now_ms_;
    }
    target_ += decision_.ask_cloud;
    decision_.next.requested = decision_.ask_cloud;
    decision_.next.expected = target_;
  }
  return untainted + decision_.ask_cloud;
}

void Pass::DeleteTainted(bool group_is_healthy) {
  std::vector<size_t> nodes = OfClass(NodeClass::kTainted);
  std::erase_if(nodes, [&](size_t i) {
    const GroupNode& node = facts_.nodes[i];
    return !MayBeDeleted(node, options_.grace, now_ms_) || (!group_is_healthy && node.ready);
  });
  Delete(std::move(nodes));
}

void Pass::DeleteForceTainted() {
  std::vector<size_t> nodes = OfClass(NodeClass::kForceTainted);
  std::erase_if(nodes, [&](size_t i) { return !facts_.nodes[i].empty; });
  Delete(std::move(nodes));
}

// The cloud takes a batch as a whole or not at all; ours is cut to what it takes.
void Pass::Delete(std::vector<size_t> nodes) {
  const int64_t room = std::max<int64_t>(0, target_ - options_.cloud_min);
  if (static_cast<int64_t>(nodes.size()) > room) {
    nodes = options_.mode == SizeMode::kCompat ? std::vector<size_t>()
                                               : OldestFirst(facts_.nodes, std::move(nodes), room);
  }
  target_ -= static_cast<int64_t>(nodes.size());
  decision_.remove.insert(decision_.remove.end(), nodes.begin(), nodes.end());
  if (!nodes.empty()) decision_.next.expected.reset();
}

SizeDecision Pass::Finish(SizeAction action, SizeReason reason, int64_t delta) {
  decision_.action = action;
  decision_.reason = reason;
  decision_.delta = delta;
  if (delta == 0) {
    decision_.usage_after = decision_.usage;
  } else if (delta < 0) {
    CpuMemory removed;
    for (const size_t i : decision_.taint) removed = Plus(removed, Net(facts_.nodes[i]));
    decision_.usage_after = ShippedUsage(decision_.requests, Minus(decision_.capacity, removed),
                                         decision_.untainted - static_cast<int64_t>(decision_.taint.size()));
  } else {
    const bool average = options_.mode == SizeMode::kCompat && decision_.untainted > 0;
    const std::optional<CpuMemory> node = average ? std::nullopt : NewNode();
    if (node.has_value()) {
      decision_.usage_after = ShippedUsage(decision_.requests, Plus(decision_.capacity, Times(*node, delta)),
                                           decision_.untainted + delta);
    } else if (decision_.untainted > 0 && decision_.usage.kind == UsageKind::kPercent) {
      const double share =
          static_cast<double>(decision_.untainted) / static_cast<double>(decision_.untainted + delta);
      decision_.usage_after =
          Usage{.cpu = decision_.usage.cpu * share, .memory = decision_.usage.memory * share};
    }
  }
  return decision_;
}

}  // namespace loadline::size_internal

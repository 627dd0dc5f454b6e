#include "core/expand/node_limits.h"

#include <algorithm>

namespace loadline {
namespace {

template <typename Number>
std::optional<Number> Smaller(std::optional<Number> a, std::optional<Number> b) {
  if (!a.has_value()) return b;
  return b.has_value() ? std::min(*a, *b) : a;
}

}  // namespace

NodeLimit ReadNodeLimit(int64_t limit) {
  if (limit == 0) return std::nullopt;
  return std::max<int64_t>(0, limit);
}

NodeLimit ClusterNodeLimit(int64_t max_nodes_total, int64_t current_nodes) {
  return LimitLeft(ReadNodeLimit(max_nodes_total), current_nodes);
}

int64_t GroupNodeLimit(const NodeGroup& group, std::span<const NodeGroup> similar) {
  const auto room = [](const NodeGroup& of) { return std::max<int64_t>(0, of.max_nodes - of.target); };
  int64_t sum = room(group);
  for (const NodeGroup& other : similar) sum += room(other);
  return sum;
}

NodeLimit SmallerLimit(NodeLimit a, NodeLimit b) { return Smaller(a, b); }

NodeLimit LimitLeft(NodeLimit limit, int64_t added) {
  if (!limit.has_value()) return limit;
  return std::max<int64_t>(0, *limit - added);
}

NodeLimiter::NodeLimiter(std::span<const NodeThreshold> thresholds) {
  for (const NodeThreshold& threshold : thresholds) {
    left_ = Smaller(left_, threshold.max_nodes);
    max_seconds_ = Smaller(max_seconds_, threshold.max_seconds);
  }
}

int64_t NodeLimiter::Grantable(int64_t wanted, double elapsed_seconds) const {
  if (max_seconds_.has_value() && elapsed_seconds > *max_seconds_) return 0;
  return std::min(wanted, left_.value_or(wanted));
}

int64_t NodeLimiter::Grant(int64_t wanted, double elapsed_seconds) {
  const int64_t permitted = Grantable(wanted, elapsed_seconds);
  left_ = LimitLeft(left_, permitted);
  return permitted;
}

}  // namespace loadline

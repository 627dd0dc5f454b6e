#include "core/expand/node_limits.h"

#include <algorithm>

namespace loadline {
namespace {

template <typename Number>
Number Smaller(Number a, Number b) {
  if (a < 0 || b < 0) return Number{kForbidden};
  if (a == 0) return b;
  if (b == 0) return a;
  return std::min(a, b);
}

}  // namespace

int64_t ClusterNodeLimit(int64_t max_nodes_total, int64_t current_nodes) {
  if (max_nodes_total == 0) return kNoLimit;
  if (max_nodes_total < 0 || max_nodes_total <= current_nodes) return kForbidden;
  return max_nodes_total - current_nodes;
}

int64_t GroupNodeLimit(GroupSize group, std::span<const GroupSize> similar) {
  const auto room = [](GroupSize size) { return std::max<int64_t>(0, size.max - size.current); };
  int64_t sum = room(group);
  for (const GroupSize size : similar) sum += room(size);
  return sum > 0 ? sum : kForbidden;
}

int64_t SmallerLimit(int64_t a, int64_t b) { return Smaller(a, b); }

NodeLimiter::NodeLimiter(std::span<const NodeThreshold> thresholds) {
  for (const NodeThreshold& threshold : thresholds) {
    max_nodes_ = Smaller(max_nodes_, threshold.max_nodes);
    max_seconds_ = Smaller(max_seconds_, threshold.max_seconds);
  }
}

int64_t NodeLimiter::Grantable(int64_t wanted, double elapsed_seconds) const {
  if (max_nodes_ < 0 || max_seconds_ < 0) return 0;
  if (max_seconds_ > 0 && elapsed_seconds > max_seconds_) return 0;
  return max_nodes_ == kNoLimit ? wanted : std::min(wanted, max_nodes_ - granted_);
}

int64_t NodeLimiter::Grant(int64_t wanted, double elapsed_seconds) {
  const int64_t permitted = Grantable(wanted, elapsed_seconds);
  granted_ += permitted;
  return permitted;
}

}  // namespace loadline

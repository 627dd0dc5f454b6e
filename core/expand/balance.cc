#include "core/expand/balance.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

namespace loadline {
namespace {

// The size of a group when all are filled up to `level`.
int64_t FilledTo(const BalancedGroup& group, int64_t level) {
  return std::max(group.size, std::min(level, group.max));
}

int64_t AddedUpTo(const std::vector<BalancedGroup>& groups, int64_t level) {
  int64_t added = 0;
  for (const BalancedGroup& group : groups) added += FilledTo(group, level) - group.size;
  return added;
}

}  // namespace

std::vector<int64_t> BalanceGrowth(const std::vector<BalancedGroup>& groups, int64_t add) {
  // The highest level that all groups can be filled to. From 2^31 on nothing changes.
  int64_t level = 0;
  for (int64_t step = int64_t{1} << 31; step > 0; step /= 2) {
    if (AddedUpTo(groups, level + step) <= add) level += step;
  }
  std::vector<int64_t> sizes;
  for (const BalancedGroup& group : groups) sizes.push_back(FilledTo(group, level));
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(groups[a].size, groups[a].name, a) < std::tie(groups[b].size, groups[b].name, b);
  });
  // The rest does not suffice for another level: one node each.
  int64_t left = add - AddedUpTo(groups, level);
  for (const size_t i : order) {
    if (left == 0) break;
    if (sizes[i] != level || sizes[i] >= groups[i].max) continue;
    ++sizes[i];
    --left;
  }
  return sizes;
}

}  // namespace loadline

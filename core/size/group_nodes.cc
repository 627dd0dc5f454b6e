#include "core/size/group_nodes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace loadline {
namespace {

template <typename Before>
std::vector<size_t> FirstOf(std::vector<size_t> from, int64_t count, Before before) {
  const size_t size = std::min(from.size(), static_cast<size_t>(std::max<int64_t>(0, count)));
  std::partial_sort(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size), from.end(), before);
  from.resize(size);
  return from;
}

}  // namespace

bool MayBeDeleted(const GroupNode& node, const GracePeriods& grace, int64_t now_ms) {
  if (node.deletion_forbidden || !node.tainted_ms.has_value()) return false;
  const int64_t age = now_ms - *node.tainted_ms;
  return age > grace.soft_ms && (node.empty || age > grace.hard_ms);
}

std::vector<size_t> OldestFirst(std::span<const GroupNode> nodes, std::vector<size_t> from, int64_t count) {
  return FirstOf(std::move(from), count, [&](size_t a, size_t b) {
    return std::tie(nodes[a].created_ms, nodes[a].name) < std::tie(nodes[b].created_ms, nodes[b].name);
  });
}

std::vector<size_t> NewestFirst(std::span<const GroupNode> nodes, std::vector<size_t> from, int64_t count) {
  return FirstOf(std::move(from), count, [&](size_t a, size_t b) {
    return std::tie(nodes[b].created_ms, nodes[a].name) < std::tie(nodes[a].created_ms, nodes[b].name);
  });
}

bool HealthCounts(const GroupNode& node, const HealthOptions& options, int64_t now_ms) {
  return options.grace_ms > 0 && now_ms - node.created_ms > options.grace_ms;
}

std::vector<size_t> NewestSample(std::span<const GroupNode> nodes, std::vector<size_t> from,
                                 int32_t percent) {
  const int64_t count = (static_cast<int64_t>(from.size()) * percent + 99) / 100;
  return NewestFirst(nodes, std::move(from), count);
}

bool IsHealthy(std::span<const GroupNode> nodes, const HealthOptions& options, int64_t now_ms) {
  std::vector<size_t> counted;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (HealthCounts(nodes[i], options, now_ms)) counted.push_back(i);
  }
  const std::vector<size_t> sample = NewestSample(nodes, std::move(counted), options.newest_percent);
  if (sample.empty()) return true;
  const auto unhealthy =
      std::count_if(sample.begin(), sample.end(), [&](size_t i) { return !nodes[i].ready; });
  return unhealthy * 100 / static_cast<int64_t>(sample.size()) <= options.max_unhealthy_percent;
}

}  // namespace loadline

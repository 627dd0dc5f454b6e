#include "core/loop/resource_limit.h"

#include <algorithm>

namespace loadline {
namespace {

// A node that offers nothing of a resource comes against no limit of it.
NodeLimit NodesWithin(std::optional<int64_t> left, int64_t of_node) {
  if (!left.has_value() || of_node <= 0) return std::nullopt;
  return *left / of_node;
}

void TakeFrom(int64_t taken, std::optional<int64_t>* left) {
  if (left->has_value()) *left = std::max<int64_t>(0, **left - taken);
}

}  // namespace

NodeLimit ResourceRoom::MostNodes(const CpuMemory& node) const {
  return SmallerLimit(NodesWithin(milli_cpu_, node.cpu), NodesWithin(memory_bytes_, node.memory));
}

void ResourceRoom::Take(const CpuMemory& node, int64_t nodes) {
  const CpuMemory taken = Times(node, nodes);
  TakeFrom(taken.cpu, &milli_cpu_);
  TakeFrom(taken.memory, &memory_bytes_);
}

std::vector<absl::string_view> ResourceRoom::ExceededBy(const CpuMemory& node) const {
  std::vector<absl::string_view> exceeded;
  if (NodesWithin(milli_cpu_, node.cpu) == 0) exceeded.push_back("cpu");
  if (NodesWithin(memory_bytes_, node.memory) == 0) exceeded.push_back("memory");
  return exceeded;
}

}  // namespace loadline

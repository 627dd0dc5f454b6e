#include "core/loop/resource_limit.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

// A node that offers nothing of a resource meets no limit of it.
NodeLimit NodesWithin(std::optional<int64_t> left, int64_t of_node) {
  if (!left.has_value() || of_node <= 0) return std::nullopt;
  return *left / of_node;
}

// Returns the amount that is left; 0 if the nodes exceed it.
int64_t Left(int64_t left, int64_t of_node, int64_t nodes) {
  const absl::int128 taken = absl::int128(of_node) * nodes;
  return taken >= left ? 0 : left - static_cast<int64_t>(taken);
}

}  // namespace

std::optional<int64_t> ResourceRoom::GpusLeft(const NodeOffer& node) const {
  const auto at = gpus_.find(node.gpu_type);
  return at == gpus_.end() ? std::nullopt : std::optional(at->second);
}

NodeLimit ResourceRoom::MostNodes(const NodeOffer& node) const {
  return SmallerLimit(
      SmallerLimit(NodesWithin(milli_cpu_, node.cpu), NodesWithin(memory_bytes_, node.memory)),
      NodesWithin(GpusLeft(node), node.gpus));
}

void ResourceRoom::Take(const NodeOffer& node, int64_t nodes) {
  if (milli_cpu_.has_value()) milli_cpu_ = Left(*milli_cpu_, node.cpu, nodes);
  if (memory_bytes_.has_value()) memory_bytes_ = Left(*memory_bytes_, node.memory, nodes);
  if (const auto at = gpus_.find(node.gpu_type); at != gpus_.end()) {
    at->second = Left(at->second, node.gpus, nodes);
  }
}

std::vector<absl::string_view> ResourceRoom::ExceededBy(const NodeOffer& node) const {
  std::vector<absl::string_view> exceeded;
  if (NodesWithin(milli_cpu_, node.cpu) == 0) exceeded.push_back("cpu");
  if (NodesWithin(memory_bytes_, node.memory) == 0) exceeded.push_back("memory");
  if (NodesWithin(GpusLeft(node), node.gpus) == 0) exceeded.push_back(node.gpu_type);
  return exceeded;
}

}  // namespace loadline

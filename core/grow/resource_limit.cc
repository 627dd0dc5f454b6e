#include "core/grow/resource_limit.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

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

// Returns what is left for GPUs of the node.
std::optional<int64_t> GpusLeft(const NodeMaximum& left, const NodeOffer& node) {
  const auto at = left.gpus.find(node.gpu_type);
  return at == left.gpus.end() ? std::nullopt : std::optional(at->second);
}

// Returns whether at least a tenth of the amount is left.
bool HasTenth(std::optional<int64_t> left, std::optional<int64_t> maximum) {
  return !left.has_value() || absl::int128(*left) * 10 >= maximum.value_or(0);
}

bool Selects(const NodeMaximum& maximum, const CountedNode& node) {
  if (maximum.selector.Everything()) return true;
  if (node.labels != nullptr && maximum.selector.Matches(*node.labels)) return true;
  return node.group.has_value() && absl::c_linear_search(maximum.groups, *node.group);
}

}  // namespace

void ResourceRoom::Learn(GroupIndex group, std::span<const Labels* const> labels) {
  for (NodeMaximum& left : left_) {
    if (left.selector.Everything()) continue;
    const auto selected =
        absl::c_count_if(labels, [&](const Labels* of) { return left.selector.Matches(*of); });
    if (static_cast<size_t>(selected) > labels.size() / 2) left.groups.push_back(group);
  }
}

NodeLimit ResourceRoom::MostNodes(const CountedNode& node) const {
  NodeLimit most;
  for (const NodeMaximum& left : left_) {
    if (!Selects(left, node)) continue;
    for (const NodeLimit limit :
         {NodesWithin(left.milli_cpu, node.cpu), NodesWithin(left.memory_bytes, node.memory),
          NodesWithin(GpusLeft(left, node), node.gpus), left.nodes}) {
      most = SmallerLimit(most, limit);
    }
  }
  return most;
}

void ResourceRoom::Take(const CountedNode& node, int64_t nodes) {
  for (NodeMaximum& left : left_) {
    if (!Selects(left, node)) continue;
    if (left.nodes.has_value()) left.nodes = Left(*left.nodes, 1, nodes);
    if (left.milli_cpu.has_value()) left.milli_cpu = Left(*left.milli_cpu, node.cpu, nodes);
    if (left.memory_bytes.has_value()) left.memory_bytes = Left(*left.memory_bytes, node.memory, nodes);
    if (const auto at = left.gpus.find(node.gpu_type); at != left.gpus.end()) {
      at->second = Left(at->second, node.gpus, nodes);
    }
  }
}

std::vector<std::string> ResourceRoom::ExceededBy(const CountedNode& node) const {
  std::vector<std::string> exceeded;
  for (const NodeMaximum& left : left_) {
    if (!Selects(left, node)) continue;
    const auto check = [&](NodeLimit limit, absl::string_view resource) {
      if (limit == 0) exceeded.push_back(absl::StrCat(resource, left.name.empty() ? "" : " of ", left.name));
    };
    check(NodesWithin(left.milli_cpu, node.cpu), "cpu");
    check(NodesWithin(left.memory_bytes, node.memory), "memory");
    check(NodesWithin(GpusLeft(left, node), node.gpus), node.gpu_type);
    check(left.nodes, "nodes");
  }
  return exceeded;
}

bool ResourceRoom::LeavesTenth(const CountedNode& node, std::span<const NodeMaximum> maxima) const {
  for (size_t i = 0; i < left_.size(); ++i) {
    const NodeMaximum& left = left_[i];
    if (!Selects(left, node)) continue;
    if (node.cpu > 0 && !HasTenth(left.milli_cpu, maxima[i].milli_cpu)) return false;
    if (node.memory > 0 && !HasTenth(left.memory_bytes, maxima[i].memory_bytes)) return false;
    if (!left.selector.Everything() && !HasTenth(left.nodes, maxima[i].nodes)) return false;
  }
  return true;
}

}  // namespace loadline

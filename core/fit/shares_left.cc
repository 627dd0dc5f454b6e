#include "core/fit/shares_left.h"

#include <algorithm>

#include "core/base/resource_names.h"

namespace loadline {
namespace {

double Per(const NodeAmount& amount) {
  return amount.allocatable > 0 ? 1 / static_cast<double>(amount.allocatable) : 0;
}

}  // namespace

double SharesLeft::Block::Left(size_t i, double of_cpu, double of_memory) const {
  return std::max(cpu[i] - of_cpu, 0.0) * per_cpu[i] + std::max(memory[i] - of_memory, 0.0) * per_memory[i];
}

SharesLeft::SharesLeft(const Snapshot& snapshot, const std::vector<bool>& leaves) {
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot.Placeable(node) || (IndexOf(node) < leaves.size() && leaves[IndexOf(node)])) continue;
    Add(node, snapshot.amount(node, kCpu), snapshot.amount(node, kMemory));
  }
}

std::optional<NodeIndex> SharesLeft::Take(const PodShape& shape, PodFit* fit) {
  const double cpu = static_cast<double>(shape.requests.Get(kCpu));
  const double memory = static_cast<double>(shape.requests.Get(kMemory));
  Block* best = nullptr;
  size_t best_at = 0;
  double best_left = -1;
  double left[kWidth];
  for (Block& block : blocks_) {
    for (size_t i = 0; i < kWidth; ++i) left[i] = block.Left(i, cpu, memory);
    for (size_t i = 0; i < block.nodes.size(); ++i) {
      // A share costs less than the filters, which are asked of nodes only that would be the best so far.
      if (left[i] <= best_left || !fit->Fits(block.nodes[i])) continue;
      best = &block;
      best_at = i;
      best_left = left[i];
    }
  }
  if (best == nullptr) return std::nullopt;
  best->cpu[best_at] -= cpu;
  best->memory[best_at] -= memory;
  return best->nodes[best_at];
}

void SharesLeft::Add(NodeIndex node, const NodeAmount& cpu, const NodeAmount& memory) {
  if (blocks_.empty() || blocks_.back().nodes.size() == kWidth) blocks_.emplace_back();
  Block& block = blocks_.back();
  const size_t i = block.nodes.size();
  block.nodes.push_back(node);
  block.cpu[i] = static_cast<double>(cpu.free);
  block.memory[i] = static_cast<double>(memory.free);
  block.per_cpu[i] = Per(cpu);
  block.per_memory[i] = Per(memory);
}

}  // namespace loadline

#include "core/fit/shares_left.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/resource_names.h"

namespace loadline {
namespace {

// The rounding error that sums of shares may have.
constexpr double kRounding = 1e-9;

double Per(const NodeAmount& amount) {
  return amount.allocatable > 0 ? 1 / static_cast<double>(amount.allocatable) : 0;
}

// Amounts are one size that agree in their first bits, which is within some percent. Answers do not depend on
// it.
uint64_t SizeOf(const NodeAmount& amount) {
  constexpr int kBits = 5;
  const uint64_t allocatable = static_cast<uint64_t>(std::max<int64_t>(amount.allocatable, 0));
  const int dropped = std::max(static_cast<int>(std::bit_width(allocatable)) - kBits, 0);
  return allocatable >> dropped << dropped;
}

}  // namespace

bool SharesLeft::Amounts::Lack(double of_cpu, double of_memory) const {
  return (of_cpu > 0 && cpu < of_cpu) || (of_memory > 0 && memory < of_memory);
}

double SharesLeft::Amounts::Left(double of_cpu, double of_memory) const {
  return std::max(cpu - of_cpu, 0.0) * per_cpu + std::max(memory - of_memory, 0.0) * per_memory;
}

bool SharesLeft::Place::operator<(const Place& other) const {
  return left != other.left ? left > other.left : node < other.node;
}

SharesLeft::SharesLeft(const Snapshot& snapshot, const std::vector<bool>& leaves)
    : amounts_(static_cast<size_t>(snapshot.node_end())) {
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, size_t> sizes;
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot.Placeable(node) || (IndexOf(node) < leaves.size() && leaves[IndexOf(node)])) continue;
    const NodeAmount cpu = snapshot.amount(node, kCpu), memory = snapshot.amount(node, kMemory);
    Amounts& amounts = amounts_[IndexOf(node)];
    amounts = {static_cast<double>(cpu.free), static_cast<double>(memory.free), Per(cpu), Per(memory)};
    const auto [found, is_new] = sizes.try_emplace({SizeOf(cpu), SizeOf(memory)}, alike_.size());
    if (is_new) alike_.push_back({amounts.per_cpu, amounts.per_memory, {}});
    Alike& alike = alike_[found->second];
    alike.least_per_cpu = std::min(alike.least_per_cpu, amounts.per_cpu);
    alike.least_per_memory = std::min(alike.least_per_memory, amounts.per_memory);
    alike.places.push_back({amounts.Left(0, 0), node});
  }
  for (Alike& alike : alike_) std::sort(alike.places.begin(), alike.places.end());
}

std::optional<NodeIndex> SharesLeft::Take(const PodShape& shape, PodFit* fit) {
  const double cpu = static_cast<double>(shape.requests.Get(kCpu));
  const double memory = static_cast<double>(shape.requests.Get(kMemory));
  Best best;
  for (Alike& alike : alike_) LookAt(&alike, cpu, memory, fit, &best);
  if (best.alike == nullptr) return std::nullopt;
  Amounts& amounts = amounts_[IndexOf(best.node)];
  amounts.cpu -= cpu;
  amounts.memory -= memory;
  std::vector<Place>& places = best.alike->places;
  const auto old = places.begin() + static_cast<std::ptrdiff_t>(best.at);
  const Place place = {amounts.Left(0, 0), best.node};
  const auto behind = std::lower_bound(old + 1, places.end(), place);
  std::move(old + 1, behind, old);
  *(behind - 1) = place;
  return best.node;
}

void SharesLeft::LookAt(Alike* alike, double cpu, double memory, PodFit* fit, Best* best) const {
  const double least = cpu * alike->least_per_cpu + memory * alike->least_per_memory;
  for (size_t at = 0; at < alike->places.size(); ++at) {
    const auto& [before, node] = alike->places[at];
    if (before - least + kRounding < best->left) return;  // nor do those behind it have as much
    const Amounts& amounts = amounts_[IndexOf(node)];
    if (amounts.Lack(cpu, memory)) continue;
    const double left = amounts.Left(cpu, memory);
    const bool better = left > best->left || (left == best->left && node < best->node);
    // A share costs less than the filters, which are asked of nodes only that would be the best so far.
    if (better && fit->Fits(node)) *best = {alike, at, left, node};
  }
}

}  // namespace loadline

#include "core/fit/shares_left.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/resource_names.h"
#include "core/fit/filters.h"

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

// Returns the soft taints of a node, by key.
std::vector<Taint> SoftTaintsOf(const NodeShape& shape) {
  std::vector<Taint> soft;
  std::copy_if(shape.taints.begin(), shape.taints.end(), std::back_inserter(soft),
               [](const Taint& taint) { return taint.effect == "PreferNoSchedule"; });
  std::sort(soft.begin(), soft.end(), [](const Taint& a, const Taint& b) { return a.key < b.key; });
  return soft;
}

// Returns the keys as one: a key has no blank. The taint of a node that is not needed has a time as its
// value, so that values do not tell nodes apart.
std::string KeysOf(const std::vector<Taint>& taints) {
  return absl::StrJoin(taints, " ", [](std::string* out, const Taint& of) { absl::StrAppend(out, of.key); });
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
  absl::flat_hash_map<std::tuple<uint64_t, uint64_t, std::string>, size_t> sizes;
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot.Placeable(node) || (IndexOf(node) < leaves.size() && leaves[IndexOf(node)])) continue;
    const NodeAmount cpu = snapshot.amount(node, kCpu), memory = snapshot.amount(node, kMemory);
    Amounts& amounts = amounts_[IndexOf(node)];
    amounts = {static_cast<double>(cpu.free), static_cast<double>(memory.free), Per(cpu), Per(memory)};
    std::vector<Taint> soft = SoftTaintsOf(snapshot.node_shape(node));
    const auto [found, is_new] =
        sizes.try_emplace({SizeOf(cpu), SizeOf(memory), KeysOf(soft)}, alike_.size());
    if (is_new) {
      alike_.push_back(
          {amounts.per_cpu, amounts.per_memory, amounts.per_cpu, amounts.per_memory, std::move(soft), {}});
    }
    Alike& alike = alike_[found->second];
    alike.least_per_cpu = std::min(alike.least_per_cpu, amounts.per_cpu);
    alike.least_per_memory = std::min(alike.least_per_memory, amounts.per_memory);
    alike.most_per_cpu = std::max(alike.most_per_cpu, amounts.per_cpu);
    alike.most_per_memory = std::max(alike.most_per_memory, amounts.per_memory);
    alike.places.push_back({amounts.Left(0, 0), node});
  }
  for (Alike& alike : alike_) std::sort(alike.places.begin(), alike.places.end());
  // Nodes without soft taints come first, which saves the filters of most others.
  std::stable_sort(alike_.begin(), alike_.end(),
                   [](const Alike& a, const Alike& b) { return a.soft.size() < b.soft.size(); });
}

std::optional<NodeIndex> SharesLeft::Take(const PodShape& shape, PodFit* fit) {
  const double cpu = static_cast<double>(shape.requests.Get(kCpu));
  const double memory = static_cast<double>(shape.requests.Get(kMemory));
  Best best;
  for (Alike& alike : alike_) {
    const size_t soft = SoftTaints(shape, alike);
    if (best.alike != nullptr && soft > best.soft) continue;
    Best found = soft == best.soft ? best : Best{.soft = soft};
    LookAt(&alike, cpu, memory, fit, &found);
    if (found.alike != nullptr) best = found;
  }
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

size_t SharesLeft::SoftTaints(const PodShape& shape, const Alike& alike) {
  return static_cast<size_t>(std::count_if(alike.soft.begin(), alike.soft.end(), [&](const Taint& taint) {
    return shape.rules == nullptr || !ToleratesTaint(*shape.rules, taint);
  }));
}

void SharesLeft::LookAt(Alike* alike, double cpu, double memory, PodFit* fit, Best* best) const {
  const bool fills = fit->most_allocated();
  const double takes = fills ? cpu * alike->most_per_cpu + memory * alike->most_per_memory
                             : cpu * alike->least_per_cpu + memory * alike->least_per_memory;
  for (size_t step = 0; step < alike->places.size(); ++step) {
    const size_t at = fills ? alike->places.size() - 1 - step : step;
    const auto& [before, node] = alike->places[at];
    const double at_best = fills ? takes - before : before - takes;
    if (at_best + kRounding < best->score) return;  // nor does any behind it have a better score
    const Amounts& amounts = amounts_[IndexOf(node)];
    if (amounts.Lack(cpu, memory)) continue;
    const double left = amounts.Left(cpu, memory);
    const double score = fills ? -left : left;
    const bool better = score > best->score || (score == best->score && node < best->node);
    // A share costs less than the filters, which are asked of nodes only that would be the best so far.
    if (better && fit->Fits(node)) *best = {alike, best->soft, at, score, node};
  }
}

}  // namespace loadline

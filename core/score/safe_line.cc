#include "core/score/safe_line.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/fit/load_line.h"

namespace loadline {
namespace {

// The step in which lines are reported, 0.05. Chosen: profiles are not more exact than that.
constexpr int64_t kStep = kLineUnit / 20;

// The lines that are compared, in percent of the safe one. Chosen: two below or at it, and two above.
constexpr int64_t kPercentOfSafe[] = {75, 100, 125, 150};

bool Counts(const UseOnNode& node) { return node.allocatable > 0 && node.peak > 0; }
bool IsLoaded(const UseOnNode& node) { return node.limits >= (node.allocatable + 1) / 2; }

int64_t RoundedDown(absl::int128 line) {
  const absl::int128 steps = line / kStep * kStep;
  return static_cast<int64_t>(std::clamp(steps, absl::int128(kLowestLine), absl::int128(kHighestLine)));
}

// Returns true if the node would be over its allocatable when pods like its own fill it up to the line.
bool IsOverAt(const UseOnNode& node, int64_t line) {
  return absl::int128(node.peak) * line > absl::int128(node.limits) * kLineUnit;
}

// The sums over all nodes that offer the resource: at most 2^31 times 2^62.
struct Sums {
  absl::int128 allocatable = 0;
  absl::int128 limits = 0;
  absl::int128 requests = 0;
  int64_t nodes = 0;
};

Sums SumsOf(std::span<const UseOnNode> nodes) {
  Sums sums;
  for (const UseOnNode& node : nodes) {
    if (node.allocatable == 0) continue;
    sums.allocatable += node.allocatable;
    sums.limits += node.limits;
    sums.requests += node.requests;
    ++sums.nodes;
  }
  return sums;
}

// Returns how many nodes of the mean size the pods take at least under a line.
int64_t NodesUnder(const Sums& sums, int64_t line) {
  const auto rounded_up = [](absl::int128 a, absl::int128 b) { return (a + b - 1) / b; };
  const absl::int128 mean = std::max<absl::int128>(sums.allocatable / sums.nodes, 1);
  // The sums stay below 2^93, so that products with a line, at most 2^20, stay within 127 bits.
  const absl::int128 by_limits = rounded_up(sums.limits * kLineUnit, mean * line);
  const absl::int128 nodes = std::max(by_limits, rounded_up(sums.requests, mean));
  return static_cast<int64_t>(std::min<absl::int128>(nodes, kMaxAmount));
}

}  // namespace

std::optional<SafeLine> FindSafeLine(std::span<const UseOnNode> nodes) {
  const bool any_loaded = std::any_of(nodes.begin(), nodes.end(),
                                      [](const UseOnNode& node) { return Counts(node) && IsLoaded(node); });
  const auto counts = [&](const UseOnNode& node) { return Counts(node) && (!any_loaded || IsLoaded(node)); };
  std::optional<SafeLine> safe;
  absl::int128 lowest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!counts(nodes[i])) continue;
    const absl::int128 line = absl::int128(nodes[i].limits) * kLineUnit / nodes[i].peak;
    if (safe.has_value() && line >= lowest) continue;
    lowest = line;
    safe.emplace().node = i;
  }
  if (!safe.has_value()) return safe;
  const Sums sums = SumsOf(nodes);
  const int64_t line = RoundedDown(lowest);
  for (const int64_t percent : kPercentOfSafe) {
    LineRisk& risk = safe->around.emplace_back();
    risk.line = RoundedDown(absl::int128(line) * percent / 100);
    risk.nodes = NodesUnder(sums, risk.line);
    risk.nodes_over =
        static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [&](const UseOnNode& node) {
          return counts(node) && IsOverAt(node, risk.line);
        }));
  }
  return safe;
}

}  // namespace loadline

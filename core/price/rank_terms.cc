#include "core/price/rank_terms.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/price/rank_tanh.h"

namespace loadline {
namespace {

// The power of two that `value` >= 0 and all doubles of its binade lie below.
double EndOfBinade(double value) {
  constexpr uint64_t kOneBinade = uint64_t{1} << 52;
  return std::bit_cast<double>((std::bit_cast<uint64_t>(value) & ~(kOneBinade - 1)) + kOneBinade);
}

// Share of `available` that `requested` leaves over.
double Left(int64_t nodes, int64_t node, int64_t requested) {
  const double available = static_cast<double>(nodes) * static_cast<double>(node);
  return (available - static_cast<double>(requested)) / available;
}

// 0: a number, 1: not a number, 2: infinite.
int ScoreClass(double score) { return std::isnan(score) ? 1 : std::isinf(score) ? 2 : 0; }

}  // namespace

double AddRepeatedly(double sum, double addend, int64_t count) {
  while (count > 0) {
    const double next = sum + addend;
    if (next == sum) return sum;
    --count;
    const double end = EndOfBinade(sum);
    const bool same_binade = next < end;
    sum = next;
    if (!same_binade) continue;
    // Within a binade all sums are multiples of one unit, so each addition adds the same: the addend rounded
    // to units. Only where it lies half-way between two of them may the first addition differ, since halves
    // go to even; then the sum is even from then on. That first addition was made above.
    const double step = (sum + addend) - sum;
    const double room = std::floor((end - sum) / step) - 1;
    if (!(room >= 1)) continue;
    const double steps = std::min(room, static_cast<double>(count));
    sum += steps * step;  // exact: below `end`, in units
    count -= static_cast<int64_t>(steps);
  }
  return sum;
}

double Suppress(double unfitness, double nodes, double divisor) {
  return (unfitness - 1.0) * (1.0 - GoTanh((nodes - 1.0) / divisor)) + 1.0;
}

double CostRatio(const ScoreTerms& terms) {
  return (terms.cost + terms.damper) / (terms.theoretical_cost + terms.damper);
}

double Score(const ScoreTerms& terms) {
  return terms.suppressed_unfitness * CostRatio(terms) * terms.creation_factor;
}

int CompareScores(double a, double b) {
  const int difference = ScoreClass(a) - ScoreClass(b);
  if (difference != 0 || std::isnan(a)) return difference;
  return a < b ? -1 : a > b ? 1 : 0;
}

double Waste(const LeastWasteInput& input) {
  return Left(input.nodes, input.node_milli_cpu, input.requested_milli_cpu) +
         Left(input.nodes, input.node_memory_bytes, input.requested_memory_bytes);
}

}  // namespace loadline

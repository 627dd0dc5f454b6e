// The terms of an option's score.
#ifndef LOADLINE_CORE_PRICE_RANK_TERMS_H_
#define LOADLINE_CORE_PRICE_RANK_TERMS_H_

#include <cstdint>
#include <span>

namespace loadline {

// Returns sum + addend + ... + addend, `count` times, rounded after each addition as a loop would. Adding up
// the pods of an option one by one is what makes the bits of Cluster Autoscaler's scores. Cost: O(log) of
// what is added, not O(count). `sum` and `addend` are finite and not negative.
double AddRepeatedly(double sum, double addend, int64_t count);

// Returns (unfitness - 1) * (1 - tanh((nodes - 1) / divisor)) + 1: the more nodes at once, the less their
// shape matters. For 1 node `unfitness`, for many near 1. divisor > 0.
double Suppress(double unfitness, double nodes, double divisor);

// The terms of a score; prices in US dollars per hour.
struct ScoreTerms {
  double suppressed_unfitness = 1;
  double cost = 0;              // C, of all nodes of the option
  double theoretical_cost = 0;  // T, of its pods on machines that suit them perfectly
  double damper = 0;            // X
  double creation_factor = 1;
};

// (C + X) / (T + X): +inf where only C is above 0, NaN where nothing is.
double CostRatio(const ScoreTerms& terms);

// Returns suppressed_unfitness * CostRatio * creation_factor, multiplied in this order; lower is better.
// Source: expander/price/price.go of Cluster Autoscaler, and the cost-based ranking proposal.
double Score(const ScoreTerms& terms);

// The order of scores: numbers, then 0 / 0 (nothing is paid and nothing asked for), then infinity. Negative:
// a is better, 0: neither.
int CompareScores(double a, double b);

// Returns the share of CPU plus the share of memory that pods leave over on `nodes` nodes of this capacity;
// NaN without capacity. Source: expander/waste/waste.go of Cluster Autoscaler.
struct LeastWasteInput {
  int64_t nodes = 0;
  int64_t node_milli_cpu = 0;
  int64_t node_memory_bytes = 0;
  int64_t requested_milli_cpu = 0;
  int64_t requested_memory_bytes = 0;
};
double Waste(const LeastWasteInput& input);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_RANK_TERMS_H_

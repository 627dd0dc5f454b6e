#include "test/overload/upstream_scores.h"

#include <algorithm>
#include <cmath>

namespace loadline {
namespace {

int64_t LeastAllocated(double requested, double allocatable) {
  if (requested > allocatable) return 0;
  const int64_t free = static_cast<int64_t>(allocatable) - static_cast<int64_t>(requested);
  return free * 100 / static_cast<int64_t>(allocatable);
}

int64_t Evenness(const Load& requested, const Load& allocatable) {
  const double cpu = std::min(requested.cpu / allocatable.cpu, 1.0);
  const double memory = std::min(requested.memory / allocatable.memory, 1.0);
  return static_cast<int64_t>((1 - std::abs(cpu - memory) / 2) * 100);
}

// The continued fraction of the incomplete beta function, by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= 1000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1;
    for (const double term : {even, odd}) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      factor = c * d;
      result *= factor;
    }
    if (std::abs(factor - 1) < 1e-12) break;
  }
  return result;
}

// One resource of LowRiskOverCommitment.
struct Risk {
  double request, limit, request_before, limit_before, capacity, average, deviation;

  double OfLimits() const { return limit > capacity ? (limit - capacity) / (limit - request) : 0; }

  double OfLoad() const {
    constexpr double kWindow = 5;
    const double mean = std::clamp(average / capacity, 0.0, 1.0);
    const double most = mean > 0 && mean < 1 ? mean * (1 - mean) : 0;
    const double sigma =
        std::min(std::clamp(deviation / capacity, 0.0, 1.0) * std::sqrt(kWindow), std::sqrt(most * 0.99));
    const double threshold = std::clamp(request_before / capacity, 0.0, 1.0);
    if (mean == 0 || (sigma == 0 && mean <= threshold)) return 0;
    if (sigma == 0) return 1;
    const double scale = mean * (1 - mean) / (sigma * sigma) - 1;
    const auto below = [&](double x) { return IncompleteBeta(mean * scale, (1 - mean) * scale, x); };
    double probability = below(threshold);
    if (limit_before < capacity && request_before <= limit_before) {
      const double of_limit = below(limit_before / capacity);
      if (limit_before == 0) probability = 1;
      if (of_limit > 0) probability = std::clamp(probability / of_limit, 0.0, 1.0);
    }
    return 1 - probability;
  }

  double Total() const { return std::clamp(0.5 * OfLimits() + 0.5 * OfLoad(), 0.0, 1.0); }
};

int64_t LoadVariation(double average, double deviation, double demand, double capacity) {
  const double mean = std::clamp((std::clamp(average, 0.0, capacity) + demand) / capacity, 0.0, 1.0);
  const double sigma = std::clamp(std::clamp(deviation, 0.0, capacity) / capacity, 0.0, 1.0);
  return std::llround((1 - (mean + sigma) / 2) * 100);
}

}  // namespace

int64_t DefaultProfileScore(const Load& before, const Load& after, const Load& allocatable) {
  const int64_t least =
      (LeastAllocated(after.cpu, allocatable.cpu) + LeastAllocated(after.memory, allocatable.memory)) / 2;
  const int64_t balanced = 50 + (50 + Evenness(after, allocatable) - Evenness(before, allocatable)) / 2;
  return least + balanced;
}

int64_t LowRiskScore(const TrimaranNode& node, const Load& pod_request, const Load& pod_limit) {
  const Risk cpu{node.requests.cpu + pod_request.cpu,
                 node.limits.cpu + pod_limit.cpu,
                 node.requests.cpu,
                 node.limits.cpu,
                 node.allocatable.cpu,
                 node.average.cpu,
                 node.deviation.cpu};
  const Risk memory{node.requests.memory + pod_request.memory,
                    node.limits.memory + pod_limit.memory,
                    node.requests.memory,
                    node.limits.memory,
                    node.allocatable.memory,
                    node.average.memory,
                    node.deviation.memory};
  return std::llround((1 - std::max(cpu.Total(), memory.Total())) * 100);
}

int64_t LoadVariationScore(const TrimaranNode& node, const Load& pod_request) {
  return std::min(
      LoadVariation(node.average.cpu, node.deviation.cpu, pod_request.cpu, node.allocatable.cpu),
      LoadVariation(node.average.memory, node.deviation.memory, pod_request.memory, node.allocatable.memory));
}

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

}  // namespace loadline

#include "test/overload/experiment.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/fit/load_line.h"

namespace loadline {
namespace {

constexpr double kSmallCpu = 16'000;
constexpr double kSmallMemory = 64.0 * 1024 * 1024 * 1024;
constexpr double kLargestShare = 0.75;
constexpr double kNoOverload = 0.01;  // percent

// [0, 1), the same with every library.
double Draw(std::mt19937_64* random) { return static_cast<double>((*random)() >> 11) / 9007199254740992.0; }

double MeanOf(const std::vector<double>& values, size_t count) {
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

Load RequestsOf(const TracePod& pod, Requests requests, std::mt19937_64* random) {
  const auto of_limits = [&](double cpu, double memory) {
    return Load{std::floor(pod.limits.cpu * cpu), std::floor(pod.limits.memory * memory)};
  };
  switch (requests) {
    case Requests::kDrawn: {
      const double cpu = 0.1 + 0.6 * Draw(random);
      return of_limits(cpu, 0.1 + 0.6 * Draw(random));
    }
    case Requests::kPercentile95: {
      const auto within = [](double use, double limit) {
        return std::floor(std::clamp(use, 0.01 * limit, limit));
      };
      return {within(HistoryPercentile95(pod.machine->cpu), pod.limits.cpu),
              within(HistoryPercentile95(pod.machine->memory), pod.limits.memory)};
    }
    case Requests::kFlat:
      return of_limits(0.35, 0.35);
    case Requests::kTwoFold:
      return Draw(random) < 0.5 ? of_limits(1, 1) : of_limits(0.15, 0.15);
    case Requests::kLow:
      break;
  }
  return of_limits(0.05, 0.05);
}

// The order in which pods arrive, of this number.
std::vector<size_t> OrderOf(size_t pods, uint64_t seed) {
  std::vector<size_t> order(pods);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  for (size_t i = pods; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

size_t NodesFor(const std::vector<TracePod>& pods, NodeSize size, int64_t fill_percent) {
  Load sum;
  for (const TracePod& pod : pods) {
    sum.cpu += pod.requests.cpu;
    sum.memory += pod.requests.memory;
  }
  const double fill = static_cast<double>(fill_percent) / 100;
  const double nodes = std::max(sum.cpu / static_cast<double>(size.cpu_milli),
                                sum.memory / static_cast<double>(size.memory_bytes)) /
                       fill;
  return static_cast<size_t>(std::ceil(nodes));
}

void AddTo(Outcome* mean, const Outcome& outcome, size_t orders) {
  const double share = 1 / static_cast<double>(orders);
  mean->cpu_overload += outcome.cpu_overload * share;
  mean->cpu_nodes_over += outcome.cpu_nodes_over * share;
  mean->memory_nodes_over += outcome.memory_nodes_over * share;
  mean->without += outcome.without * share;
}

bool IsWorse(const Estimate& ours, const Estimate& theirs) {
  const double error = std::hypot(ours.error, theirs.error);
  return ours.mean > theirs.mean + std::max(2 * error, 0.0) + kNoOverload;
}

}  // namespace

const char* Name(Requests requests) {
  switch (requests) {
    case Requests::kDrawn:
      return "10 to 70 % of the limit";
    case Requests::kPercentile95:
      return "p95 of the first week";
    case Requests::kFlat:
      return "35 % for all";
    case Requests::kTwoFold:
      return "half 100 %, half 15 %";
    case Requests::kLow:
      return "5 % for all";
  }
  return "invalid requests";
}

std::vector<TracePod> PodsOf(const Trace& trace, Requests requests, uint64_t seed) {
  std::vector<TracePod> pods;
  std::mt19937_64 random(seed);
  for (const Machine& machine : trace.machines) {
    TracePod pod;
    pod.machine = &machine;
    pod.limits = {static_cast<double>(machine.cpu_limit), static_cast<double>(machine.memory_limit)};
    if (pod.limits.cpu > kSmallCpu * kLargestShare || pod.limits.memory > kSmallMemory * kLargestShare)
      continue;
    pod.requests = RequestsOf(pod, requests, &random);
    pod.average = {MeanOf(machine.cpu, kHistoryHours), MeanOf(machine.memory, kHistoryHours)};
    pods.push_back(pod);
  }
  return pods;
}

Estimate EstimateOf(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  Estimate estimate;
  estimate.mean = MeanOf(values, values.size());
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  if (values.size() > 1) estimate.error = std::sqrt(squares / (count - 1) / count);
  return estimate;
}

SettingResult RunSetting(const Setting& setting, size_t orders, uint64_t seed) {
  SettingResult result;
  result.setting = setting;
  const std::vector<TracePod> pods = PodsOf(*setting.trace, setting.requests, seed);
  result.pods = pods.size();
  result.nodes = NodesFor(pods, setting.size, setting.fill_percent);
  for (const Score score : kScores) {
    ScoreResult& of_score = result.scores.emplace_back();
    of_score.score = score;
    std::vector<double> overload;
    for (size_t i = 0; i < orders; ++i) {
      Placement placement(&pods, setting.size, result.nodes, score == Score::kExpectedHalf ? 2 : 1);
      const uint64_t of_order = seed * 1'000'003 + i;
      const size_t without = PlaceByScore(score, OrderOf(pods.size(), of_order), of_order, pods, &placement);
      Outcome outcome = Judge(pods, placement.pods_on(), setting.size, setting.trace->hours);
      outcome.without = static_cast<double>(without);
      overload.push_back(outcome.cpu_overload);
      AddTo(&of_score.mean, outcome, orders);
    }
    of_score.cpu_overload = EstimateOf(overload);
  }
  const auto overload_of = [&](Score score) {
    return result.scores[static_cast<size_t>(score)].cpu_overload;
  };
  const Estimate kep = overload_of(Score::kKep217);
  const Estimate expected = overload_of(Score::kExpected);
  if (kep.mean >= kNoOverload || expected.mean >= kNoOverload) {
    result.ratio = kep.mean > 0 ? expected.mean / kep.mean : INFINITY;
  }
  result.worse = IsWorse(expected, kep);
  result.half_worse = IsWorse(overload_of(Score::kExpectedHalf), kep);
  return result;
}

std::vector<LineResult> RunLines(const Trace& trace, NodeSize size, size_t orders, uint64_t seed) {
  const std::vector<TracePod> pods = PodsOf(trace, Requests::kLow, seed);
  std::vector<LineResult> results;
  const auto run = [&](const std::string& name, const FilledLine& line) {
    LineResult& result = results.emplace_back();
    result.line = name;
    std::vector<double> nodes;
    for (size_t i = 0; i < orders; ++i) {
      const Filled filled =
          FillToLine(line, OrderOf(pods.size(), seed * 1'000'003 + i), pods, size, trace.hours);
      nodes.push_back(static_cast<double>(filled.nodes));
      AddTo(&result.mean, filled.outcome, orders);
    }
    result.nodes = EstimateOf(nodes);
  };
  for (const int64_t line : {1250, 1500, 1750, 2000, 2500, 3000}) {
    run(absl::StrCat("limits <= ", LineText(line)), {.limits = line});
  }
  for (const int64_t line : {800, 900, 1000, 1100}) {
    run(absl::StrCat("expected <= ", LineText(line)), {.expected = line});
  }
  return results;
}

}  // namespace loadline

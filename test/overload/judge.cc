#include "test/overload/judge.h"

#include <algorithm>

#include "core/fit/load_line.h"
#include "core/score/limit_columns.h"
#include "core/score/line_check.h"

namespace loadline {
namespace {

constexpr double kMemoryFull = 0.97;

LoadLine LineOf(const FilledLine& line, const Placement& placement) {
  LoadLine result;
  // The strict preset's rules for missing limits, which no pod of a trace needs.
  const LimitPolicy strict = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  const ResourceId ids[] = {kCpu, kMemory};
  for (size_t r = 0; r < 2; ++r) {
    const LimitRules rules{strict.resources[r].best_effort, strict.resources[r].others};
    if (line.limits > 0) {
      result.sums.resources.push_back({ids[r], rules});
      result.lines.push_back(line.limits);
    }
    if (line.expected > 0) AddExpectedLine(ids[r], rules, line.expected, &result);
  }
  result.sums.expected = placement.expected();
  return result;
}

}  // namespace

Outcome Judge(const std::vector<TracePod>& pods, const std::vector<std::vector<size_t>>& pods_on,
              NodeSize size, size_t hours) {
  Outcome outcome;
  const double nodes = static_cast<double>(pods_on.size());
  const double cpu_size = static_cast<double>(size.cpu_milli);
  const double memory_full = static_cast<double>(size.memory_bytes) * kMemoryFull;
  for (const std::vector<size_t>& there : pods_on) {
    bool cpu_over = false;
    bool memory_over = false;
    for (size_t hour = kHistoryHours; hour < hours; ++hour) {
      double cpu = 0;
      double memory = 0;
      for (const size_t pod : there) {
        cpu += pods[pod].machine->cpu[hour];
        memory += pods[pod].machine->memory[hour];
      }
      outcome.cpu_overload += std::max(0.0, cpu - cpu_size) / cpu_size;
      cpu_over = cpu_over || cpu > cpu_size;
      memory_over = memory_over || memory > memory_full;
    }
    outcome.cpu_nodes_over += cpu_over ? 100 / nodes : 0;
    outcome.memory_nodes_over += memory_over ? 100 / nodes : 0;
  }
  outcome.cpu_overload *= 100 / nodes / static_cast<double>(hours - kHistoryHours);
  return outcome;
}

Filled FillToLine(const FilledLine& line, const std::vector<size_t>& order, const std::vector<TracePod>& pods,
                  NodeSize size, size_t hours) {
  // A node for each pod is always enough: a pod alone on a node is within any line.
  Placement placement(&pods, size, pods.size(), /*known_every=*/1);
  const LoadLine load_line = LineOf(line, placement);
  const LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  LimitColumns columns(policy);
  Filled filled;
  for (const size_t pod : order) {
    columns.CatchUp(placement.cluster(), placement.expected());
    const LineCheck check(&load_line, &columns, ColumnsOfLine(load_line, policy), &placement.cluster());
    const LineCheck::Pod incoming = check.MakePod(placement.shape(pod));
    size_t node = 0;
    while (node < filled.nodes && !check.Keeps(incoming, Slot{static_cast<int32_t>(node)})) ++node;
    filled.nodes = std::max(filled.nodes, node + 1);
    placement.Place(pod, node);
  }
  std::vector<std::vector<size_t>> pods_on = placement.pods_on();
  pods_on.resize(filled.nodes);
  filled.outcome = Judge(pods, pods_on, size, hours);
  return filled;
}

}  // namespace loadline

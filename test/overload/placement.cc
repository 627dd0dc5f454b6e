#include "test/overload/placement.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/score/limit_columns.h"
#include "core/score/limit_score.h"

namespace loadline {
namespace {

ResourceAmounts Amounts(double cpu, double memory) {
  ResourceAmounts amounts;
  amounts[kCpu] = static_cast<int64_t>(cpu);
  amounts[kMemory] = static_cast<int64_t>(memory);
  return amounts;
}

PodShape ShapeOf(const TracePod& pod, size_t number) {
  PodShape shape;
  shape.namespace_name = "trace";
  shape.requests = Amounts(pod.requests.cpu, pod.requests.memory);
  shape.limits = Amounts(pod.limits.cpu, pod.limits.memory);
  shape.proposal_limits = shape.limits;
  PodTraits traits;
  traits.workload.name = absl::StrCat("Deployment/", number);
  shape.traits = std::make_shared<const PodTraits>(std::move(traits));
  shape.fingerprint = shape.base_fingerprint = number + 1;
  return shape;
}

std::vector<ResourceWeight> Resources() { return {{"cpu", 1}, {"memory", 1}}; }

// The policy of a score of ours; nullopt: it is another's.
std::optional<LimitPolicy> PolicyOf(Score score) {
  switch (score) {
    case Score::kKep217:
      return Kep217Policy(Resources());
    case Score::kStrict:
    case Score::kExpected:
    case Score::kExpectedHalf:
      return StrictPolicy(Resources());
    case Score::kDefaultAlone:
    case Score::kLowRisk:
    case Score::kLoadVariation:
      break;
  }
  return std::nullopt;
}

// Mean and standard deviation.
std::pair<double, double> Moments(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(values.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace

const char* Name(Score score) {
  switch (score) {
    case Score::kDefaultAlone:
      return "default profile alone";
    case Score::kKep217:
      return "KEP 217";
    case Score::kStrict:
      return "Loadline, strict";
    case Score::kExpected:
      return "Loadline, expected use";
    case Score::kExpectedHalf:
      return "the same, half unknown";
    case Score::kLowRisk:
      return "Trimaran LowRiskOverCommitment";
    case Score::kLoadVariation:
      return "Trimaran LoadVariationRisk";
  }
  return "invalid score";
}

Placement::Placement(const std::vector<TracePod>* pods, NodeSize size, size_t nodes, size_t known_every)
    : pods_(*pods),
      size_(size),
      pods_on_(nodes),
      nodes_(nodes),
      cpu_(nodes, std::vector<double>(kHistoryHours)),
      memory_(nodes, std::vector<double>(kHistoryHours)) {
  for (size_t i = 0; i < pods->size(); ++i) {
    shapes_.push_back(ShapeOf((*pods)[i], i));
    if (i % known_every != 0) continue;
    ClusterObject object;
    object.key = {ObjectKind::kWorkloadUsage, "trace", TraitsOf(shapes_[i]).workload.name};
    object.content = ProfileOf(*(*pods)[i].machine);
    cluster_.objects().Set(std::move(object));
  }
  ExpectedUseOptions options;
  options.on = true;
  expected_ = std::make_shared<const ExpectedUse>(options, cluster_.objects(), int64_t{kHistoryHours} * 3600);
  for (size_t node = 0; node < nodes; ++node) {
    nodes_[node].allocatable = {static_cast<double>(size.cpu_milli), static_cast<double>(size.memory_bytes)};
    PutNode(node);
  }
}

void Placement::PutNode(size_t node) {
  ResourceAmounts allocatable;
  allocatable[kCpu] = size_.cpu_milli;
  allocatable[kMemory] = size_.memory_bytes;
  std::vector<PodContent> contents;
  for (const size_t pod : pods_on_[node]) {
    contents.push_back({cluster_.pod_shapes().Acquire(shapes_[pod]), 0, "", "", shapes_[pod].fingerprint});
  }
  cluster_.SetNode(Slot{static_cast<int32_t>(node)}, absl::StrCat("node-", node),
                   MakeNodeShape(std::move(allocatable), cluster_.resource_names()), contents);
}

std::vector<Slot> Placement::Feasible(size_t pod) const {
  std::vector<Slot> feasible;
  const Load& requests = pods_[pod].requests;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const TrimaranNode& there = nodes_[node];
    if (there.requests.cpu + requests.cpu > there.allocatable.cpu) continue;
    if (there.requests.memory + requests.memory > there.allocatable.memory) continue;
    feasible.push_back(Slot{static_cast<int32_t>(node)});
  }
  return feasible;
}

void Placement::Place(size_t pod, size_t node) {
  const TracePod& placed = pods_[pod];
  TrimaranNode& there = nodes_[node];
  there.requests.cpu += placed.requests.cpu;
  there.requests.memory += placed.requests.memory;
  there.limits.cpu += placed.limits.cpu;
  there.limits.memory += placed.limits.memory;
  for (size_t hour = 0; hour < kHistoryHours; ++hour) {
    cpu_[node][hour] += placed.machine->cpu[hour];
    memory_[node][hour] += placed.machine->memory[hour];
  }
  std::tie(there.average.cpu, there.deviation.cpu) = Moments(cpu_[node]);
  std::tie(there.average.memory, there.deviation.memory) = Moments(memory_[node]);
  pods_on_[node].push_back(pod);
  PutNode(node);
}

size_t PlaceByScore(Score score, const std::vector<size_t>& order, uint64_t seed,
                    const std::vector<TracePod>& pods, Placement* placement) {
  const std::optional<LimitPolicy> policy = PolicyOf(score);
  std::optional<LimitColumns> columns;
  if (policy.has_value()) columns.emplace(*policy);
  const bool by_hour = score == Score::kExpected || score == Score::kExpectedHalf;
  std::mt19937_64 random(seed);
  size_t without = 0;
  for (const size_t pod : order) {
    const std::vector<Slot> feasible = placement->Feasible(pod);
    if (feasible.empty()) {
      ++without;
      continue;
    }
    std::vector<int32_t> ours(feasible.size(), 0);
    if (columns.has_value()) {
      columns->CatchUp(placement->cluster(), by_hour ? placement->expected() : nullptr);
      ScoreNodes(*columns, placement->cluster(), placement->shape(pod), feasible, &ours);
    }
    std::vector<size_t> best;
    int64_t highest = INT64_MIN;
    for (size_t i = 0; i < feasible.size(); ++i) {
      const TrimaranNode& node = placement->trimaran(IndexOf(feasible[i]));
      const Load& requests = pods[pod].requests;
      const Load after{node.requests.cpu + requests.cpu, node.requests.memory + requests.memory};
      int64_t total = ours[i] + DefaultProfileScore(node.requests, after, node.allocatable);
      if (score == Score::kLowRisk) total += LowRiskScore(node, requests, pods[pod].limits);
      if (score == Score::kLoadVariation) total += LoadVariationScore(node, requests);
      if (total > highest) best.clear();
      highest = std::max(highest, total);
      if (total == highest) best.push_back(IndexOf(feasible[i]));
    }
    placement->Place(pod, best[random() % best.size()]);
  }
  return without;
}

}  // namespace loadline

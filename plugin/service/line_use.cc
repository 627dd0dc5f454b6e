#include "plugin/service/line_use.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/amount.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// The most nodes whose hours are stated, for each resource. Chosen: as many as a page draws; hours of 15,000
// nodes would not fit into an answer.
constexpr size_t kMostDays = 24;

int64_t RequestedOn(const ClusterState& cluster, Slot slot, ResourceId id) {
  const ResourceColumns* const columns = cluster.columns(id);
  if (columns == nullptr || IndexOf(slot) >= columns->requested.size()) return 0;
  return columns->requested[IndexOf(slot)];
}

// The expected peak over allocatable; -1: the node lacks the resource.
double PeakRatio(const UseOnNode& use) {
  return use.allocatable == 0 ? -1 : static_cast<double>(use.peak) / static_cast<double>(use.allocatable);
}

// Pods without a profile that counts.
int32_t UnknownPods(const ClusterState& cluster, const ExpectedUse* expected, Slot slot, ResourceId id) {
  int32_t unknown = 0;
  for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
    const PodShape& shape = cluster.pod_shapes()[pod.shape];
    if (shape.finished) continue;
    unknown += expected == nullptr || expected->Find(shape, id) == nullptr ? 1 : 0;
  }
  return unknown;
}

}  // namespace

LineUse::LineUse(const LoadLine* line, const LimitColumns* columns, const std::vector<size_t>& positions,
                 const ClusterState* cluster)
    : columns_(*columns), cluster_(*cluster) {
  for (size_t r = 0; r < line->lines.size(); ++r) {
    // The first hour represents all.
    if (line->sums.resources[r].hour != int8_t{0}) continue;
    resources_.push_back({line->sums.resources[r].id, positions[r], {}});
  }
}

void LineUse::Tell(Slot slot, v1::LineNode* node) {
  slots_.push_back(slot);
  for (Resource& resource : resources_) {
    UseOnNode& use = resource.nodes.emplace_back();
    use.allocatable = columns_.terms(slot)[resource.column].allocatable;
    use.limits = columns_.limits(slot)[resource.column];
    use.requests = RequestedOn(cluster_, slot, resource.id);
    v1::ExpectedUseOnNode* const message = node->add_use();
    size_t peak_hour = 0;
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      const int64_t amount = columns_.limits(slot, resource.column, hour);
      if (amount <= use.peak) continue;
      use.peak = amount;
      peak_hour = hour;
    }
    message->set_resource(std::string(LineResourceName(resource.id)));
    message->set_allocatable(use.allocatable);
    message->set_limits(use.limits);
    message->set_requests(use.requests);
    message->set_expected_peak(use.peak);
    message->set_hour(static_cast<int32_t>(peak_hour));
    message->set_unknown_pods(UnknownPods(cluster_, columns_.expected(), slot, resource.id));
  }
}

void LineUse::TellHours(v1::CheckLoadLineResponse* response) const {
  for (size_t r = 0; r < resources_.size(); ++r) {
    const Resource& resource = resources_[r];
    std::vector<size_t> busiest(resource.nodes.size());
    std::iota(busiest.begin(), busiest.end(), size_t{0});
    const auto middle = busiest.begin() + static_cast<std::ptrdiff_t>(std::min(busiest.size(), kMostDays));
    std::partial_sort(busiest.begin(), middle, busiest.end(), [&](size_t a, size_t b) {
      return std::pair(-PeakRatio(resource.nodes[a]), a) < std::pair(-PeakRatio(resource.nodes[b]), b);
    });
    for (const size_t i : std::span(busiest.begin(), middle)) {
      v1::ExpectedUseOnNode* const use =
          response->mutable_nodes(static_cast<int>(i))->mutable_use(static_cast<int>(r));
      for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
        use->add_expected_hours(columns_.limits(slots_[i], resource.column, hour));
      }
    }
  }
}

void LineUse::TellSafeLines(v1::CheckLoadLineResponse* response) const {
  for (const Resource& resource : resources_) {
    v1::SafeLine* const message = response->add_safe_lines();
    message->set_resource(std::string(LineResourceName(resource.id)));
    const std::optional<SafeLine> safe = FindSafeLine(resource.nodes);
    if (!safe.has_value()) continue;
    const Slot slot = slots_[safe->node];
    message->set_max_limits_over_allocatable(LineText(safe->line()));
    message->set_slot(static_cast<int32_t>(slot));
    message->set_node(Printable(cluster_.name(slot)));
    for (const LineRisk& risk : safe->around) {
      v1::LineRisk* const around = message->add_lines();
      around->set_max_limits_over_allocatable(LineText(risk.line));
      around->set_nodes_over(static_cast<int32_t>(risk.nodes_over));
      around->set_nodes(risk.nodes);
    }
  }
}

}  // namespace loadline

#include "core/cluster/shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// In name order: ids depend on the order of arrival.
void AddAmounts(const ResourceAmounts& amounts, const ResourceNames& names, FingerprintBuilder* builder) {
  std::vector<std::pair<absl::string_view, int64_t>> sorted;
  for (const auto& [resource, amount] : amounts) sorted.emplace_back(names.name(resource), amount);
  std::sort(sorted.begin(), sorted.end());
  builder->Add(static_cast<int64_t>(sorted.size()));
  for (const auto& [name, amount] : sorted) {
    builder->Add(name);
    builder->Add(amount);
  }
}

}  // namespace

PodShape MakePodShape(std::string namespace_name, bool finished, const PodResources& resources,
                      const ResourceNames& names, PodRole role) {
  PodShape shape;
  shape.namespace_name = std::move(namespace_name);
  shape.finished = finished;
  if (!finished) {
    const bool existing = role == PodRole::kExisting;
    shape.best_effort = IsBestEffort(resources);
    shape.requests = ToAmounts(EffectiveRequests(resources, names, existing));
    shape.limits = ToAmounts(EffectiveLimits(resources, names, existing));
    shape.proposal_limits = existing ? ProposalExistingLimits(resources) : ProposalIncomingLimits(resources);
  }
  FingerprintBuilder builder;
  builder.Add(absl::string_view(shape.namespace_name));
  builder.Add(int64_t{shape.finished});
  builder.Add(int64_t{shape.best_effort});
  AddAmounts(shape.requests, names, &builder);
  AddAmounts(shape.limits, names, &builder);
  AddAmounts(shape.proposal_limits, names, &builder);
  shape.fingerprint = builder.Finish();
  return shape;
}

NodeShape MakeNodeShape(ResourceAmounts allocatable, const ResourceNames& names) {
  NodeShape shape;
  shape.allocatable = std::move(allocatable);
  FingerprintBuilder builder;
  AddAmounts(shape.allocatable, names, &builder);
  shape.fingerprint = builder.Finish();
  return shape;
}

}  // namespace loadline

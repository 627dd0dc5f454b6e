#include "core/drain/filter_shape.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// Takes over what the load line reads: limits of its resources, whose ids are the same everywhere.
void CopyLimits(const PodShape& shape, const LoadLine& line, PodShape* result, FingerprintBuilder* builder) {
  result->best_effort = shape.best_effort;
  builder->Add(int64_t{shape.best_effort});
  std::vector<PartialLimit> partial;
  for (const LimitSumsSpec::Resource& resource : line.sums.resources) {
    const int64_t* const limit = shape.limits.Find(resource.id);
    if (limit != nullptr) result->limits[resource.id] = *limit;
    builder->Add(limit != nullptr ? *limit : -1);
    if (shape.partial_limits == nullptr) continue;
    for (const PartialLimit& entry : *shape.partial_limits) {
      if (entry.resource != resource.id) continue;
      partial.push_back(entry);
      const int64_t flags = (entry.bounded ? 2 : 0) + (entry.stated ? 1 : 0);
      for (const int64_t value : {flags, entry.by_request, entry.with_gap, entry.whole}) builder->Add(value);
    }
  }
  if (!partial.empty()) {
    result->partial_limits = std::make_shared<const std::vector<PartialLimit>>(std::move(partial));
  }
}

// Takes over the workload, by which a line of expected use counts a pod.
void CopyWorkload(const PodShape& shape, PodShape* result, FingerprintBuilder* builder) {
  const PodWorkload& workload = TraitsOf(shape).workload;
  if (workload.name.empty()) return;
  PodTraits traits;
  traits.workload = workload;
  traits.AddTo(builder);
  result->traits = std::make_shared<const PodTraits>(std::move(traits));
}

}  // namespace

PodShape ShapeForFilters(const PodShape& shape, const LoadLine& line) {
  PodShape result;
  result.namespace_name = shape.namespace_name;
  result.requests = shape.requests;
  result.labels = shape.labels;
  result.rules = shape.rules;
  if (shape.rules != nullptr && (shape.rules->terminating || !shape.rules->node_name.empty())) {
    PodRules rules = *shape.rules;
    rules.terminating = false;  // its replacement is not
    rules.node_name.clear();
    result.rules = rules.IsPlain() ? nullptr : std::make_shared<const PodRules>(std::move(rules));
  }
  FingerprintBuilder builder;
  builder.Add(absl::string_view(result.namespace_name));
  builder.Add(static_cast<int64_t>(result.requests.size()));
  for (const auto& [resource, amount] : result.requests) {
    builder.Add(static_cast<int64_t>(resource));
    builder.Add(amount);
  }
  if (result.rules != nullptr) result.rules->AddTo(&builder);
  if (!line.empty()) CopyLimits(shape, line, &result, &builder);
  if (line.HasHours() && line.sums.expected != nullptr) CopyWorkload(shape, &result, &builder);
  result.base_fingerprint = builder.Finish();
  result.labels.AddTo(&builder);
  result.fingerprint = builder.Finish();
  return result;
}

bool DependsOnOthers(const PodShape& shape) {
  if (shape.rules == nullptr) return false;
  const PodRules& rules = *shape.rules;
  return !rules.spread.empty() || !rules.affinity.empty() || !rules.anti_affinity.empty() ||
         !rules.volumes.empty();
}

}  // namespace loadline

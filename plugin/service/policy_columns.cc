#include "plugin/service/policy_columns.h"

#include <algorithm>
#include <utility>

#include "core/cluster/cluster_state.h"
#include "core/cluster/expected_use.h"
#include "core/score/limit_columns.h"
#include "core/score/limit_policy.h"

namespace loadline {

PolicyColumns::PolicyColumns(int32_t max_policies) : max_policies_(static_cast<size_t>(max_policies)) {}
PolicyColumns::~PolicyColumns() = default;

std::unique_ptr<LimitColumns> PolicyColumns::Take(const LimitPolicy& policy) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& columns) { return columns->policy() == policy; });
  if (found == kept_.end()) return std::make_unique<LimitColumns>(policy);
  std::unique_ptr<LimitColumns> columns = std::move(*found);
  kept_.erase(found);
  return columns;
}

const LimitColumns& PolicyColumns::For(const LimitPolicy& policy, const ClusterState& cluster,
                                       std::shared_ptr<const ExpectedUse> expected) {
  // Taken out while they catch up: should memory run out half-way, they are gone instead of wrong.
  std::unique_ptr<LimitColumns> columns = Take(policy);
  columns->CatchUp(cluster, std::move(expected));
  if (kept_.size() >= max_policies_) kept_.erase(kept_.begin());
  kept_.push_back(std::move(columns));
  return *kept_.back();
}

}  // namespace loadline

#include "plugin/service/policy_columns.h"

#include <algorithm>
#include <utility>

#include "core/cluster/cluster_state.h"
#include "core/cluster/expected_use.h"
#include "core/score/limit_policy.h"

namespace loadline {

// Takes columns that another question still reads only if they are up to date. They are, unless that question
// has other profiles, because the view has not changed since then.
std::shared_ptr<PolicyColumns::Entry> PolicyColumns::Take(const LimitPolicy& policy,
                                                          const ClusterState& cluster,
                                                          const ExpectedUse* expected,
                                                          const DrainBlockers* blockers) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const std::shared_ptr<Entry>& entry) {
    return entry->columns.policy() == policy &&
           (entry->users == 0 || entry->columns.IsUpToDate(cluster, expected, blockers));
  });
  if (found == kept_.end()) return std::make_shared<Entry>(policy);
  std::shared_ptr<Entry> entry = std::move(*found);
  kept_.erase(found);
  return entry;
}

PolicyColumns::Lease PolicyColumns::For(const LimitPolicy& policy, const ClusterState& cluster,
                                        std::shared_ptr<const ExpectedUse> expected,
                                        std::shared_ptr<const DrainBlockers> blockers) {
  const MutexLock lock(&mutex_);
  // Taken out while they catch up: should memory run out half-way, they are gone instead of wrong.
  std::shared_ptr<Entry> entry = Take(policy, cluster, expected.get(), blockers.get());
  if (entry->users == 0) entry->columns.CatchUp(cluster, std::move(expected), std::move(blockers));
  if (kept_.size() >= max_policies_) kept_.erase(kept_.begin());
  kept_.push_back(entry);
  ++entry->users;
  const LimitColumns* const columns = &entry->columns;
  return Lease(columns, GiveBack{std::move(entry), this});
}

void PolicyColumns::Return(Entry* entry) {
  const MutexLock lock(&mutex_);
  --entry->users;
}

}  // namespace loadline

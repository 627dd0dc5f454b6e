// The limit columns of the policies that were asked about last.
#ifndef LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_
#define LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/score/limit_columns.h"
#include "plugin/base/mutex.h"

namespace loadline {

// Keeps LimitColumns per policy of one view; beyond `max_policies` the least recently used go. Thread-safe,
// as long as nobody changes the view meanwhile.
class PolicyColumns {
  struct Entry {
    explicit Entry(const LimitPolicy& policy) : columns(policy) {}
    LimitColumns columns;
    int users = 0;  // guarded by the mutex of the PolicyColumns
  };
  struct GiveBack {
    std::shared_ptr<PolicyColumns::Entry> entry;
    PolicyColumns* columns;
    void operator()(const LimitColumns*) const { columns->Return(entry.get()); }
  };

 public:
  // Columns that stay as they are until this is destroyed.
  using Lease = std::unique_ptr<const LimitColumns, GiveBack>;

  explicit PolicyColumns(int32_t max_policies) : max_policies_(static_cast<size_t>(max_policies)) {}

  // The columns of `policy`, up to date with `cluster`, which is the same view each time. Cost: that of
  // LimitColumns::CatchUp(); O(pods) for a policy that was not kept.
  // `expected`: the profiles by which the policy counts; nullptr: none. `blockers`: the rule by which pods
  // block drains, where the policy asks for it.
  Lease For(const LimitPolicy& policy, const ClusterState& cluster,
            std::shared_ptr<const ExpectedUse> expected,
            std::shared_ptr<const DrainBlockers> blockers = nullptr);

 private:
  std::shared_ptr<Entry> Take(const LimitPolicy& policy, const ClusterState& cluster,
                              const ExpectedUse* expected, const DrainBlockers* blockers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(Entry* entry);

  const size_t max_policies_;
  Mutex mutex_;
  std::vector<std::shared_ptr<Entry>> kept_ ABSL_GUARDED_BY(mutex_);  // most recently used last
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_POLICY_COLUMNS_H_
